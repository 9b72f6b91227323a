"""What the doctor writes: derived rows made right, and rows that break a rule made to keep it.

No node is deleted, and nothing that a person wrote: where a value cannot stay where it is,
the node's data keeps it as `original_…`. Triggers are in force, so that every change of a
node or relation is logged and can be looked at afterwards.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Sequence
from typing import Any, Final

from cortex.domain.instants import Instant
from cortex.domain.taxonomy import SYMMETRIC, NodeType, RelationType, Status
from cortex.domain.values import new_id, pack
from cortex.store.integrity import Difference, wanted_sql
from cortex.store.meta import DERIVED_SEQ, EPOCH, LOG_FLOOR, Meta
from cortex.store.original import as_json, read_data, read_kind, read_time, read_weight
from cortex.store.undo import UndoLog

_SET_NODE: Final = """
UPDATE nodes
   SET type = :type, workspace_id = :workspace, data = :data,
       created_at = :created_at, updated_at = :updated_at,
       status = CASE WHEN :status = 'active' AND EXISTS (
                SELECT 1 FROM relations AS r WHERE r.to_id = nodes.id AND r.type = 'supersedes')
                THEN 'stale' ELSE :status END
 WHERE rowkey = :key
"""
_SET_RELATION: Final = """
UPDATE relations SET weight = :weight, data = :data, created_at = :created_at,
       updated_at = :updated_at
 WHERE rowkey = :key
"""
_IS_JOINED: Final = """
SELECT EXISTS (SELECT 1 FROM relations WHERE from_id = :near AND to_id = :far AND type = :type)
"""
_RELATION: Final = """
SELECT id, workspace_id, weight, data, created_at, updated_at FROM relations WHERE rowkey = :key
"""
_INSERT_RELATION: Final = """
INSERT INTO relations(
    id, workspace_id, from_id, to_id, type, weight, data, created_at, updated_at)
VALUES (:id, :workspace, :near, :far, :type, :weight, :data, :created_at, :updated_at)
"""
_DROP_RELATION: Final = "DELETE FROM relations WHERE rowkey = :key"
_MOVE_RELATION: Final = "UPDATE relations SET workspace_id = :workspace WHERE rowkey = :key"
_SET_PARENT: Final = "UPDATE nodes SET parent_id = :parent WHERE rowkey = :key"
_GO_STALE: Final = "UPDATE nodes SET status = 'stale' WHERE rowkey = :key"
_CAN_HOLD: Final = """
SELECT EXISTS (
    SELECT 1 FROM nodes AS n JOIN nodes AS p ON p.id = :parent
     WHERE n.rowkey = :key AND p.workspace_id = n.workspace_id AND p.id <> n.id
       AND NOT EXISTS (
           WITH RECURSIVE above(id) AS (
               SELECT p.id
               UNION
               SELECT r.from_id FROM above
                 JOIN relations AS r ON r.to_id = above.id AND r.type = 'contains')
           SELECT 1 FROM above WHERE id = n.id))
