"""Table relations: typed links between memories."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from cortex.domain.instants import Instant
from cortex.domain.taxonomy import RelationType
from cortex.domain.values import (
    NodeId,
    Relation,
    RelationId,
    WorkspaceId,
    burden,
    new_id,
    pack,
    unpack,
)
from cortex.store.damage import damaged_row

_BETWEEN: Final = """
SELECT rowkey, id, workspace_id, from_id, to_id, type, weight, data, created_at, updated_at
  FROM relations WHERE from_id = :source AND to_id = :target AND type = :type
"""
_OUT: Final = """
SELECT rowkey, id, workspace_id, from_id, to_id, type, weight, data, created_at, updated_at
  FROM relations
 WHERE from_id = :node AND (:types IS NULL OR type IN (SELECT value FROM json_each(:types)))
 ORDER BY created_at, id LIMIT :limit
"""
_IN: Final = """
SELECT rowkey, id, workspace_id, from_id, to_id, type, weight, data, created_at, updated_at
  FROM relations
 WHERE to_id = :node AND (:types IS NULL OR type IN (SELECT value FROM json_each(:types)))
 ORDER BY created_at, id LIMIT :limit
"""
_BY_KEYS: Final = """
SELECT r.rowkey, r.id, r.workspace_id, r.from_id, r.to_id, r.type, r.weight, r.data,
       r.created_at, r.updated_at
  FROM json_each(:keys) AS wanted CROSS JOIN relations AS r ON r.rowkey = wanted.value
"""
_WITHIN: Final = """
SELECT r.rowkey, r.id, r.workspace_id, r.from_id, r.to_id, r.type, r.weight, r.data,
       r.created_at, r.updated_at
  FROM json_each(:ids) AS wanted CROSS JOIN relations AS r ON r.from_id = wanted.value
 WHERE r.to_id IN (SELECT value FROM json_each(:ids))
 ORDER BY r.created_at, r.id LIMIT :limit
"""
_OF_TYPE: Final = """
SELECT r.rowkey, r.id, r.workspace_id, r.from_id, r.to_id, r.type, r.weight, r.data,
       r.created_at, r.updated_at
  FROM json_each(:ids) AS wanted CROSS JOIN relations AS r
    ON (r.from_id = wanted.value OR r.to_id = wanted.value)
 WHERE r.type = :type
 ORDER BY r.created_at, r.id
"""
# What holds and what replaces are no neighbours, nor what was derived from likeness.
_AROUND: Final = """
SELECT wanted.value, r.to_id, r.type = 'sequel_to'
  FROM json_each(:ids) AS wanted CROSS JOIN relations AS r
    ON r.rowkey IN (SELECT rowkey FROM relations
                     WHERE from_id = wanted.value
                       AND type NOT IN ('contains', 'decomposes_to', 'supersedes')
                       AND (data = '{}' OR json_extract(data, '$.derived') IS NOT 1)
                     LIMIT :limit)
 UNION
SELECT wanted.value, r.from_id, r.type = 'sequel_to'
  FROM json_each(:ids) AS wanted CROSS JOIN relations AS r
    ON r.rowkey IN (SELECT rowkey FROM relations
                     WHERE to_id = wanted.value
                       AND type NOT IN ('contains', 'decomposes_to', 'supersedes')
                       AND (data = '{}' OR json_extract(data, '$.derived') IS NOT 1)
                     LIMIT :limit)
 ORDER BY 1, 2, 3 DESC
"""
_DEGREES: Final = """
SELECT wanted.value, (SELECT COUNT(*) FROM relations WHERE from_id = wanted.value)
                   + (SELECT COUNT(*) FROM relations WHERE to_id = wanted.value)
  FROM json_each(:ids) AS wanted
"""
_FIRST_OUT: Final = """
SELECT wanted.value, r.rowkey, r.id, r.workspace_id, r.from_id, r.to_id, r.type, r.weight, r.data,
       r.created_at, r.updated_at
  FROM json_each(:ids) AS wanted CROSS JOIN relations AS r ON r.rowkey IN (
       SELECT rowkey FROM relations
        WHERE from_id = wanted.value
          AND (:types IS NULL OR type IN (SELECT value FROM json_each(:types)))
        ORDER BY created_at, id LIMIT :limit)
 ORDER BY wanted.key, r.created_at, r.id
"""
_FIRST_IN: Final = """
SELECT wanted.value, r.rowkey, r.id, r.workspace_id, r.from_id, r.to_id, r.type, r.weight, r.data,
       r.created_at, r.updated_at
  FROM json_each(:ids) AS wanted CROSS JOIN relations AS r ON r.rowkey IN (
       SELECT rowkey FROM relations WHERE to_id = wanted.value
        ORDER BY created_at, id LIMIT :limit)
 ORDER BY wanted.key, r.created_at, r.id
"""
_SUPERSEDED: Final = """
SELECT DISTINCT r.to_id FROM json_each(:ids) AS wanted CROSS JOIN relations AS r
    ON r.to_id = wanted.value AND r.type = 'supersedes'
