"""Every row of a memory as an export says it, and back: names, columns, order.

Kinds come in the order of KINDS, and within a kind workspace by workspace; rows of one
workspace go by time, then id, whatever order they were written in, so that equal memories
give equal exports. Nodes are named by id; their keys are said only beside the log, whose
rows name them.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from cortex.domain.errors import InvalidError
from cortex.domain.values import WorkspaceId

KEY: Final = "rowkey"
"""The column that is said with the log alone."""

_NODES: Final = """
SELECT rowkey, id, workspace_id, type, status, parent_id, created_at, updated_at, data
  FROM nodes INDEXED BY nodes_by_created
 WHERE workspace_id = :workspace ORDER BY created_at, id
"""
_RELATIONS: Final = """
SELECT rowkey, id, workspace_id, from_id, type, to_id, weight, created_at, updated_at, data
  FROM relations INDEXED BY relations_by_created
 WHERE workspace_id = :workspace ORDER BY created_at, id
"""
_WAVES: Final = """
SELECT n.id, n.workspace_id, w.amplitude, w.frequency, w.phase, w.half_life, w.at
  FROM waves AS w JOIN nodes AS n ON n.rowkey = w.node_key
 WHERE n.workspace_id = :workspace ORDER BY n.id
"""
_ACCESSES: Final = """
SELECT n.id, n.workspace_id, a.count, a.last_at
  FROM accesses AS a JOIN nodes AS n ON n.rowkey = a.node_key
 WHERE n.workspace_id = :workspace ORDER BY n.id
"""
_VISITS: Final = """
SELECT workspace_id, node_id, action, created_at, context
  FROM navigation_history WHERE workspace_id = :workspace ORDER BY created_at, id
"""
_META: Final = """
SELECT key, value FROM meta WHERE key IN ('upgrade_report', 'upgrade_leftovers') ORDER BY key
"""
_CHANGES: Final = """
SELECT seq, at, tx, actor, workspace_id, entity, key, op, before FROM changes ORDER BY seq
"""
_REVERSALS: Final = "SELECT by_tx, tx FROM reversals ORDER BY by_tx, tx"

_PUT_NODE: Final = """
INSERT INTO nodes(
    rowkey, id, workspace_id, type, status, parent_id, created_at, updated_at, data)
VALUES (
    :rowkey, :id, :workspace_id, :type, :status, :parent_id, :created_at, :updated_at, :data)
"""
_PUT_RELATION: Final = """
INSERT INTO relations(
    rowkey, id, workspace_id, from_id, type, to_id, weight, created_at, updated_at, data)
VALUES (
    :rowkey, :id, :workspace_id, :from_id, :type, :to_id, :weight, :created_at, :updated_at,
    :data)
"""
_PUT_WAVE: Final = """
INSERT INTO waves(node_key, amplitude, frequency, phase, half_life, at)
SELECT rowkey, :amplitude, :frequency, :phase, :half_life, :at
  FROM nodes WHERE id = :node_id AND workspace_id = :workspace_id
"""
_PUT_ACCESS: Final = """
INSERT INTO accesses(node_key, count, last_at)
SELECT rowkey, :count, :last_at
  FROM nodes WHERE id = :node_id AND workspace_id = :workspace_id
"""
_PUT_VISIT: Final = """
INSERT INTO navigation_history(workspace_id, node_id, action, created_at, context)
VALUES (:workspace_id, :node_id, :action, :created_at, :context)
"""
# What a memory says of its own upgrade stays.
_PUT_META: Final = """
INSERT INTO meta(key, value)
SELECT :key, :value
 WHERE :key IN ('upgrade_report', 'upgrade_leftovers')
    ON CONFLICT (key) DO UPDATE SET value = value
"""
_PUT_CHANGE: Final = """
INSERT INTO changes(seq, at, tx, actor, workspace_id, entity, key, op, before)
VALUES (:seq, :at, :tx, :actor, :workspace_id, :entity, :key, :op, :before)
"""
_PUT_REVERSAL: Final = "INSERT INTO reversals(by_tx, tx) VALUES (:by_tx, :tx)"

_PLACES: Final = """
SELECT workspace_id FROM tallies WHERE nodes > 0
UNION
SELECT workspace_id FROM navigation_history
 ORDER BY workspace_id
"""
_HOLDS: Final = """
SELECT EXISTS (SELECT 1 FROM nodes WHERE workspace_id = :workspace)
    OR EXISTS (SELECT 1 FROM navigation_history WHERE workspace_id = :workspace)
"""
_ANYTHING: Final = """
SELECT EXISTS (SELECT 1 FROM changes) OR EXISTS (SELECT 1 FROM navigation_history)
"""
# Invariant 6: the parent and contains say the same.
_DISAGREEING: Final = """
SELECT n.id FROM nodes AS n
 WHERE n.workspace_id = :workspace AND n.parent_id IS NOT NULL AND NOT EXISTS (
       SELECT 1 FROM relations AS r
        WHERE r.to_id = n.id AND r.type = 'contains' AND r.from_id = n.parent_id)
 ORDER BY n.id LIMIT 1
