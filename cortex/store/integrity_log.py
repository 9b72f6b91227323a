"""The log against the tables: does each row's history lead to the row that is there?

The log holds the row before each change. So after an insertion or an update there is a row,
after a deletion none; an image is of the very row it is kept for; and the newest change of a
key says whether the row is there now. What stood before the floor is not asked.

Cost: one walk over the log by its index, and the keys of the tables in memory (about 100
bytes each).
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from itertools import groupby
from operator import itemgetter
from typing import Final, Literal, NamedTuple

from cortex.store.meta import DERIVED_SEQ, LOG_FLOOR, Meta

_ROWS: Final = """
SELECT entity, key, seq, op, before IS NULL,
       CASE WHEN json_valid(before)
            THEN json_extract(before, CASE entity WHEN 'wave' THEN '$.node_key' ELSE '$.rowkey' END)
            END,
       CASE WHEN json_valid(before) THEN json_extract(before, '$.id') END
  FROM changes INDEXED BY changes_by_key
 ORDER BY entity, key, seq
"""
_NODES: Final = "SELECT rowkey, id FROM nodes"
_RELATIONS: Final = "SELECT rowkey, id FROM relations"
_WAVES: Final = "SELECT w.node_key, NULL FROM waves AS w JOIN nodes AS n ON n.rowkey = w.node_key"
_BACKWARDS: Final = """
SELECT seq, at, earlier FROM (
    SELECT seq, at, LAG(at) OVER (ORDER BY seq) AS earlier FROM changes)
 WHERE earlier > at
 ORDER BY seq
"""
_SPAN: Final = "SELECT COALESCE(MIN(seq), 0), COALESCE(MAX(seq), 0), COUNT(*) FROM changes"
# Where the log is folded, a row without a change is older than the first that came after.
# What an undo puts back bears its old key, and says nothing of that.
_FIRST_NEW: Final = """
SELECT MIN(key) FROM changes
 WHERE entity = :entity AND op = 'insert' AND tx NOT IN (SELECT by_tx FROM reversals)
"""

Kind = Literal["unlogged", "ghost", "undead", "broken", "backwards", "mark"]


class LogFault(NamedTuple):
    """`unlogged`: a row without a change. `ghost`: the log ends with a row that is not there.
    `undead`: it ends with a deletion, and the row is there. `broken`: a change that cannot
    follow on the one before, or an image of another row. `backwards`: time went back.
    `mark`: the floor, or what follows the log, stands beyond its end."""

    kind: Kind
    entity: str
    key: int
    said: str


class LogAudit:
    """Reads the log within one transaction."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def rows(self) -> int:
        """How many changes the log holds."""
        return int(self._connection.execute(_SPAN).fetchone()[2])

    def faults(self) -> list[LogFault]:
        """Everything that is wrong, by entity and key, then what concerns the log as a whole."""
        present: dict[str, dict[int, str | None]] = {
            "node": dict(self._connection.execute(_NODES)),
            "relation": dict(self._connection.execute(_RELATIONS)),
            "wave": dict(self._connection.execute(_WAVES)),
        }
        return [*self._histories(present), *self._unlogged(present), *self._whole()]

    def _histories(self, present: dict[str, dict[int, str | None]]) -> Iterator[LogFault]:
        """Each key's changes; takes those that are logged out of `present`."""
        rows = self._connection.execute(_ROWS)
        for (entity, key), group in groupby(rows, key=itemgetter(0, 1)):
            there = key in present[entity]
            own = present[entity].pop(key, None)
            last = ""
            for _, _, seq, op, imageless, image_key, image_id in group:
                wrong = _wrong(last, op, bool(imageless))
                if not wrong and not imageless and (image_key != key or (own and image_id != own)):
                    wrong = "keeps the image of another row"
                if wrong:
                    yield LogFault("broken", entity, key, f"change {seq} of {entity} {key} {wrong}")
                last = op
            if there and last == "delete":
                yield LogFault(
                    "undead", entity, key, f"{entity} {key} is there, and logged deleted"
                )
            elif not there and last != "delete":
                yield LogFault("ghost", entity, key, f"{entity} {key} is gone, and not logged so")

    def _unlogged(self, left: dict[str, dict[int, str | None]]) -> Iterator[LogFault]:
        folded = int(Meta(self._connection).find(LOG_FLOOR) or 0)
        for entity, keys in left.items():
            (first,) = self._connection.execute(_FIRST_NEW, {"entity": entity}).fetchone()
            for key in sorted(keys):
                # A wave hangs on a node of any age: its key tells nothing.
                if not folded or (entity != "wave" and first is not None and key > first):
                    yield LogFault("unlogged", entity, key, f"{entity} {key} has no change logged")

    def _whole(self) -> Iterator[LogFault]:
        for seq, at, earlier in self._connection.execute(_BACKWARDS):
            yield LogFault("backwards", "log", seq, f"change {seq} is of {at}, after {earlier}")
        first, last, _ = self._connection.execute(_SPAN).fetchone()
        meta = Meta(self._connection)
        floor = int(meta.find(LOG_FLOOR) or 0)
        if first and first <= floor:
            said = f"change {first} is there, below the floor {floor}"
            yield LogFault("mark", "floor", floor, said)
        derived = int(meta.find(DERIVED_SEQ) or 0)
        if derived > max(last, floor):
            said = f"the keyword index follows up to change {derived} of {last}"
            yield LogFault("mark", "derived", derived, said)


def _wrong(last: str, op: str, imageless: bool) -> str:
    """Why a change cannot follow on the one before it; "" where it can, or is the first."""
    if imageless != (op == "insert"):
        return "has no image" if imageless else "is an insertion with an image"
    if last == "delete" and op != "insert":
        return "follows on a deletion"
    if last in ("insert", "update") and op == "insert":
        return "inserts what is there"
    return ""
