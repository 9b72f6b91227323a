"""Measures agree with networkx on random directed weighted multigraphs, within what they state."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

import networkx as nx
import numpy as np
import pytest
from measures_data import (
    directed,
    multigraph,
    name,
    same,
    simple_digraph,
    simple_graph,
    snapshot_of,
    undirected,
)

from analytics import measures
from analytics.measures.diameter import diameter
from analytics.snapshot import GraphSnapshot

SEEDS = range(8)


@pytest.fixture(params=SEEDS)
def graph(request: pytest.FixtureRequest) -> nx.MultiDiGraph:
    # From sparse, falling apart, to dense: 40 nodes and three alone, 20 to 300 relations.
    return multigraph(request.param, edges=20 + 40 * request.param)


@pytest.fixture
def snapshot(graph: nx.MultiDiGraph) -> GraphSnapshot:
    return snapshot_of(graph)


def as_sets(groups: measures.Groups) -> set[frozenset[int]]:
    return {frozenset(groups.members(at).tolist()) for at in range(len(groups))}


def test_degree(graph: Any, snapshot: Any) -> None:
    same(measures.degree(snapshot, "in"), dict(graph.in_degree()))
    same(measures.degree(snapshot, "out"), dict(graph.out_degree()))
    same(measures.degree(snapshot), dict(graph.degree()))
    same(measures.degree(snapshot, weighted=True), dict(graph.degree(weight="weight")))


@pytest.mark.parametrize("tolerance", [1e-6, 1e-10])
def test_pagerank_is_nearer_than_it_says(graph: Any, snapshot: Any, tolerance: float) -> None:
    scores = measures.pagerank(snapshot, tolerance=tolerance)
    theirs = nx.pagerank(simple_digraph(graph), tol=1e-15, max_iter=1000)
    assert scores.error_bound is not None
    assert scores.error_bound <= tolerance
    apart = np.abs(scores.values - [theirs[node] for node in sorted(theirs)]).sum()
    assert apart <= scores.error_bound


def test_personalised_pagerank(graph: Any, snapshot: Any) -> None:
    theirs = nx.pagerank(
        simple_digraph(graph), personalization={3: 1, 5: 2}, tol=1e-15, max_iter=1000
    )
    scores = measures.pagerank(snapshot, teleport={name(3): 1, name(5): 2}, tolerance=1e-9)
    same(scores, theirs, 1e-9)


@pytest.mark.parametrize("ways", [True, False])
def test_betweenness(graph: Any, snapshot: Any, ways: bool) -> None:
    plain = simple_digraph(graph) if ways else simple_graph(graph)
    for normalized in (True, False):
        found = measures.betweenness_centrality(snapshot, directed=ways, normalized=normalized)
        same(found, nx.betweenness_centrality(plain, normalized=normalized))


@pytest.mark.parametrize("ways", [True, False])
def test_sampled_betweenness_is_nearer_than_it_says(graph: Any, snapshot: Any, ways: bool) -> None:
    exact = measures.betweenness_centrality(snapshot, directed=ways).values
    for seed in range(3):
        found = measures.sampled_betweenness(
            snapshot, directed=ways, epsilon=0.05, delta=0.01, seed=seed
        )
        assert found.error_bound is not None
        assert found.error_bound <= 0.05
        assert np.abs(found.values - exact).max() <= found.error_bound


@pytest.mark.parametrize("ways", [True, False])
def test_closeness_and_harmonic(graph: Any, snapshot: Any, ways: bool) -> None:
    plain = simple_digraph(graph) if ways else simple_graph(graph)
    same(measures.closeness_centrality(snapshot, directed=ways), nx.closeness_centrality(plain))
    theirs = nx.harmonic_centrality(plain)
    scaled = {node: value / (len(plain) - 1) for node, value in theirs.items()}
    same(measures.harmonic_centrality(snapshot, directed=ways), scaled)


def test_sampled_harmonic_is_nearer_than_it_says() -> None:
    snapshot = snapshot_of(multigraph(1, nodes=1500, edges=4000))
    exact = measures.harmonic_centrality(snapshot).values
    found = measures.sampled_harmonic(snapshot, epsilon=0.08, delta=0.01)
    assert not found.exact
    assert found.error_bound is not None
    assert np.abs(found.values - exact).max() <= found.error_bound <= 0.08


def test_eigenvector_centrality() -> None:
    for nodes in (30, 500):  # below and above the size from which Lanczos is used
        plain = simple_graph(multigraph(2, nodes=nodes, edges=nodes * 6))
        theirs = nx.eigenvector_centrality_numpy(
            plain.subgraph(max(nx.connected_components(plain), key=len)), weight="weight"
        )
        found = measures.eigenvector_centrality(
            snapshot_of(multigraph(2, nodes=nodes, edges=nodes * 6))
        )
        same(found, {node: theirs.get(node, 0.0) for node in plain}, 1e-7)


def test_hits() -> None:
    for nodes in (30, 500):
        graph = multigraph(3, nodes=nodes, edges=nodes * 6)
        hubs, authorities = nx.hits(simple_digraph(graph), tol=1e-14)
        found = measures.hits(snapshot_of(graph))
        same(found.hubs, hubs, 1e-7)
        same(found.authorities, authorities, 1e-7)


def test_katz(graph: Any, snapshot: Any) -> None:
    theirs = nx.katz_centrality_numpy(simple_digraph(graph), alpha=0.02, weight="weight")
    found = measures.katz_centrality(snapshot, alpha=0.02)
    assert found.error_bound is not None
    assert found.error_bound <= 1e-9 + 1e-13
    same(found, theirs, 1e-8)


def test_core_number(graph: Any, snapshot: Any) -> None:
    same(measures.core_number(snapshot), nx.core_number(simple_graph(graph)))


def test_triangles_and_clustering(graph: Any, snapshot: Any) -> None:
    plain = simple_graph(graph)
    same(measures.triangles(snapshot), nx.triangles(plain))
    same(measures.local_clustering(snapshot), nx.clustering(plain))
    assert measures.transitivity(snapshot) == pytest.approx(nx.transitivity(plain))


def test_components(graph: Any, snapshot: Any) -> None:
    weak = measures.weakly_connected_components(snapshot)
    assert as_sets(weak) == {frozenset(each) for each in nx.weakly_connected_components(graph)}
    strong = measures.strongly_connected_components(snapshot)
    assert as_sets(strong) == {frozenset(each) for each in nx.strongly_connected_components(graph)}
    assert strong.size.tolist() == sorted(strong.size.tolist(), reverse=True)


def test_bridges_and_articulation_points(graph: Any, snapshot: Any) -> None:
    plain = simple_graph(graph)
    assert measures.bridges(snapshot) == sorted(tuple(sorted(pair)) for pair in nx.bridges(plain))
    assert measures.articulation_points(snapshot) == sorted(nx.articulation_points(plain))


def test_immediate_dominators(graph: Any, snapshot: Any) -> None:
    found = measures.immediate_dominators(snapshot, 0).tolist()
    theirs = {**dict.fromkeys(graph, -1), **nx.immediate_dominators(simple_digraph(graph), 0)}
    theirs[0] = 0
    assert found == [theirs[node] for node in sorted(graph)]


@pytest.mark.parametrize("ways", [True, False])
def test_k_shortest_paths(graph: Any, snapshot: Any, ways: bool) -> None:
    plain = simple_digraph(graph, max) if ways else simple_graph(graph, max)
    for _, _, data in plain.edges(data=True):
        data["length"] = 1 / data["weight"]
    for source, target in ((0, 1), (2, 3), (4, 0), (39, 5), (40, 1)):
        found = measures.k_shortest_paths(snapshot, source, target, 6, directed=ways)
        lengths = []
        if nx.has_path(plain, source, target):
            paths = nx.shortest_simple_paths(plain, source, target, weight="length")
            lengths = [nx.path_weight(plain, path, "length") for path in itertools.islice(paths, 6)]
        assert [path.length for path in found] == pytest.approx(lengths)
        assert len({path.nodes for path in found}) == len(found)
        for path in found:
            assert (path.nodes[0], path.nodes[-1]) == (source, target)
            assert len(set(path.nodes)) == len(path.nodes)
            assert nx.path_weight(plain, path.nodes, "length") == pytest.approx(path.length)


def test_modularity_and_density(graph: Any, snapshot: Any) -> None:
    label = np.arange(len(snapshot)) % 4
    parts = [{node for node in graph if node % 4 == part} for part in range(4)]
    for resolution in (1.0, 0.5):
        found = measures.modularity(snapshot, label, resolution=resolution)
        theirs = nx.community.modularity(simple_graph(graph), parts, resolution=resolution)
        assert found == pytest.approx(theirs)
    assert measures.density(snapshot) == pytest.approx(nx.density(simple_digraph(graph)))
    wanted = nx.density(simple_graph(graph))
    assert measures.density(snapshot, directed=False) == pytest.approx(wanted)


def test_the_diameter_of_the_largest_component(graph: Any, snapshot: Any) -> None:
    plain = simple_graph(graph)
    components = list(nx.connected_components(plain))
    largest = min(components, key=lambda each: (-len(each), min(each)))
    wanted = nx.diameter(plain.subgraph(largest))
    assert diameter(snapshot) == measures.Diameter(wanted, wanted)
    cut = diameter(snapshot, budget=0)
    assert cut.lower <= wanted <= cut.upper


def test_communities_are_as_good_as_theirs() -> None:
    ring = [
        (6 * ring + a, 6 * ring + b)
        for ring in range(8)
        for a, b in itertools.combinations(range(6), 2)
    ]
    links = [(6 * at, (6 * at + 7) % 48) for at in range(8)]
    graph = nx.Graph([*ring, *links])
    theirs = nx.community.modularity(graph, nx.community.louvain_communities(graph, seed=1))
    cliques = {frozenset(range(6 * at, 6 * at + 6)) for at in range(8)}
    for method in ("leiden", "louvain"):
        found = measures.communities(undirected(graph.edges), method=method)
        assert as_sets(found.groups) == cliques
        assert found.modularity == pytest.approx(theirs)
    spread = as_sets(
        measures.communities(undirected(graph.edges), method="label_propagation").groups
    )
    assert all(any(clique <= group for group in spread) for clique in cliques)


def test_assortativity_by_type() -> None:
    graph = multigraph(4)
    kinds = np.array([node % 5 for node in graph], np.uint8)
    for node in graph:
        graph.nodes[node]["kind"] = node % 5
    found = measures.type_assortativity(replace(directed(graph.edges(), graph), node_type=kinds))
    wanted = nx.attribute_assortativity_coefficient(graph, "kind")
    assert found.coefficient == pytest.approx(wanted)
    assert found.share.sum() == pytest.approx(1)
