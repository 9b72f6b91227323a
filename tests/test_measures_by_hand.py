"""Measures on tiny graphs whose answers are known by hand, and at the corners."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from measures_data import directed, multigraph, name, snapshot_of, undirected

from analytics import measures
from analytics.measures import ldbc
from analytics.measures.katz import spectral_radius_bound
from analytics.snapshot import GraphSnapshot, from_edges
from cortex.domain.errors import InvalidError, NotFoundError
from cortex.domain.taxonomy import RelationType

R = RelationType
STAR = undirected([(0, 1), (0, 2), (0, 3)])
PATH = directed([(0, 1), (1, 2), (2, 3)])
DIAMOND = directed([(0, 1), (0, 2), (1, 3), (2, 3), (3, 4)])

EVERY: dict[str, Callable[[GraphSnapshot], Any]] = {
    "degree": measures.degree,
    "pagerank": measures.pagerank,
    "betweenness": measures.betweenness_centrality,
    "sampled betweenness": measures.sampled_betweenness,
    "closeness": measures.closeness_centrality,
    "harmonic": measures.harmonic_centrality,
    "sampled harmonic": measures.sampled_harmonic,
    "eigenvector": measures.eigenvector_centrality,
    "katz": measures.katz_centrality,
    "hubs": lambda snapshot: measures.hits(snapshot).hubs,
    "core": measures.core_number,
    "triangles": measures.triangles,
    "clustering": measures.local_clustering,
    "pr": lambda snapshot: ldbc.pr(snapshot, iterations=3),
    "lcc": ldbc.lcc,
}
GROUPS: dict[str, Callable[[GraphSnapshot], measures.Groups]] = {
    "weak": measures.weakly_connected_components,
    "strong": measures.strongly_connected_components,
    "leiden": lambda snapshot: measures.communities(snapshot).groups,
    "louvain": lambda snapshot: measures.communities(snapshot, method="louvain").groups,
    "label propagation": lambda snapshot: (
        measures.communities(snapshot, method="label_propagation").groups
    ),
}


def values(scores: measures.Scores) -> list[float]:
    return scores.values.tolist()


@pytest.mark.parametrize("measure", EVERY)
def test_a_graph_without_nodes_has_no_scores(measure: str) -> None:
    assert len(EVERY[measure](from_edges([])).values) == 0


@pytest.mark.parametrize("measure", EVERY)
def test_a_graph_without_relations_has_equal_finite_scores(measure: str) -> None:
    found = values(EVERY[measure](from_edges([], ["a", "b", "c"])))
    assert np.isfinite(found).all()
    assert found == pytest.approx([found[0]] * 3)


@pytest.mark.parametrize("measure", EVERY)
def test_two_runs_give_the_same_bits_and_all_relations_at_weight_zero_are_borne(
    measure: str,
) -> None:
    snapshot = snapshot_of(multigraph(6, nodes=400, edges=1500))
    again = snapshot_of(multigraph(6, nodes=400, edges=1500))
    assert values(EVERY[measure](snapshot)) == values(EVERY[measure](again))
    weightless = EVERY[measure](directed([(0, 1, 0.0), (1, 2, 0.0)]))
    assert np.isfinite(weightless.values).all()


@pytest.mark.parametrize("parting", GROUPS)
def test_groups_are_numbered_by_size_and_the_same_in_two_runs(parting: str) -> None:
    snapshot = snapshot_of(multigraph(7, nodes=400, edges=500))
    found = GROUPS[parting](snapshot)
    again = GROUPS[parting](snapshot_of(multigraph(7, nodes=400, edges=500)))
    assert found.label.tolist() == again.label.tolist()
    assert found.size.tolist() == sorted(np.bincount(found.label).tolist(), reverse=True)
    assert GROUPS[parting](from_edges([], ["a", "b"])).label.tolist() == [0, 1]
    assert len(GROUPS[parting](from_edges([]))) == 0


def test_scores_rank_ties_by_id() -> None:
    assert measures.degree(STAR).ranking().tolist() == [0, 1, 2, 3]
    assert measures.degree(PATH).ranking(2).tolist() == [1, 2]


def test_a_symmetric_relation_counts_in_and_out_but_once_in_all() -> None:
    snapshot = from_edges([("a", "b")], relation=R.CONTRADICTS)
    for direction in ("in", "out", "total"):
        assert values(measures.degree(snapshot, direction)) == [1, 1]
    assert values(measures.degree(directed([(0, 0), (0, 1), (0, 1)]), "total")) == [4, 2]


def test_pagerank_of_two_nodes_is_the_solution_of_its_equation() -> None:
    # a → b, b dangles: a = (1 - d)/2 + d·b/2 and a + b = 1.
    scores = measures.pagerank(from_edges([("a", "b")]), damping=0.5, tolerance=1e-10)
    assert values(scores) == pytest.approx([0.4, 0.6])


def test_pagerank_follows_weights() -> None:
    scores = measures.pagerank(directed([(0, 1, 0.9), (0, 2, 0.1)]), tolerance=1e-10)
    ahead = measures.pagerank(directed([(0, 1, 0.9), (0, 2, 0.1)]), weighted=False, tolerance=1e-10)
    assert scores.values[1] > ahead.values[1] == pytest.approx(ahead.values[2])


def test_dangling_rank_goes_where_teleport_goes() -> None:
    scores = measures.pagerank(PATH, teleport={name(2): 1.0})
    assert values(scores)[:2] == [0, 0]
    assert sum(values(scores)) == pytest.approx(1)


@pytest.mark.parametrize(
    "given", [{"damping": 1.0}, {"tolerance": 0.0}, {"teleport": {}}, {"teleport": np.ones(3)}]
)
def test_pagerank_refuses_what_has_no_answer(given: dict[str, Any]) -> None:
    with pytest.raises(InvalidError):
        measures.pagerank(PATH, **given)
    with pytest.raises(NotFoundError):
        measures.pagerank(PATH, teleport={"nobody": 1.0})


def test_betweenness_of_a_star_and_a_path() -> None:
    assert values(measures.betweenness_centrality(STAR, directed=False)) == [1, 0, 0, 0]
    found = measures.betweenness_centrality(PATH, normalized=False)
    assert values(found) == [0, 2, 2, 0]


def test_parallel_relations_are_one_way_for_betweenness() -> None:
    doubled = directed([(0, 1), (0, 1), (0, 2), (1, 3), (2, 3)])
    found = measures.betweenness_centrality(doubled, normalized=False)
    assert values(found) == [0, 0.5, 0.5, 0]


def test_sampled_paths_are_drawn_uniformly_among_the_shortest() -> None:
    # Paths 0 → 9: by 1 there are three ways, by 2 one. So 1 lies on 3/4 of them.
    edges = [(0, 1), (0, 2), *((1, via) for via in (3, 4, 5)), (2, 6)]
    edges += [(via, 9) for via in (3, 4, 5, 6)]
    snapshot = directed(edges)
    exact = measures.betweenness_centrality(snapshot)
    found = measures.sampled_betweenness(snapshot, epsilon=0.01, delta=0.01)
    assert values(found) == pytest.approx(values(exact), abs=0.01)


def test_a_sampled_bound_is_narrower_than_what_was_asked_where_paths_are_few() -> None:
    found = measures.sampled_betweenness(directed([(0, 1), (1, 2)], range(500)))
    assert found.error_bound is not None
    assert found.error_bound < 0.002


@pytest.mark.parametrize("given", [{"epsilon": 0.0}, {"epsilon": 1.0}, {"delta": 0.0}])
def test_samples_of_no_size_are_refused(given: dict[str, float]) -> None:
    for sampled in (measures.sampled_betweenness, measures.sampled_harmonic):
        with pytest.raises(InvalidError):
            sampled(PATH, **given)


def test_closeness_counts_ways_to_the_node_and_scales_by_those_who_reach_it() -> None:
    assert values(measures.closeness_centrality(PATH)) == pytest.approx([0, 1 / 3, 4 / 9, 0.5])
    found = measures.harmonic_centrality(PATH)
    assert values(found) == pytest.approx([0, 1 / 3, 1.5 / 3, (1 + 1 / 2 + 1 / 3) / 3])


def test_eigenvector_of_a_star() -> None:
    found = values(measures.eigenvector_centrality(STAR))
    assert found == pytest.approx([0.5**0.5, *[(1 / 6) ** 0.5] * 3])


def test_eigenvector_of_two_equal_components_favours_neither() -> None:
    found = measures.eigenvector_centrality(undirected([(0, 1), (2, 3)]))
    assert values(found) == pytest.approx([0.5] * 4)


def test_katz_without_cycles_is_a_sum_of_walks() -> None:
    raw = np.array([1, 1.5, 1.75, 1.875])
    found = measures.katz_centrality(PATH, alpha=0.5)
    assert values(found) == pytest.approx((raw / np.linalg.norm(raw)).tolist(), abs=1e-14)


def test_katz_refuses_an_alpha_beyond_the_spectral_radius() -> None:
    cycle = directed([(0, 1), (1, 2), (2, 0)])
    assert spectral_radius_bound(cycle.simple()) == pytest.approx(1)
    assert values(measures.katz_centrality(cycle, alpha=0.9)) == pytest.approx([3**-0.5] * 3)
    for alpha in (1.0, 1.1, -0.5):
        with pytest.raises(InvalidError):
            measures.katz_centrality(cycle, alpha=alpha)


def test_hubs_point_and_authorities_are_pointed_to() -> None:
    found = measures.hits(directed([(0, 2), (0, 3), (1, 3)]))
    golden = (1 + 5**0.5) / 2
    assert values(found.hubs) == pytest.approx([golden / (1 + golden), 1 / (1 + golden), 0, 0])
    assert values(found.authorities)[2:] == pytest.approx([1 / (1 + golden), golden / (1 + golden)])


def test_a_clique_with_a_tail_has_cores_three_and_one() -> None:
    clique = [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)]
    assert values(measures.core_number(undirected([*clique, (3, 4), (4, 5)], range(7)))) == [
        *[3] * 4,
        1,
        1,
        0,
    ]


def test_clustering_of_a_triangle_with_a_tail() -> None:
    snapshot = undirected([(0, 1), (1, 2), (0, 2), (2, 3)])
    assert values(measures.triangles(snapshot)) == [1, 1, 1, 0]
    assert values(measures.local_clustering(snapshot)) == pytest.approx([1, 1, 1 / 3, 0])
    assert measures.transitivity(snapshot) == pytest.approx(3 / 5)
    assert measures.transitivity(PATH) == 0


def test_bridges_cut_points_and_dominators() -> None:
    assert measures.bridges(DIAMOND) == [(3, 4)]
    assert measures.articulation_points(DIAMOND) == [3]
    assert measures.immediate_dominators(DIAMOND, 0).tolist() == [0, 0, 0, 0, 3]
    assert measures.immediate_dominators(DIAMOND, 1).tolist() == [-1, 1, -1, 1, 3]


def test_a_strong_way_round_is_shorter_than_a_weak_way_straight() -> None:
    snapshot = directed([(0, 2, 0.4), (0, 1, 1.0), (1, 2, 1.0), (0, 3, 0.0), (3, 2, 1.0)])
    assert measures.shortest_path(snapshot, 0, 2) == measures.Path(2.0, (0, 1, 2))
    found = measures.k_shortest_paths(snapshot, 0, 2, 5)
    assert found == [measures.Path(2.0, (0, 1, 2)), measures.Path(2.5, (0, 2))]
    assert measures.shortest_path(snapshot, 0, 2, weighted=False) == measures.Path(1.0, (0, 2))


def test_equally_long_paths_come_in_order_of_ids() -> None:
    found = measures.k_shortest_paths(DIAMOND, 0, 4, 5)
    assert [path.nodes for path in found] == [(0, 1, 3, 4), (0, 2, 3, 4)]


def test_a_path_from_a_node_to_itself_and_to_what_it_cannot_reach() -> None:
    assert measures.k_shortest_paths(PATH, 1, 1, 3) == [measures.Path(0.0, (1,))]
    assert measures.shortest_path(PATH, 3, 0) is None
    assert measures.shortest_path(PATH, 3, 0, directed=False) == measures.Path(3.0, (3, 2, 1, 0))
    with pytest.raises(InvalidError):
        measures.k_shortest_paths(PATH, 0, 1, 0)


def test_the_diameter_of_a_path_and_of_nothing() -> None:
    assert measures.diameter(PATH) == measures.Diameter(3, 3)
    assert measures.diameter(from_edges([])) == measures.Diameter(0, 0)
    assert measures.diameter(from_edges([], ["a"])).exact
    assert measures.diameter(PATH).exact


def test_density_counts_pairs_once() -> None:
    assert measures.density(directed([(0, 1), (0, 1), (1, 1), (1, 2)])) == pytest.approx(2 / 6)
    assert measures.density(STAR, directed=False) == pytest.approx(0.5)
    assert measures.density(from_edges([], ["a"])) == 0


def test_modularity_of_one_group_is_nothing_and_of_two_cliques_a_half() -> None:
    two = undirected([(0, 1), (2, 3)])
    assert measures.modularity(two, np.zeros(4, np.int64)) == pytest.approx(0)
    assert measures.modularity(two, np.array([0, 0, 1, 1])) == pytest.approx(0.5)
    assert measures.communities(two).groups.label.tolist() == [0, 0, 1, 1]


def test_communities_refuse_what_is_not_offered() -> None:
    for given in ({"method": "magic"}, {"resolution": 0.0}):
        with pytest.raises(InvalidError):
            measures.communities(STAR, **given)


def test_assortativity_is_undefined_where_all_nodes_have_one_type() -> None:
    assert measures.type_assortativity(PATH).coefficient is None
    assert measures.type_assortativity(from_edges([])).coefficient is None


def test_importing_the_measures_loads_none_of_the_heavy_libraries() -> None:
    code = (
        "import sys, analytics.measures, analytics.measures.ldbc\n"
        "assert not {'scipy', 'networkit', 'rustworkx', 'networkx'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
