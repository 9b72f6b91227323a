"""The laws of a dream, on graphs whose answers are known."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cortex.domain.dreams import Change, creation_phase, gain_of, layer_name
from cortex.graph.merging import holding_communities
from cortex.graph.similarity import Floats, SimilarityGraph, from_links
from cortex.services.composition.triples import node_item
from cortex.services.dreaming.bundling import summary_vector
from cortex.services.dreaming.clusters import Cluster, hubs_to_wire, joined_groups
from cortex.services.dreaming.interference import creation_phases
from cortex.services.dreaming.summary import extract
from cortex.services.dreaming.synchrony import in_steps, synchronised
from cortex.vectors.hypervectors import THRESHOLD, Codebook, similarity

COUPLINGS = (0.0, 0.1, 0.3, 1.0)


def graph_of(links: list[tuple[int, int]], weight: float = 1.0) -> SimilarityGraph:
    ends = np.array(links, np.int64).reshape(-1, 2)
    return from_links(ends[:, 0], ends[:, 1], np.full(len(ends), weight))


def clique(first: int, size: int) -> list[tuple[int, int]]:
    return [(first + a, first + b) for a in range(size) for b in range(a)]


def order(phase: Floats) -> float:
    return float(abs(np.exp(1j * phase).mean()))


def orders(graph: SimilarityGraph, phase: Floats) -> list[float]:
    """R at the end of a dream, by rising coupling."""
    group = np.zeros(len(graph), np.int64)
    return [order(synchronised(graph, phase, group, each)) for each in COUPLINGS]


# Sync


@pytest.mark.parametrize("seed", range(5))
def test_order_rises_with_coupling_on_a_connected_graph(seed: int) -> None:
    random = np.random.default_rng(seed)
    ring = [(at, (at + 1) % 40) for at in range(40)]
    chords = [(int(a), int(b)) for a, b in random.integers(0, 40, (60, 2)) if a != b]
    risen = orders(graph_of([*ring, *chords]), random.uniform(-1.5, 1.5, 40))
    assert risen == sorted(risen)
    assert risen[-1] > 0.99 > risen[0]


@given(st.lists(st.floats(-1.5, 1.5), min_size=4, max_size=12))
def test_order_never_falls_with_coupling_in_a_clique(angles: list[float]) -> None:
    risen = orders(graph_of(clique(0, len(angles))), np.array(angles))
    assert all(after >= before - 1e-9 for before, after in pairwise(risen))


def test_two_alike_meet_in_the_middle() -> None:
    ended = synchronised(graph_of([(1, 2)]), np.array([-0.4, 0.8]), np.zeros(2, np.int64))
    assert ended == pytest.approx([0.2, 0.2], abs=1e-6)


def test_without_coupling_and_without_links_phases_stay() -> None:
    phase = np.array([0.3, -2.0])
    assert synchronised(graph_of([(1, 2)]), phase, np.zeros(2, np.int64), 0.0) == pytest.approx(
        phase
    )
    assert len(synchronised(graph_of([]), np.empty(0), np.empty(0, np.int64))) == 0


def test_a_community_comes_into_step_before_the_whole_does() -> None:
    graph = graph_of([*clique(0, 5), *clique(10, 5), (0, 10)])
    group = np.array([0] * 5 + [1] * 5)
    begun = np.linspace(-1.4, 1.4, 10)
    ended = synchronised(graph, begun, group)
    assert min(order(ended[:5]), order(ended[5:])) > 0.99 > order(ended)


def test_turning_all_phases_turns_the_end_as_much() -> None:
    graph, group = graph_of(clique(0, 6)), np.zeros(6, np.int64)
    begun = np.linspace(-0.5, 0.5, 6)
    turned = synchronised(graph, begun + 1.0, group)
    assert turned == pytest.approx(synchronised(graph, begun, group) + 1.0)


@given(st.lists(st.floats(-50.0, 50.0), min_size=1))
def test_kept_phases_are_within_the_bounds_of_the_table_and_stay_when_kept_again(
    angles: list[float],
) -> None:
    kept = in_steps(np.array(angles))
    assert kept.min() >= -math.pi
    assert kept.max() <= math.pi
    assert in_steps(kept) == pytest.approx(kept, abs=1e-12)


def test_the_kept_phase_of_half_a_turn_fits_the_table() -> None:
    assert np.abs(in_steps(np.array([math.pi, -math.pi]))).max() <= 3.1415927


# Phases of creation, gain, layers


@given(st.floats(0.0, 1e5))
def test_the_phases_of_many_are_the_law_of_each(hours: float) -> None:
    [many] = creation_phases(np.array([hours])).tolist()
    assert math.cos(many) == pytest.approx(math.cos(creation_phase(hours)), abs=1e-6)


def test_a_year_between_two_memories_is_half_a_turn() -> None:
    assert abs(creation_phase(8760.0)) == pytest.approx(math.pi)
    assert creation_phase(2 * 8760.0) == pytest.approx(0.0)


@given(st.floats(-100.0, 1e6), st.floats(0.0, 100.0))
def test_gain_rises_with_support_within_its_bounds(support: float, more: float) -> None:
    assert 0.0 <= gain_of(support) <= gain_of(support + more) <= 1.0


def test_half_of_the_gain_is_reached_at_eight_and_none_below_zero() -> None:
    assert gain_of(8.0) == 0.5
    assert gain_of(-3.0) == 0.0


def test_layers_are_named_by_their_half_lives() -> None:
    assert [layer_name(each) for each in (1.0, 168.0, 720.0, 9000.0)] == [
        "working", "working", "episodic", "semantic",
    ]  # fmt: skip


# Communities


def test_the_halves_of_a_clique_are_one_community() -> None:
    links = [(0, 1), (2, 3), (0, 2), (0, 3), (1, 2), (1, 3)]
    weights = np.array([0.94, 0.92, 0.93, 0.87, 0.91, 0.9])
    ends = np.array(links)
    graph = from_links(ends[:, 0], ends[:, 1], weights)
    assert holding_communities(graph).tolist() == [0, 0, 0, 0]


def test_cliques_joined_by_one_link_stay_two_and_the_larger_comes_first() -> None:
    graph = graph_of([*clique(0, 4), *clique(10, 6), (0, 10)])
    assert holding_communities(graph).tolist() == [1] * 4 + [0] * 6


@pytest.mark.parametrize("seed", range(4))
def test_every_community_has_more_within_than_to_any_other(seed: int) -> None:
    random = np.random.default_rng(seed)
    ends = random.integers(0, 120, (300, 2))
    graph = from_links(ends[:, 0], ends[:, 1], random.uniform(0.5, 1.0, 300))
    group = holding_communities(graph)
    number = int(group.max()) + 1
    weight = np.zeros((number, number))
    tail = np.repeat(group, np.diff(graph.indptr))
    np.add.at(weight, (tail, group[graph.neighbor]), graph.weight)
    within = np.diag(weight).copy()
    np.fill_diagonal(weight, 0.0)
    assert (weight.max(axis=1) <= within + 1e-6).all()


# Bundles and skip links


def test_a_bundle_of_hypervectors_is_alike_to_its_members_alone() -> None:
    members = [f"member {at}" for at in range(24)]
    bundle, book = summary_vector(members), Codebook()
    assert all(similarity(bundle, book.item(node_item(m))) > THRESHOLD for m in members)
    assert similarity(bundle, book.item(node_item("a stranger"))) < THRESHOLD


def test_a_summary_says_sentences_of_its_texts_word_for_word_and_none_twice() -> None:
    texts = [
        "The cache is Redis. It was raining.",
        "Redis is the cache of the API. Lunch was late.",
        "The cache is Redis. Redis keeps sessions in the cache.",
    ]
    said = extract(texts).split("\n")
    assert said[:2] == ["The cache is Redis.", "Redis is the cache of the API."]
    assert all(any(each in text for text in texts) for each in said)
    assert len(set(said)) == len(said)


def test_a_summary_of_nothing_is_empty() -> None:
    assert extract(["", "  \n "]) == ""


def cluster(group: int, degrees: float) -> Cluster:
    turn = math.radians(degrees)
    centre = np.array([math.cos(turn), math.sin(turn)], np.float32)
    return Cluster(group, 3, (group * 10,), centre)


def test_each_community_is_wired_to_the_nearest_that_nothing_joins_it_to() -> None:
    clusters = [cluster(0, 0), cluster(1, 20), cluster(2, 50), cluster(3, 180)]
    found = hubs_to_wire(clusters, {(0, 1)}, 0.2)
    assert [(one.group, other.group) for one, other, _ in found] == [(0, 2), (1, 2)]
    assert found[1][2] == pytest.approx(math.cos(math.radians(30)), abs=1e-4)


def test_joined_communities_are_those_with_a_link_between_them() -> None:
    graph = graph_of([*clique(0, 3), *clique(10, 3), *clique(20, 3), (0, 10)])
    assert joined_groups(graph, np.repeat([0, 1, 2], 3)) == {(0, 1)}


def test_a_change_says_which_row_what_and_why() -> None:
    link = Change("wire", 0, ("a", "related_to", "b"), None, 0.3, "because")
    assert link.json()["relation"] == {"from_id": "a", "type": "related_to", "to_id": "b"}
    assert Change("sync", 7, "a", 0.0, 0.1, "so").json()["node_id"] == "a"
