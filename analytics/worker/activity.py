"""Events counted: per unit of time, per type of node, per week of comings and goings.

Cost: one pass over the times of four tables. Corners: what counts as an event is what
`events` lists; units are UTC, weeks begin on Monday; a unit without events has no row.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from analytics.queries import ActivityByType, Buckets, Churn
from analytics.worker.instants import text, window
from analytics.worker.mirror import View
from cortex.domain.activity import BucketRow, ChurnRow, TypeRow, parse_unit

_BUCKETS: Final = """
SELECT epoch_us(date_trunc($unit, make_timestamp(moment))) AS start, kind, COUNT(*)
  FROM events
 WHERE workspace = hash($workspace) AND moment BETWEEN $start AND $stop
   AND ($kind::VARCHAR IS NULL OR kind = $kind::VARCHAR)
 GROUP BY start, kind ORDER BY start, kind
"""

# The history is counted by node before it meets the types: a thousandth of the join.
_BY_TYPE: Final = """
SELECT CAST(type AS VARCHAR), kind, CAST(SUM(count) AS BIGINT) AS total
  FROM (
    SELECT type, 'created' AS kind, COUNT(*) AS count FROM nodes
     WHERE workspace = hash($workspace) AND created BETWEEN $start AND $stop
     GROUP BY type
    UNION ALL
    SELECT n.type, CASE WHEN c.old_status IS DISTINCT FROM n.status
                        THEN 'status' ELSE 'changed' END, 1
      FROM changes AS c JOIN nodes AS n ON n.key = c.key
     WHERE c.workspace = hash($workspace) AND c.moment BETWEEN $start AND $stop
       AND c.entity = 'node' AND c.op = 'update'
       AND (c.data <> n.data OR c.old_status IS DISTINCT FROM n.status)
    UNION ALL
    SELECT type, 'deleted', COUNT(*) FROM changes
     WHERE workspace = hash($workspace) AND moment BETWEEN $start AND $stop
       AND entity = 'node' AND op = 'delete'
     GROUP BY type
    UNION ALL
    SELECT n.type, 'related', 1 FROM relations AS r JOIN nodes AS n ON n.key = r.source
     WHERE r.workspace = hash($workspace) AND r.created BETWEEN $start AND $stop
    UNION ALL
    SELECT n.type, CAST(h.action AS VARCHAR), h.count
      FROM (SELECT node, action, COUNT(*) AS count FROM navigation
             WHERE workspace = hash($workspace) AND moment BETWEEN $start AND $stop
             GROUP BY node, action) AS h LEFT JOIN nodes AS n ON hash(n.id) = h.node)
 GROUP BY type, kind ORDER BY total DESC, CAST(type AS VARCHAR), kind
"""

_CHURN: Final = """
SELECT epoch_us(date_trunc('week', make_timestamp(moment))) AS week,
       COUNT(*) FILTER (WHERE what = 1), COUNT(*) FILTER (WHERE what = 2),
       COUNT(*) FILTER (WHERE what = 3), COUNT(*) FILTER (WHERE what = 4)
  FROM (
    SELECT moment, CASE op WHEN 'insert' THEN 1 WHEN 'delete' THEN 4
                           ELSE 3 END AS what
      FROM changes
     WHERE workspace = hash($workspace) AND moment BETWEEN $start AND $stop
       AND entity = 'node'
       AND (op <> 'update' OR (new_status = 'archived' AND old_status <> 'archived'))
    UNION ALL
    SELECT created, 2 FROM relations
     WHERE workspace = hash($workspace) AND created BETWEEN $start AND $stop
       AND type = 'supersedes')
 GROUP BY week ORDER BY week
"""


def buckets(view: View, query: Buckets) -> Iterable[BucketRow]:
    """Counts per unit and kind, oldest first."""
    rows = view.rows(
        _BUCKETS,
        workspace=query.workspace,
        unit=parse_unit(query.unit).value,
        kind=query.kind,
        **window(query.start, query.stop),
    )
    return [BucketRow(text(start), kind, count) for start, kind, count in rows]


def activity_by_type(view: View, query: ActivityByType) -> Iterable[TypeRow]:
    """Counts per type of node and kind, most first."""
    bound = window(query.start, query.stop)
    return [TypeRow(*row) for row in view.rows(_BY_TYPE, workspace=query.workspace, **bound)]


def churn(view: View, query: Churn) -> Iterable[ChurnRow]:
    """Counts per week, oldest first."""
    bound = window(query.start, query.stop)
    rows = view.rows(_CHURN, workspace=query.workspace, **bound)
    return [ChurnRow(text(week), *counts) for week, *counts in rows]
