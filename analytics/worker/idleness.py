"""Which active nodes lie idle, since when, and what the last sign of life was.

Idea: a node's own last sign is the latest of its creation, edit, focus and access; a node is
as alive as the liveliest below it. Each step lifts the signs one level, only the greatest
for each parent, so that a level holds no more rows than there are parents. A sign is one
number, (microseconds · 8) + (4 when the node's own) + what it was: greater means later, at
one instant the node's own. Cost: some joins of the nodes and one for each level, 0.1 s at
100,000. Corner: a ring of parents, which no cortex makes, ends, since UNION keeps no row
twice.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import starmap
from typing import Final

from analytics.queries import Idle, IdleRow, IdleTimes
from analytics.worker import sources
from analytics.worker.instants import window
from analytics.worker.mirror import View

_SIGNS: Final = """
WITH RECURSIVE opened AS MATERIALIZED (
    SELECT CAST(node_key AS BIGINT) AS key, instant(last_at) AS moment
      FROM sqlite_query('s', $accesses)),
focused AS MATERIALIZED (
    SELECT node, MAX(moment) AS moment FROM focuses
     WHERE workspace = hash($workspace) GROUP BY node),
own AS MATERIALIZED (
    SELECT n.key, n.parent,
           greatest(n.created * 8 + 4, CASE WHEN n.updated > n.created THEN n.updated * 8 + 5 END,
                    f.moment * 8 + 6, o.moment * 8 + 7) AS sign
      FROM nodes AS n
           LEFT JOIN focused AS f ON f.node = hash(n.id)
           LEFT JOIN opened AS o ON o.key = n.key
     WHERE n.workspace = hash($workspace)),
lifted(key, sign) AS (
    SELECT parent, MAX(sign & ~4) FROM own WHERE parent IS NOT NULL GROUP BY parent
    UNION
    SELECT own.parent, MAX(lifted.sign)
      FROM lifted JOIN own ON own.key = lifted.key
     WHERE own.parent IS NOT NULL
     GROUP BY own.parent),
below AS (SELECT key, MAX(sign) AS sign FROM lifted GROUP BY key),
latest AS (
    SELECT own.key, greatest(own.sign, below.sign) AS sign
      FROM own LEFT JOIN below ON below.key = own.key),
last AS (SELECT key, sign, (sign - (sign & 7)) // 8 AS moment FROM latest),
activity AS (
    SELECT greatest(
        (SELECT MAX(greatest(created, updated)) FROM nodes WHERE workspace = hash($workspace)),
        (SELECT MAX(moment) FROM focused)) AS moment)
SELECT n.key, n.id, strftime(make_timestamp(last.moment), '%Y-%m-%dT%H:%M:%S.%fZ'),
       ['created', 'changed', 'focused', 'opened'][1 + (last.sign & 3)],
       CASE WHEN last.sign & 4 = 0 THEN 1 ELSE 0 END, (activity.moment - last.moment) / 1e6
  FROM nodes AS n JOIN last ON last.key = n.key CROSS JOIN activity
 WHERE n.workspace = hash($workspace) AND n.status = 'active'
"""
_TAKEN: Final = """
   AND last.moment < $cutoff
   AND n.type NOT IN ('session', 'goal', 'constraint') AND NOT n.pinned
   AND NOT list_contains($hot::VARCHAR[], n.id)
   AND n.key NOT IN (
       SELECT key FROM nodes WHERE workspace = hash($workspace) AND status = 'active'
        ORDER BY created DESC, id DESC LIMIT $keep)
 ORDER BY n.key
"""
_OLDEST: Final = """
 ORDER BY last.moment, n.id LIMIT $take
"""
_IDLE: Final = _SIGNS + _TAKEN
_TIMES: Final = _SIGNS + _OLDEST


def idle(view: View, query: Idle) -> Iterable[IdleRow]:
    """What archiving would take, by rising key."""
    rows = view.iter_rows(
        _IDLE,
        workspace=query.workspace,
        accesses=sources.ACCESSES,
        cutoff=window(query.cutoff, None)["start"],
        hot=list(query.hot),
        keep=query.keep,
    )
    return starmap(IdleRow, rows)


def idle_times(view: View, query: IdleTimes) -> Iterable[IdleRow]:
    """The longest idle first."""
    rows = view.rows(_TIMES, workspace=query.workspace, accesses=sources.ACCESSES, take=query.take)
    return starmap(IdleRow, rows)