"""
_TOUCHING: Final = """
SELECT COUNT(*) FROM (
    SELECT rowkey FROM relations WHERE from_id IN (SELECT value FROM json_each(:ids))
    UNION
    SELECT rowkey FROM relations WHERE to_id IN (SELECT value FROM json_each(:ids)))
"""
_COUNT: Final = "SELECT COUNT(*) FROM relations WHERE workspace_id = :workspace"
_BRIEF_BY_KEYS: Final = """
SELECT r.rowkey, a.rowkey, b.rowkey, r.type, r.weight,
       r.data <> '{}' AND json_extract(r.data, '$.derived') IS 1
  FROM json_each(:keys) AS wanted
 CROSS JOIN relations AS r ON r.rowkey = wanted.value
  JOIN nodes AS a ON a.id = r.from_id
  JOIN nodes AS b ON b.id = r.to_id
 WHERE r.workspace_id = :workspace
 ORDER BY r.rowkey
"""
_HOLDS: Final = "SELECT EXISTS (SELECT 1 FROM relations WHERE id = :id)"
# NOT INDEXED: over an index of workspaces each page would sort every key of this one.
_ALL: Final = """
SELECT rowkey, id, workspace_id, from_id, to_id, type, weight, data, created_at, updated_at
  FROM relations NOT INDEXED
 WHERE workspace_id = :workspace AND rowkey > :after ORDER BY rowkey LIMIT :limit
"""
_INSERT: Final = """
INSERT INTO relations(
    id, workspace_id, from_id, to_id, type, weight, data, created_at, updated_at)
VALUES (
    :id, :workspace_id, :from_id, :to_id, :type, :weight, :data, :created_at, :updated_at)
"""
_REFRESH: Final = """
UPDATE relations SET weight = :weight, data = :data, updated_at = :at WHERE rowkey = :key
"""
_DELETE: Final = "DELETE FROM relations WHERE rowkey IN (SELECT value FROM json_each(:keys))"

_KINDS: Final = {kind.value: kind for kind in RelationType}
NO_LIMIT: Final = -1


class BriefRelation(NamedTuple):
    """What the graph cache holds of a relation; the ends are node keys."""

    key: int
    source: int
    target: int
    type: str
    weight: float
    derived: bool


def relation_of(row: Sequence[Any]) -> Relation:
    """The value of a row whose columns are listed in the table's order."""
    key, relation_id, workspace, source, target, kind, weight, data, created, updated = row
    try:
        return Relation(
            key,
            relation_id,
            workspace,
            source,
            target,
            _KINDS[kind],
            weight,
            unpack(data),
            created,
            updated,
        )
    except (KeyError, TypeError, ValueError) as error:
        raise damaged_row("relation", relation_id) from error


