"""A ranking: the nodes nearest to a question, among rows that lie in one or two matrices.

A partition's rows lie in parts: those of its mapped file, if it has one, then its own. A part
stays as it is after the lock is let go: rows are only ever appended, and its mask is a copy.

Cost: one pass over each matrix (100,000 × 384: 16 to 31 ms), or over the gathered rows when
the filter leaves less than a third of one.

Corner: BLAS rounds the same row differently in different places, so its scores only
choose the candidates, with the error bound as slack; these are scored again in float64
and rounded to float32. Equal vectors thus tie exactly and go by node id, whatever the
order of the writes and in whichever part they lie (invariant 9). If thousands tie at the cut,
all of them are compared.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, Final, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from cortex.domain.values import NodeId
from cortex.vectors.columns import Index, Mask
from cortex.vectors.index import Spread, Vector

Rows = NDArray[np.float32]
"""Shape (rows, dimension), each of length 1."""

_GATHER_BELOW: Final = 3  # gather when the mask leaves fewer than 1 / 3 of the rows
# Rows gathered at a time: 0.8 MB at 384 dimensions, which malloc keeps; pieces of 3 MB are
# mapped anew each time, and took 50 ms instead of 8 for a quarter of 100,000 rows.
_BLOCK: Final = 512
_T = TypeVar("_T", bound=np.generic)


class Best(NamedTuple):
    """A node under the mask: its cosine, the chunk that has it, and how many chunks it has."""

    node_id: NodeId
    score: float
    chunk: int
    chunks: int


class Part(NamedTuple):
    """Rows as one search sees them: `matrix` (rows, dimension), `columns` (slots,) of
    `columns.COLUMNS`, `names` by slot, `mask` (slots,) of what the filter admits."""

    matrix: Rows
    columns: NDArray[np.void]
    names: Sequence[NodeId]
    mask: Mask


class _Rough(NamedTuple):
    """What of a part is under the mask: its slots, their chunks, their rows, their scores."""

    slots: Index
    chunks: Index
    rows: Index
    scores: Rows


@dataclass(frozen=True, slots=True)
class View:
    """The parts of a partition as one search sees them; slots and rows count through."""

    parts: tuple[Part, ...]

    def best(self, query: Vector, top_k: int) -> list[tuple[Best, Spread]]:
        """The top_k nodes under the mask, best first, each with the spread of all cosines."""
        found = [_rough(part, query) for part in self.parts]
        slots = _counted([one.slots for one in found], [len(part.mask) for part in self.parts])
        if not len(slots):
            return []
        chunks: Index = _joined([one.chunks for one in found])
        rows = _counted([one.rows for one in found], [len(part.matrix) for part in self.parts])
        rough = _joined([one.scores for one in found])
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

    def _ranked(self, query: Vector, slots: Index, rows: Index, k: int) -> list[Best]:
        """Score the candidate rows (of `slots`, both ascending) exactly, and cut at k."""
        wide = query.astype(np.float64)
        exact = np.concatenate(
            [(self._taken(piece).astype(np.float64) * wide).sum(axis=1) for piece in _blocks(rows)]
        ).clip(-1.0, 1.0)
        scores = exact.astype(np.float32)
        # Within a slot the first row of the highest score wins: the earliest chunk.
        order = np.lexsort((rows, -scores, slots))
        tops = order[np.flatnonzero(np.diff(slots[order], prepend=-1))]
        cut = np.partition(scores[tops], len(tops) - k)[len(tops) - k]
        tops = tops[scores[tops] >= cut]
        hits = zip(slots[tops].tolist(), rows[tops].tolist(), scores[tops].tolist(), strict=True)
        named = [self._named(slot, row, score) for slot, row, score in hits]
        return sorted(named, key=lambda hit: (-hit.score, hit.node_id))[:k]

    def _named(self, slot: int, row: int, score: float) -> Best:
        for part in self.parts:
            if slot < len(part.mask):
                first, chunks = part.columns["first"][slot], part.columns["chunks"][slot]
                return Best(part.names[slot], score, row - int(first), int(chunks))
            slot, row = slot - len(part.mask), row - len(part.matrix)
        raise IndexError(slot)

    def _taken(self, rows: Index) -> Rows:
        """Copies of these rows, which ascend."""
        if len(self.parts) == 1:
            return self.parts[0].matrix[rows]
        sizes = [len(part.matrix) for part in self.parts]
        shares = np.split(rows, np.searchsorted(rows, list(accumulate(sizes[:-1]))))
        begins = accumulate(sizes[:-1], initial=0)
        return np.concatenate(
            [
                part.matrix[share - begin]
                for part, share, begin in zip(self.parts, shares, begins, strict=True)
            ]
        )


def rows_of(first: Index, chunks: Index) -> Index:
    """The row numbers of slots that start at `first` and have `chunks` rows each."""
    before = np.cumsum(chunks) - chunks
    return np.repeat(first - before, chunks) + np.arange(chunks.sum())


def _rough(part: Part, query: Vector) -> _Rough:
    slots = np.flatnonzero(part.mask)
    chunks: Index = part.columns["chunks"][slots]
    rows = rows_of(part.columns["first"][slots], chunks)
    if not len(rows):
        return _Rough(slots, chunks, rows, np.empty(0, np.float32))
    if len(rows) * _GATHER_BELOW < len(part.matrix):
        return _Rough(
            slots, chunks, rows, _joined([part.matrix[piece] @ query for piece in _blocks(rows)])
        )
    scores = part.matrix @ query
    return _Rough(slots, chunks, rows, scores if len(rows) == len(scores) else scores[rows])


def _counted(numbers: Sequence[Index], sizes: Sequence[int]) -> Index:
    """The numbers of all parts, each part counted on from those before it."""
    begins = accumulate(sizes[:-1], initial=0)
    moved = [part + begin for part, begin in zip(numbers[1:], list(begins)[1:], strict=True)]
    return _joined([numbers[0], *moved])


def _joined(arrays: Sequence[NDArray[_T]]) -> NDArray[_T]:
    return arrays[0] if len(arrays) == 1 else np.concatenate(arrays)


def _deviation(values: NDArray[Any]) -> float:
    return float(values.std(dtype=np.float64))


def _blocks(rows: Index) -> Iterator[Index]:
    return (rows[start : start + _BLOCK] for start in range(0, len(rows), _BLOCK))
