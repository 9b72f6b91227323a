"""The k shortest paths between two nodes, over relations in both directions.

Idea: Yen's algorithm. The length of a relation is 2 − weight, so that a path is short where
it has few and strong relations; of several between two nodes the strongest counts, then the
earliest. One search back from the target gives the true distance of everything that lies
nearer to it than the start; with it each of Yen's searches runs almost straight (A*).
Cost: that one search, at most the graph, then k · hops short ones.

Corners: ties go by fewer hops, then by (created_at, id) of the nodes on the way, whatever
the graph's history; lengths are whole billionths, so that sums do not depend on their
order. No node is met twice. A session is no way through, for it contains nearly everything.
Source: Yen, Management Science 17 (1971); Hart, Nilsson, Raphael, IEEE TSSC 4 (1968).
"""

from __future__ import annotations

import heapq
from collections.abc import Set
from dataclasses import dataclass
from typing import Final, NamedTuple

from cortex.domain.taxonomy import NODE_CODE, NodeType
from cortex.graph.codes import MASK, SHIFT, flags
from cortex.graph.workspace import WorkspaceGraph

UNIT: Final = 1_000_000_000
MAX_EXPANDED: Final = 200_000
_SESSION: Final = NODE_CODE[NodeType.SESSION]
_NONE: Final[frozenset[int]] = frozenset()


class _Way(NamedTuple):
    """A path so far; sorts as the paths are ordered."""

    length: int
    hops: int
    ranks: tuple[int, ...]
    nodes: tuple[int, ...]
    relations: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Path:
    """Keys of the nodes from start to target, of the relations between them, and its length."""

    nodes: tuple[int, ...]
    relations: tuple[int, ...]
    length: float


def shortest_paths(
    graph: WorkspaceGraph,
    start: int,
    target: int,
    k: int,
    *,
    include_derived: bool = False,
    max_expanded: int = MAX_EXPANDED,
) -> tuple[list[Path], bool]:
    """Up to `k` paths without a circle, the shortest first; none where there is none.

    True, besides, where the search ended at `max_expanded` nodes before it was through.
    Raises NotFoundError where an end is not in this workspace.
    """
    search = _Search(graph, graph.index(start), graph.index(target), include_derived, max_expanded)
    ways = search.run(k)
    paths = [
        Path(tuple(graph.key[at] for at in way.nodes), way.relations, way.length / UNIT)
        for way in ways
    ]
    return paths, search.left <= 0


class _Search:
    def __init__(
        self, graph: WorkspaceGraph, start: int, target: int, derived: bool, most: int
    ) -> None:
        self._graph = graph
        self._start = start
        self._target = target
        self._allowed = flags(None, include_derived=derived)
        self.left = most
        self._near: dict[int, list[tuple[int, int, int]]] = {}
        self._distance, self._beyond = self._back()

    def _neighbors(self, index: int) -> list[tuple[int, int, int]]:
        """(far end, length, relation) of the best relation to each neighbour."""
        known = self._near.get(index)
        if known is not None:
            return known
        graph, allowed, best = self._graph, self._allowed, dict[int, tuple[int, int]]()
        for edges, end in ((graph.graph.out_edges, 1), (graph.graph.in_edges, 0)):
            for edge in edges(index):
                if allowed[edge[2] & MASK]:
                    relation = edge[2] >> SHIFT
                    cost = (round((2.0 - graph.weight(relation)) * UNIT), relation)
                    far = edge[end]
                    if far not in best or cost < best[far]:
                        best[far] = cost
        found = [
            (far, length, relation)
            for far, (length, relation) in best.items()
            if graph.kind[far] != _SESSION or far in (self._start, self._target)
        ]
        self._near[index] = found
        return found

    def _back(self) -> tuple[dict[int, int], int]:
        """True distances to the target of all that is nearer than the start; then a bound."""
        settled: dict[int, int] = {}
        queue = [(0, self._target)]
        while queue and self.left > 0:
            distance, index = heapq.heappop(queue)
            if index in settled:
                continue
            settled[index] = distance
            self.left -= 1
            if index == self._start:
                return settled, distance
            for far, length, _ in self._neighbors(index):
                if far not in settled:
                    heapq.heappush(queue, (distance + length, far))
        return settled, queue[0][0] if queue else -1

    def run(self, k: int) -> list[_Way]:
        if self._start not in self._distance:
            return []  # it does not hang together with the target, or lies beyond the bound
        first = self._shortest(_Way(0, 0, (), (self._start,), ()), _NONE)
        found = [] if first is None else [first]
        waiting: list[_Way] = []
        seen = {way.nodes for way in found}
        while found and len(found) < k:
            for way in self._deviations(found):
                if way.nodes not in seen:
                    seen.add(way.nodes)
                    heapq.heappush(waiting, way)
            if not waiting or self.left <= 0:
                break
            found.append(heapq.heappop(waiting))
        return found

    def _deviations(self, found: list[_Way]) -> list[_Way]:
        """For each node of the last path: the best that leaves every earlier path there."""
        last = found[-1]
        ways = []
        length = 0
        for place in range(len(last.nodes) - 1):
            prefix = last.nodes[: place + 1]
            closed = frozenset(way.nodes[place + 1] for way in found if _begins(way, prefix))
            root = _Way(length, place, last.ranks[:place], prefix, last.relations[:place])
            way = self._shortest(root, closed)
            if way is not None:
                ways.append(way)
            here, there = last.nodes[place], last.nodes[place + 1]
            length += next(cost for far, cost, _ in self._neighbors(here) if far == there)
        return ways

    def _estimate(self, index: int) -> int:
        return self._distance.get(index, self._beyond)

    def _shortest(self, root: _Way, closed: Set[int]) -> _Way | None:
        """The best way on from the root's end, whose first step is not to `closed`."""
        rank = self._graph.rank
        settled = set(root.nodes[:-1])
        # At one estimate the shorter way first: so all that leads to a node comes before it.
        queue = [(root.length + self._estimate(root.nodes[-1]), root)]
        while queue and self.left > 0:
            _, way = heapq.heappop(queue)
            here = way.nodes[-1]
            if here in settled:
                continue
            settled.add(here)
            self.left -= 1
            if here == self._target:
                return way
            for far, length, relation in self._neighbors(here):
                if far in settled or (way is root and far in closed):
                    continue
                further = _Way(
                    way.length + length,
                    way.hops + 1,
                    (*way.ranks, rank[far]),
                    (*way.nodes, far),
                    (*way.relations, relation),
                )
                heapq.heappush(queue, (further.length + self._estimate(far), further))
        return None


def _begins(way: _Way, prefix: tuple[int, ...]) -> bool:
    return way.nodes[: len(prefix)] == prefix and len(way.nodes) > len(prefix)
