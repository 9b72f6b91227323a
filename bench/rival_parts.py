"""Measures of what hangs together, and what the other libraries call them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import networkx as nx
import numpy as np

from analytics import measures
from analytics.measures import Groups
from bench.comparison import Case, Rival, Values
from bench.rival_graphs import (
    Libraries,
    by_node,
    label_sizes,
    of,
    part_sizes,
    ran,
    scores_of,
)


def sizes(groups: Groups) -> Values:
    return groups.size


def parts(graphs: Libraries) -> Iterator[Case]:
    """What hangs together."""
    import networkit as nk
    import rustworkx as rx
    from scipy.sparse.csgraph import connected_components

    snapshot = graphs.snapshot
    components = nk.components
    yield Case(
        "weak components",
        lambda: measures.weakly_connected_components(snapshot),
        sizes,
        {
            "networkx": graphs.nx(
                lambda: list(nx.weakly_connected_components(graphs.nx_directed)), part_sizes
            ),
            "igraph": Rival(lambda: graphs.ig_directed.connected_components("weak"), part_sizes),
            "networkit": Rival(
                lambda: ran(components.ConnectedComponents(graphs.nk_undirected)),
                lambda found: part_sizes(found.getComponents()),
            ),
            "scipy": Rival(
                lambda: connected_components(graphs.ahead, True, "weak")[1], label_sizes
            ),
            "rustworkx": Rival(
                lambda: rx.weakly_connected_components(graphs.rx_directed), part_sizes
            ),
        },
        target="< 100 ms at 100,000",
    )
    yield Case(
        "strong components",
        lambda: measures.strongly_connected_components(snapshot),
        sizes,
        {
            "networkx": graphs.nx(
                lambda: list(nx.strongly_connected_components(graphs.nx_directed)), part_sizes
            ),
            "igraph": Rival(lambda: graphs.ig_directed.connected_components("strong"), part_sizes),
            "networkit": Rival(
                lambda: ran(components.StronglyConnectedComponents(graphs.nk_directed)),
                lambda found: part_sizes(found.getComponents()),
            ),
            "scipy": Rival(
                lambda: connected_components(graphs.ahead, True, "strong")[1], label_sizes
            ),
            "rustworkx": Rival(
                lambda: rx.strongly_connected_components(graphs.rx_directed), part_sizes
            ),
        },
    )
    yield Case(
        "core numbers",
        lambda: measures.core_number(snapshot),
        of,
        {
            "networkx": graphs.nx(lambda: nx.core_number(graphs.nx_undirected), by_node),
            "igraph": Rival(lambda: graphs.ig_undirected.coreness()),
            "networkit": Rival(
                lambda: ran(nk.centrality.CoreDecomposition(graphs.nk_undirected)), scores_of
            ),
            "rustworkx": Rival(lambda: rx.core_number(graphs.rx_undirected), by_node),
        },
    )
    yield Case(
        "local clustering",
        lambda: measures.local_clustering(snapshot),
        of,
        {
            "networkx": graphs.nx(lambda: nx.clustering(graphs.nx_undirected), by_node),
            "igraph": Rival(
                lambda: graphs.ig_undirected.transitivity_local_undirected(mode="zero")
            ),
            "networkit": Rival(
                lambda: ran(
                    nk.centrality.LocalClusteringCoefficient(graphs.nk_undirected, turbo=True)
                ),
                scores_of,
            ),
        },
    )
    yield from cuts(graphs)


def cuts(graphs: Libraries) -> Iterator[Case]:
    """Where the graph falls apart, and what all ways from a root pass."""
    import rustworkx as rx

    snapshot = graphs.snapshot

    def pairs(found: Any) -> Values:
        return np.array(sorted(tuple(sorted(pair)) for pair in found))

    def in_order(found: Any) -> Values:
        return np.array(sorted(found))

    yield Case(
        "bridges",
        lambda: measures.bridges(snapshot),
        np.array,
        {
            "networkx": graphs.nx(lambda: list(nx.bridges(graphs.nx_undirected)), pairs),
            "igraph": Rival(
                lambda: graphs.ig_undirected.bridges(),
                lambda found: pairs(graphs.ig_undirected.es[at].tuple for at in found),
            ),
            "rustworkx": Rival(lambda: rx.bridges(graphs.rx_undirected), pairs),
        },
    )
    yield Case(
        "articulation points",
        lambda: measures.articulation_points(snapshot),
        np.array,
        {
            "networkx": graphs.nx(
                lambda: list(nx.articulation_points(graphs.nx_undirected)), in_order
            ),
            "igraph": Rival(lambda: graphs.ig_undirected.articulation_points(), in_order),
            "rustworkx": Rival(lambda: rx.articulation_points(graphs.rx_undirected), in_order),
        },
    )

    def dominators(found: Any) -> Values:
        return np.array([found.get(node, -1) for node in range(1, len(snapshot))])

    yield Case(
        "dominators",
        lambda: measures.immediate_dominators(snapshot, 0),
        lambda found: found[1:],
        {
            "networkx": graphs.nx(
                lambda: nx.immediate_dominators(graphs.nx_directed, 0), dominators
            ),
            "igraph": Rival(
                lambda: graphs.ig_directed.dominator(0, mode="out"),
                lambda found: np.maximum(np.array(found[1:]), -1),
            ),
            "rustworkx": Rival(lambda: rx.immediate_dominators(graphs.rx_directed, 0), dominators),
        },
    )
