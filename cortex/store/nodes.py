"""Table nodes: the memories themselves."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from cortex.domain.instants import Instant
from cortex.domain.taxonomy import NodeType, Status
from cortex.domain.values import Node, NodeId, WorkspaceId, burden, pack, unpack
from cortex.store.damage import damaged_row

_BY_ID: Final = """
SELECT rowkey, id, type, workspace_id, parent_id, data, status, created_at, updated_at
  FROM nodes WHERE id = :id
"""
_BY_IDS: Final = """
SELECT n.rowkey, n.id, n.type, n.workspace_id, n.parent_id, n.data, n.status, n.created_at,
       n.updated_at
  FROM json_each(:ids) AS wanted CROSS JOIN nodes AS n ON n.id = wanted.value
 ORDER BY wanted.key
"""
_BY_KEYS: Final = """
SELECT n.rowkey, n.id, n.type, n.workspace_id, n.parent_id, n.data, n.status, n.created_at,
       n.updated_at
  FROM json_each(:keys) AS wanted CROSS JOIN nodes AS n ON n.rowkey = wanted.value
"""
_BY_PREFIX: Final = """
SELECT rowkey, id, type, workspace_id, parent_id, data, status, created_at, updated_at
  FROM nodes
 WHERE id >= :low AND id < :high AND workspace_id = :workspace
 ORDER BY id LIMIT :limit
"""
_BY_PREFIX_ANYWHERE: Final = """
SELECT rowkey, id, type, workspace_id, parent_id, data, status, created_at, updated_at
  FROM nodes WHERE id >= :low AND id < :high ORDER BY id LIMIT :limit
"""
_UNIQUE_PREFIXES: Final = """
SELECT wanted.value, NOT EXISTS (
       SELECT 1 FROM nodes
        WHERE id >= substr(wanted.value, 1, 8) AND id < substr(wanted.value, 1, 8) || char(1114111)
          AND id <> wanted.value)
  FROM json_each(:ids) AS wanted
"""
# The plus: an order that an index offers would lure the planner away from nodes_by_path.
_BY_PATH: Final = """
SELECT rowkey, id, type, workspace_id, parent_id, data, status, created_at, updated_at
  FROM nodes
 WHERE workspace_id = :workspace AND type = 'fileref'
   AND json_extract(data, '$.path') = :path
 ORDER BY +created_at, id
"""
_BY_PATH_END: Final = """
SELECT rowkey, id, type, workspace_id, parent_id, data, status, created_at, updated_at
  FROM nodes
 WHERE workspace_id = :workspace AND type = 'fileref'
   AND substr(json_extract(data, '$.path'), -length(:end)) = :end
 ORDER BY created_at, id LIMIT 6
"""
_ROOT: Final = """
SELECT rowkey, id, type, workspace_id, parent_id, data, status, created_at, updated_at
  FROM nodes
 WHERE workspace_id = :workspace AND type = 'session' AND parent_id IS NULL
"""
_CHILDREN: Final = """
SELECT rowkey, id, type, workspace_id, parent_id, data, status, created_at, updated_at
  FROM nodes WHERE parent_id = :parent ORDER BY created_at, id
"""
_CHILDREN_PAGE: Final = """
SELECT rowkey, id, type, workspace_id, parent_id, data, status, created_at, updated_at
  FROM nodes WHERE parent_id = :parent ORDER BY created_at DESC, id DESC LIMIT :limit
"""
# INDEXED BY: the planner would rather look at every active node.
_PINNED: Final = """
SELECT rowkey, id, type, workspace_id, parent_id, data, status, created_at, updated_at
  FROM nodes INDEXED BY nodes_pinned
 WHERE workspace_id = :workspace AND json_extract(data, '$.pinned') = 1 AND status = 'active'
 ORDER BY created_at DESC, id DESC LIMIT :limit
"""
_AIMS: Final = """
SELECT rowkey, id, type, workspace_id, parent_id, data, status, created_at, updated_at
  FROM nodes INDEXED BY nodes_aims
 WHERE workspace_id = :workspace AND type IN ('goal', 'constraint') AND status = 'active'
 ORDER BY created_at DESC, id DESC LIMIT :limit
"""
_NEWEST: Final = """
SELECT rowkey, id, type, workspace_id, parent_id, data, status, created_at, updated_at
  FROM nodes
 WHERE workspace_id = :workspace AND status = 'active'
   AND (created_at, id) < (:before_at, :before_id)
 ORDER BY created_at DESC, id DESC LIMIT :limit
