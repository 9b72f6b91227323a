"""Events in time, read by index from four tables: nodes, relations, the log, navigation."""

from __future__ import annotations

import sqlite3
from typing import Final, NamedTuple

from cortex.domain.activity import EventRow
from cortex.domain.instants import Instant
from cortex.domain.values import WorkspaceId

# Each branch reads its newest rows by index and stops at the limit; the outer query merges
# them by the same order (`tie`), else pages would repeat what happened at one instant.
# A change that only moved `parent_id` (a side effect of contains) is no event of its own.
# The log is read over an index without insertions (an import has millions, all of one day), and
# no further back than where another branch has filled the page.
_EVENTS: Final = """
WITH made AS MATERIALIZED (
    SELECT n.created_at AS at, 'created' AS kind, n.id AS id, n.data AS title,
           n.status AS status, n.type AS detail, 1 AS place, n.id AS tie,
           (SELECT c.actor FROM changes AS c
             WHERE c.entity = 'node' AND c.key = n.rowkey AND c.op = 'insert') AS actor
      FROM nodes AS n
     WHERE n.workspace_id = :workspace AND n.created_at >= :start AND n.created_at <= :stop
       AND (:actor IS NULL OR EXISTS (SELECT 1 FROM changes AS c
             WHERE c.entity = 'node' AND c.key = n.rowkey AND c.op = 'insert'
               AND c.actor = :actor))
     ORDER BY n.created_at DESC, n.id DESC LIMIT :limit),
related AS MATERIALIZED (
    SELECT r.created_at AS at, 'related', r.from_id, n.data, n.status,
           r.type || ':' || r.to_id, 4, r.id,
           (SELECT c.actor FROM changes AS c
             WHERE c.entity = 'relation' AND c.key = r.rowkey AND c.op = 'insert')
      FROM relations AS r JOIN nodes AS n ON n.id = r.from_id
     WHERE r.workspace_id = :workspace AND r.created_at >= :start AND r.created_at <= :stop
       AND (:actor IS NULL OR EXISTS (SELECT 1 FROM changes AS c
             WHERE c.entity = 'relation' AND c.key = r.rowkey AND c.op = 'insert'
               AND c.actor = :actor))
     ORDER BY r.created_at DESC, r.id DESC LIMIT :limit),
visited AS MATERIALIZED (
    SELECT h.created_at AS at, h.action, h.node_id, n.data, n.status, n.type, 5, h.id,
           json_extract(h.context, '$.actor')
      FROM navigation_history AS h LEFT JOIN nodes AS n ON n.id = h.node_id
     WHERE h.workspace_id = :workspace AND h.created_at >= :start AND h.created_at <= :stop
       AND (:actor IS NULL OR json_extract(h.context, '$.actor') = :actor)
     ORDER BY h.created_at DESC, h.id DESC LIMIT :limit),
reach(at) AS MATERIALIZED (
    SELECT max(:start,
        COALESCE((SELECT at FROM made ORDER BY at DESC LIMIT 1 OFFSET :limit - 1), ''),
        COALESCE((SELECT at FROM related ORDER BY at DESC LIMIT 1 OFFSET :limit - 1), ''),
        COALESCE((SELECT at FROM visited ORDER BY at DESC LIMIT 1 OFFSET :limit - 1), ''))),
changed AS MATERIALIZED (
    SELECT c.at AS at, CASE WHEN json_extract(c.before, '$.status') IS NOT n.status
                            THEN 'status' ELSE 'changed' END,
           n.id, n.data, n.status, n.type, 2, c.seq, c.actor
      FROM changes AS c INDEXED BY changes_of_nodes JOIN nodes AS n ON n.rowkey = c.key
     WHERE c.workspace_id = :workspace AND c.at >= (SELECT at FROM reach) AND c.at <= :stop
       AND c.entity = 'node' AND c.op <> 'insert' AND c.op = 'update'
       AND (json_extract(c.before, '$.data') IS NOT n.data
            OR json_extract(c.before, '$.status') IS NOT n.status)
       AND (:actor IS NULL OR c.actor = :actor)
     ORDER BY c.at DESC, c.seq DESC LIMIT :limit),
deleted AS MATERIALIZED (
    SELECT c.at, 'deleted', json_extract(c.before, '$.id'),
           json_extract(c.before, '$.data'), 'deleted',
           json_extract(c.before, '$.type'), 3, c.seq, c.actor
      FROM changes AS c INDEXED BY changes_of_nodes
     WHERE c.workspace_id = :workspace AND c.at <= :stop AND c.at >= (SELECT max(reach.at,
               COALESCE((SELECT at FROM changed ORDER BY at DESC LIMIT 1 OFFSET :limit - 1), ''))
             FROM reach)
       AND c.entity = 'node' AND c.op <> 'insert' AND c.op = 'delete'
       AND (:actor IS NULL OR c.actor = :actor)
     ORDER BY c.at DESC, c.seq DESC LIMIT :limit)
SELECT at, kind, id, title, status, actor, detail FROM (
    SELECT * FROM made
    UNION ALL
    SELECT * FROM related
    UNION ALL
    SELECT * FROM visited
    UNION ALL
    SELECT * FROM changed
    UNION ALL
    SELECT * FROM deleted)
 ORDER BY at DESC, place DESC, tie DESC LIMIT :take OFFSET :skip
"""
ARCHIVER: Final = "archiving"
"""Who archives what lies idle: nobody's activity."""

