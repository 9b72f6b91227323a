"""Neighbour links as rows: which memories take part, and how many links each has.

A neighbour link is a `related_to` whose data says `derived`: its weight is a similarity.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from typing import Final

from cortex.domain.values import NodeId, WorkspaceId

STORED_BY: Final = "stored_by"
STORE_MEMORY: Final = "store_memory"
"""`data.stored_by` of a memory that the tool of this name wrote."""

# A scan, once a file: afterwards the log and the embeddings name what there is to do.
_TAKING_PART: Final = """
SELECT n.rowkey FROM nodes AS n
 WHERE n.status = 'active' AND n.type <> 'session' AND n.rowkey > :after
   AND (:all OR json_extract(n.data, '$.stored_by') = 'store_memory')
   AND (:workspace IS NULL OR n.workspace_id = :workspace)
 ORDER BY n.rowkey LIMIT :limit
"""
_LINKED: Final = """
SELECT n.rowkey FROM json_each(:keys) AS wanted CROSS JOIN nodes AS n ON n.rowkey = wanted.value
 WHERE EXISTS (SELECT 1 FROM relations WHERE from_id = n.id AND type = 'related_to'
                  AND json_extract(data, '$.derived') IS 1)
    OR EXISTS (SELECT 1 FROM relations WHERE to_id = n.id AND type = 'related_to'
                  AND json_extract(data, '$.derived') IS 1)
 ORDER BY n.rowkey
"""
_DEGREES: Final = """
SELECT wanted.value,
       (SELECT COUNT(*) FROM relations WHERE from_id = wanted.value AND type = 'related_to'
           AND json_extract(data, '$.derived') IS 1)
     + (SELECT COUNT(*) FROM relations WHERE to_id = wanted.value AND type = 'related_to'
           AND json_extract(data, '$.derived') IS 1)
  FROM json_each(:ids) AS wanted
"""
_CONFLICTS: Final = """
SELECT r.rowkey, a.rowkey, b.rowkey
  FROM relations AS r
       JOIN nodes AS a ON a.id = r.from_id
       JOIN nodes AS b ON b.id = r.to_id
 WHERE r.workspace_id = :workspace AND r.type = 'contradicts'
   AND a.status = 'active' AND b.status = 'active'
 ORDER BY r.created_at DESC, r.id
"""


class Neighbours:
    """Reads neighbour links, and the contradictions beside them, within one transaction."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def taking_part(
        self, after: int, limit: int, *, everyone: bool, workspace: WorkspaceId | None = None
    ) -> list[int]:
        """Keys of active memories that are to be linked, by rising key; every one of them, or
        those that store_memory wrote."""
        bound = {"after": after, "limit": limit, "all": everyone, "workspace": workspace}
        return [key for (key,) in self._connection.execute(_TAKING_PART, bound)]

    def linked(self, keys: Sequence[int]) -> list[int]:
        """Those of `keys` that have a neighbour link."""
        rows = self._connection.execute(_LINKED, {"keys": json.dumps(list(keys))})
        return [key for (key,) in rows]

    def degrees(self, ids: Sequence[NodeId]) -> dict[NodeId, int]:
        """How many neighbour links each node has."""
        return dict(self._connection.execute(_DEGREES, {"ids": json.dumps(list(ids))}).fetchall())

    def conflicts(self, workspace: WorkspaceId) -> list[tuple[int, int, int]]:
        """Relation and both nodes of each contradiction between active nodes, newest first."""
        return self._connection.execute(_CONFLICTS, {"workspace": workspace}).fetchall()
