"""The graphs of a snapshot in the libraries that measures are timed beside.

Each is built when first asked for and kept, so that a rival's time is the measure's alone.
networkit runs on one thread, as ours does: CPU time counts all threads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from typing import Any

import numpy as np

from analytics.measures import Scores
from analytics.snapshot import GraphSnapshot
from bench.comparison import Rival, Values

LARGE = 300_000  # nodes; above, networkx is asked for PageRank alone
MINUTES = "takes some minutes at this size"


def of(scores: Scores) -> Values:
    return scores.values


def ran(algorithm: Any) -> Any:
    """networkit's algorithms are objects that run."""
    algorithm.run()
    return algorithm


def scores_of(algorithm: Any) -> Values:
    return np.array(algorithm.scores())


def by_node(scores: Mapping[int, float]) -> Values:
    """A mapping of 0 … n - 1 as an array."""
    return np.array([scores[node] for node in range(len(scores))])


def part_sizes(parts: Iterable[Any]) -> Values:
    return np.array(sorted(map(len, parts), reverse=True))


def label_sizes(label: Values) -> Values:
    """Sizes of the groups that labels make, largest first."""
    return np.sort(np.unique(np.asarray(label), return_counts=True)[1])[::-1]


def scaled(values: Values, order: int = 2) -> Values:
    """Of length 1 in that norm, and no entry negative through the sign of an eigenvector."""
    found = np.abs(np.asarray(values, float))
    return found / np.linalg.norm(found, order)


class Libraries:
    """The same simple graphs for the others; weights of parallel relations are summed."""

    def __init__(self, snapshot: GraphSnapshot) -> None:
        import networkit as nk

        nk.setNumberOfThreads(1)
        nk.setSeed(1, False)
        self.snapshot = snapshot
        self.ahead = snapshot.simple(True, "sum")
        self.around = snapshot.simple(False, "sum")

    @cached_property
    def nx_directed(self) -> Any:
        import networkx as nx

        return nx.from_scipy_sparse_array(self.ahead, create_using=nx.DiGraph)

    @cached_property
    def nx_undirected(self) -> Any:
        import networkx as nx

        return nx.from_scipy_sparse_array(self.around)

    @cached_property
    def ig_directed(self) -> Any:
        return self.igraph(self.ahead, True)

    @cached_property
    def ig_undirected(self) -> Any:
        return self.igraph(self.around, False)

    @cached_property
    def nk_directed(self) -> Any:
        return self.networkit(self.ahead, True)

    @cached_property
    def nk_undirected(self) -> Any:
        return self.networkit(self.around, False)

    @cached_property
    def nk_unweighted(self) -> Any:
        return self.networkit(self.snapshot.simple(True), True, weighted=False)

    @cached_property
    def rx_directed(self) -> Any:
        import rustworkx as rx

        return self.rustworkx(rx.PyDiGraph(), self.ahead, True)

    @cached_property
    def rx_undirected(self) -> Any:
        import rustworkx as rx

        return self.rustworkx(rx.PyGraph(), self.around, False)

    @cached_property
    def lengths(self) -> Any:
        """Undirected, 1 / weight of the strongest of parallel relations: a path's length."""
        found = self.snapshot.simple(False, "max").copy()
        found.data = 1 / found.data
        return found

    @cached_property
    def ig_lengths(self) -> Any:
        return self.igraph(self.lengths, False)

    @cached_property
    def nx_lengths(self) -> Any:
        import networkx as nx

        return nx.from_scipy_sparse_array(self.lengths)

    @cached_property
    def rx_lengths(self) -> Any:
        import rustworkx as rx

        return self.rustworkx(rx.PyGraph(), self.lengths, False)

    def nx(self, run: Callable[[], Any], read: Callable[[Any], Values]) -> Rival:
        """A call of networkx, where it does not take minutes with its graph."""
        return Rival(run, read, MINUTES if len(self.snapshot) > LARGE else "")

    def _ends(self, matrix: Any, directed: bool) -> tuple[Values, Values, Values]:
        edges = matrix.tocoo()
        kept = slice(None) if directed else edges.row < edges.col
        return edges.row[kept], edges.col[kept], edges.data[kept]

    def igraph(self, matrix: Any, directed: bool) -> Any:
        import igraph

        near, far, weight = self._ends(matrix, directed)
        graph = igraph.Graph(
            n=matrix.shape[0], edges=np.column_stack([near, far]), directed=directed
        )
        graph.es["weight"] = weight.tolist()
        return graph

    def networkit(self, matrix: Any, directed: bool, weighted: bool = True) -> Any:
        import networkit as nk

        near, far, weight = self._ends(matrix, directed)
        ends = near.astype(np.uint64), far.astype(np.uint64)
        return nk.GraphFromCoo(
            (weight, ends), n=matrix.shape[0], weighted=weighted, directed=directed
        )

    def rustworkx(self, graph: Any, matrix: Any, directed: bool) -> Any:
        near, far, weight = self._ends(matrix, directed)
        graph.add_nodes_from(range(matrix.shape[0]))
        graph.add_edges_from(list(zip(near.tolist(), far.tolist(), weight.tolist(), strict=True)))
        return graph
