"""A snapshot's simple graph for rustworkx, whose node indices are then the positions.

Built once and kept with the snapshot: whoever changes it copies it first.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from analytics.simple_graph import Weights
from analytics.snapshot import GraphSnapshot

if TYPE_CHECKING:
    import rustworkx as rx

_DIRECTED: Final[tuple[str, bool, Weights]] = ("rustworkx", True, "none")
_UNDIRECTED: Final[tuple[str, bool, Weights]] = ("rustworkx", False, "none")


def directed_graph(snapshot: GraphSnapshot) -> rx.PyDiGraph[int, None]:
    import rustworkx as rx

    kept: rx.PyDiGraph[int, None] | None = snapshot.library_graphs.get(_DIRECTED)
    if kept is not None:
        return kept
    graph: rx.PyDiGraph[int, None] = rx.PyDiGraph()
    graph.add_nodes_from(range(len(snapshot)))
    edges = snapshot.simple(True).tocoo()
    pairs = zip(edges.row.tolist(), edges.col.tolist(), strict=True)
    graph.add_edges_from_no_data(list(pairs))
    snapshot.library_graphs[_DIRECTED] = graph
    return graph


def undirected_graph(snapshot: GraphSnapshot) -> rx.PyGraph[int, None]:
    import rustworkx as rx

    kept: rx.PyGraph[int, None] | None = snapshot.library_graphs.get(_UNDIRECTED)
    if kept is not None:
        return kept
    graph: rx.PyGraph[int, None] = rx.PyGraph()
    graph.add_nodes_from(range(len(snapshot)))
    edges = snapshot.simple(False).tocoo()
    once = np.flatnonzero(edges.row < edges.col)
    pairs = zip(edges.row[once].tolist(), edges.col[once].tolist(), strict=True)
    graph.add_edges_from_no_data(list(pairs))
    snapshot.library_graphs[_UNDIRECTED] = graph
    return graph
