"""The table's questions by igraph."""

from __future__ import annotations

from collections.abc import Iterable

import igraph  # type: ignore[import-not-found]  # lies in the bench's own folder

from bench.graph_engine import DEPTH, STEPS
from bench.peers.graph_rows import BELOW_NAMES, PAGE, TYPED_NAMES, GraphRows


class IgraphGraphs:
    """A directed graph a question, of just its relations; vertices in order of creation."""

    def __init__(self, rows: GraphRows) -> None:
        self._place = rows.place
        self._keys = list(rows.place)
        self._typed = self._of((edge.near, edge.far) for edge in rows.of(TYPED_NAMES))
        self._below = self._of((edge.near, edge.far) for edge in rows.of(BELOW_NAMES))
        self._around = self._of(rows.both_ways())
        steps = list(rows.reasoning())
        self._reasoning = self._of((edge.near, edge.far) for edge in steps)
        self._steps = [(-edge.weight, edge.key, rows.place[edge.far]) for edge in steps]

    def _of(self, pairs: Iterable[tuple[int, int]]) -> igraph.Graph:
        place = self._place
        edges = [(place[near], place[far]) for near, far in pairs]
        return igraph.Graph(n=len(place), edges=edges, directed=True)

    def _within(self, graph: igraph.Graph, start: int, depth: int, limit: int | None) -> list[int]:
        place = self._place[start]
        found: list[int] = []
        for hops in range(1, depth + 1):  # a place is its order of creation, so each layer sorts
            found += sorted(graph.neighborhood(place, order=hops, mode="out", mindist=hops))
            if limit is not None and len(found) >= limit:
                break
        return [self._keys[each] for each in found[:limit]]

    def typed(self, start: int) -> list[int]:
        return self._within(self._typed, start, DEPTH, None)

    def surroundings(self, start: int) -> list[int]:
        return self._within(self._around, start, 2, PAGE)

    def below(self, start: int) -> list[int]:
        place = self._place[start]
        found = self._below.subcomponent(place, mode="out")
        return [self._keys[each] for each in found if each != place]

    def walk(self, start: int) -> list[tuple[int | None, int]]:
        path: list[tuple[int | None, int]] = [(None, start)]
        at = self._place[start]
        seen = {at}
        for _ in range(STEPS):
            steps = (self._steps[edge] for edge in self._reasoning.incident(at, mode="out"))
            open_steps = [step for step in steps if step[2] not in seen]
            if not open_steps:
                break
            _, key, at = min(open_steps)
            seen.add(at)
            path.append((key, self._keys[at]))
        return path