class Relations:
    """Reads and writes relations within one transaction."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def _list(self, statement: str, **bound: Any) -> list[Relation]:
        return [relation_of(row) for row in self._connection.execute(statement, bound)]

    def find(self, source: NodeId, target: NodeId, kind: RelationType) -> Relation | None:
        found = self._list(_BETWEEN, source=source, target=target, type=kind.value)
        return found[0] if found else None

    def outgoing(
        self, node: NodeId, types: Sequence[RelationType] = (), limit: int = NO_LIMIT
    ) -> list[Relation]:
        """By creation, then id."""
        bound = json.dumps(list(types)) if types else None
        return self._list(_OUT, node=node, types=bound, limit=limit)

    def incoming(
        self, node: NodeId, types: Sequence[RelationType] = (), limit: int = NO_LIMIT
    ) -> list[Relation]:
        """By creation, then id."""
        bound = json.dumps(list(types)) if types else None
        return self._list(_IN, node=node, types=bound, limit=limit)

    def by_keys(self, keys: Sequence[int]) -> list[Relation]:
        """Those that exist, in the order asked (set here: SQLite would sort whole rows)."""
        rows = self._list(_BY_KEYS, keys=json.dumps(list(keys)))
        found = {relation.key: relation for relation in rows}
        return [found[key] for key in keys if key in found]

    def sized(self, keys: Sequence[int]) -> Iterator[tuple[Relation, int]]:
        """Those that exist, in no order, each with the `burden` of its data."""
        for row in self._connection.execute(_BY_KEYS, {"keys": json.dumps(list(keys))}):
            yield relation_of(row), burden(row[7])

    def within(self, ids: Sequence[NodeId], limit: int = NO_LIMIT) -> list[Relation]:
        """Relations whose both ends are among `ids`, by creation."""
        return self._list(_WITHIN, ids=json.dumps(list(ids)), limit=limit)

    def of_type(self, ids: Sequence[NodeId], kind: RelationType) -> list[Relation]:
        """Relations of one type that touch any of `ids`, by creation; may repeat."""
        return self._list(_OF_TYPE, ids=json.dumps(list(ids)), type=kind.value)

    def around(self, ids: Sequence[NodeId], most: int) -> dict[NodeId, dict[NodeId, bool]]:
        """The neighbours of each node, either way, by id, and whether they follow one another.

        A node with more than `most` has none. Neither hierarchy nor `supersedes` counts, nor
        derived relations.
        """
        bound = {"ids": json.dumps(list(ids)), "limit": most + 1}
        found: dict[NodeId, dict[NodeId, bool]] = {}
        for node, other, sequel in self._connection.execute(_AROUND, bound):
            found.setdefault(node, {}).setdefault(other, bool(sequel))
        return {node: others for node, others in found.items() if len(others) <= most}

    def first_outgoing(
        self, ids: Sequence[NodeId], limit: int, types: Sequence[RelationType] = ()
    ) -> dict[NodeId, list[Relation]]:
        """Of each node its first `limit` outgoing relations of these types, all when none is
        given, by creation, then id; a node without any is left out."""
        kinds = json.dumps(list(types)) if types else None
        bound = {"ids": json.dumps(list(ids)), "limit": limit, "types": kinds}
        return self._by_node(_FIRST_OUT, bound)

    def first_of(self, ids: Sequence[NodeId], limit: int) -> dict[NodeId, list[Relation]]:
        """Of each node its first `limit` outgoing relations, then as many incoming ones."""
        found = self.first_outgoing(ids, limit)
        bound = {"ids": json.dumps(list(ids)), "limit": limit}
        for node, relations in self._by_node(_FIRST_IN, bound).items():
            found.setdefault(node, []).extend(relations)
        return found

    def _by_node(self, statement: str, bound: dict[str, Any]) -> dict[NodeId, list[Relation]]:
        found: dict[NodeId, list[Relation]] = {}
        for node, *row in self._connection.execute(statement, bound):
            found.setdefault(node, []).append(relation_of(row))
        return found

    def degree(self, node: NodeId) -> int:
        """How many relations the node has, either way."""
        return self.degrees([node])[node]

    def degrees(self, ids: Sequence[NodeId]) -> dict[NodeId, int]:
        """How many relations each has, either way."""
        bound = {"ids": json.dumps(list(ids))}
        return dict(self._connection.execute(_DEGREES, bound).fetchall())

    def superseded(self, ids: Sequence[NodeId]) -> set[NodeId]:
        """Those that some node supersedes."""
        rows = self._connection.execute(_SUPERSEDED, {"ids": json.dumps(list(ids))})
        return {node for (node,) in rows}

    def touching(self, ids: Sequence[NodeId]) -> int:
        """How many relations have an end among `ids`."""
        bound = {"ids": json.dumps(list(ids))}
        return int(self._connection.execute(_TOUCHING, bound).fetchone()[0])

    def count(self, workspace: WorkspaceId) -> int:
        return int(self._connection.execute(_COUNT, {"workspace": workspace}).fetchone()[0])

    def brief_by_keys(self, workspace: WorkspaceId, keys: Sequence[int]) -> list[BriefRelation]:
        """Those of `keys` that exist in this workspace; the ends are node keys."""
        rows = self._connection.execute(
            _BRIEF_BY_KEYS, {"workspace": workspace, "keys": json.dumps(list(keys))}
        )
        return [BriefRelation(*row) for row in rows]

    def insert(
        self,
        workspace: WorkspaceId,
        source: NodeId,
        target: NodeId,
        kind: RelationType,
        at: Instant,
        weight: float = 1.0,
        data: Mapping[str, Any] | None = None,
    ) -> Relation:
        relation_id = RelationId(new_id())
        cursor = self._connection.execute(
            _INSERT,
            {
                "id": relation_id,
                "workspace_id": workspace,
                "from_id": source,
                "to_id": target,
                "type": kind.value,
                "weight": weight,
                "data": pack(data or {}),
                "created_at": at,
                "updated_at": at,
            },
        )
        key = cursor.lastrowid or 0
        return Relation(
            key, relation_id, workspace, source, target, kind, weight, dict(data or {}), at, at
        )

    def holds(self, relation_id: str) -> bool:
        """Whether some relation has this id."""
        return bool(self._connection.execute(_HOLDS, {"id": relation_id}).fetchone()[0])

    def iter_all(self, workspace: WorkspaceId, batch: int = 1000) -> Iterator[Relation]:
        """Every relation of the workspace by rising key, `batch` rows at a time."""
        after = 0
        while True:
            rows = self._list(_ALL, workspace=workspace, after=after, limit=batch)
            yield from rows
            if len(rows) < batch:
                return
            after = rows[-1].key

    def restore(self, relation: Relation) -> None:
        """Write a relation that another file holds, id and times as they are there."""
        self._connection.execute(
            _INSERT,
            {
                "id": relation.id,
                "workspace_id": relation.workspace_id,
                "from_id": relation.from_id,
                "to_id": relation.to_id,
                "type": relation.type.value,
                "weight": relation.weight,
                "data": json.dumps(relation.data, ensure_ascii=False, separators=(",", ":")),
                "created_at": relation.created_at,
                "updated_at": relation.updated_at,
            },
        )

    def refresh(self, key: int, weight: float, data: Mapping[str, Any], at: Instant) -> None:
        self._connection.execute(
            _REFRESH, {"key": key, "weight": weight, "data": pack(data), "at": at}
        )

    def delete(self, keys: Sequence[int]) -> int:
        return self._connection.execute(_DELETE, {"keys": json.dumps(list(keys))}).rowcount
