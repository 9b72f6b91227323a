"""Events counted over time: by unit and kind, by type of node, by week, and who replaced whom.

The same rows as the analytics worker gives, which is many times as fast over a long history
(`python -m bench.worker`); these answer where it cannot run. What counts as an event is what
`cortex.store.timeline` lists.
"""

from __future__ import annotations

import sqlite3
from typing import Final

from cortex.domain.activity import BucketRow, ChurnRow, LineageRow, TypeRow, Unit
from cortex.domain.instants import Instant
from cortex.domain.values import NodeId, WorkspaceId

# Where the unit begins; weekday 0 is the next Sunday, or the day itself if it is one.
_BUCKETS: Final = """
WITH happened(at, kind) AS (
    SELECT created_at, 'created' FROM nodes
     WHERE workspace_id = :workspace AND created_at >= :start AND created_at <= :stop
    UNION ALL
    SELECT c.at, CASE WHEN json_extract(c.before, '$.status') IS NOT n.status
                      THEN 'status' ELSE 'changed' END
      FROM changes AS c JOIN nodes AS n ON n.rowkey = c.key
     WHERE c.workspace_id = :workspace AND c.at >= :start AND c.at <= :stop
       AND c.entity = 'node' AND c.op = 'update'
       AND (json_extract(c.before, '$.data') IS NOT n.data
            OR json_extract(c.before, '$.status') IS NOT n.status)
    UNION ALL
    SELECT at, 'deleted' FROM changes
     WHERE workspace_id = :workspace AND at >= :start AND at <= :stop
       AND entity = 'node' AND op = 'delete'
    UNION ALL
    SELECT r.created_at, 'related' FROM relations AS r JOIN nodes AS n ON n.id = r.from_id
     WHERE r.workspace_id = :workspace AND r.created_at >= :start AND r.created_at <= :stop
    UNION ALL
    SELECT created_at, action FROM navigation_history
     WHERE workspace_id = :workspace AND created_at >= :start AND created_at <= :stop),
hours(hour, kind, total) AS MATERIALIZED (
    SELECT substr(at, 1, 13), kind, COUNT(*) FROM happened
     WHERE :kind IS NULL OR kind = :kind
     GROUP BY 1, 2)
SELECT CASE :unit
       WHEN 'hour' THEN hour || ':00:00.000000Z'
       WHEN 'day' THEN substr(hour, 1, 10) || 'T00:00:00.000000Z'
       ELSE date(substr(hour, 1, 10), 'weekday 0', '-6 days') || 'T00:00:00.000000Z' END AS begin,
       kind, SUM(total)
  FROM hours
 GROUP BY begin, kind ORDER BY begin, kind
"""
_BY_TYPE: Final = """
SELECT type, kind, SUM(total) AS number FROM (
    SELECT type, 'created' AS kind, COUNT(*) AS total FROM nodes
     WHERE workspace_id = :workspace AND created_at >= :start AND created_at <= :stop
     GROUP BY type
    UNION ALL
    SELECT n.type, CASE WHEN json_extract(c.before, '$.status') IS NOT n.status
                        THEN 'status' ELSE 'changed' END, 1
      FROM changes AS c JOIN nodes AS n ON n.rowkey = c.key
     WHERE c.workspace_id = :workspace AND c.at >= :start AND c.at <= :stop
       AND c.entity = 'node' AND c.op = 'update'
       AND (json_extract(c.before, '$.data') IS NOT n.data
            OR json_extract(c.before, '$.status') IS NOT n.status)
    UNION ALL
    SELECT json_extract(before, '$.type'), 'deleted', 1 FROM changes
     WHERE workspace_id = :workspace AND at >= :start AND at <= :stop
       AND entity = 'node' AND op = 'delete'
    UNION ALL
    SELECT n.type, 'related', 1 FROM relations AS r JOIN nodes AS n ON n.id = r.from_id
     WHERE r.workspace_id = :workspace AND r.created_at >= :start AND r.created_at <= :stop
    UNION ALL
    SELECT n.type, h.action, h.total
      FROM (SELECT node_id, action, COUNT(*) AS total FROM navigation_history
             WHERE workspace_id = :workspace AND created_at >= :start AND created_at <= :stop
             GROUP BY node_id, action) AS h LEFT JOIN nodes AS n ON n.id = h.node_id)
 GROUP BY type, kind ORDER BY number DESC, type NULLS LAST, kind
"""
# The status after a change is the one before the next change of that node, or the present.
_CHURN: Final = """
WITH happened(at, what) AS (
    SELECT at, 'created' FROM changes
     WHERE workspace_id = :workspace AND at >= :start AND at <= :stop
       AND entity = 'node' AND op = 'insert'
    UNION ALL
    SELECT created_at, 'superseded' FROM relations
     WHERE workspace_id = :workspace AND created_at >= :start AND created_at <= :stop
       AND type = 'supersedes'
    UNION ALL
    SELECT c.at, 'archived' FROM changes AS c
     WHERE c.workspace_id = :workspace AND c.at >= :start AND c.at <= :stop
       AND c.entity = 'node' AND c.op = 'update'
       AND json_extract(c.before, '$.status') <> 'archived'
       AND 'archived' = COALESCE(
           (SELECT json_extract(x.before, '$.status') FROM changes AS x
             WHERE x.entity = 'node' AND x.key = c.key AND x.seq > c.seq ORDER BY x.seq LIMIT 1),
           (SELECT n.status FROM nodes AS n WHERE n.rowkey = c.key))
    UNION ALL
    SELECT at, 'deleted' FROM changes
     WHERE workspace_id = :workspace AND at >= :start AND at <= :stop
       AND entity = 'node' AND op = 'delete')
SELECT date(substr(at, 1, 10), 'weekday 0', '-6 days') || 'T00:00:00.000000Z' AS week,
       SUM(what = 'created'), SUM(what = 'superseded'), SUM(what = 'archived'),
       SUM(what = 'deleted')
  FROM happened
 GROUP BY week ORDER BY week
"""
_LINEAGE: Final = """
WITH RECURSIVE older(id) AS (
    SELECT :node
    UNION
    SELECT r.to_id
      FROM older JOIN relations AS r ON r.from_id = older.id AND r.type = 'supersedes'),
newer(id) AS (
    SELECT :node
    UNION
    SELECT r.from_id
      FROM newer JOIN relations AS r ON r.to_id = newer.id AND r.type = 'supersedes'),
chain(id) AS (SELECT id FROM older UNION SELECT id FROM newer)
SELECT n.id, n.type, n.status, n.created_at, s.id, s.at, s.reason
  FROM chain JOIN nodes AS n ON n.id = chain.id
       LEFT JOIN (
            SELECT up.id, r.to_id, r.created_at AS at,
                   COALESCE(NULLIF(json_extract(r.data, '$.reason'), ''),
                            NULLIF(json_extract(up.data, '$.reason'), '')) AS reason
              FROM chain AS above
                   JOIN relations AS r ON r.from_id = above.id AND r.type = 'supersedes'
                   JOIN nodes AS up ON up.id = above.id) AS s ON s.to_id = n.id
 ORDER BY n.created_at, n.id, s.at, s.id
"""


