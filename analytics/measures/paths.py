"""Shortest paths and the k shortest, by strength of relations.

Length: a relation of weight w (0, 1] has length 1 / w. So weight 1 makes length = hops, half
the weight is twice as far, and weight 0 is no way at all. The other reading, 1 - w, would make
chains of certain relations free, and every such chain the shortest path.

Idea: one Dijkstra search from the target gives every node's distance to it. The shortest path
follows it down. The k shortest (Yen) leave that path at each of its nodes in turn, searching
with the distance as the heuristic of A*: taking relations away only lengthens ways, so it
stays a lower bound, and a search looks at little beyond the path it finds.
Cost: O(m log n) once (about 30 ms at 100,000 nodes), then k times the path's nodes in small
searches; a leave that cannot succeed looks at all that leads to the target.
Corners: paths are simple (no node twice); of parallel relations the strongest counts; of
equally long ways the smaller ids come first; source = target is one path of length 0.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from analytics.snapshot import Floats, GraphSnapshot
from cortex.domain.errors import InvalidError

if TYPE_CHECKING:
    from scipy.sparse import csr_array


@dataclass(frozen=True, slots=True, order=True)
class Path:
    """Positions of nodes from source to target; sorts by length, then by them."""

    length: float
    nodes: tuple[int, ...]


def shortest_path(
    snapshot: GraphSnapshot,
    source: int,
    target: int,
    *,
    directed: bool = True,
    weighted: bool = True,
) -> Path | None:
    """The path of least length between two positions, None where there is none. Exact.

    Source: Dijkstra, Numer. Math. 1 (1959).
    """
    found = k_shortest_paths(snapshot, source, target, 1, directed=directed, weighted=weighted)
    return found[0] if found else None


def k_shortest_paths(
    snapshot: GraphSnapshot,
    source: int,
    target: int,
    k: int,
    *,
    directed: bool = True,
    weighted: bool = True,
) -> list[Path]:
    """The k shortest simple paths, shortest first, fewer where there are not k. Exact.

    Lengths that differ by rounding alone (1e-12) are ordered as they come out. Raises
    InvalidError for k below 1. Source: Yen, Manage. Sci. 17 (1971), with Lawler 1972.
    """
    if k < 1:
        raise InvalidError(f"k {k} is out of range", "Valid: 1 and above")
    search = _Search(_lengths(snapshot, directed, weighted), target)
    first = search.find((source,), frozenset())
    found: list[Path] = []
    # (path, where it left its parent): only later nodes may leave again (Lawler).
    waiting = [(first, 0)] if first else []
    seen = {first.nodes} if first else set()
    while waiting and len(found) < k:
        path, left = heapq.heappop(waiting)
        found.append(path)
        if len(found) == k:
            break
        for at in range(left, len(path.nodes) - 1):
            root = path.nodes[: at + 1]
            taken = frozenset(
                each.nodes[at + 1]
                for each in found
                if len(each.nodes) > at + 1 and each.nodes[: at + 1] == root
            )
            other = search.find(root, taken)
            if other and other.nodes not in seen:
                seen.add(other.nodes)
                heapq.heappush(waiting, (other, at))
    return found


def _lengths(snapshot: GraphSnapshot, directed: bool, weighted: bool) -> csr_array:
    matrix = snapshot.simple(directed, "max" if weighted else "none").copy()
    matrix.eliminate_zeros()
    matrix.data = 1 / matrix.data
    return matrix


class _Search:
    """Ways to one target, by A* with the exact distances of the whole graph."""

    def __init__(self, lengths: csr_array, target: int) -> None:
        from scipy.sparse.csgraph import dijkstra

        self.target = target
        self.indptr, self.column, self.length = lengths.indptr, lengths.indices, lengths.data
        self.left: Floats = np.asarray(dijkstra(lengths.T, directed=True, indices=target))

    def find(self, root: tuple[int, ...], taken: frozenset[int]) -> Path | None:
        """The shortest simple path that begins with `root` and goes on to none of `taken`."""
        spur = root[-1]
        if not np.isfinite(self.left[spur]):
            return None
        closed = set(root[:-1])
        travelled = self._length(root)
        waiting = [(float(self.left[spur]) + travelled, root, travelled)]
        while waiting:
            _, way, so_far = heapq.heappop(waiting)
            at = way[-1]
            if at == self.target:
                return Path(self._length(way), way)
            if at in closed:
                continue
            closed.add(at)
            row = slice(self.indptr[at], self.indptr[at + 1])
            ahead = self.length[row] + self.left[self.column[row]]
            steps = zip(
                self.column[row].tolist(), self.length[row].tolist(), ahead.tolist(), strict=True
            )
            for node, step, rest in steps:
                barred = node in closed or (at == spur and node in taken)
                if not barred and rest < np.inf:
                    heapq.heappush(waiting, (so_far + rest, (*way, node), so_far + step))
        return None

    def _length(self, way: tuple[int, ...]) -> float:
        total = 0.0
        for near, far in pairwise(way):
            row = self.column[self.indptr[near] : self.indptr[near + 1]]
            total += float(self.length[self.indptr[near] + np.searchsorted(row, far)])
        return total
