"""The log read backwards: whole transactions, the rows before and after, and what undid what.

An image is a row as the log keeps it: one JSON text, equal for equal rows, byte for byte,
so that two of them are compared as texts. Table reversals says which transaction took back
which; an undo that was itself taken back is no longer in force.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from types import MappingProxyType
from typing import Any, Final, Literal, NamedTuple

from cortex.domain.instants import Instant
from cortex.domain.values import WorkspaceId

Entity = Literal["node", "relation", "wave"]
ENTITIES: Final[tuple[Entity, ...]] = ("node", "relation", "wave")
Key = tuple[Entity, int]
Image = str | None
"""None: there was no such row."""

SHELL: Final = "shell"
FOLLOWER: Final = "neighbours"
"""Who links memories by itself (`cortex.services.neighbours`): nobody's change to take back."""
UPGRADE: Final = "upgrade"
"""Of an original file: what it wrote was there before, and is nobody's change to take back."""

# The order of changes_by_time, from its end: newest first, and read only as far as asked.
_NEWEST_FIRST: Final = """
SELECT seq, at, tx, actor FROM changes WHERE workspace_id = :workspace ORDER BY at DESC, seq DESC
"""
_FROM: Final = """
SELECT seq, at, tx, actor, workspace_id, entity, key, before
  FROM changes WHERE seq >= :seq ORDER BY seq
"""
_SINCE: Final = "SELECT entity, key, before FROM changes WHERE seq > :since ORDER BY seq"
# A statement of a shell has no number of its own: its rows share their instant.
_SHELL_BEGINS: Final = """
SELECT MIN(seq) FROM changes WHERE workspace_id = :workspace AND at = :at AND actor = 'shell'
"""
# As the triggers of the schema write them.
_NODES_NOW: Final = """
SELECT n.rowkey, json_object('rowkey', n.rowkey, 'id', n.id, 'type', n.type,
       'workspace_id', n.workspace_id, 'parent_id', n.parent_id, 'data', n.data,
       'status', n.status, 'created_at', n.created_at, 'updated_at', n.updated_at)
  FROM json_each(:keys) AS wanted CROSS JOIN nodes AS n ON n.rowkey = wanted.value
"""
_RELATIONS_NOW: Final = """
SELECT r.rowkey, json_object('rowkey', r.rowkey, 'id', r.id, 'workspace_id', r.workspace_id,
       'from_id', r.from_id, 'to_id', r.to_id, 'type', r.type,
       'weight', printf('%!.17g', r.weight), 'data', r.data, 'created_at', r.created_at,
       'updated_at', r.updated_at)
  FROM json_each(:keys) AS wanted CROSS JOIN relations AS r ON r.rowkey = wanted.value
"""
_WAVES_NOW: Final = """
SELECT w.node_key, json_object('node_key', w.node_key,
       'amplitude', printf('%!.17g', w.amplitude), 'frequency', printf('%!.17g', w.frequency),
       'phase', printf('%!.17g', w.phase), 'half_life', printf('%!.17g', w.half_life),
       'at', w.at)
  FROM json_each(:keys) AS wanted CROSS JOIN waves AS w ON w.node_key = wanted.value
"""
_NEXT: Final = """
SELECT c.key, c.before
  FROM json_each(:keys) AS wanted
 CROSS JOIN changes AS c ON c.seq = (
       SELECT MIN(seq) FROM changes
        WHERE entity = :entity AND key = wanted.value AND seq > :since)
"""
_LATER: Final = """
SELECT DISTINCT c.seq, c.at, c.tx, c.actor
  FROM json_each(:keys) AS wanted
 CROSS JOIN changes AS c ON c.entity = :entity AND c.key = wanted.value
 WHERE c.seq > :since
 ORDER BY c.seq DESC LIMIT 1000
"""

