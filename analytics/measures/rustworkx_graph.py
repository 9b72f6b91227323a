"""A snapshot's simple graph for rustworkx, whose node indices are then the positions."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from analytics.snapshot import GraphSnapshot

if TYPE_CHECKING:
    import rustworkx as rx


def directed_graph(snapshot: GraphSnapshot) -> rx.PyDiGraph[int, None]:
    import rustworkx as rx

    graph: rx.PyDiGraph[int, None] = rx.PyDiGraph()
    graph.add_nodes_from(range(len(snapshot)))
    edges = snapshot.simple(True).tocoo()
    pairs = zip(edges.row.tolist(), edges.col.tolist(), strict=True)
    graph.add_edges_from_no_data(list(pairs))
    return graph


def undirected_graph(snapshot: GraphSnapshot) -> rx.PyGraph[int, None]:
    import rustworkx as rx

    graph: rx.PyGraph[int, None] = rx.PyGraph()
    graph.add_nodes_from(range(len(snapshot)))
    edges = snapshot.simple(False).tocoo()
    once = np.flatnonzero(edges.row < edges.col)
    pairs = zip(edges.row[once].tolist(), edges.col[once].tolist(), strict=True)
    graph.add_edges_from_no_data(list(pairs))
    return graph
