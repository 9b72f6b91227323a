"""Workspaces as a whole: every table that names one, moved or forgotten together."""

from __future__ import annotations

import sqlite3
from typing import Final

from cortex.domain.instants import Instant
from cortex.domain.values import NodeId, WorkspaceId

_NEWEST: Final = "SELECT MAX(updated_at) FROM nodes WHERE workspace_id = :workspace"
_MOVE_NODES: Final = """
UPDATE nodes SET workspace_id = :into WHERE workspace_id = :source AND id <> :but
"""
# The trigger parent_moves_contains writes the new contains: no child is without a parent in
# between, or a session below the root would be a second root for a moment.
_ADOPT: Final = "UPDATE nodes SET parent_id = :into WHERE parent_id = :source"
_MOVE_RELATIONS: Final = """
UPDATE relations SET workspace_id = :into WHERE workspace_id = :source
"""
_MOVE_HISTORY: Final = """
UPDATE navigation_history SET workspace_id = :into WHERE workspace_id = :source
"""
_MOVE_VISITS: Final = "UPDATE navigation_history SET node_id = :into WHERE node_id = :source"
# The column by which timelines find an entry; the row before stays as it was.
_MOVE_LOG: Final = "UPDATE changes SET workspace_id = :into WHERE workspace_id = :source"
# Before derive looks: a debt that changes its workspace there is owed anew, and embedded again.
_MOVE_OUTBOX: Final = "UPDATE index_state SET workspace_id = :into WHERE workspace_id = :source"
_MOVE_KEYS: Final = """
UPDATE OR IGNORE idempotency SET workspace_id = :into WHERE workspace_id = :source
"""
_FORGET_KEYS: Final = "DELETE FROM idempotency WHERE workspace_id = :workspace"
_FORGET_HISTORY: Final = "DELETE FROM navigation_history WHERE workspace_id = :workspace"
_FORGET_META: Final = "DELETE FROM meta WHERE key = :key"
_DEEPEST_FIRST: Final = """
WITH RECURSIVE tree(rowkey, id, depth) AS (
    SELECT n.rowkey, n.id, 0 FROM nodes AS n
     WHERE n.workspace_id = :workspace AND NOT EXISTS (
           SELECT 1 FROM nodes AS p WHERE p.id = n.parent_id AND p.workspace_id = :workspace)
    UNION ALL
    SELECT n.rowkey, n.id, t.depth + 1
      FROM tree AS t JOIN nodes AS n ON n.parent_id = t.id
     WHERE n.workspace_id = :workspace)
SELECT rowkey FROM tree ORDER BY depth DESC, rowkey DESC
"""


class Places:
    """Reads and writes whole workspaces within one transaction."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def newest(self, workspace: WorkspaceId) -> Instant | None:
        """When the newest content of the workspace was written."""
        row = self._connection.execute(_NEWEST, {"workspace": workspace}).fetchone()
        return None if row[0] is None else Instant(row[0])

    def move_nodes(self, source: WorkspaceId, into: WorkspaceId, but: NodeId | None) -> int:
        """Give every node of `source` to `into`, except `but`; how many.

        `updated_at` stays: moving is no edit (invariant 7). Their relations must follow in
        the same transaction (invariant 6).
        """
        bound = {"source": source, "into": into, "but": but or ""}
        return self._connection.execute(_MOVE_NODES, bound).rowcount

    def adopt(self, old: NodeId, new: NodeId) -> None:
        """Make the children of `old` those of `new`; contains follows."""
        self._connection.execute(_ADOPT, {"source": old, "into": new})

    def move_relations(self, source: WorkspaceId, into: WorkspaceId) -> int:
        bound = {"source": source, "into": into}
        return self._connection.execute(_MOVE_RELATIONS, bound).rowcount

    def move_beside(self, source: WorkspaceId, into: WorkspaceId) -> None:
        """What goes with the nodes: history, log, debts of the index, idempotency keys.

        Where both workspaces know an idempotency key, that of `into` stays.
        """
        bound = {"source": source, "into": into}
        for statement in (_MOVE_HISTORY, _MOVE_LOG, _MOVE_OUTBOX, _MOVE_KEYS):
            self._connection.execute(statement, bound)
        self._connection.execute(_FORGET_KEYS, {"workspace": source})

    def move_visits(self, old: NodeId, new: NodeId) -> None:
        """Let the history of one node be that of another."""
        self._connection.execute(_MOVE_VISITS, {"source": old, "into": new})

    def deepest_first(self, workspace: WorkspaceId) -> list[int]:
        """Every node's key, children before their parents."""
        rows = self._connection.execute(_DEEPEST_FIRST, {"workspace": workspace})
        return [key for (key,) in rows]

    def forget(self, workspace: WorkspaceId, *meta: str) -> None:
        """Remove what is kept by the workspace's name beside its nodes, and these meta keys."""
        for statement in (_FORGET_HISTORY, _FORGET_KEYS):
            self._connection.execute(statement, {"workspace": workspace})
        for key in meta:
            self._connection.execute(_FORGET_META, {"key": key})
