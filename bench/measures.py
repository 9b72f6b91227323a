"""Times whole-graph measures beside networkx and, where it is installed, igraph.

The graph is arrays alone, in the shape of an agent's memory: a tree of `contains`, chains of
reasoning, links to files, a few hubs. Every answer is compared before it is timed. Times are
CPU time of the process, least of the runs, so that other work on the machine does not count;
`ratio` is the other library's time by ours. The matrices that a snapshot keeps are there for
ours, as a graph already built is for the others; building them has its own lines.
Run: python -m bench.measures [--nodes N] [--relations M] [--seed S] [--small K].
"""

from __future__ import annotations

import argparse
import platform
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import networkx as nx
import numpy as np

from analytics import measures
from analytics.measures import ldbc
from analytics.snapshot import GraphSnapshot
from bench.comparison import Case, milliseconds, show
from bench.memory_arrays import generate
from bench.rival_graphs import Libraries, of, part_sizes

Values = Any


def large(libraries: Libraries) -> Iterator[Case]:
    """Measures for the whole graph."""
    snapshot, others = libraries.snapshot, libraries.others
    ahead, around = libraries.nx_directed, libraries.nx_undirected
    one = {0: 1.0}
    yield Case(
        "PageRank, L1 1e-6",
        lambda: measures.pagerank(snapshot).values,
        others(
            networkx=lambda: of(nx.pagerank(ahead, tol=1e-7 / len(ahead))),
            igraph=lambda: np.array(libraries.ig_directed.pagerank(weights="weight")),
        ),
        target="< 100 ms",
    )
    yield Case(
        "personalised PageRank",
        lambda: measures.pagerank(snapshot, teleport={snapshot.id[0]: 1.0}).values,
        others(networkx=lambda: of(nx.pagerank(ahead, personalization=one, tol=1e-7 / len(ahead)))),
    )
    yield Case(
        "weak components",
        lambda: measures.weakly_connected_components(snapshot).size,
        others(
            networkx=lambda: part_sizes(nx.weakly_connected_components(ahead)),
            igraph=lambda: part_sizes(libraries.ig_directed.connected_components("weak")),
        ),
        target="< 100 ms",
    )
    yield Case(
        "strong components",
        lambda: measures.strongly_connected_components(snapshot).size,
        others(
            networkx=lambda: part_sizes(nx.strongly_connected_components(ahead)),
            igraph=lambda: part_sizes(libraries.ig_directed.connected_components("strong")),
        ),
    )
    yield Case(
        "eigenvector",
        lambda: measures.eigenvector_centrality(snapshot).values,
        others(networkx=lambda: of(nx.eigenvector_centrality_numpy(around, weight="weight"))),
    )
    yield Case(
        "HITS",
        lambda: measures.hits(snapshot).authorities.values,
        others(networkx=lambda: of(nx.hits(ahead)[1])),
    )
    yield Case(
        "Katz, alpha 0.002",
        lambda: measures.katz_centrality(snapshot, alpha=0.002).values,
        others(
            networkx=lambda: of(nx.katz_centrality(ahead, alpha=0.002, weight="weight", tol=1e-12))
        ),
    )
    yield from structure(libraries)
    yield from searches(libraries)


def structure(libraries: Libraries) -> Iterator[Case]:
    """Cores, clustering, and where the graph falls apart."""
    snapshot, others = libraries.snapshot, libraries.others
    around = libraries.nx_undirected
    yield Case(
        "core numbers",
        lambda: measures.core_number(snapshot).values,
        others(
            networkx=lambda: of(nx.core_number(around)),
            igraph=lambda: np.array(libraries.ig_undirected.coreness()),
        ),
    )
    yield Case(
        "local clustering",
        lambda: measures.local_clustering(snapshot).values,
        others(
            networkx=lambda: of(nx.clustering(around)),
            igraph=lambda: np.array(
                libraries.ig_undirected.transitivity_local_undirected(mode="zero")
            ),
        ),
    )
    yield Case(
        "bridges",
        lambda: np.array(measures.bridges(snapshot)),
        others(
            networkx=lambda: np.array(sorted(tuple(sorted(pair)) for pair in nx.bridges(around))),
            igraph=lambda: np.array(
                sorted(
                    libraries.ig_undirected.es[at].tuple for at in libraries.ig_undirected.bridges()
                )
            ),
        ),
    )
    yield Case(
        "articulation points",
        lambda: np.array(measures.articulation_points(snapshot)),
        others(
            networkx=lambda: np.array(sorted(nx.articulation_points(around))),
            igraph=lambda: np.array(sorted(libraries.ig_undirected.articulation_points())),
        ),
    )


