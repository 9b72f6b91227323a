"""Nodes of type fileref: those below a path, and those that given nodes rest on."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from typing import Final

from cortex.domain.values import Node, NodeId, WorkspaceId
from cortex.store.nodes import node_of
from cortex.store.schema import FILE_KINDS

_BELOW: Final = """
SELECT rowkey, id, type, workspace_id, parent_id, data, status, created_at, updated_at
  FROM nodes
 WHERE workspace_id = :workspace AND type = 'fileref'
   AND json_extract(data, '$.path') >= :low AND json_extract(data, '$.path') < :high
   AND (json_extract(data, '$.path'), id) > (:low, :after)
 ORDER BY json_extract(data, '$.path'), id LIMIT :limit
"""
_RESTED_ON: Final = f"""
SELECT wanted.key AS place, wanted.value, f.rowkey AS file
  FROM json_each(:ids) AS wanted
 CROSS JOIN relations AS r INDEXED BY relations_to_files
    ON r.from_id = wanted.value AND r.type IN {FILE_KINDS}
 CROSS JOIN nodes AS f INDEXED BY nodes_files ON f.id = r.to_id
 WHERE f.type = 'fileref'
UNION
SELECT wanted.key, wanted.value, f.rowkey
  FROM json_each(:ids) AS wanted
 CROSS JOIN nodes AS f INDEXED BY nodes_files ON f.id = wanted.value
 WHERE f.type = 'fileref'
 ORDER BY place, file LIMIT :limit
"""  # noqa: S608 - names of the taxonomy
_PAGE: Final = 500
_END: Final = "\U0010ffff"


class Filerefs:
    """Reads filerefs within one transaction."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def page_below(
        self, workspace: WorkspaceId, path: str, after: Node | None, limit: int = _PAGE
    ) -> list[Node]:
        """The next filerefs below the folder `path`, by path, then id; "" is above all."""
        low, high = (f"{path}/", f"{path}0") if path else ("", _END)  # "0" follows "/"
        bound = {
            "workspace": workspace,
            "low": low if after is None else str(after.data["path"]),
            "high": high,
            "after": "" if after is None else after.id,
            "limit": limit,
        }
        return [node_of(row) for row in self._connection.execute(_BELOW, bound)]

    def rested_on(self, ids: Sequence[str], limit: int) -> list[tuple[NodeId, int]]:
        """(node, key of its fileref) in the order of `ids`; a fileref rests on itself."""
        bound = {"ids": json.dumps(list(ids)), "limit": limit}
        rows = self._connection.execute(_RESTED_ON, bound)
        return [(NodeId(node), file) for _, node, file in rows]
