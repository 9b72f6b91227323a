"""Titles of entities and patterns: the names that a workspace's graph knows."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from typing import Final, NamedTuple

from cortex.domain.values import NodeId, WorkspaceId

# Longer titles are sentences.
_NAMED: Final = """
SELECT rowkey, id, type, json_extract(data, '$.title'), json_extract(data, '$.kind')
  FROM nodes
 WHERE workspace_id = :workspace AND type IN ('entity', 'pattern') AND status <> 'stale'
   AND json_type(data, '$.title') = 'text' AND length(json_extract(data, '$.title')) <= 80
 ORDER BY created_at DESC, id DESC LIMIT :limit
"""
_NAMED_BY_KEYS: Final = """
SELECT n.rowkey, n.id, n.type, json_extract(n.data, '$.title'), json_extract(n.data, '$.kind')
  FROM json_each(:keys) AS wanted CROSS JOIN nodes AS n ON n.rowkey = wanted.value
 WHERE n.workspace_id = :workspace AND n.type IN ('entity', 'pattern') AND n.status <> 'stale'
   AND json_type(n.data, '$.title') = 'text' AND length(json_extract(n.data, '$.title')) <= 80
 ORDER BY n.rowkey
"""


class Titled(NamedTuple):
    """A node that bears a name; `kind` is data.kind, whatever was given there."""

    key: int
    id: NodeId
    type: str
    title: str
    kind: object


class Titles:
    """Reads names within one transaction."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def newest(self, workspace: WorkspaceId, limit: int) -> list[Titled]:
        """Entities and patterns of the workspace that are not stale, newest first."""
        rows = self._connection.execute(_NAMED, {"workspace": workspace, "limit": limit})
        return [Titled(*row) for row in rows]

    def by_keys(self, workspace: WorkspaceId, keys: Sequence[int]) -> list[Titled]:
        """Those of `keys` that are such, by rising key."""
        bound = {"workspace": workspace, "keys": json.dumps(list(keys))}
        return [Titled(*row) for row in self._connection.execute(_NAMED_BY_KEYS, bound)]
