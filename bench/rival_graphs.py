"""The graphs of a snapshot in the libraries that measures are timed beside."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable
from typing import Any

import networkx as nx
import numpy as np

from analytics.snapshot import GraphSnapshot

Values = Any


def of(scores: dict[int, float]) -> Values:
    return np.array([scores[node] for node in range(len(scores))])


def part_sizes(parts: Any) -> Values:
    return np.array(sorted(map(len, parts), reverse=True))


class Libraries:
    """The same simple graphs for the others."""

    def __init__(self, snapshot: GraphSnapshot) -> None:
        self.snapshot = snapshot
        found = importlib.util.find_spec("igraph")
        self.igraph: Any = importlib.import_module("igraph") if found else None
        ahead, around = snapshot.simple(True, "sum"), snapshot.simple(False, "sum")
        self.nx_directed = nx.from_scipy_sparse_array(ahead, create_using=nx.DiGraph)
        self.nx_undirected = nx.from_scipy_sparse_array(around)
        self.nx_strongest = nx.from_scipy_sparse_array(snapshot.simple(False, "max"))
        if self.igraph:
            self.ig_directed = self._igraph(ahead, True)
            self.ig_undirected = self._igraph(around, False)

    def _igraph(self, matrix: Any, directed: bool) -> Any:
        edges = matrix.tocoo()
        kept = slice(None) if directed else edges.row < edges.col
        ends = np.column_stack([edges.row[kept], edges.col[kept]]).tolist()
        graph = self.igraph.Graph(n=matrix.shape[0], edges=ends, directed=directed)
        graph.es["weight"] = edges.data[kept].tolist()
        return graph

    def others(self, **calls: Callable[[], Values]) -> dict[str, Callable[[], Values]]:
        """Those calls whose library is here."""
        return {name: call for name, call in calls.items() if name != "igraph" or self.igraph}
