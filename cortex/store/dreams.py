"""What dreams wrote: patterns with their members, and skip links.

A dream's rows say so: `data.dream` of a pattern is an object, that of a relation is "bundle"
(pattern derives_from member) or "skip" (related_to), and both are `derived`.
"""

from __future__ import annotations

import sqlite3
from typing import Final, NamedTuple

from cortex.domain.instants import Instant
from cortex.domain.values import Node, WorkspaceId
from cortex.store.nodes import node_of

BUNDLE: Final = "bundle"
SKIP: Final = "skip"

_PATTERNS: Final = """
SELECT rowkey, id, type, workspace_id, parent_id, data, status, created_at, updated_at
  FROM nodes
 WHERE workspace_id = :workspace AND type = 'pattern' AND json_type(data, '$.dream') = 'object'
 ORDER BY rowkey
"""
_MEMBERS: Final = """
SELECT p.rowkey, r.rowkey, m.rowkey
  FROM nodes AS p
 CROSS JOIN relations AS r ON r.from_id = p.id AND r.type = 'derives_from'
 CROSS JOIN nodes AS m ON m.id = r.to_id
 WHERE p.workspace_id = :workspace AND p.type = 'pattern'
   AND json_type(p.data, '$.dream') = 'object' AND json_extract(r.data, '$.dream') = 'bundle'
 ORDER BY p.rowkey, m.rowkey
"""
# instr first: of a million neighbour links it parses none.
_SKIPS: Final = """
SELECT r.rowkey, a.rowkey, b.rowkey, r.weight
  FROM relations AS r
  JOIN nodes AS a ON a.id = r.from_id
  JOIN nodes AS b ON b.id = r.to_id
 WHERE r.workspace_id = :workspace AND r.type = 'related_to' AND instr(r.data, '"dream"') > 0
   AND json_extract(r.data, '$.dream') = 'skip' AND json_extract(r.data, '$.derived') IS 1
 ORDER BY r.rowkey
"""
_FIRST: Final = "SELECT MIN(created_at) FROM nodes WHERE workspace_id = :workspace"


class Member(NamedTuple):
    """By keys: a pattern, the relation, what it derives from."""

    pattern: int
    relation: int
    member: int


class SkipLink(NamedTuple):
    """By keys: the relation and the nodes that it joins."""

    relation: int
    one: int
    other: int
    weight: float


class Dreams:
    """Reads what dreams wrote, within one transaction."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def patterns(self, workspace: WorkspaceId) -> list[Node]:
        """Of any status, by rising key."""
        rows = self._connection.execute(_PATTERNS, {"workspace": workspace})
        return [node_of(row) for row in rows]

    def members(self, workspace: WorkspaceId) -> list[Member]:
        """By pattern, then member."""
        rows = self._connection.execute(_MEMBERS, {"workspace": workspace})
        return [Member(*row) for row in rows]

    def skips(self, workspace: WorkspaceId) -> list[SkipLink]:
        """By rising key."""
        rows = self._connection.execute(_SKIPS, {"workspace": workspace})
        return [SkipLink(*row) for row in rows]

    def first(self, workspace: WorkspaceId) -> Instant | None:
        """When the workspace's first node was made."""
        [found] = self._connection.execute(_FIRST, {"workspace": workspace}).fetchone()
        return None if found is None else Instant(found)