class Activity:
    """Counts within one transaction; windows hold both of their ends, None is an open end."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def buckets(
        self,
        workspace: WorkspaceId,
        unit: Unit,
        kind: str | None,
        start: Instant | None,
        stop: Instant | None,
    ) -> tuple[BucketRow, ...]:
        """Events by unit and kind, oldest first; units in which nothing happened are left out."""
        bound = {"unit": unit.value, "kind": kind, **_window(workspace, start, stop)}
        return tuple(BucketRow(*row) for row in self._connection.execute(_BUCKETS, bound))

    def by_type(
        self, workspace: WorkspaceId, start: Instant | None, stop: Instant | None
    ) -> tuple[TypeRow, ...]:
        """Events by the type of their node and kind, most first."""
        rows = self._connection.execute(_BY_TYPE, _window(workspace, start, stop))
        return tuple(TypeRow(*row) for row in rows)

    def churn(
        self, workspace: WorkspaceId, start: Instant | None, stop: Instant | None
    ) -> tuple[ChurnRow, ...]:
        """What came and went by week, oldest first, as far back as the log reaches."""
        rows = self._connection.execute(_CHURN, _window(workspace, start, stop))
        return tuple(ChurnRow(*row) for row in rows)

    def lineage(self, node: NodeId) -> tuple[LineageRow, ...]:
        """The chain of supersedes that a node is a link of, oldest first."""
        rows = self._connection.execute(_LINEAGE, {"node": node})
        return tuple(LineageRow(*row) for row in rows)


def _window(
    workspace: WorkspaceId, start: Instant | None, stop: Instant | None
) -> dict[str, str | None]:
    return {"workspace": workspace, "start": start or "", "stop": stop or "~"}