_INSERT_NODE: Final = """
INSERT INTO nodes(
    rowkey, id, type, workspace_id, parent_id, data, status, created_at, updated_at)
VALUES (
    :rowkey, :id, :type, :workspace_id, :parent_id, :data, :status, :created_at, :updated_at)
"""
_UPDATE_NODE: Final = """
UPDATE nodes
   SET type = :type, workspace_id = :workspace_id, parent_id = :parent_id, data = :data,
       status = :status, created_at = :created_at, updated_at = :updated_at
 WHERE rowkey = :rowkey
"""
_INSERT_RELATION: Final = """
INSERT INTO relations(
    rowkey, id, workspace_id, from_id, to_id, type, weight, data, created_at, updated_at)
VALUES (
    :rowkey, :id, :workspace_id, :from_id, :to_id, :type, :weight, :data, :created_at,
    :updated_at)
"""
_UPDATE_RELATION: Final = """
UPDATE relations
   SET workspace_id = :workspace_id, weight = :weight, data = :data, created_at = :created_at,
       updated_at = :updated_at
 WHERE rowkey = :rowkey
"""
_INSERT_WAVE: Final = """
INSERT INTO waves(node_key, amplitude, frequency, phase, half_life, at)
VALUES (:node_key, :amplitude, :frequency, :phase, :half_life, :at)
"""
_UPDATE_WAVE: Final = """
UPDATE waves
   SET amplitude = :amplitude, frequency = :frequency, phase = :phase, half_life = :half_life,
       at = :at
 WHERE node_key = :node_key
"""
# Links that the follower made and nobody changed since: they go with their node.
_FOLLOWERS: Final = """
SELECT wanted.value
  FROM json_each(:keys) AS wanted
 WHERE EXISTS (SELECT 1 FROM changes WHERE entity = 'relation' AND key = wanted.value)
   AND NOT EXISTS (
       SELECT 1 FROM changes
        WHERE entity = 'relation' AND key = wanted.value AND op <> 'delete'
          AND actor <> 'neighbours' AND actor NOT LIKE 'neighbours#%')
"""
_IN_THE_WAY: Final = """
SELECT rowkey FROM relations WHERE from_id = :from_id AND to_id = :to_id AND type = :type
UNION
SELECT rowkey FROM relations WHERE :type = 'contains' AND type = 'contains' AND to_id = :to_id
"""
_TOUCHING: Final = """
SELECT rowkey FROM relations WHERE from_id IN (SELECT value FROM json_each(:ids))
UNION
SELECT rowkey FROM relations WHERE to_id IN (SELECT value FROM json_each(:ids))
"""
# A session that leaves its parent would be a second root for a moment.
_DISGUISE: Final = """
UPDATE nodes SET type = 'task'
 WHERE rowkey IN (SELECT value FROM json_each(:keys)) AND type = 'session'
"""

_NOW: Final[Mapping[Entity, str]] = MappingProxyType(
    {"node": _NODES_NOW, "relation": _RELATIONS_NOW, "wave": _WAVES_NOW}
)
_INSERT: Final[Mapping[Entity, str]] = MappingProxyType(
    {"node": _INSERT_NODE, "relation": _INSERT_RELATION, "wave": _INSERT_WAVE}
)
_UPDATE: Final[Mapping[Entity, str]] = MappingProxyType(
    {"node": _UPDATE_NODE, "relation": _UPDATE_RELATION, "wave": _UPDATE_WAVE}
)
_REALS: Final = frozenset({"weight", "amplitude", "frequency", "phase", "half_life"})

_RECORD: Final = "INSERT INTO reversals(by_tx, tx) VALUES (:by_tx, :tx)"
_TAKEN_BACK: Final = """
SELECT r.by_tx FROM reversals AS r
 WHERE r.tx = :tx AND NOT EXISTS (SELECT 1 FROM reversals AS s WHERE s.tx = r.by_tx)
"""
_TOOK_BACK: Final = "SELECT tx FROM reversals WHERE by_tx = :by_tx ORDER BY tx DESC"
_IN_FORCE: Final = """
SELECT DISTINCT r.by_tx FROM reversals AS r
 WHERE NOT EXISTS (SELECT 1 FROM reversals AS s WHERE s.tx = r.by_tx)
   AND NOT EXISTS (SELECT 1 FROM reversals AS t WHERE t.by_tx = r.tx)
 ORDER BY r.by_tx DESC
"""


class Logged(NamedTuple):
    """A transaction of the log: its number (that of its first change), when, and by whom."""

    tx: int
    at: Instant
    actor: str


class Step(NamedTuple):
    """A transaction whole: its rows' images before it, and where in the log it ends."""

    logged: Logged
    last: int
    changes: int
    workspaces: frozenset[str]
    entities: frozenset[str]
    before: dict[Key, Image]


