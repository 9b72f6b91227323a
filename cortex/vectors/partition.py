"""One workspace's vectors and the columns to filter them by: the arrays, and the ranking.

Idea: rows of a float32 matrix are chunks. A node takes the next slot and its chunks the
next rows, so the rows of a slot are neighbours and the best chunk of every node is one
`maximum.reduceat`. Rows are only ever appended: an upsert lays a tombstone on the old
slot and takes a new one, and growth and compaction make new arrays. A view therefore
stays valid after the lock is let go; only `alive` changes in place, and its mask is a copy.

Cost: one pass over the matrix (100,000 × 384: 16 to 31 ms), or over the gathered rows
when the filter leaves less than a third. An upsert is O(1); compaction, when more than a
quarter of the rows are dead, is one copy.

Corner: BLAS rounds the same row differently in different places, so its scores only
choose the candidates, with the error bound as slack; these are scored again in float64
and rounded to float32. Equal vectors thus tie exactly and go by node id, whatever the
order of the writes (invariant 9). If thousands tie at the cut, all of them are compared.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from cortex.domain.instants import as_microseconds
from cortex.domain.taxonomy import NODE_CODE, STATUS_CODE, Layer, NodeType, Status
from cortex.domain.values import Generation, NodeId
from cortex.vectors.index import Point, Spread, Vector, VectorFilter

Rows = NDArray[np.float32]
"""Shape (rows, dimension), each of length 1."""

_Index = NDArray[np.int64]
_Mask = NDArray[np.bool_]
_T = TypeVar("_T", bound=np.generic)

_LAYER_CODE: Final = {layer: code for code, layer in enumerate(Layer)}
_DEAD_SHARE: Final = 0.25
_GATHER_BELOW: Final = 3  # gather when the mask leaves fewer than 1 / 3 of the rows
_BLOCK: Final = 2048  # rows gathered at a time: 3 MB at 384 dimensions, near the caches
_SMALLEST: Final = 64
_COLUMNS: Final = np.dtype(
    [
        ("alive", np.bool_),
        ("type", np.int8),
        ("layer", np.int8),
        ("status", np.int8),
        ("created", np.int64),
        ("first", np.int64),
        ("chunks", np.int64),
    ]
)


class Partition:
    """The rows and columns of one workspace; every access holds the index's lock."""

    def __init__(self, dimension: int) -> None:
        self.watermark: Generation | None = None
        self.slot_of: dict[NodeId, int] = {}
        self._ids: list[NodeId] = []
        self._tags: list[tuple[str, ...]] = []
        self._postings: dict[str, array[int]] = {}  # tag → its slots, dead ones included
        self._matrix: Rows = np.empty((0, dimension), np.float32)
        self._rows = 0
        self._dead_rows = 0
        self._columns = np.empty(0, _COLUMNS)

    def put(self, point: Point, rows: Rows) -> None:
        """Append a node; its older self becomes a tombstone."""
        self.remove(point.node_id)
        slot, first = len(self._ids), self._rows
        self._matrix = _grown(self._matrix, first, first + len(rows))
        self._columns = _grown(self._columns, slot, slot + 1)
        self._matrix[first : first + len(rows)] = rows
        self._columns[slot] = (
            True,
            NODE_CODE[point.type],
            _LAYER_CODE[point.layer],
            STATUS_CODE[point.status],
            as_microseconds(point.created_at),
            first,
            len(rows),
        )
        self._rows += len(rows)
        self.slot_of[point.node_id] = slot
        self._ids.append(point.node_id)
        self._tags.append(point.tags)
        self._post(slot)

    def remove(self, node_id: NodeId) -> None:
        """Lay a tombstone; an absent id is ignored."""
        slot = self.slot_of.pop(node_id, None)
        if slot is not None:
            self._columns["alive"][slot] = False
            self._dead_rows += int(self._columns["chunks"][slot])

    def compact_if_worth(self) -> None:
        """Copy the living into new arrays when more than a quarter of the rows is dead."""
        if self._dead_rows <= _DEAD_SHARE * self._rows:
            return
        columns = self._columns[: len(self._ids)]
        slots = np.flatnonzero(columns["alive"])
        rows = _rows_of(columns["first"][slots], columns["chunks"][slots])
        self._matrix = self._matrix[rows]
        self._columns = columns[slots]
        self._columns["first"] = np.cumsum(self._columns["chunks"]) - self._columns["chunks"]
        self._rows, self._dead_rows = len(rows), 0
        self._ids = [self._ids[slot] for slot in slots]
        self._tags = [self._tags[slot] for slot in slots]
        self.slot_of = {node_id: slot for slot, node_id in enumerate(self._ids)}
        self._postings = {}
        for slot in range(len(self._ids)):
            self._post(slot)

    def view(self, where: VectorFilter) -> View:
        """What a search needs once it has let go of the lock."""
        columns = self._columns[: len(self._ids)]
        return View(self._matrix[: self._rows], columns, self._ids, self._mask(columns, where))

    def memory_bytes(self) -> int:
        columns = self._columns[: len(self._ids)]
        postings = sum(len(slots) * slots.itemsize for slots in self._postings.values())
        return self._matrix[: self._rows].nbytes + columns.nbytes + postings

    def _post(self, slot: int) -> None:
        for tag in dict.fromkeys(self._tags[slot]):
            self._postings.setdefault(tag, array("q")).append(slot)

    def _mask(self, columns: NDArray[np.void], where: VectorFilter) -> _Mask:
        mask: _Mask = columns["alive"].copy()
        if where.types:
            mask &= _table({NODE_CODE[kind] for kind in where.types}, len(NodeType))[
                columns["type"]
            ]
        if where.statuses:
            mask &= _table({STATUS_CODE[status] for status in where.statuses}, len(Status))[
                columns["status"]
            ]
        if where.layer is not None:
            mask &= columns["layer"] == _LAYER_CODE[where.layer]
        if where.created_from is not None:
            mask &= columns["created"] >= as_microseconds(where.created_from)
        if where.created_to is not None:
            mask &= columns["created"] <= as_microseconds(where.created_to)
        for tag in where.tags:
            holders = np.zeros(len(mask), np.bool_)
            holders[np.array(self._postings.get(tag, ()), np.int64)] = True
            mask &= holders
        return mask


