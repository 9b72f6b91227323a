"""Searches from one node, LDBC's loops, sampled measures, and those of all distances."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice, pairwise
from typing import Any

import networkx as nx
import numpy as np

from analytics import measures
from analytics.measures import ldbc
from bench.comparison import Case, Rival, Values
from bench.rival_graphs import LARGE, MINUTES, Libraries, by_node, of, ran, scores_of

_FAR = 1e300  # networkit's distance where there is no path is the largest number


def searches(graphs: Libraries) -> Iterator[Case]:
    """Hops and lengths from one node."""
    import networkit as nk
    import rustworkx as rx
    from scipy.sparse.csgraph import dijkstra

    snapshot = graphs.snapshot
    nodes = range(len(snapshot))

    def hops(found: Any) -> Values:
        return np.array([found.get(node, ldbc.UNREACHABLE) for node in nodes], float)

    def lengths(found: Any) -> Values:
        values = np.array([found.get(node, np.inf) for node in nodes], float)
        values[0] = 0.0
        return values

    def ended(found: Any, never: float) -> Values:
        values = np.array(found, float)
        values[(values > _FAR) | np.isinf(values)] = never
        return values

    yield Case(
        "hops from one (LDBC BFS)",
        lambda: ldbc.bfs(snapshot, 0),
        lambda found: found.astype(float),
        {
            "networkx": graphs.nx(
                lambda: nx.single_source_shortest_path_length(graphs.nx_directed, 0), hops
            ),
            "igraph": Rival(
                lambda: graphs.ig_directed.distances(0)[0],
                lambda found: ended(found, ldbc.UNREACHABLE),
            ),
            "networkit": Rival(
                lambda: ran(nk.distance.BFS(graphs.nk_directed, 0, storePaths=False)),
                lambda found: ended(found.getDistances(), ldbc.UNREACHABLE),
            ),
            "scipy": Rival(
                lambda: dijkstra(graphs.ahead, indices=0, unweighted=True),
                lambda found: ended(found, ldbc.UNREACHABLE),
            ),
        },
    )
    shortest = snapshot.simple(True, "min")  # of parallel relations, as LDBC has it
    nx_shortest = graphs.nx(lambda: None, np.array).why_not or nx.from_scipy_sparse_array(
        shortest, create_using=nx.DiGraph
    )
    rx_shortest = graphs.rustworkx(rx.PyDiGraph(), shortest, True)
    nk_shortest = graphs.networkit(shortest, True)
    ig_shortest = graphs.igraph(shortest, True)
    yield Case(
        "lengths from one (LDBC SSSP)",
        lambda: ldbc.sssp(snapshot, 0),
        np.asarray,
        {
            "networkx": graphs.nx(
                lambda: nx.single_source_dijkstra_path_length(nx_shortest, 0), lengths
            ),
            "igraph": Rival(lambda: ig_shortest.distances(0, weights="weight")[0]),
            "networkit": Rival(
                lambda: ran(nk.distance.Dijkstra(nk_shortest, 0, storePaths=False)),
                lambda found: ended(found.getDistances(), np.inf),
            ),
            "rustworkx": Rival(
                lambda: rx.dijkstra_shortest_path_lengths(rx_shortest, 0, float),
                lambda found: lengths(dict(found)),
            ),
        },
    )
    yield from paths(graphs)
    yield Case("LDBC PageRank, 20 rounds", lambda: ldbc.pr(snapshot, iterations=20), of)
    yield Case("LDBC CDLP, 10 rounds", lambda: ldbc.cdlp(snapshot, iterations=10), np.asarray)
    yield Case("LDBC LCC", lambda: ldbc.lcc(snapshot), of)


def paths(graphs: Libraries) -> Iterator[Case]:
    """Shortest paths between two nodes; lengths are compared, since paths may tie."""
    import rustworkx as rx
    from scipy.sparse.csgraph import dijkstra, yen

    snapshot = graphs.snapshot
    start, stop = 1, len(snapshot) - 7

    def best(k: int) -> list[measures.Path]:
        return measures.k_shortest_paths(snapshot, start, stop, k, directed=False)

    def along(path: Any) -> float:
        return sum(graphs.lengths[near, far] for near, far in pairwise(path))

    def of_paths(found: Any) -> Values:
        return np.array([along(path) for path in found])

    yield Case(
        "shortest path",
        lambda: best(1),
        lambda found: np.array([path.length for path in found]),
        {
            "networkx": graphs.nx(
                lambda: [nx.bidirectional_dijkstra(graphs.nx_lengths, start, stop)[1]],
                of_paths,
            ),
            "igraph": Rival(
                lambda: graphs.ig_lengths.get_shortest_paths(start, stop, "weight"), of_paths
            ),
            "scipy": Rival(
                lambda: dijkstra(graphs.lengths, indices=start, directed=True)[stop : stop + 1]
            ),
            "rustworkx": Rival(
                lambda: rx.dijkstra_shortest_paths(graphs.rx_lengths, start, stop, float),
                lambda found: of_paths([found[stop]]),
            ),
        },
    )
    slow = MINUTES if len(snapshot) > LARGE else ""
    yield Case(
        "10 shortest paths",
        lambda: best(10),
        lambda found: np.array([path.length for path in found]),
        {
            "networkx": graphs.nx(
                lambda: list(
                    islice(nx.shortest_simple_paths(graphs.nx_lengths, start, stop, "weight"), 10)
                ),
                of_paths,
            ),
            "igraph": Rival(
                lambda: graphs.ig_lengths.get_k_shortest_paths(start, stop, 10, weights="weight"),
                of_paths,
                slow,
            ),
            "scipy": Rival(lambda: yen(graphs.lengths, start, stop, 10), why_not=slow),
        },
        runs=1,
    )


def sampled(graphs: Libraries) -> Iterator[Case]:
    """Measures with a bound in place of the whole sum, and the diameter."""
    import networkit as nk

    snapshot = graphs.snapshot
    yield Case(
        "diameter, from below in 100 searches",
        lambda: measures.diameter(snapshot, budget=100),
        lambda found: np.array(found.lower),
        {
            "networkit": Rival(
                lambda: ran(
                    nk.distance.Diameter(graphs.nk_undirected, nk.distance.DiameterAlgo.EXACT)
                ),
                lambda found: np.array(found.getDiameter()[0]),
                MINUTES if len(snapshot) > 10_000 else "",
            ),
        },
        tolerance=2,
        runs=1,
    )
    yield Case(
        "betweenness, within 0.02",
        lambda: measures.sampled_betweenness(snapshot),
        of,
        target="< 5 s at 100,000",
        runs=1,
    )
    yield Case(
        "betweenness, within 0.02, undirected",
        lambda: measures.sampled_betweenness(snapshot, directed=False),
        of,
        {
            # KADABRA counts unordered pairs, twice ours: so is its bound.
            "networkit": Rival(
                lambda: ran(nk.centrality.KadabraBetweenness(graphs.nk_undirected, 0.04, 0.1)),
                lambda found: scores_of(found) / 2,
            )
        },
        tolerance=0.04,
        target="< 5 s at 100,000",
        runs=1,
    )
    yield Case("harmonic, within 0.1", lambda: measures.sampled_harmonic(snapshot), of, runs=1)


def all_distances(graphs: Libraries) -> Iterator[Case]:
    """Measures whose cost is nodes times relations."""
    import networkit as nk
    import rustworkx as rx

    snapshot, ahead = graphs.snapshot, graphs.nx_directed
    n = len(snapshot)
    yield Case(
        "betweenness, exact",
        lambda: measures.betweenness_centrality(snapshot),
        of,
        {
            "networkx": graphs.nx(lambda: nx.betweenness_centrality(ahead), by_node),
            "igraph": Rival(
                lambda: graphs.ig_directed.betweenness(),
                lambda found: np.array(found) / ((n - 1) * (n - 2)),
            ),
            "networkit": Rival(
                lambda: ran(nk.centrality.Betweenness(graphs.nk_unweighted, normalized=True)),
                scores_of,
            ),
            "rustworkx": Rival(lambda: rx.betweenness_centrality(graphs.rx_directed), by_node),
        },
    )
    yield Case(
        "betweenness, within 0.02, beside exact",
        lambda: measures.sampled_betweenness(snapshot),
        of,
        {"networkx": graphs.nx(lambda: nx.betweenness_centrality(ahead), by_node)},
        tolerance=0.02,
        runs=1,
    )
    yield Case(
        "closeness, exact",
        lambda: measures.closeness_centrality(snapshot),
        of,
        {
            "networkx": graphs.nx(lambda: nx.closeness_centrality(ahead), by_node),
            "rustworkx": Rival(lambda: rx.closeness_centrality(graphs.rx_directed), by_node),
        },
    )
    yield Case(
        "harmonic, exact",
        lambda: measures.harmonic_centrality(snapshot),
        of,
        {
            "networkx": graphs.nx(
                lambda: nx.harmonic_centrality(ahead), lambda found: by_node(found) / (n - 1)
            ),
            "igraph": Rival(lambda: graphs.ig_directed.harmonic_centrality(mode="in")),
        },
    )
