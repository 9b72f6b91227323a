"""Snapshots of what a memory gives, and measures where a graph is large."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from scipy.sparse.csgraph import connected_components

from analytics import measures
from analytics.graph_values import from_values
from analytics.measures.groups import grouped
from analytics.snapshot import from_edges
from bench.memory_arrays import generate
from cortex.domain.taxonomy import NodeType, RelationType, Status
from cortex.memory import Memory
from cortex.services.fields import Fields

NOT_ROOTS = [kind for kind in NodeType if kind is not NodeType.SESSION]


def test_a_graph_of_values_ranks_as_the_worker_does(memory: Memory) -> None:
    first = memory.adding.add_node("fact", Fields(text="first")).id
    for number in range(5):
        relations = [f"derives_from:{first}", f"related_to:{first}"]
        memory.adding.add_node("thought", Fields(text=f"thought {number}"), relations=relations)
    now = memory.past.as_of(None, memory.generation())
    graph = from_values(now.nodes.values(), now.relations.values())
    chosen = graph.filtered(node_types=NOT_ROOTS, status=[Status.ACTIVE])
    ranked = [chosen.id[at] for at in measures.pagerank(chosen).ranking()]
    assert ranked == [node.id for node, _ in memory.measures.centrality("pagerank").nodes]


def test_a_graph_of_the_past_has_what_was_there_then(memory: Memory) -> None:
    memory.adding.add_node("fact", Fields(text="before"))
    then = memory.generation()
    memory.adding.add_node("fact", Fields(text="after"))
    past = memory.past.as_of(None, then)
    graph = from_values(past.nodes.values(), past.relations.values())
    assert len(graph.filtered(node_types=[NodeType.FACT])) == 1


def test_a_relation_without_one_of_its_ends_is_left_out(memory: Memory) -> None:
    memory.adding.add_node("fact", Fields(text="alone"))
    now = memory.past.as_of(None, memory.generation())
    facts = [node for node in now.nodes.values() if node.type is NodeType.FACT]
    assert len(from_values(facts, now.relations.values()).source) == 0


def test_weak_components_of_a_large_graph_are_those_of_the_depth_first_search() -> None:
    whole = generate(210_000, 420_000, 3)
    graph = whole.filtered(relation_types=set(RelationType) - {RelationType.CONTAINS})
    found = measures.weakly_connected_components(graph)
    _, label = connected_components(graph.simple(True), directed=True, connection="weak")
    assert len(found) > 1000
    assert len(graph) / 2 < found.size[0] < len(graph)
    assert (found.label == grouped(label, "").label).all()


def test_a_large_graph_that_is_one_long_path_is_one_component() -> None:
    names = [f"{number:06d}" for number in range(200_001)]
    path = from_edges(pairwise(names))
    assert measures.weakly_connected_components(path).size.tolist() == [200_001]


def test_groups_are_numbered_by_size_then_by_their_first_node() -> None:
    found = grouped(np.array([7, 2, 2, 9, 7, 4]), "")
    assert found.size.tolist() == [2, 2, 1, 1]
    assert found.label.tolist() == [0, 1, 1, 2, 0, 3]


def test_a_measure_asked_twice_of_one_snapshot_answers_alike() -> None:
    graph = generate(2_000, 6_000, 1)
    first, second = measures.communities(graph), measures.communities(graph)
    assert (first.groups.label == second.groups.label).all()
    assert measures.bridges(graph) == measures.bridges(graph)
