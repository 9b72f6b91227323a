"""One uniformly drawn shortest path for each of many pairs, searched in step from both ends.

Idea: node x reached from s is stacked place x, reached backwards from t place n + x; one
adjacency over 2n places serves both. A batch of pairs is a table of cells (pair, place), and
a round expands, for every unfinished pair, the side whose frontier has fewer relations. When a
new cell's twin (the same node on the other side) was reached before, the pair is done: every
shortest path crosses exactly one node of the level just made, so drawing that node by
σ(forward) · σ(backward), and then predecessors by σ, draws paths uniformly.
Cost: what the two searches touch, about 25 numpy calls a round; 12 bytes a cell, 50 MB.
Corners: a side that finds nothing new ends its pair without a path. The sums of σ are float64:
above 2^53 paths they are rounded.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from analytics.measures.gathering import gather
from analytics.snapshot import Flags, Floats, Integers

if TYPE_CHECKING:
    from scipy.sparse import csr_array

_CELLS: Final = 4_000_000
_LARGEST_BATCH: Final = 256
_NEW: Final = -1


def count_inner_nodes(
    matrix: csr_array, source: Integers, target: Integers, random: np.random.Generator
) -> Integers:
    """How many of the drawn paths pass through each node, ends not counted.

    `source` and `target` are positions, pairwise different.
    """
    n = matrix.shape[0]
    batch = max(1, min(_LARGEST_BATCH, _CELLS // (2 * n)))
    search = _Search(matrix, batch)
    passed = np.zeros(n, np.int64)
    for first in range(0, len(source), batch):
        part = slice(first, first + batch)
        search.run(source[part], target[part])
        for inner in search.draw(random):
            passed += np.bincount(inner, minlength=n)
        search.clear()
    return passed


class _Search:
    """Searches of one batch of pairs; cells are numbered pair · 2n + place."""

    def __init__(self, matrix: csr_array, batch: int) -> None:
        self.n = matrix.shape[0]
        self.width = 2 * self.n
        back = matrix.T.tocsr()
        self.indptr: Integers = np.concatenate([matrix.indptr, back.indptr[1:] + matrix.nnz])
        self.neighbor: Integers = np.concatenate([matrix.indices, back.indices + self.n])
        self.level = np.full(batch * self.width, _NEW, np.int32)
        self.paths = np.zeros(batch * self.width)
        self.touched: list[Integers] = []
        self.met = np.zeros(0, np.int64)

    def clear(self) -> None:
        for cells in self.touched:
            self.level[cells] = _NEW
            self.paths[cells] = 0.0
        self.touched = []

    def _twin(self, cells: Integers) -> Integers:
        return np.asarray(np.where(cells % self.width < self.n, cells + self.n, cells - self.n))

    def run(self, source: Integers, target: Integers) -> None:
        """Search until every pair has met or cannot."""
        pairs = len(source)
        start = np.arange(pairs) * self.width
        frontier = np.concatenate([start + source, start + self.n + target])
        self.level[frontier] = 0
        self.paths[frontier] = 1.0
        self.touched.append(frontier)
        met = []
        while len(frontier):
            place = frontier % self.width
            side = frontier // self.width * 2 + (place >= self.n)
            load = np.bincount(
                side, self.indptr[place + 1] - self.indptr[place], minlength=2 * pairs
            ).reshape(pairs, 2)
            turn = (load[:, 1] < load[:, 0]).astype(np.int64)
            chosen = turn[side >> 1] == side & 1
            made = self._expand(frontier[chosen])
            meeting = made[self.level[self._twin(made)] != _NEW]
            met.append(meeting)
            alive = np.zeros(pairs, np.bool_)
            alive[made // self.width] = True
            alive[meeting // self.width] = False
            frontier = np.concatenate([frontier[~chosen], made])
            frontier = frontier[alive[frontier // self.width]]
        self.met = np.sort(np.concatenate(met)) if met else self.met[:0]

    def _expand(self, frontier: Integers) -> Integers:
        """The new cells one relation further, each once."""
        place = frontier % self.width
        positions, counts = gather(self.indptr, place)
        cells = np.repeat(frontier - place, counts) + self.neighbor[positions]
        new = self.level[cells] == _NEW
        cells = cells[new]
        np.add.at(self.paths, cells, np.repeat(self.paths[frontier], counts)[new])
        depth = np.repeat(self.level[frontier], counts)[new] + 1
        # Of the writers to a cell the last one keeps it.
        marks = -2 - np.arange(len(cells), dtype=np.int32)
        self.level[cells] = marks
        once = self.level[cells] == marks
        self.level[cells] = depth
        self.touched.append(cells[once])
        made: Integers = cells[once]
        return made

    def draw(self, random: np.random.Generator) -> list[NDArray[np.int64]]:
        """Inner nodes of one path for each pair that met, in parts."""
        if not len(self.met):
            return []
        twin = self._twin(self.met)
        crossing = _roulette(
            self.met // self.width, self.paths[self.met] * self.paths[twin], random
        )
        here = self.met[crossing]
        there = self._twin(here)
        inner = [here[(self.level[here] > 0) & (self.level[there] > 0)] % self.n]
        at = np.concatenate([here, there])
        while len(at := at[self.level[at] > 1]):
            at = self._predecessors(at, random)
            inner.append(at % self.n)
        return inner

    def _predecessors(self, cells: Integers, random: np.random.Generator) -> Integers:
        """For each cell one of its predecessors, drawn by the number of paths to it."""
        twin = self._twin(cells)
        place = twin % self.width
        positions, counts = gather(self.indptr, place)
        # The twin's row lists the relations that lead here, on the twin's side: map them back.
        back = self._twin(np.repeat(twin - place, counts) + self.neighbor[positions])
        right: Flags = self.level[back] == np.repeat(self.level[cells] - 1, counts)
        group = np.repeat(np.arange(len(cells)), counts)[right]
        back = back[right]
        return back[_roulette(group, self.paths[back], random)]


def _roulette(group: Integers, weight: Floats, random: np.random.Generator) -> Integers:
    """One position of each group, drawn by weight; groups stand together, in order."""
    first = np.flatnonzero(np.diff(group, prepend=-1))
    size = np.diff(first, append=len(group))
    # Each group's weights are scaled to 1, so that a heavy group does not blur a light one.
    cumulated = np.cumsum(weight / np.repeat(np.add.reduceat(weight, first), size))
    drawn = np.searchsorted(cumulated, np.arange(len(first)) + random.random(len(first)), "right")
    return np.clip(drawn, first, first + size - 1)