"""
_CLEAR_LOG: Final = "DELETE FROM changes"
_COUNTERS: Final = """
SELECT name, seq FROM sqlite_sequence WHERE name IN ('nodes', 'relations') ORDER BY name
"""
_SET_COUNTER: Final = "UPDATE sqlite_sequence SET seq = :seq WHERE name = :name"
_ADD_COUNTER: Final = """
INSERT INTO sqlite_sequence(name, seq)
SELECT :name, :seq WHERE NOT EXISTS (SELECT 1 FROM sqlite_sequence WHERE name = :name)
"""


class Kind(NamedTuple):
    """One kind of line. `text` is the column that holds JSON; `placed` says whether rows are
    of a workspace; `logged` whether they come with the log alone.
    """

    name: str
    columns: tuple[str, ...]
    text: str | None
    placed: bool
    logged: bool
    select: str
    put: str


_ROW: Final = ("id", "workspace_id")
_TIMES: Final = ("created_at", "updated_at", "data")
_OF_NODE: Final = ("node_id", "workspace_id")

META: Final = Kind("meta", ("key", "value"), "value", False, False, _META, _PUT_META)
NODE: Final = Kind(
    "node", (KEY, *_ROW, "type", "status", "parent_id", *_TIMES), "data", True, False, _NODES,
    _PUT_NODE,
)  # fmt: skip
RELATION: Final = Kind(
    "relation", (KEY, *_ROW, "from_id", "type", "to_id", "weight", *_TIMES), "data", True, False,
    _RELATIONS, _PUT_RELATION,
)  # fmt: skip
WAVE: Final = Kind(
    "wave", (*_OF_NODE, "amplitude", "frequency", "phase", "half_life", "at"), None, True, False,
    _WAVES, _PUT_WAVE,
)  # fmt: skip
ACCESS: Final = Kind(
    "access", (*_OF_NODE, "count", "last_at"), None, True, False, _ACCESSES, _PUT_ACCESS
)
VISIT: Final = Kind(
    "visit", ("workspace_id", "node_id", "action", "created_at", "context"), "context", True, False,
    _VISITS, _PUT_VISIT,
)  # fmt: skip
CHANGE: Final = Kind(
    "change", ("seq", "at", "tx", "actor", "workspace_id", "entity", "key", "op", "before"),
    "before", False, True, _CHANGES, _PUT_CHANGE,
)  # fmt: skip
REVERSAL: Final = Kind("reversal", ("by_tx", "tx"), None, False, True, _REVERSALS, _PUT_REVERSAL)
KINDS: Final = (META, NODE, RELATION, WAVE, ACCESS, VISIT, CHANGE, REVERSAL)


class ExportRows:
    """Reads and writes whole tables within one transaction."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def places(self) -> list[WorkspaceId]:
        """Every workspace that holds a node or a visit, by name."""
        return [WorkspaceId(name) for (name,) in self._connection.execute(_PLACES)]

    def holds(self, workspace: str) -> bool:
        """Whether the workspace holds a node or a visit."""
        return bool(self._connection.execute(_HOLDS, {"workspace": workspace}).fetchone()[0])

    def ever_written(self) -> bool:
        """Whether the memory holds, or its log knows, anything at all."""
        return bool(self._connection.execute(_ANYTHING).fetchone()[0])

    def iter_rows(self, kind: Kind, workspace: str | None = None) -> Iterator[Sequence[Any]]:
        """Rows in the kind's columns and order; of one workspace where the kind is placed.

        Raises InvalidError for a text that is not UTF-8, as a foreign shell may have left.
        """
        rows = self._connection.execute(kind.select, {"workspace": workspace})
        while True:
            try:
                row = next(rows, None)
            except sqlite3.OperationalError as error:
                if "utf-8" not in str(error).lower():
                    raise
                raise InvalidError(
                    f"a {kind.name} holds text that is not UTF-8 ({error})",
                    "",
                    "Correct it where it was written, or use cortex backup, which keeps bytes",
                ) from error
            if row is None:
                return
            yield row

    def put(self, kind: Kind, values: Mapping[str, Any]) -> None:
        """Write one row. Raises InvalidError for one that breaks a rule of the schema."""
        try:
            written = self._connection.execute(kind.put, values).rowcount
        except (
            sqlite3.IntegrityError,
            sqlite3.InterfaceError,
            sqlite3.ProgrammingError,
            OverflowError,
            UnicodeError,
        ) as error:
            raise InvalidError(f"the {kind.name} cannot be kept: {error}") from error
        if not written and kind is not META:
            raise InvalidError(f"the {kind.name} is of no node of its workspace")

    def disagreeing(self, workspace: str) -> str | None:
        """A node whose parent does not contain it."""
        row = self._connection.execute(_DISAGREEING, {"workspace": workspace}).fetchone()
        return None if row is None else str(row[0])

    def counters(self) -> dict[str, int]:
        """The highest keys that nodes and relations ever had: none is used again."""
        found = {"nodes": 0, "relations": 0}
        found.update(self._connection.execute(_COUNTERS).fetchall())
        return found

    def clear_log(self) -> None:
        """Forget what the triggers wrote about rows that come with a log of their own.

        Only in the transaction that has just filled an empty memory, and that gives it a new
        epoch: no follower has seen these rows.
        """
        self._connection.execute(_CLEAR_LOG)

    def set_counter(self, table: str, highest: int) -> None:
        """Let the table's next key be above this one."""
        bound = {"name": table, "seq": highest}
        self._connection.execute(_SET_COUNTER, bound)
        self._connection.execute(_ADD_COUNTER, bound)