# The inner scans stop at the first row of someone else, or after a bounded look back.
_LAST_OTHER: Final = """
SELECT actor, at FROM (
    SELECT * FROM (
        SELECT actor, at FROM (
            SELECT actor, at FROM changes WHERE workspace_id = :workspace
             ORDER BY at DESC LIMIT 5000)
         WHERE actor NOT IN (:current, 'archiving') LIMIT 1)
    UNION ALL
    SELECT * FROM (
        SELECT actor, at FROM (
            SELECT json_extract(context, '$.actor') AS actor, created_at AS at
              FROM navigation_history WHERE workspace_id = :workspace
             ORDER BY created_at DESC LIMIT 1000)
         WHERE actor <> :current LIMIT 1))
 ORDER BY at DESC, actor LIMIT 1
"""
# The ends of the two long tables, each read from its key.
_LENGTH: Final = """
SELECT (SELECT COALESCE(MAX(seq), 0) FROM changes) - (SELECT COALESCE(MIN(seq), 0) FROM changes)
     + (SELECT COALESCE(MAX(id), 0) FROM navigation_history)
     - (SELECT COALESCE(MIN(id), 0) FROM navigation_history)
"""


class LastActivity(NamedTuple):
    """Who was last active, and when."""

    actor: str
    at: Instant


class Timeline:
    """Reads events within one transaction."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def events(
        self,
        workspace: WorkspaceId,
        start: Instant | None,
        stop: Instant | None,
        actor: str | None,
        take: int,
        skip: int = 0,
    ) -> list[EventRow]:
        """Events of a window, newest first; at one instant by kind, then the row's id or seq."""
        rows = self._connection.execute(
            _EVENTS,
            {
                "workspace": workspace,
                "start": start or "",
                "stop": stop or "~",
                "actor": actor,
                "limit": take + skip,
                "take": take,
                "skip": skip,
            },
        )
        return [EventRow(*row) for row in rows]

    def length(self) -> int:
        """About how many rows the log and the history have, of all workspaces."""
        return int(self._connection.execute(_LENGTH).fetchone()[0])

    def last_other(self, workspace: WorkspaceId, current: str) -> LastActivity | None:
        """The newest activity whose actor is not `current`."""
        bound = {"workspace": workspace, "current": current}
        row = self._connection.execute(_LAST_OTHER, bound).fetchone()
        return None if row is None else LastActivity(str(row[0]), Instant(row[1]))