"""
_NEWEST_OF: Final = """
SELECT rowkey, id, type, workspace_id, parent_id, data, status, created_at, updated_at
  FROM nodes
 WHERE workspace_id = :workspace AND status = 'active'
   AND type IN (SELECT value FROM json_each(:types))
 ORDER BY created_at DESC, id DESC LIMIT :limit
"""
_CHRONOLOGICAL: Final = """
SELECT rowkey, id, type, workspace_id, parent_id, data, status, created_at, updated_at
  FROM nodes
 WHERE workspace_id = :workspace AND created_at >= :start AND created_at <= :stop
   AND (created_at, id) > (:after_at, :after_id)
   AND (:types IS NULL OR type IN (SELECT value FROM json_each(:types)))
 ORDER BY created_at, id LIMIT :limit
"""
_NEWEST_WITHIN: Final = """
SELECT rowkey, id, type, workspace_id, parent_id, data, status, created_at, updated_at
  FROM nodes
 WHERE workspace_id = :workspace AND created_at >= :start AND created_at <= :stop
 ORDER BY created_at DESC, id DESC LIMIT :limit
"""
_COUNTS: Final = """
SELECT status, nodes FROM tallies WHERE workspace_id = :workspace AND nodes > 0
"""
_OLDEST: Final = """
SELECT created_at FROM nodes
 WHERE workspace_id = :workspace AND status = :status ORDER BY created_at LIMIT 1
"""
_TYPE_COUNTS: Final = """
SELECT type, COUNT(*) FROM nodes WHERE workspace_id = :workspace GROUP BY type ORDER BY type
"""
_IN_WORKSPACE: Final = """
SELECT COALESCE(SUM(nodes), 0) FROM tallies WHERE workspace_id = :workspace
"""
_WORKSPACES: Final = """
SELECT DISTINCT workspace_id FROM tallies WHERE nodes > 0 ORDER BY workspace_id
"""
_BRIEF: Final = """
SELECT rowkey, id, type, status, created_at
  FROM nodes WHERE workspace_id = :workspace ORDER BY rowkey
"""
_BRIEF_BY_KEYS: Final = """
SELECT n.rowkey, n.id, n.type, n.status, n.created_at
  FROM json_each(:keys) AS wanted CROSS JOIN nodes AS n ON n.rowkey = wanted.value
 WHERE n.workspace_id = :workspace
 ORDER BY n.rowkey
"""
# NOT INDEXED: over an index of workspaces each page would sort every key of this one.
_ALL: Final = """
SELECT rowkey, id, type, workspace_id, parent_id, data, status, created_at, updated_at
  FROM nodes NOT INDEXED
 WHERE workspace_id = :workspace AND rowkey > :after ORDER BY rowkey LIMIT :limit
"""
_INSERT: Final = """
INSERT INTO nodes(id, type, workspace_id, parent_id, data, status, created_at, updated_at)
VALUES (:id, :type, :workspace_id, :parent_id, :data, :status, :created_at, :updated_at)
"""
_SET_DATA: Final = "UPDATE nodes SET data = :data, updated_at = :at WHERE rowkey = :key"
_SET_STATUS: Final = """
UPDATE nodes SET status = :status, updated_at = COALESCE(:at, updated_at)
 WHERE rowkey IN (SELECT value FROM json_each(:keys)) AND status <> :status
"""
_DELETE: Final = "DELETE FROM nodes WHERE rowkey = :key"

_KINDS: Final = {kind.value: kind for kind in NodeType}
_STATES: Final = {status.value: status for status in Status}
FIRST: Final = ("", "")
LAST: Final = ("~", "~")


class BriefNode(NamedTuple):
    """What derived stores hold of a node."""

    key: int
    id: str
    type: str
    status: str
    created_at: str


def node_of(row: Sequence[Any]) -> Node:
    """The value of a row whose columns are listed in the table's order."""
    key, node_id, kind, workspace, parent, data, status, created, updated = row
    try:
        return Node(
            key,
            node_id,
            _KINDS[kind],
            workspace,
            parent,
            unpack(data),
            _STATES[status],
            created,
            updated,
        )
    except (KeyError, TypeError, ValueError) as error:
        raise damaged_row("node", node_id) from error


