"""Tables navigation_history and accesses: where the agent was, and what it opened."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from cortex.domain.instants import Instant
from cortex.domain.taxonomy import Action
from cortex.domain.values import NodeId, WorkspaceId, unpack

_ADD: Final = """
INSERT INTO navigation_history(workspace_id, node_id, action, context, created_at)
VALUES (:workspace, :node, :action, :context, :at)
"""
_HOLDS: Final = """
SELECT EXISTS (
    SELECT 1 FROM navigation_history
     WHERE workspace_id = :workspace AND node_id = :node AND action = :action AND created_at = :at)
"""
_ACCESS: Final = """
INSERT INTO accesses(node_key, count, last_at)
SELECT rowkey, 1, :at FROM nodes WHERE id = :node
    ON CONFLICT (node_key) DO UPDATE SET count = count + 1, last_at = max(last_at, :at)
"""
_NEWEST: Final = """
SELECT h.id, h.workspace_id, h.node_id, h.action, h.context, h.created_at
  FROM navigation_history AS h
 WHERE h.workspace_id = :workspace
 ORDER BY h.created_at DESC, h.id DESC LIMIT :limit
"""
_LAST_FOCUS: Final = """
SELECT h.id, h.workspace_id, h.node_id, h.action, h.context, h.created_at
  FROM navigation_history AS h
 WHERE h.workspace_id = :workspace AND h.action IN ('focus', 'branch')
   AND EXISTS (SELECT 1 FROM nodes WHERE id = h.node_id)
 ORDER BY h.created_at DESC, h.id DESC LIMIT 1
"""
_FOCUSED: Final = """
SELECT h.node_id
  FROM navigation_history AS h JOIN nodes AS n ON n.id = h.node_id
 WHERE h.workspace_id = :workspace AND h.action IN ('focus', 'branch')
   AND n.status = 'active'
 ORDER BY h.created_at DESC, h.id DESC LIMIT :scan
"""
_EVER: Final = """
SELECT EXISTS (
    SELECT 1 FROM navigation_history
     WHERE workspace_id = :workspace AND action IN ('focus', 'branch'))
"""


@dataclass(frozen=True, slots=True)
class Visit:
    """One entry of the history; `context` says what led here."""

    workspace_id: WorkspaceId
    node_id: NodeId
    action: Action
    context: Mapping[str, Any]
    at: Instant


class Anchor(NamedTuple):
    """Where the agent stopped: the last focus whose node still exists."""

    node_id: NodeId
    at: Instant


class Navigation:
    """Reads and writes the history within one transaction."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def add(self, visit: Visit) -> None:
        self._connection.execute(
            _ADD,
            {
                "workspace": visit.workspace_id,
                "node": visit.node_id,
                "action": visit.action.value,
                "context": json.dumps(visit.context, ensure_ascii=False),
                "at": visit.at,
            },
        )

    def holds(self, visit: Visit) -> bool:
        """Whether this very visit is recorded."""
        bound = {
            "workspace": visit.workspace_id,
            "node": visit.node_id,
            "action": visit.action.value,
            "at": visit.at,
        }
        return bool(self._connection.execute(_HOLDS, bound).fetchone()[0])

    def touch(self, nodes: Sequence[NodeId], at: Instant) -> None:
        """Count one access of each node (a fresh memory is read, not edited: invariant 7)."""
        self._connection.executemany(_ACCESS, [{"node": node, "at": at} for node in nodes])

    def newest(self, workspace: WorkspaceId, limit: int) -> list[Visit]:
        """Newest first; the node of an entry may be gone."""
        rows = self._connection.execute(_NEWEST, {"workspace": workspace, "limit": limit})
        return [
            Visit(WorkspaceId(ws), NodeId(node), Action(action), unpack(context), Instant(at))
            for _, ws, node, action, context, at in rows
        ]

    def anchor(self, workspace: WorkspaceId) -> Anchor | None:
        row = self._connection.execute(_LAST_FOCUS, {"workspace": workspace}).fetchone()
        return None if row is None else Anchor(NodeId(row[2]), Instant(row[5]))

    def focused(self, workspace: WorkspaceId, limit: int) -> list[NodeId]:
        """The last distinct active nodes in focus, newest first.

        Looks back over at most 40 entries per node asked for: a loop of a thousand
        focuses on one node does not make opening slow.
        """
        rows = self._connection.execute(_FOCUSED, {"workspace": workspace, "scan": limit * 40})
        found: dict[NodeId, None] = {}
        for (node,) in rows:  # SQLite reads on as it is asked
            found[NodeId(node)] = None
            if len(found) == limit:
                break
        return list(found)

    def ever_focused(self, workspace: WorkspaceId) -> bool:
        return bool(self._connection.execute(_EVER, {"workspace": workspace}).fetchone()[0])
