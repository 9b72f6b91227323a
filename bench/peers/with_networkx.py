"""The table's questions by networkx."""

from __future__ import annotations

from typing import Any

import networkx as nx  # type: ignore[import-untyped]  # it ships no types

from bench.graph_engine import DEPTH, STEPS
from bench.peers.graph_rows import BELOW_NAMES, PAGE, TYPED_NAMES, GraphRows


class NetworkxGraphs:
    """A directed graph a question, of just its relations."""

    def __init__(self, rows: GraphRows) -> None:
        self._rows = rows
        self._typed = self._of((edge.near, edge.far) for edge in rows.of(TYPED_NAMES))
        self._below = self._of((edge.near, edge.far) for edge in rows.of(BELOW_NAMES))
        self._around = self._of(rows.both_ways())
        self._reasoning = nx.MultiDiGraph()
        self._reasoning.add_nodes_from(rows.place)
        for edge in rows.reasoning():
            self._reasoning.add_edge(edge.near, edge.far, key=edge.key, weight=edge.weight)

    def _of(self, pairs: Any) -> Any:
        graph = nx.DiGraph()
        graph.add_nodes_from(self._rows.place)
        graph.add_edges_from(pairs)
        return graph

    def _within(self, graph: Any, start: int, depth: int, limit: int | None) -> list[int]:
        depths = nx.single_source_shortest_path_length(graph, start, cutoff=depth)
        return self._rows.ordered({key: d for key, d in depths.items() if key != start}, limit)

    def typed(self, start: int) -> list[int]:
        return self._within(self._typed, start, DEPTH, None)

    def surroundings(self, start: int) -> list[int]:
        return self._within(self._around, start, 2, PAGE)

    def below(self, start: int) -> list[int]:
        return list(nx.descendants(self._below, start))

    def walk(self, start: int) -> list[tuple[int | None, int]]:
        path: list[tuple[int | None, int]] = [(None, start)]
        seen, at = {start}, start
        for _ in range(STEPS):
            steps = self._reasoning.out_edges(at, keys=True, data="weight")
            open_steps = [(-weight, key, far) for _, far, key, weight in steps if far not in seen]
            if not open_steps:
                break
            _, key, at = min(open_steps)
            seen.add(at)
            path.append((key, at))
        return path
