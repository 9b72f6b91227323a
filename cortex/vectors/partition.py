"""One workspace's vectors and the columns to filter them by, in this process's own memory.

Idea: rows of a float32 matrix are chunks. A node takes the next slot and its chunks the
next rows, so the rows of a slot are neighbours and the best chunk of every node is one
`maximum.reduceat`. Rows are only ever appended: an upsert lays a tombstone on the old
slot and takes a new one, and growth and compaction make new arrays. A view therefore
stays valid after the lock is let go; only `alive` changes in place, and its mask is a copy.

Cost: an upsert is O(1); compaction, when more than a quarter of the rows are dead, is one
copy. What a search costs, and how ties go, is told in `view.py`; the form whose rows lie in a
file, in `mapped.py`.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from cortex.domain.values import Generation, NodeId
from cortex.vectors.columns import COLUMNS, Index, mask_of, slot_of
from cortex.vectors.index import Point, VectorFilter
from cortex.vectors.view import Part, Rows, View, rows_of

DEAD_SHARE: Final = 0.25
_SMALLEST: Final = 64
_T = TypeVar("_T", bound=np.generic)


class Contents(NamedTuple):
    """All of a part at one moment, for whoever copies it: what a search sees, and each tag's
    slots, dead ones included, ascending."""

    part: Part
    postings: Mapping[str, Index]


class GrowingRows:
    """Rows that are appended, in an array of twice the length whenever it is full."""

    def __init__(self, dimension: int) -> None:
        self._held = 0
        self._array: Rows = np.empty((0, dimension), np.float32)

    @property
    def count(self) -> int:
        return self._held

    @property
    def array(self) -> Rows:
        """All rows, shape (count, dimension)."""
        return self._array[: self._held]

    def append(self, rows: Rows) -> None:
        end = self._held + len(rows)
        self._array = _grown(self._array, self._held, end)
        self._array[self._held : end] = rows
        self._held = end

    def replace(self, rows: Rows) -> None:
        """Hold these rows alone, without a copy."""
        self._array, self._held = rows, len(rows)

    def clear(self) -> None:
        """Hold none, and keep the room for others."""
        self._held = 0


class Partition:
    """The rows and columns of one workspace; every access holds the index's lock."""

    def __init__(self, dimension: int, rows: GrowingRows | None = None) -> None:
        self.watermark: Generation | None = None
        self.slot_of: dict[NodeId, int] = {}
        self.rows = GrowingRows(dimension) if rows is None else rows
        self.dead_rows = 0
        self._ids: list[NodeId] = []
        self._postings: dict[str, array[int]] = {}  # tag → its slots, dead ones included
        self._columns = np.empty(0, COLUMNS)

    def put(self, point: Point, rows: Rows) -> None:
        """Append a node; its older self becomes a tombstone."""
        self.remove(point.node_id)
        slot = len(self._ids)
        self._columns = _grown(self._columns, slot, slot + 1)
        self._columns[slot] = slot_of(point, self.rows.count, len(rows))
        self.rows.append(rows)
        self.slot_of[point.node_id] = slot
        self._ids.append(point.node_id)
        for tag in dict.fromkeys(point.tags):
            self._postings.setdefault(tag, array("q")).append(slot)

    def remove(self, node_id: NodeId) -> None:
        """Lay a tombstone; an absent id is ignored."""
        slot = self.slot_of.pop(node_id, None)
        if slot is not None:
            self._columns["alive"][slot] = False
            self.dead_rows += int(self._columns["chunks"][slot])

    def compact_if_worth(self) -> None:
        """Copy the living into new arrays when more than a quarter of the rows is dead."""
        if self.dead_rows <= DEAD_SHARE * self.rows.count:
            return
        columns = self._present()
        slots = np.flatnonzero(columns["alive"])
        rows = rows_of(columns["first"][slots], columns["chunks"][slots])
        moved = np.full(len(columns), -1, np.int64)
        moved[slots] = np.arange(len(slots))
        self.rows.replace(self.rows.array[rows])
        self._columns = columns[slots]
        self._columns["first"] = np.cumsum(self._columns["chunks"]) - self._columns["chunks"]
        self.dead_rows = 0
        self._ids = [self._ids[slot] for slot in slots]
        self.slot_of = {node_id: slot for slot, node_id in enumerate(self._ids)}
        self._postings = {
            tag: array("q", kept.tobytes())
            for tag, held in self._postings.items()
            if len(kept := _kept(moved[np.array(held)]))
        }

    def ids(self) -> Iterator[NodeId]:
        return iter(self.slot_of)

    def view(self, where: VectorFilter) -> View:
        """What a search needs once it has let go of the lock."""
        return View((self.part(where),))

    def part(self, where: VectorFilter) -> Part:
        columns = self._present()
        mask = mask_of(columns, columns["alive"], where, self._holders)
        return Part(self.rows.array, columns, self._ids, mask)

    def contents(self) -> tuple[Contents, ...]:
        """What whoever writes it to a file needs once they have let go of the lock."""
        postings = {tag: np.array(slots) for tag, slots in self._postings.items()}
        return (Contents(self.part(VectorFilter()), postings),)

    def bare(self) -> Contents:
        """The same without the rows, which lie elsewhere already; the dead are among them."""
        columns = self._present()
        rows = np.empty((0, 0), np.float32)
        postings = {tag: np.array(slots) for tag, slots in self._postings.items()}
        return Contents(Part(rows, columns, self._ids, columns["alive"]), postings)

    def memory_bytes(self) -> int:
        """Bytes of rows, columns and postings in use, tombstones included."""
        postings = sum(len(slots) * slots.itemsize for slots in self._postings.values())
        return self.rows.array.nbytes + self._present().nbytes + postings

    def mapped_bytes(self) -> int:
        return 0

    def _present(self) -> NDArray[np.void]:
        return self._columns[: len(self._ids)]

    def _holders(self, tag: str) -> Index:
        return np.array(self._postings.get(tag, ()), np.int64)


def _kept(slots: Index) -> Index:
    return slots[slots >= 0]


def _grown(values: NDArray[_T], used: int, needed: int) -> NDArray[_T]:
    """The array itself, or one of at least twice the length when `needed` rows do not fit."""
    if needed <= len(values):
        return values
    bigger = np.empty((max(needed, 2 * len(values), _SMALLEST), *values.shape[1:]), values.dtype)
    bigger[:used] = values[:used]
    return bigger
