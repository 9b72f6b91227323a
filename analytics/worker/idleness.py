"""Which active nodes lie idle, since when, and what the last sign of life was.

Idea: a node's own last sign is the latest of its creation, edit, focus and access; a node is
as alive as the liveliest below it. Each step lifts the signs one level, only the greatest
for each parent, so that a level holds no more rows than there are parents. A sign is one
number, (microseconds · 8) + (4 when the node's own) + what it was: greater means later, at
one instant the node's own. What archiving would take is found first, by who is alive since
the cutoff; signs are then read of those alone, and of what lies below them, since texts of
times are slow to read. Cost: some joins of the nodes and one for each level; at 100,000
nodes 0.1 s for all of them, a third of that for a thousand. Corner: a ring of parents, which
no cortex makes, ends, since UNION keeps no row twice.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from itertools import starmap
from typing import Final

from analytics.queries import Idle, IdleTimes
from analytics.worker import sources
from analytics.worker.instants import window
from analytics.worker.mirror import View
from cortex.domain.activity import IdleRow

# Candidates (1) and what lies below them (0). The newest are sorted out only where fewer than
# `keep` nodes are newer than all that sleep: to sort what comes in order already is slow.
_CANDIDATES: Final = """
WITH RECURSIVE opened AS MATERIALIZED (
    SELECT CAST(node_key AS BIGINT) AS key
      FROM sqlite_query('s', $accesses, params = row($since::VARCHAR))),
focused AS MATERIALIZED (
    SELECT DISTINCT node FROM focuses WHERE workspace = hash($workspace) AND moment >= $cutoff),
asleep AS MATERIALIZED (
    SELECT key, parent, created FROM nodes
     WHERE workspace = hash($workspace) AND created < $cutoff AND updated < $cutoff
       AND key NOT IN (SELECT key FROM opened) AND hash(id) NOT IN (SELECT node FROM focused)),
above(key) AS (
    SELECT DISTINCT parent FROM nodes
     WHERE workspace = hash($workspace) AND parent IS NOT NULL
       AND key NOT IN (SELECT key FROM asleep)
    UNION
    SELECT a.parent FROM above JOIN asleep AS a ON a.key = above.key WHERE a.parent IS NOT NULL),
newest AS (
    SELECT key FROM nodes
     WHERE workspace = hash($workspace) AND status = 'active'
       AND created >= (SELECT MIN(created) FROM (
           SELECT created FROM nodes
            WHERE workspace = hash($workspace) AND status = 'active'
              AND $keep > (SELECT COUNT(*) FROM nodes
                            WHERE workspace = hash($workspace) AND status = 'active'
                              AND created > (SELECT MAX(created) FROM asleep))
            ORDER BY created DESC LIMIT $keep))
     ORDER BY created DESC, id DESC LIMIT $keep),
idle AS MATERIALIZED (
    SELECT n.key FROM asleep JOIN nodes AS n ON n.key = asleep.key
     WHERE n.status = 'active' AND n.type NOT IN ('session', 'goal', 'constraint')
       AND NOT n.pinned AND NOT list_contains($hot::VARCHAR[], n.id)
       AND n.key NOT IN (SELECT key FROM above) AND n.key NOT IN (SELECT key FROM newest)),
below(key) AS (
    SELECT key FROM idle
    UNION
    SELECT a.key FROM below JOIN asleep AS a ON a.parent = below.key)
SELECT b.key, CASE WHEN i.key IS NULL THEN 0 ELSE 1 END
  FROM below AS b LEFT JOIN idle AS i ON i.key = b.key
"""
_OPENED_ALL: Final = """
WITH RECURSIVE opened AS MATERIALIZED (
    SELECT CAST(node_key AS BIGINT) AS key, instant(last_at) AS moment
      FROM sqlite_query('s', $accesses)),
asked AS MATERIALIZED (SELECT key, id, parent, created, updated, status = 'active' AS shown
                         FROM nodes WHERE workspace = hash($workspace)),
"""
_OPENED_SOME: Final = """
WITH RECURSIVE opened AS MATERIALIZED (
    SELECT CAST(node_key AS BIGINT) AS key, instant(last_at) AS moment
      FROM sqlite_query('s', $accesses, params = row($below::VARCHAR))),
asked AS MATERIALIZED (
    SELECT n.key, n.id, n.parent, n.created, n.updated, b.shown
      FROM (SELECT unnest($keys::BIGINT[]) AS key, unnest($shown::BOOLEAN[]) AS shown) AS b
           JOIN nodes AS n ON n.key = b.key
     WHERE n.workspace = hash($workspace)),
"""
_SIGNS: Final = """
focused AS MATERIALIZED (
    SELECT node, MAX(moment) AS moment FROM focuses
     WHERE workspace = hash($workspace) AND node IN (SELECT hash(id) FROM asked)
     GROUP BY node),
own AS MATERIALIZED (
    SELECT n.key, n.parent,
           greatest(n.created * 8 + 4, CASE WHEN n.updated > n.created THEN n.updated * 8 + 5 END,
                    f.moment * 8 + 6, o.moment * 8 + 7) AS sign
      FROM asked AS n
           LEFT JOIN focused AS f ON f.node = hash(n.id)
           LEFT JOIN opened AS o ON o.key = n.key),
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
        (SELECT MAX(moment) FROM focuses WHERE workspace = hash($workspace))) AS moment),
shown AS (
    SELECT n.key, n.id, last.moment, last.sign, COUNT(*) OVER () AS total
      FROM asked AS n JOIN last ON last.key = n.key
     WHERE n.shown
     ORDER BY last.moment, n.id LIMIT $take)
SELECT s.key, s.id, strftime(make_timestamp(s.moment), '%Y-%m-%dT%H:%M:%S.%fZ'),
       ['created', 'changed', 'focused', 'opened'][1 + (s.sign & 3)],
       CASE WHEN s.sign & 4 = 0 THEN 1 ELSE 0 END, (activity.moment - s.moment) / 1e6, s.total
  FROM shown AS s CROSS JOIN activity
 ORDER BY s.moment, s.id
"""
_IDLE: Final = _OPENED_SOME + _SIGNS
_TIMES: Final = _OPENED_ALL + _SIGNS
_ALL: Final = 1 << 62


def idle(view: View, query: Idle) -> Iterable[IdleRow]:
    """What archiving would take, the longest idle first."""
    found = view.rows(
        _CANDIDATES,
        workspace=query.workspace,
        accesses=sources.OPENED_SINCE,
        since=query.cutoff,
        cutoff=window(query.cutoff, None)["start"],
        hot=list(query.hot),
        keep=query.keep,
    )
    if not found:
        return ()
    keys, shown = zip(*found, strict=True)
    rows = view.iter_rows(
        _IDLE,
        workspace=query.workspace,
        accesses=sources.OPENED_OF,
        below=json.dumps(keys),
        keys=list(keys),
        shown=[bool(each) for each in shown],
        take=_ALL if query.take is None else query.take,
    )
    return starmap(IdleRow, rows)


def idle_times(view: View, query: IdleTimes) -> Iterable[IdleRow]:
    """The longest idle first."""
    rows = view.rows(_TIMES, workspace=query.workspace, accesses=sources.ACCESSES, take=query.take)
    return starmap(IdleRow, rows)