def searches(libraries: Libraries) -> Iterator[Case]:
    """Searches from one node, LDBC's loops, and what has no rival of the same definition."""
    snapshot, others = libraries.snapshot, libraries.others
    ahead = libraries.nx_directed
    far = len(snapshot) - 7
    yield Case(
        "dominators",
        lambda: measures.immediate_dominators(snapshot, 0)[1:],
        others(
            networkx=lambda: np.array(
                [
                    found.get(node, -1)
                    for found in (nx.immediate_dominators(ahead, 0),)
                    for node in range(1, len(ahead))
                ]
            )
        ),
    )
    hops = {"networkx": lambda: hop_counts(ahead)}
    yield Case("LDBC BFS", lambda: ldbc.bfs(snapshot, 0).astype(float), others(**hops))
    yield Case("LDBC PageRank, 20", lambda: ldbc.pr(snapshot, iterations=20).values)
    yield Case("LDBC CDLP, 10", lambda: ldbc.cdlp(snapshot, iterations=10))
    yield Case("LDBC LCC", lambda: ldbc.lcc(snapshot).values)
    yield Case("LDBC SSSP", lambda: ldbc.sssp(snapshot, 0))
    yield Case(
        "shortest path",
        lambda: np.array(measures.k_shortest_paths(snapshot, 1, far, 1, directed=False)[0].length),
        others(
            networkx=lambda: np.array(
                nx.bidirectional_dijkstra(
                    libraries.nx_strongest, 1, far, lambda _a, _b, edge: 1 / edge["weight"]
                )[0]
            )
        ),
    )
    yield Case(
        "10 shortest paths",
        lambda: np.array(
            [
                path.length
                for path in measures.k_shortest_paths(snapshot, 1, far, 10, directed=False)
            ]
        ),
    )
    yield Case("diameter", lambda: np.array(measures.diameter(snapshot, budget=100).lower), runs=1)
    yield Case(
        "communities, leiden",
        lambda: np.array(measures.communities(snapshot).modularity),
        runs=1,
    )
    yield Case(
        "communities, louvain",
        lambda: np.array(measures.communities(snapshot, method="louvain").modularity),
        runs=1,
    )
    yield Case(
        "betweenness, 0.02 sampled",
        lambda: measures.sampled_betweenness(snapshot).values,
        target="< 5 s",
        runs=1,
    )
    yield Case(
        "betweenness, 0.02 sampled, undirected",
        lambda: measures.sampled_betweenness(snapshot, directed=False).values,
        target="< 5 s",
        runs=1,
    )
    yield Case("harmonic, 0.1 sampled", lambda: measures.sampled_harmonic(snapshot).values, runs=1)


def hop_counts(graph: nx.DiGraph) -> Values:
    found = nx.single_source_shortest_path_length(graph, 0)
    return np.array([found.get(node, ldbc.UNREACHABLE) for node in range(len(graph))], float)


def small(libraries: Libraries) -> Iterator[Case]:
    """Measures whose cost is nodes times relations."""
    snapshot, ahead = libraries.snapshot, libraries.nx_directed
    yield Case(
        "betweenness, exact",
        lambda: measures.betweenness_centrality(snapshot).values,
        libraries.others(
            networkx=lambda: of(nx.betweenness_centrality(ahead)),
            igraph=lambda: (
                np.array(libraries.ig_directed.betweenness())
                / ((len(ahead) - 1) * (len(ahead) - 2))
            ),
        ),
    )
    yield Case(
        "betweenness, 0.02 sampled, beside exact",
        lambda: measures.sampled_betweenness(snapshot).values,
        libraries.others(networkx=lambda: of(nx.betweenness_centrality(ahead))),
        tolerance=0.02,
        runs=1,
    )
    yield Case(
        "closeness, exact",
        lambda: measures.closeness_centrality(snapshot).values,
        libraries.others(networkx=lambda: of(nx.closeness_centrality(ahead))),
    )
    yield Case(
        "harmonic, exact",
        lambda: measures.harmonic_centrality(snapshot).values,
        libraries.others(
            networkx=lambda: of(nx.harmonic_centrality(ahead)) / (len(ahead) - 1),
            igraph=lambda: np.array(libraries.ig_directed.harmonic_centrality(mode="in")),
        ),
    )


def build(nodes: int, relations: int, seed: int) -> GraphSnapshot:
    def fresh() -> GraphSnapshot:
        return generate(nodes, relations, seed)

    snapshot = fresh()
    print(f"snapshot, its arrays drawn and sorted: {milliseconds(fresh, 3):.0f} ms")
    for directed in (True, False):

        def matrix(directed: bool = directed) -> None:
            replace(snapshot).simple(directed, "sum")  # the copy has no matrices yet

        print(f"simple matrix, directed {directed}: {milliseconds(matrix, 3):.0f} ms")
    return snapshot


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=100_000)
    parser.add_argument("--relations", type=int, default=300_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--small", type=int, default=2_000, help="nodes for O(nm) measures")
    given = parser.parse_args()
    print(f"{given.nodes} nodes, {given.relations} relations, seed {given.seed};", end=" ")
    print(f"CPU ms; Python {platform.python_version()}, networkx {nx.__version__}")
    show(large(Libraries(build(given.nodes, given.relations, given.seed))))
    print(f"\n{given.small} nodes, {3 * given.small} relations")
    show(small(Libraries(generate(given.small, 3 * given.small, given.seed))))


if __name__ == "__main__":
    main()
