"""Which active nodes have lain idle long enough to be archived (a read; GC writes later)."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from typing import Final

from cortex.domain.instants import Instant
from cortex.domain.values import WorkspaceId

_LAST_ACTIVITY: Final = """
SELECT max(
    COALESCE((SELECT MAX(updated_at) FROM nodes WHERE workspace_id = :workspace), ''),
    COALESCE((SELECT MAX(created_at) FROM nodes WHERE workspace_id = :workspace), ''),
    COALESCE((SELECT MAX(created_at) FROM navigation_history
               WHERE workspace_id = :workspace AND action IN ('focus', 'branch')), ''))
"""
# Alive: made, edited, focused or opened since the cutoff, and everything above such a node.
_IDLE: Final = """
WITH RECURSIVE alive(id) AS (
    SELECT id FROM nodes WHERE workspace_id = :workspace AND created_at >= :cutoff
    UNION
    SELECT id FROM nodes WHERE workspace_id = :workspace AND updated_at >= :cutoff
    UNION
    SELECT node_id FROM navigation_history
     WHERE workspace_id = :workspace AND created_at >= :cutoff
       AND action IN ('focus', 'branch')
    UNION
    SELECT n.id FROM accesses AS a CROSS JOIN nodes AS n ON n.rowkey = a.node_key
     WHERE n.workspace_id = :workspace AND a.last_at >= :cutoff
    UNION
    SELECT n.parent_id FROM alive JOIN nodes AS n ON n.id = alive.id
     WHERE n.parent_id IS NOT NULL
),
newest(id) AS (
    SELECT id FROM nodes
     WHERE workspace_id = :workspace AND status = 'active'
     ORDER BY created_at DESC, id DESC LIMIT :keep)
SELECT n.rowkey
  FROM nodes AS n
 WHERE n.workspace_id = :workspace AND n.status = 'active' AND n.created_at < :cutoff
   AND n.type NOT IN ('session', 'goal', 'constraint')
   AND json_extract(n.data, '$.pinned') IS NOT 1
   AND n.id NOT IN (SELECT id FROM alive)
   AND n.id NOT IN (SELECT id FROM newest)
   AND n.id NOT IN (SELECT value FROM json_each(:hot))
 ORDER BY n.rowkey
"""
# The same in pieces, for whoever does not want all of it at once: what lies above the living;
_ABOVE: Final = """
WITH RECURSIVE above(id) AS (
    SELECT parent_id FROM nodes
     WHERE workspace_id = :workspace AND created_at >= :since AND parent_id IS NOT NULL
    UNION
    SELECT parent_id FROM nodes
     WHERE workspace_id = :workspace AND updated_at >= :since AND parent_id IS NOT NULL
    UNION
    SELECT n.parent_id FROM navigation_history AS h CROSS JOIN nodes AS n ON n.id = h.node_id
     WHERE h.workspace_id = :workspace AND h.created_at >= :since
       AND h.action IN ('focus', 'branch') AND n.parent_id IS NOT NULL
    UNION
    SELECT n.parent_id FROM accesses AS a CROSS JOIN nodes AS n ON n.rowkey = a.node_key
     WHERE n.workspace_id = :workspace AND a.last_at >= :since AND n.parent_id IS NOT NULL
    UNION
    SELECT n.parent_id FROM above CROSS JOIN nodes AS n ON n.id = above.id
     WHERE n.parent_id IS NOT NULL)
SELECT n.rowkey FROM above CROSS JOIN nodes AS n ON n.id = above.id
"""
# what stays in any case;
_SPARED: Final = """
SELECT rowkey FROM (
    SELECT rowkey FROM nodes
     WHERE workspace_id = :workspace AND status = 'active'
     ORDER BY created_at DESC, id DESC LIMIT :keep)
UNION
SELECT n.rowkey FROM json_each(:hot) AS h CROSS JOIN nodes AS n ON n.id = h.value
"""
# what is old enough, out of an index alone;
_OLD: Final = """
SELECT rowkey, created_at, id FROM nodes
 WHERE workspace_id = :workspace AND status = 'active' AND created_at < :cutoff
   AND (created_at, id) > (:created_at, :id)
 ORDER BY created_at, id LIMIT :limit
"""
# and which of some is idle by itself. What was read before may have come back to life since.
_STILL: Final = """
SELECT n.rowkey
  FROM json_each(:keys) AS wanted CROSS JOIN nodes AS n ON n.rowkey = wanted.value
 WHERE n.workspace_id = :workspace AND n.status = 'active' AND n.updated_at < :cutoff
   AND n.type NOT IN ('session', 'goal', 'constraint')
   AND json_extract(n.data, '$.pinned') IS NOT 1
   AND NOT EXISTS (
       SELECT 1 FROM accesses AS a WHERE a.node_key = n.rowkey AND a.last_at >= :cutoff)
   AND NOT EXISTS (
       SELECT 1 FROM navigation_history AS h
        WHERE h.node_id = n.id AND h.created_at >= :cutoff AND h.action IN ('focus', 'branch'))
"""


class Archiving:
    """Reads idleness within one transaction."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def last_activity(self, workspace: WorkspaceId) -> Instant | None:
        """The workspace's own clock: its newest node, edit or focus."""
        row = self._connection.execute(_LAST_ACTIVITY, {"workspace": workspace}).fetchone()
        return Instant(row[0]) if row[0] else None

    def idle(self, workspace: WorkspaceId, cutoff: Instant, keep: int, hot: str) -> list[int]:
        """Keys of active nodes idle since before `cutoff`, beside the newest `keep`.

        `hot` is a JSON list of ids that stay. Session roots, goals, constraints and pinned
        nodes are never idle.
        """
        rows = self._connection.execute(
            _IDLE, {"workspace": workspace, "cutoff": cutoff, "keep": keep, "hot": hot}
        )
        return [key for (key,) in rows]

    def above(self, workspace: WorkspaceId, since: Instant) -> list[int]:
        """Keys of all that contains a node to which something was done since then."""
        rows = self._connection.execute(_ABOVE, {"workspace": workspace, "since": since})
        return [key for (key,) in rows]

    def spared(self, workspace: WorkspaceId, keep: int, hot: str) -> list[int]:
        """Keys of the newest `keep` active nodes, and of the ids in the JSON list `hot`."""
        rows = self._connection.execute(_SPARED, {"workspace": workspace, "keep": keep, "hot": hot})
        return [key for (key,) in rows]

    def old(
        self, workspace: WorkspaceId, cutoff: Instant, after: tuple[str, str], limit: int
    ) -> list[tuple[int, str, str]]:
        """Key, creation and id of active nodes made before `cutoff`, the oldest first, ties by id.

        At most `limit`, after the one of that creation and id.
        """
        bound = {"workspace": workspace, "cutoff": cutoff, "limit": limit}
        bound |= {"created_at": after[0], "id": after[1]}
        return self._connection.execute(_OLD, bound).fetchall()

    def still(self, keys: Sequence[int], workspace: WorkspaceId, cutoff: Instant) -> list[int]:
        """Those of `keys` that may be archived, and that nothing was done to since `cutoff`.

        Of what lies below them nothing is said: see `above`.
        """
        bound = {"keys": json.dumps(list(keys)), "workspace": workspace, "cutoff": cutoff}
        return [key for (key,) in self._connection.execute(_STILL, bound)]
