"""A ranking: the nodes nearest to a question, among rows that lie in one or two matrices.

A partition's rows lie in parts: those of its mapped file, if it has one, then its own. A part
stays as it is after the lock is let go: rows are only ever appended, and its mask is a copy.

Cost: one pass over each matrix (100,000 × 384: 6 ms on one core), or over the gathered rows when
the filter leaves less than a quarter of one. The pass is `vecdot`, a product of two rows at a
time: `matmul` takes 14 ms on one core and 8 on two, and its threads then spin for 25 more.

Corner: BLAS rounds the same row differently in different places, so its scores only
choose the candidates, with the error bound as slack; these are scored again in float64
and rounded to float32. Equal vectors thus tie exactly and go by node id, whatever the
order of the writes and in whichever part they lie (invariant 9). If thousands tie at the cut,
all of them are compared.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from cortex.domain.values import NodeId
from cortex.vectors.columns import Index, Mask
from cortex.vectors.index import Spread, Vector

Rows = NDArray[np.float32]
"""Shape (rows, dimension), each of length 1."""

_GATHER_BELOW: Final = 4  # gather when the mask leaves fewer than 1 / 4 of the rows
# Rows gathered at a time: 0.8 MB at 384 dimensions, which malloc keeps; pieces of 3 MB are
# mapped anew each time, and took 50 ms instead of 8 for a quarter of 100,000 rows.
_BLOCK: Final = 512
_EXACT: Final = 64  # rows scored in float64 at a time: 0.2 MB, for the same reason
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
    """What of a part is under the mask: `slots` (n,), each with its `best` rough score (n,);
    `scores` of rows, among which those of a slot begin at its place in `begins` (n,); `admitted`
    are those of all rows under the mask."""

    slots: Index
    best: Rows
    scores: Rows
    begins: Index
    admitted: Rows


@dataclass(frozen=True, slots=True)
class View:
    """The parts of a partition as one search sees them."""

    parts: tuple[Part, ...]

    def best(self, query: Vector, top_k: int) -> list[tuple[Best, Spread]]:
        """The top_k nodes under the mask, best first, each with the spread of all cosines."""
        found = [_rough(part, query) for part in self.parts]
        best = _joined([one.best for one in found])
        if not len(best):
            return []
        # |error| ≤ dimension · 2⁻²⁴ for unit vectors (Higham, gamma_n); twice, for a pair.
        slack = np.float32(2 * len(query) * 2.0**-24)
        k = min(top_k, len(best))
        cut = _greatest(best, k) - slack
        tops = [
            _exact(part, query, one, cut, slack)
            for part, one in zip(self.parts, found, strict=True)
        ]
        scores = _joined([one.scores for one in tops])
        last = _greatest(scores, k)
        hits = [
            hit for part, one in zip(self.parts, tops, strict=True) for hit in one.named(part, last)
        ]
        hits.sort(key=lambda hit: (-hit.score, hit.node_id))
        admitted = _joined([one.admitted for one in found])
        mean, deviation = admitted.mean(dtype=np.float64), admitted.std(dtype=np.float64)
        spread = Spread(float(mean), float(deviation), len(best))
        return [(hit, spread) for hit in hits[:k]]


class _Tops(NamedTuple):
    """Candidates of a part, each once: its slot, its exact score, the chunk that has it."""

    slots: Index
    scores: Rows
    chunks: Index

    def named(self, part: Part, least: np.float32) -> Iterator[Best]:
        """Those of at least this score."""
        kept = self.scores >= least
        slots = self.slots[kept]
        told = (slots, self.scores[kept], self.chunks[kept], part.columns["chunks"][slots])
        for slot, *cells in zip(*(each.tolist() for each in told), strict=True):
            yield Best(part.names[slot], *cells)


def rows_of(first: Index, chunks: Index) -> Index:
    """The row numbers of slots that start at `first` and have `chunks` rows each."""
    before = np.cumsum(chunks) - chunks
    return np.repeat(first - before, chunks) + np.arange(chunks.sum())


def _rough(part: Part, query: Vector) -> _Rough:
    """Every slot's best score as BLAS has it."""
    columns, matrix = part.columns, part.matrix
    slots = np.flatnonzero(part.mask)
    if len(slots) == len(part.mask):
        scores = np.vecdot(matrix, query)
        return _Rough(slots, _best(scores, columns["first"]), scores, columns["first"], scores)
    chunks: Index = columns["chunks"][slots]
    if chunks.sum() * _GATHER_BELOW < len(matrix):
        rows = rows_of(columns["first"][slots], chunks)
        pieces = [np.vecdot(matrix[piece], query) for piece in _blocks(rows, _BLOCK)]
        scores = _joined(pieces) if pieces else np.empty(0, np.float32)
        begins: Index = np.cumsum(chunks) - chunks
        return _Rough(slots, _best(scores, begins), scores, begins, scores)
    scores = np.vecdot(matrix, query)
    # Rows of the dead lie between those of the living: the best of all slots, then the admitted.
    best = _best(scores, columns["first"])[slots]
    admitted = scores[np.repeat(part.mask, columns["chunks"])]
    return _Rough(slots, best, scores, columns["first"][slots], admitted)


def _best(scores: Rows, begins: Index) -> Rows:
    """The best score of each slot, whose rows begin there and end where the next one's begin."""
    if len(scores) == len(begins):
        return scores
    best: Rows = np.maximum.reduceat(scores, begins)
    return best


def _exact(part: Part, query: Vector, rough: _Rough, cut: np.float32, slack: np.float32) -> _Tops:
    """Score exactly every row that may be the best of a slot above the cut."""
    near = np.flatnonzero(rough.best >= cut)
    slots = rough.slots[near]
    chunks: Index = part.columns["chunks"][slots]
    scored = rough.scores[rows_of(rough.begins[near], chunks)]
    near_rows = scored >= np.repeat(np.maximum(rough.best[near] - slack, cut), chunks)
    rows = rows_of(part.columns["first"][slots], chunks)[near_rows]
    slots = np.repeat(slots, chunks)[near_rows]
    wide = query.astype(np.float64)
    pieces = [np.multiply(part.matrix[piece], wide).sum(axis=1) for piece in _blocks(rows, _EXACT)]
    exact = _joined(pieces) if pieces else np.empty(0, np.float64)
    scores = exact.clip(-1.0, 1.0).astype(np.float32)
    # Within a slot the first row of the highest score wins: the earliest chunk.
    order = np.lexsort((rows, -scores, slots))
    tops = order[np.flatnonzero(np.diff(slots[order], prepend=-1))]
    return _Tops(slots[tops], scores[tops], rows[tops] - part.columns["first"][slots[tops]])


def _greatest(scores: Rows, k: int) -> np.float32:
    """The k-th greatest, from 1."""
    return np.float32(np.partition(scores, len(scores) - k)[len(scores) - k])


def _joined(arrays: Sequence[NDArray[_T]]) -> NDArray[_T]:
    return arrays[0] if len(arrays) == 1 else np.concatenate(arrays)


def _blocks(rows: Index, size: int) -> Iterator[Index]:
    return (rows[start : start + size] for start in range(0, len(rows), size))
