"""Which nodes have vectors: what a vector index outside of this file should hold."""

from __future__ import annotations

import sqlite3
from typing import Final

from cortex.domain.values import NodeId, WorkspaceId

# The scalar subquery reads one entry of the primary key's index a node, never a vector.
_COUNTS: Final = """
SELECT n.workspace_id, COUNT(*)
  FROM nodes AS n
 WHERE EXISTS (SELECT 1 FROM embeddings AS e WHERE e.node_key = n.rowkey AND e.model = :model)
 GROUP BY n.workspace_id
 ORDER BY n.workspace_id
"""
_IDS: Final = """
SELECT n.id
  FROM nodes AS n
 WHERE n.workspace_id = :workspace
   AND EXISTS (SELECT 1 FROM embeddings AS e WHERE e.node_key = n.rowkey AND e.model = :model)
 ORDER BY n.rowkey
"""
_KEYS: Final = """
SELECT n.rowkey
  FROM nodes AS n
 WHERE n.workspace_id = :workspace
   AND EXISTS (SELECT 1 FROM embeddings AS e WHERE e.node_key = n.rowkey AND e.model = :model)
 ORDER BY n.rowkey
"""


class Vectored:
    """Reads within one transaction."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def counts(self, model: str) -> dict[WorkspaceId, int]:
        """Number of nodes with vectors of this model, by workspace; none is left out."""
        rows = self._connection.execute(_COUNTS, {"model": model})
        return {WorkspaceId(place): int(count) for place, count in rows}

    def keys(self, workspace: WorkspaceId, model: str) -> list[int]:
        """Keys of the nodes of the workspace with vectors of this model, rising."""
        rows = self._connection.execute(_KEYS, {"workspace": workspace, "model": model})
        return [key for (key,) in rows]

    def ids(self, workspace: WorkspaceId, model: str) -> frozenset[NodeId]:
        """Nodes of the workspace with vectors of this model."""
        rows = self._connection.execute(_IDS, {"workspace": workspace, "model": model})
        return frozenset(NodeId(node) for (node,) in rows)
