"""Measures that give every node a rank, and what the other libraries call them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import networkx as nx

from analytics import measures
from bench.comparison import Case, Rival, Values
from bench.rival_graphs import Libraries, by_node, of, ran, scaled

_L1 = 1e-6  # of PageRank, for all: ours proves it, the others stop on a change that gives it
_DAMPING = 0.85
_CHANGE = _L1 * (1 - _DAMPING) / _DAMPING


def ranks(graphs: Libraries) -> Iterator[Case]:
    """PageRank in three forms."""
    import networkit as nk
    import rustworkx as rx

    snapshot, n = graphs.snapshot, len(graphs.snapshot)
    first = {snapshot.id[0]: 1.0}

    def nk_rank(graph: Any) -> Any:
        rank = nk.centrality.PageRank(graph, _DAMPING, _CHANGE, distributeSinks=True)
        rank.norm = nk.centrality.Norm.L1_NORM
        return ran(rank)

    def nk_read(rank: Any) -> Values:
        return scaled(rank.scores(), 1)

    yield Case(
        "PageRank",
        lambda: measures.pagerank(snapshot, weighted=False),
        of,
        {
            "networkx": Rival(
                lambda: nx.pagerank(graphs.nx_directed, weight=None, tol=_CHANGE / n), by_node
            ),
            "igraph": Rival(lambda: graphs.ig_directed.pagerank()),
            "networkit": Rival(lambda: nk_rank(graphs.nk_unweighted), nk_read),
            "rustworkx": Rival(
                lambda: rx.pagerank(graphs.rx_directed, tol=_CHANGE / n, max_iter=1000), by_node
            ),
        },
        target="< 100 ms at 100,000",
    )
    yield Case(
        "PageRank, weighted",
        lambda: measures.pagerank(snapshot),
        of,
        {
            "networkx": Rival(lambda: nx.pagerank(graphs.nx_directed, tol=_CHANGE / n), by_node),
            "igraph": Rival(lambda: graphs.ig_directed.pagerank(weights="weight")),
            "networkit": Rival(lambda: nk_rank(graphs.nk_directed), nk_read),
            "rustworkx": Rival(
                lambda: rx.pagerank(
                    graphs.rx_directed, weight_fn=float, tol=_CHANGE / n, max_iter=1000
                ),
                by_node,
            ),
        },
    )
    yield Case(
        "personalised PageRank",
        lambda: measures.pagerank(snapshot, teleport=first, weighted=False),
        of,
        {
            "networkx": Rival(
                lambda: nx.pagerank(
                    graphs.nx_directed, personalization={0: 1.0}, weight=None, tol=_CHANGE / n
                ),
                by_node,
            ),
            "igraph": Rival(lambda: graphs.ig_directed.personalized_pagerank(reset_vertices=[0])),
            "rustworkx": Rival(
                lambda: rx.pagerank(
                    graphs.rx_directed,
                    personalization={0: 1.0},
                    dangling={0: 1.0},
                    tol=_CHANGE / n,
                    max_iter=1000,
                ),
                by_node,
            ),
        },
    )


def spectra(graphs: Libraries) -> Iterator[Case]:
    """Top eigenvectors, and Katz's sum. All are compared at one length."""
    import networkit as nk
    import rustworkx as rx

    snapshot = graphs.snapshot
    yield Case(
        "eigenvector",
        lambda: measures.eigenvector_centrality(snapshot),
        lambda found: scaled(found.values),
        {
            "networkx": graphs.nx(
                lambda: nx.eigenvector_centrality_numpy(graphs.nx_undirected, weight="weight"),
                lambda found: scaled(by_node(found)),
            ),
            "igraph": Rival(
                lambda: graphs.ig_undirected.eigenvector_centrality(weights="weight"), scaled
            ),
            "networkit": Rival(
                lambda: ran(nk.centrality.EigenvectorCentrality(graphs.nk_undirected, 1e-9)),
                lambda found: scaled(found.scores()),
            ),
            "rustworkx": Rival(
                lambda: rx.eigenvector_centrality(
                    graphs.rx_undirected, weight_fn=float, tol=1e-9, max_iter=10_000
                ),
                lambda found: scaled(by_node(found)),
            ),
        },
        tolerance=1e-3,  # power iteration stops on its last change
    )
    yield Case(
        "HITS, authorities",
        lambda: measures.hits(snapshot).authorities,
        lambda found: scaled(found.values),
        {
            "networkx": graphs.nx(
                lambda: nx.hits(graphs.nx_directed)[1],
                lambda found: scaled(by_node(found)),
            ),
            "igraph": Rival(lambda: graphs.ig_directed.authority_score(weights="weight"), scaled),
            "rustworkx": Rival(
                lambda: rx.hits(graphs.rx_directed, weight_fn=float, tol=1e-9, max_iter=10_000)[1],
                lambda found: scaled(by_node(found)),
            ),
        },
        tolerance=1e-3,
    )
    yield Case(
        "Katz, alpha 0.002",
        lambda: measures.katz_centrality(snapshot, alpha=0.002),
        of,
        {
            "networkx": graphs.nx(
                lambda: nx.katz_centrality(
                    graphs.nx_directed, alpha=0.002, weight="weight", tol=1e-12
                ),
                by_node,
            ),
            # networkit scales its iterate in every round: the result is another vector
            "rustworkx": Rival(
                lambda: rx.katz_centrality(
                    graphs.rx_directed, alpha=0.002, beta=1.0, weight_fn=float, tol=1e-12
                ),
                lambda found: scaled(by_node(found)),
            ),
        },
    )