class UndoLog:
    """Reads the log backwards and puts rows back, within one transaction."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def newest_first(self, workspace: WorkspaceId, floor: int) -> Iterator[Logged]:
        """Transactions of the workspace whose every row is still in the log.

        To be left, or read to its end, before anything is written.
        """
        rows = self._connection.execute(_NEWEST_FIRST, {"workspace": workspace})
        for _, group in groupby(rows, key=lambda row: _unit(row[1], row[2], row[3])):
            for seq, at, tx, actor in group:  # noqa: B007 - of the last one read, its first
                number = seq if actor == SHELL else tx
            if number <= floor or actor == UPGRADE:
                return
            yield Logged(number, Instant(at), actor)

    def find(self, tx: int) -> Step | None:
        """The transaction that begins with this change, or to which it belongs."""
        head = self._connection.execute(_FROM, {"seq": tx}).fetchone()
        if head is None or head[0] != tx:
            return None
        _, at, number, actor, workspace, *_ = head
        if actor == SHELL:
            bound = {"workspace": workspace, "at": at}
            number = self._connection.execute(_SHELL_BEGINS, bound).fetchone()[0]
        return self._step(number)

    def _step(self, tx: int) -> Step:
        rows = iter(self._connection.execute(_FROM, {"seq": tx}))
        (_, group) = next(groupby(rows, key=lambda row: _unit(row[1], row[2], row[3])))
        before: dict[Key, Image] = {}
        workspaces, entities = set(), set()
        last, changes, first = tx, 0, None
        for row in group:
            last, at, _, actor, workspace, entity, key, image = row
            first = first or Logged(tx, Instant(at), actor)
            workspaces.add(workspace)
            entities.add(entity)
            before.setdefault((entity, key), image)
            changes += 1
        assert first is not None  # the caller has seen its first row
        return Step(first, last, changes, frozenset(workspaces), frozenset(entities), before)

    def images(self, keys: Iterable[Key]) -> dict[Key, Image]:
        """The rows as they are now."""
        found: dict[Key, Image] = dict.fromkeys(keys)
        for entity in ENTITIES:
            for key, image in self._connection.execute(_NOW[entity], _keys(entity, found)):
                found[entity, key] = image
        return found

    def images_after(self, step: Step) -> dict[Key, Image]:
        """The rows as the transaction left them."""
        found = self.images(step.before)
        for entity in ENTITIES:
            bound = {**_keys(entity, step.before), "entity": entity, "since": step.last}
            for key, image in self._connection.execute(_NEXT, bound):
                found[entity, key] = image
        return found

    def changed_since(self, seq: int) -> dict[Key, Image]:
        """What has changed after change `seq`, with the images that it had then."""
        found: dict[Key, Image] = {}
        for entity, key, image in self._connection.execute(_SINCE, {"since": seq}):
            found.setdefault((entity, key), image)
        return found

    def later(self, keys: Iterable[Key], seq: int) -> list[Logged]:
        """Transactions after change `seq` that changed one of these rows, newest first."""
        wanted = list(keys)
        found: dict[int, Logged] = {}
        for entity in ENTITIES:
            bound = {**_keys(entity, wanted), "entity": entity, "since": seq}
            for _, at, tx, actor in self._connection.execute(_LATER, bound):
                found[tx] = Logged(tx, Instant(at), actor)
        return [found[tx] for tx in sorted(found, reverse=True)]

    # ── putting rows back ─────────────────────────────────────────────────────────────────

    def insert(self, entity: Entity, image: str) -> None:
        """A row that is gone, under its own key."""
        self._connection.execute(_INSERT[entity], fields_of(image))

    def update(self, entity: Entity, image: str) -> None:
        """A row that is there, as it was."""
        self._connection.execute(_UPDATE[entity], fields_of(image))

    def in_the_way(self, image: str) -> list[int]:
        """Keys of relations beside which this one cannot be."""
        fields = fields_of(image)
        bound = {name: fields[name] for name in ("from_id", "to_id", "type")}
        return [key for (key,) in self._connection.execute(_IN_THE_WAY, bound)]

    def touching(self, ids: Sequence[str]) -> list[int]:
        """Keys of relations that have an end among these nodes."""
        rows = self._connection.execute(_TOUCHING, {"ids": json.dumps(list(ids))})
        return [key for (key,) in rows]

    def followers(self, relations: Sequence[int]) -> set[int]:
        """Those of these relations that the follower alone made and changed."""
        rows = self._connection.execute(_FOLLOWERS, {"keys": json.dumps(list(relations))})
        return {key for (key,) in rows}

    def disguise(self, keys: Sequence[int]) -> None:
        """Make sessions tasks, until their own images are written back."""
        self._connection.execute(_DISGUISE, {"keys": json.dumps(list(keys))})

    # ── what undid what ───────────────────────────────────────────────────────────────────

    def record(self, by_tx: int, tx: int) -> None:
        """Transaction `by_tx` takes back `tx`."""
        self._connection.execute(_RECORD, {"by_tx": by_tx, "tx": tx})

    def taken_back_by(self, tx: int) -> int | None:
        """The undo by which a transaction is out of force, if it is."""
        row = self._connection.execute(_TAKEN_BACK, {"tx": tx}).fetchone()
        return None if row is None else int(row[0])

    def took_back(self, by_tx: int) -> list[int]:
        """What an undo or redo took back, newest first; [] for any other transaction."""
        return [tx for (tx,) in self._connection.execute(_TOOK_BACK, {"by_tx": by_tx})]

    def in_force(self) -> list[int]:
        """Undos of any workspace that were not taken back, newest first."""
        return [tx for (tx,) in self._connection.execute(_IN_FORCE)]


def fields_of(image: str) -> dict[str, Any]:
    """The columns of an image, as the table takes them, in its order."""
    fields: dict[str, Any] = json.loads(image)
    return {name: float(value) if name in _REALS else value for name, value in fields.items()}


def _unit(at: str, tx: int, actor: str) -> tuple[object, ...]:
    return (SHELL, at) if actor == SHELL else (tx,)


def _keys(entity: str, keys: Iterable[Key]) -> dict[str, Any]:
    return {"keys": json.dumps([key for kind, key in keys if kind == entity])}