"""
_DROP_TALLIES: Final = "DELETE FROM tallies"
_TALLY: Final = """
INSERT INTO tallies(workspace_id, status, nodes)
SELECT workspace_id, status, COUNT(*) FROM nodes GROUP BY workspace_id, status
"""
_STRAY: Final = {
    "embeddings": "DELETE FROM embeddings WHERE node_key = :key",
    "index_state": "DELETE FROM index_state WHERE node_key = :key",
    "accesses": "DELETE FROM accesses WHERE node_key = :key",
}
# A wave's log row needs the workspace of a node that is gone: it goes without one.
_WAVES_DELETE: Final = "SELECT sql FROM sqlite_master WHERE name = 'waves_delete'"
_NO_TRIGGER: Final = "DROP TRIGGER waves_delete"
_STRAY_WAVE: Final = "DELETE FROM waves WHERE node_key = :key"
_WRITER: Final = "INSERT OR IGNORE INTO writer(one) VALUES (1)"
_LOG: Final = """
INSERT INTO changes(at, tx, actor, workspace_id, entity, key, op, before)
VALUES (:at, :tx, :actor, :workspace, :entity, :key, 'update', :image)
"""
_REINDEX: Final = "REINDEX"
_DROPS: Final = {
    "trigger": "SELECT 'DROP TRIGGER IF EXISTS \"' || :name || '\"'",
    "index": "SELECT 'DROP INDEX IF EXISTS \"' || :name || '\"'",
}
_REBUILD: Final = "INSERT INTO keywords(keywords) VALUES ('rebuild')"
_DROP_KEYWORDS: Final = "DROP TABLE keywords"
_OWE_AGAIN: Final = """
UPDATE index_state SET state = 'pending', leased_until = '' WHERE node_key = :key
"""
_DROP_VECTORS: Final = "DELETE FROM embeddings WHERE node_key = :key"
_SPAN: Final = "SELECT MIN(seq), MAX(seq) FROM changes"


class Mending:
    """Writes within one transaction, whose instant, number and actor the log rows bear."""

    def __init__(self, connection: sqlite3.Connection, at: Instant, tx: int, actor: str) -> None:
        self._connection = connection
        self._at, self._tx, self._actor = at, tx, actor

    def restore_schema(self, differences: Iterable[Difference]) -> None:
        """Make missing and changed triggers and indexes again, and a missing keyword index.

        Raises ConflictError (translated) where rows are there that the index forbids.
        """
        for each in differences:
            if each.kind in _DROPS and each.sql:
                (drop,) = self._connection.execute(
                    _DROPS[each.kind], {"name": each.name}
                ).fetchone()
                self._connection.execute(drop)
                self._connection.execute(each.sql)
            elif each.state == "missing" and each.name == "keywords":
                self._connection.execute(each.sql)

    def reindex(self) -> None:
        """Make every index anew from its table. Raises ConflictError (translated) where two
        rows hold what only one may."""
        self._connection.execute(_REINDEX)

    def make_valid(
        self, nodes: Sequence[tuple[Any, ...]], relations: Sequence[tuple[Any, ...]]
    ) -> None:
        """Bring rows of `Integrity.bad_nodes` and `bad_relations` into the columns' forms."""
        for row in nodes:
            self._connection.execute(_SET_NODE, _valid_node(row, self._at))
        for row in relations:
            self._connection.execute(_SET_RELATION, _valid_relation(row, self._at))
            self._rename(row)

    def _rename(self, row: tuple[Any, ...]) -> None:
        """Put `related_to`, labelled, in place of an unknown type, unless the two are so
        joined: then it stays as it is. A type never changes, so it is another relation."""
        key, relation, kind, *_, source, target = row
        known = read_kind(RelationType, kind) or RelationType.RELATED_TO
        near, far = sorted((source, target)) if known in SYMMETRIC else (source, target)
        bound = {"key": key, "type": known.value, "near": near, "far": far}
        if kind == known or self._connection.execute(_IS_JOINED, bound).fetchone()[0]:
            return
        present = self._connection.execute(_RELATION, bound).fetchone()
        self._connection.execute(_DROP_RELATION, bound)
        names = ("id", "workspace", "weight", "data", "created_at", "updated_at")
        self._connection.execute(
            _INSERT_RELATION, {**bound, **dict(zip(names, present, strict=True)), "id": relation}
        )

    def drop_relations(self, keys: Iterable[int]) -> None:
        self._connection.executemany(_DROP_RELATION, [{"key": key} for key in keys])

    def move_relation(self, key: int, workspace: str) -> None:
        self._connection.execute(_MOVE_RELATION, {"key": key, "workspace": workspace})

    def can_contain(self, parent: str, key: int) -> bool:
        """Whether a node may be put below another: of its workspace, and not below itself."""
        bound = {"key": key, "parent": parent}
        return bool(self._connection.execute(_CAN_HOLD, bound).fetchone()[0])

    def set_parent(self, key: int, parent: str | None) -> None:
        self._connection.execute(_SET_PARENT, {"key": key, "parent": parent})

    def go_stale(self, keys: Iterable[int]) -> None:
        self._connection.executemany(_GO_STALE, [{"key": key} for key in keys])

    def recount(self) -> None:
        """Count the nodes anew."""
        self._connection.execute(_DROP_TALLIES)
        self._connection.execute(_TALLY)

    def drop_stray(self, rows: Iterable[tuple[str, int]]) -> None:
        """Remove rows that hang on nodes that are gone: (table, key)."""
        waves = []
        for table, key in rows:
            if table == "waves":
                waves.append({"key": key})
            else:
                self._connection.execute(_STRAY[table], {"key": key})
        if waves:
            (trigger,) = self._connection.execute(_WAVES_DELETE).fetchone()
            self._connection.execute(_NO_TRIGGER)
            self._connection.executemany(_STRAY_WAVE, waves)
            self._connection.execute(trigger)

    def restore_writer(self) -> None:
        """Table writer has its one row; the transaction's end clears it."""
        self._connection.execute(_WRITER)

    def log_present(self, entity: str, keys: Sequence[int]) -> None:
        """Log rows without a change as updated now, from what they are to the same.

        As of any time they were so; an undo finds nothing to take back.
        """
        log = UndoLog(self._connection)
        wanted = [(entity, key) for key in keys]
        for (_, key), image in log.images(wanted).items():  # type: ignore[arg-type]  # of the two
            if image is None:
                continue
            bound = {"at": self._at, "tx": self._tx, "actor": self._actor, "entity": entity}
            place = json.loads(image)["workspace_id"]
            self._connection.execute(
                _LOG, {**bound, "key": key, "workspace": place, "image": image}
            )

    def rebuild_keywords(self) -> None:
        """Make the keyword index anew from its own content; from nothing where that fails."""
        try:
            self._connection.execute(_REBUILD)
        except sqlite3.DatabaseError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_CORRUPT:
                raise
            self.empty_keywords()

    def empty_keywords(self) -> None:
        """An empty keyword index in place of one that cannot be read."""
        self._connection.execute(_DROP_KEYWORDS)
        self._connection.execute(wanted_sql("keywords"))

    def owe_again(self, key: int) -> None:
        """Drop a node's vectors and have its text embedded again."""
        self._connection.execute(_DROP_VECTORS, {"key": key})
        self._connection.execute(_OWE_AGAIN, {"key": key})

    def settle_marks(self) -> None:
        """What follows the log stands at its end at most, and the floor below its first row."""
        meta = Meta(self._connection)
        first, last = self._connection.execute(_SPAN).fetchone()
        floor = int(meta.find(LOG_FLOOR) or 0)
        if first is not None and first <= floor:
            meta.set(LOG_FLOOR, str(first - 1))
            floor = first - 1
        if int(meta.find(DERIVED_SEQ) or 0) > max(last or 0, floor):
            meta.set(DERIVED_SEQ, str(max(last or 0, floor)))

    def begin_epoch(self) -> None:
        """Every cache of every process rebuilds at its next look (invariant 3)."""
        Meta(self._connection).set(EPOCH, new_id())


