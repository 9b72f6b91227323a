"""A partition whose rows lie in a mapped file, with what came since in memory of its own.

Idea: the file never changes. What is put later goes into a `Partition` behind it, and a node of
the file that is replaced or removed gets a tombstone in a mask of this process; so processes
share the pages of the matrix, and each holds only what came since the file was written. When
that is more than a quarter, or 64 MB, whoever notices writes a new file (`embedded.py`).

Cost: opening reads columns and ids once for their sum, 30 ms at 100,000 slots, and makes one
byte a slot; removing a node of the file is a bisection.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import Final

import numpy as np

from cortex.domain.values import Generation, NodeId
from cortex.vectors.columns import Index, Mask, mask_of
from cortex.vectors.index import Point, VectorFilter
from cortex.vectors.partition import DEAD_SHARE, Contents, Partition
from cortex.vectors.vector_file import MappedFile
from cortex.vectors.view import Part, Rows, View, rows_of

MOST_OWN: Final = 64 << 20  # bytes: what a process may hold beside a file of any size
_BLOCK: Final = 512  # rows copied at a time


class MappedPartition:
    """The same as `Partition` to its index, from a file; every access holds the index's lock."""

    def __init__(self, file: MappedFile) -> None:
        self.watermark: Generation | None = file.header.mark.watermark
        self.file = file
        self._alive: Mask = file.columns["alive"].copy()
        self._dead_rows = int(file.columns["chunks"][~self._alive].sum())
        self._own = Partition(file.header.dimension)

    def put(self, point: Point, rows: Rows) -> None:
        """Append a node; its older self becomes a tombstone."""
        self._bury(point.node_id)
        self._own.put(point, rows)

    def remove(self, node_id: NodeId) -> None:
        """Lay a tombstone; an absent id is ignored."""
        self._bury(node_id)
        self._own.remove(node_id)

    def compact_if_worth(self) -> None:
        """Compact what is this process's own; the file is replaced, never compacted."""
        self._own.compact_if_worth()

    def worth_writing(self) -> bool:
        """Whether so much came since that a new file pays."""
        width = 4 * self.file.header.dimension
        moved = self._own.rows.count + self._dead_rows
        everything = self._own.rows.count + self.file.header.rows
        return moved > DEAD_SHARE * everything or moved * width > MOST_OWN

    def ids(self) -> Iterator[NodeId]:
        yield from self.file.ids.of(np.flatnonzero(self._alive))
        yield from self._own.ids()

    def view(self, where: VectorFilter) -> View:
        """What a search needs once it has let go of the lock."""
        of_file = self._part(where)
        # Joining the parts costs a copy of each slot and row number.
        return View((of_file, self._own.part(where)) if self._own.rows.count else (of_file,))

    def contents(self) -> tuple[Contents, ...]:
        """What whoever writes a new file needs once they have let go of the lock."""
        of_file = Contents(self._part(VectorFilter()), self.file.postings)
        return (of_file, *self._own.contents())

    def memory_bytes(self) -> int:
        """Bytes of this process alone."""
        return self._alive.nbytes + self._own.memory_bytes()

    def mapped_bytes(self) -> int:
        """Bytes of the file, whose pages are shared."""
        return self.file.size

    def _part(self, where: VectorFilter) -> Part:
        columns = self.file.columns
        mask = mask_of(columns, self._alive, where, self.file.holders)
        return Part(self.file.matrix, columns, self.file.ids, mask)

    def _bury(self, node_id: NodeId) -> None:
        for slot in self.file.ids.find(node_id):
            if self._alive[slot]:
                self._alive[slot] = False
                self._dead_rows += int(self.file.columns["chunks"][slot])


def iter_rows(parts: Sequence[Contents]) -> Iterator[Rows]:
    """The rows of the living, in blocks, in the order of their slots."""
    for contents in parts:
        part = contents.part
        slots = np.flatnonzero(part.mask)
        rows = rows_of(part.columns["first"][slots], part.columns["chunks"][slots])
        for begin in range(0, len(rows), _BLOCK):
            yield part.matrix[rows[begin : begin + _BLOCK]]


def living(parts: Sequence[Contents]) -> Contents:
    """The living of all parts as one, without its rows: those are what `iter_rows` gives."""
    kept = [np.flatnonzero(contents.part.mask) for contents in parts]
    columns = np.concatenate(
        [contents.part.columns[slots] for contents, slots in zip(parts, kept, strict=True)]
    )
    columns["alive"] = True
    columns["first"] = np.cumsum(columns["chunks"]) - columns["chunks"]
    names: list[NodeId] = []
    postings: dict[str, list[Index]] = {}
    begins = accumulate((len(slots) for slots in kept[:-1]), initial=0)
    for contents, slots, begin in zip(parts, kept, begins, strict=True):
        moved = np.full(len(contents.part.mask), -1, np.int64)
        moved[slots] = np.arange(begin, begin + len(slots))
        names += [contents.part.names[slot] for slot in slots.tolist()]
        for tag, holding in contents.postings.items():
            there = moved[holding]
            postings.setdefault(tag, []).append(there[there >= 0])
    whole = {tag: np.concatenate(held) for tag, held in postings.items()}
    held = {tag: slots for tag, slots in whole.items() if len(slots)}
    rows = np.empty((0, 0), np.float32)
    return Contents(Part(rows, columns, names, np.ones(len(columns), np.bool_)), held)