class Nodes:
    """Reads and writes nodes within one transaction."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def _list(self, statement: str, **bound: Any) -> list[Node]:
        return [node_of(row) for row in self._connection.execute(statement, bound)]

    def _one(self, statement: str, **bound: Any) -> Node | None:
        row = self._connection.execute(statement, bound).fetchone()
        return None if row is None else node_of(row)

    def find(self, node_id: str) -> Node | None:
        return self._one(_BY_ID, id=node_id)

    def by_ids(self, ids: Sequence[str]) -> list[Node]:
        """Those that exist, in the order asked."""
        return self._list(_BY_IDS, ids=json.dumps(list(ids)))

    def by_keys(self, keys: Sequence[int]) -> list[Node]:
        """Those that exist, in the order asked (set here: SQLite would sort whole rows)."""
        found = {node.key: node for node in self._list(_BY_KEYS, keys=json.dumps(list(keys)))}
        return [found[key] for key in keys if key in found]

    def sized(self, keys: Sequence[int]) -> Iterator[tuple[Node, int]]:
        """Those that exist, in no order, each with the `burden` of its data."""
        for row in self._connection.execute(_BY_KEYS, {"keys": json.dumps(list(keys))}):
            yield node_of(row), burden(row[5])

    def by_prefix_anywhere(self, prefix: str, limit: int = 6) -> list[Node]:
        """Of any workspace."""
        high = prefix + chr(0x10FFFF)
        return self._list(_BY_PREFIX_ANYWHERE, low=prefix, high=high, limit=limit)

    def by_prefix(self, workspace: WorkspaceId, prefix: str, limit: int = 6) -> list[Node]:
        high = prefix + chr(0x10FFFF)
        return self._list(_BY_PREFIX, low=prefix, high=high, workspace=workspace, limit=limit)

    def unique_prefixes(self, ids: Sequence[str]) -> dict[str, bool]:
        """Whether no other node's id begins with the same 8 characters."""
        rows = self._connection.execute(_UNIQUE_PREFIXES, {"ids": json.dumps(list(ids))})
        return {node: bool(unique) for node, unique in rows}

    def by_path(self, workspace: WorkspaceId, path: str) -> list[Node]:
        """The filerefs of that path."""
        return self._list(_BY_PATH, workspace=workspace, path=path)

    def by_path_end(self, workspace: WorkspaceId, path: str) -> list[Node]:
        """Filerefs whose path ends with these folders and names. A scan of all filerefs."""
        return self._list(_BY_PATH_END, workspace=workspace, end="/" + path.lstrip("./"))

    def root(self, workspace: WorkspaceId) -> Node | None:
        """The session root."""
        return self._one(_ROOT, workspace=workspace)

    def children(self, parent: NodeId) -> list[Node]:
        """By creation, then id."""
        return self._list(_CHILDREN, parent=parent)

    def children_page(self, parent: NodeId, limit: int) -> list[Node]:
        """The newest children first."""
        return self._list(_CHILDREN_PAGE, parent=parent, limit=limit)

    def kept(self, workspace: WorkspaceId, limit: int) -> list[Node]:
        """Active pinned nodes, then goals and constraints, newest first."""
        pinned = self._list(_PINNED, workspace=workspace, limit=limit)
        aims = self._list(_AIMS, workspace=workspace, limit=limit)
        return list({node.id: node for node in (*pinned, *aims)}.values())[:limit]

    def newest(
        self, workspace: WorkspaceId, limit: int, before: tuple[str, str] = LAST
    ) -> list[Node]:
        """Active nodes, newest first, before (created_at, id)."""
        return self._list(
            _NEWEST, workspace=workspace, before_at=before[0], before_id=before[1], limit=limit
        )

    def newest_within(
        self, workspace: WorkspaceId, start: Instant | None, stop: Instant | None, limit: int
    ) -> list[Node]:
        """Nodes made in a window, whatever their status, newest first."""
        bound = {"workspace": workspace, "start": start or "", "stop": stop or "~"}
        return self._list(_NEWEST_WITHIN, **bound, limit=limit)

    def newest_of(
        self, workspace: WorkspaceId, types: Sequence[NodeType], limit: int
    ) -> list[Node]:
        """Active nodes of these types, newest first."""
        bound = json.dumps(list(types))
        return self._list(_NEWEST_OF, workspace=workspace, types=bound, limit=limit)

    def chronological(
        self,
        workspace: WorkspaceId,
        start: Instant | None,
        stop: Instant | None,
        types: Sequence[NodeType],
        after: tuple[str, str],
        limit: int,
    ) -> list[Node]:
        """Nodes of a window, oldest first, after (created_at, id)."""
        return self._list(
            _CHRONOLOGICAL,
            workspace=workspace,
            start=start or "",
            stop=stop or "~",
            types=json.dumps(list(types)) if types else None,
            after_at=after[0],
            after_id=after[1],
            limit=limit,
        )

    def counts(self, workspace: WorkspaceId) -> dict[Status, int]:
        """Number of nodes by status, where there are any."""
        rows = self._connection.execute(_COUNTS, {"workspace": workspace})
        return {_STATES[status]: count for status, count in rows}

    def oldest(self, workspace: WorkspaceId, status: Status) -> Instant | None:
        """When the oldest node of this status was made."""
        bound = {"workspace": workspace, "status": status.value}
        row = self._connection.execute(_OLDEST, bound).fetchone()
        return None if row is None else Instant(row[0])

    def type_counts(self, workspace: WorkspaceId) -> dict[NodeType, int]:
        rows = self._connection.execute(_TYPE_COUNTS, {"workspace": workspace})
        return {_KINDS[kind]: count for kind, count in rows}

    def count(self, workspace: WorkspaceId) -> int:
        row = self._connection.execute(_IN_WORKSPACE, {"workspace": workspace}).fetchone()
        return int(row[0])

    def workspaces(self) -> list[WorkspaceId]:
        """Every workspace that holds a node, by name."""
        return [WorkspaceId(name) for (name,) in self._connection.execute(_WORKSPACES)]

    def brief(self, workspace: WorkspaceId) -> Iterator[BriefNode]:
        """Every node of the workspace by rising key."""
        for row in self._connection.execute(_BRIEF, {"workspace": workspace}):
            yield BriefNode(*row)

    def brief_by_keys(self, workspace: WorkspaceId, keys: Sequence[int]) -> list[BriefNode]:
        """Those of `keys` that exist in this workspace, by rising key."""
        rows = self._connection.execute(
            _BRIEF_BY_KEYS, {"workspace": workspace, "keys": json.dumps(list(keys))}
        )
        return [BriefNode(*row) for row in rows]

    def page(self, workspace: WorkspaceId, after: int, limit: int) -> list[Node]:
        """The next nodes by rising key."""
        return self._list(_ALL, workspace=workspace, after=after, limit=limit)

    def iter_all(self, workspace: WorkspaceId, batch: int = 1000) -> Iterator[Node]:
        """Every node of the workspace by rising key, `batch` rows at a time."""
        after = 0
        while True:
            rows = self.page(workspace, after, batch)
            yield from rows
            if len(rows) < batch:
                return
            after = rows[-1].key

    def insert(
        self,
        node_id: NodeId,
        kind: NodeType,
        workspace: WorkspaceId,
        parent: NodeId | None,
        data: Mapping[str, Any],
        at: Instant,
        status: Status = Status.ACTIVE,
    ) -> Node:
        packed = pack(data)
        cursor = self._connection.execute(
            _INSERT,
            {
                "id": node_id,
                "type": kind.value,
                "workspace_id": workspace,
                "parent_id": parent,
                "data": packed,
                "status": status.value,
                "created_at": at,
                "updated_at": at,
            },
        )
        key = cursor.lastrowid or 0
        return Node(key, node_id, kind, workspace, parent, dict(data), status, at, at)

    def restore(self, node: Node) -> None:
        """Write a node that another file holds, its times and status as they are there.

        Its key is given anew; data of any size is kept.
        """
        self._connection.execute(
            _INSERT,
            {
                "id": node.id,
                "type": node.type.value,
                "workspace_id": node.workspace_id,
                "parent_id": node.parent_id,
                "data": json.dumps(node.data, ensure_ascii=False, separators=(",", ":")),
                "status": node.status.value,
                "created_at": node.created_at,
                "updated_at": node.updated_at,
            },
        )

    def set_data(self, key: int, data: Mapping[str, Any], at: Instant) -> None:
        self._connection.execute(_SET_DATA, {"key": key, "data": pack(data), "at": at})

    def set_status(self, keys: Sequence[int], status: Status, at: Instant | None = None) -> int:
        """Change the status of those that differ, `updated_at` only where `at` is given.

        Archiving passes no instant: it is not an edit (invariant 7). Returns how many
        rows changed.
        """
        cursor = self._connection.execute(
            _SET_STATUS, {"keys": json.dumps(list(keys)), "status": status.value, "at": at}
        )
        return cursor.rowcount

    def delete(self, keys: Sequence[int]) -> int:
        """One by one, in the order given; how many there were.

        Children come before their parents: a session whose parent went first would be a
        second root for a moment.
        """
        rows = self._connection.executemany(_DELETE, [{"key": key} for key in keys])
        return rows.rowcount