class Best(NamedTuple):
    """A node under the mask: its cosine, the chunk that has it, and how many chunks it has."""

    node_id: NodeId
    score: float
    chunk: int
    chunks: int


@dataclass(frozen=True, slots=True)
class View:
    """A partition as one search sees it: `matrix` (rows, dimension), `mask` (slots,)."""

    matrix: Rows
    columns: NDArray[np.void]
    ids: list[NodeId]
    mask: _Mask

    def best(self, query: Vector, top_k: int) -> list[tuple[Best, Spread]]:
        """The top_k nodes under the mask, best first, each with the spread of all cosines."""
        slots = np.flatnonzero(self.mask)
        if not len(slots):
            return []
        chunks: _Index = self.columns["chunks"][slots]
        rows = _rows_of(self.columns["first"][slots], chunks)
        if len(rows) * _GATHER_BELOW < len(self.matrix):
            rough = np.concatenate([self.matrix[piece] @ query for piece in _blocks(rows)])
        else:
            rough = self.matrix @ query
            rough = rough if len(rows) == len(rough) else rough[rows]
        best = np.maximum.reduceat(rough, np.cumsum(chunks) - chunks)
        # |error| ≤ dimension · 2⁻²⁴ for unit vectors (Higham, gamma_n); twice, for a pair.
        slack = np.float32(2 * len(query) * 2.0**-24)
        k = min(top_k, len(slots))
        cut = np.partition(best, len(best) - k)[len(best) - k] - slack
        near = np.repeat(np.maximum(best - slack, cut), chunks)
        near_rows = np.flatnonzero(rough >= near)
        owner = np.repeat(np.arange(len(slots)), chunks)[near_rows]
        spread = Spread(float(rough.mean(dtype=np.float64)), _deviation(rough), len(slots))
        return [(hit, spread) for hit in self._ranked(query, slots[owner], rows[near_rows], k)]

    def _ranked(self, query: Vector, slots: _Index, rows: _Index, k: int) -> list[Best]:
        """Score the candidate rows (of `slots`, both ascending) exactly, and cut at k."""
        wide = query.astype(np.float64)
        exact = np.concatenate(
            [(self.matrix[piece].astype(np.float64) * wide).sum(axis=1) for piece in _blocks(rows)]
        ).clip(-1.0, 1.0)
        scores = exact.astype(np.float32)
        # Within a slot the first row of the highest score wins: the earliest chunk.
        order = np.lexsort((rows, -scores, slots))
        tops = order[np.flatnonzero(np.diff(slots[order], prepend=-1))]
        cut = np.partition(scores[tops], len(tops) - k)[len(tops) - k]
        tops = tops[scores[tops] >= cut]
        chunk = rows[tops] - self.columns["first"][slots[tops]]
        counts = self.columns["chunks"][slots[tops]].tolist()
        hits = zip(slots[tops].tolist(), scores[tops].tolist(), chunk.tolist(), counts, strict=True)
        named = [Best(self.ids[slot], score, nth, count) for slot, score, nth, count in hits]
        return sorted(named, key=lambda hit: (-hit.score, hit.node_id))[:k]


def _deviation(values: NDArray[np.float32]) -> float:
    return float(values.std(dtype=np.float64))


def _rows_of(first: _Index, chunks: _Index) -> _Index:
    """The row numbers of slots that start at `first` and have `chunks` rows each."""
    before = np.cumsum(chunks) - chunks
    return np.repeat(first - before, chunks) + np.arange(chunks.sum())


def _blocks(rows: _Index) -> Iterator[_Index]:
    return (rows[start : start + _BLOCK] for start in range(0, len(rows), _BLOCK))


def _table(codes: set[int], size: int) -> _Mask:
    table = np.zeros(size, np.bool_)
    table[list(codes)] = True
    return table


def _grown(values: NDArray[_T], used: int, needed: int) -> NDArray[_T]:
    """The array itself, or one of at least twice the length when `needed` rows do not fit."""
    if needed <= len(values):
        return values
    bigger = np.empty((max(needed, 2 * len(values), _SMALLEST), *values.shape[1:]), values.dtype)
    bigger[:used] = values[:used]
    return bigger
