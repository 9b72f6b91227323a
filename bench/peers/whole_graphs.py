"""One graph of all relations in networkx or igraph; each call chooses among them, as the engine.

Python steps from node to node, since neither library's own searches choose edges by their kind.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable

from bench.graph_engine import DEPTH, STEPS
from bench.peers.graph_rows import (
    BELOW_NAMES,
    PAGE,
    TYPED_NAMES,
    WALK_NAMES,
    Edge,
    GraphRows,
)

Step = Callable[[int], Iterable[int]]


def layers(start: int, step: Step, depth: int | None) -> dict[int, int]:
    """Depth of each key that is reached in so many steps, the start not among them."""
    depths, edge, at = {start: 0}, [start], 0
    while edge and (depth is None or at < depth):
        at += 1
        found = {far for key in edge for far in step(key) if far not in depths}
        depths.update(dict.fromkeys(found, at))
        edge = list(found)
    del depths[start]
    return depths


class WholeGraph(ABC):
    """The table's questions over a library's lists of edges."""

    def __init__(self, rows: GraphRows) -> None:
        self._rows = rows

    @abstractmethod
    def out(self, key: int) -> Iterable[Edge]:
        """Edges that leave a node."""

    @abstractmethod
    def into(self, key: int) -> Iterable[Edge]:
        """Edges that reach a node."""

    def typed(self, start: int) -> list[int]:
        def step(key: int) -> Iterable[int]:
            return (edge.far for edge in self.out(key) if edge.kind in TYPED_NAMES)

        return self._rows.ordered(layers(start, step, DEPTH))

    def surroundings(self, start: int) -> list[int]:
        def step(key: int) -> Iterable[int]:
            if key in self._rows.sessions:
                return
            yield from (edge.far for edge in self.out(key) if not edge.derived)
            yield from (edge.near for edge in self.into(key) if not edge.derived)

        return self._rows.ordered(layers(start, step, 2), PAGE)

    def below(self, start: int) -> list[int]:
        def step(key: int) -> Iterable[int]:
            return (edge.far for edge in self.out(key) if edge.kind in BELOW_NAMES)

        return list(layers(start, step, None))

    def walk(self, start: int) -> list[tuple[int | None, int]]:
        path: list[tuple[int | None, int]] = [(None, start)]
        seen, at = {start}, start
        for _ in range(STEPS):
            steps = [
                (-edge.weight, edge.key, edge.far)
                for edge in self.out(at)
                if edge.kind in WALK_NAMES and not edge.derived and edge.far not in seen
            ]
            if not steps:
                break
            _, key, at = min(steps)
            seen.add(at)
            path.append((key, at))
        return path


class NetworkxWhole(WholeGraph):
    """A multigraph of keys; each edge carries its row."""

    def __init__(self, rows: GraphRows) -> None:
        super().__init__(rows)
        import networkx as nx  # type: ignore[import-untyped]  # it ships no types

        self._graph = nx.MultiDiGraph()
        self._graph.add_nodes_from(rows.place)
        for edge in rows.edges:
            self._graph.add_edge(edge.near, edge.far, key=edge.key, row=edge)

    def out(self, key: int) -> Iterable[Edge]:
        return (row for _, _, row in self._graph.out_edges(key, data="row"))

    def into(self, key: int) -> Iterable[Edge]:
        return (row for _, _, row in self._graph.in_edges(key, data="row"))


class IgraphWhole(WholeGraph):
    """Vertices in order of creation; the rows lie in a list in the order of the edges."""

    def __init__(self, rows: GraphRows) -> None:
        super().__init__(rows)
        import igraph  # type: ignore[import-not-found]  # lies in the bench's own folder

        place = rows.place
        ends = [(place[edge.near], place[edge.far]) for edge in rows.edges]
        self._graph = igraph.Graph(n=len(place), edges=ends, directed=True)

    def out(self, key: int) -> Iterable[Edge]:
        edges = self._rows.edges
        return (edges[at] for at in self._graph.incident(self._rows.place[key], mode="out"))

    def into(self, key: int) -> Iterable[Edge]:
        edges = self._rows.edges
        return (edges[at] for at in self._graph.incident(self._rows.place[key], mode="in"))
