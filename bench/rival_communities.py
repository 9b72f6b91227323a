"""Communities, and what the other libraries call them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import networkx as nx
import numpy as np

from analytics import measures
from bench.comparison import Case, Rival, Values
from bench.rival_graphs import MINUTES, Libraries, ran

_SLOW = 50_000  # nodes; networkx needs minutes for more


def groupings(graphs: Libraries) -> Iterator[Case]:
    """Communities. Heuristics agree in quality, not in groups: modularity is compared."""
    import networkit as nk

    snapshot = graphs.snapshot
    found_by = nk.community
    slow = MINUTES if len(snapshot) > _SLOW else ""

    def quality(label: Any) -> Values:
        return np.array(measures.modularity(snapshot, np.asarray(label, np.int64)))

    def nk_quality(algorithm: Any) -> Values:
        return quality(algorithm.getPartition().getVector())

    def ours(method: Any) -> Any:
        return lambda: measures.communities(snapshot, method=method)

    def modularity(found: measures.Communities) -> Values:
        return np.array(found.modularity)

    def nx_quality(groups: Any) -> Values:
        label = np.empty(len(snapshot), np.int64)
        for number, group in enumerate(groups):
            label[list(group)] = number
        return quality(label)

    yield Case(
        "communities, Leiden",
        ours("leiden"),
        modularity,
        {
            "igraph": Rival(
                lambda: (
                    graphs.ig_undirected.community_leiden(
                        "modularity", weights="weight", n_iterations=3
                    ).membership
                ),
                quality,
            ),
            "networkit": Rival(
                lambda: ran(found_by.ParallelLeiden(graphs.nk_undirected)), nk_quality
            ),
        },
        tolerance=0.05,
    )
    yield Case(
        "communities, Louvain",
        ours("louvain"),
        modularity,
        {
            "networkx": Rival(
                lambda: nx.community.louvain_communities(graphs.nx_undirected, seed=1),
                nx_quality,
                slow,
            ),
            "igraph": Rival(
                lambda: graphs.ig_undirected.community_multilevel(weights="weight").membership,
                quality,
            ),
            "networkit": Rival(
                lambda: ran(found_by.PLM(graphs.nk_undirected, refine=True)), nk_quality
            ),
        },
        tolerance=0.05,
        runs=2,
    )
    yield Case(
        "communities, label propagation",
        ours("label_propagation"),
        modularity,
        {
            "networkx": Rival(
                lambda: list(
                    nx.community.asyn_lpa_communities(graphs.nx_undirected, "weight", seed=1)
                ),
                nx_quality,
                slow,
            ),
            "igraph": Rival(
                lambda: graphs.ig_undirected.community_label_propagation("weight").membership,
                quality,
            ),
            "networkit": Rival(lambda: ran(found_by.PLP(graphs.nk_undirected)), nk_quality),
        },
        tolerance=1.0,  # it may find one group, and depends on the order of nodes
    )