def _valid_node(row: tuple[Any, ...], now: Instant) -> dict[str, Any]:
    key, _, kind, workspace, data, status, created, updated = row
    made, _ = read_data(data)
    made_at, changed_at = read_time(created), read_time(updated)
    known, standing = read_kind(NodeType, kind), read_kind(Status, status)
    if known is None:
        made.setdefault("kind", as_json(kind))
    if standing is None:
        made["original_status"] = as_json(status)
    for name, text, read in (("created_at", created, made_at), ("updated_at", updated, changed_at)):
        if read is None:
            made[f"original_{name}"] = as_json(text)
    place = workspace if 1 <= len(workspace) <= 200 else workspace[:200] or "default"
    if place != workspace:
        made["original_workspace_id"] = workspace
    return {
        "key": key,
        "type": known or NodeType.ENTITY,
        "status": standing or Status.ACTIVE,
        "workspace": place,
        "data": pack(made),
        "created_at": made_at or changed_at or now,
        "updated_at": changed_at or made_at or now,
    }


def _valid_relation(row: tuple[Any, ...], now: Instant) -> dict[str, Any]:
    key, _, kind, weight, data, created, updated, *_ = row
    made, _ = read_data(data)
    made_at, changed_at = read_time(created), read_time(updated)
    if read_kind(RelationType, kind) is None:
        made.setdefault("label", as_json(kind))
    near = read_weight(weight)
    if near != weight:
        made["original_weight"] = as_json(weight)
    for name, text, read in (("created_at", created, made_at), ("updated_at", updated, changed_at)):
        if read is None:
            made[f"original_{name}"] = as_json(text)
    return {
        "key": key,
        "weight": near,
        "data": pack(made),
        "created_at": made_at or changed_at or now,
        "updated_at": changed_at or made_at or now,
    }
