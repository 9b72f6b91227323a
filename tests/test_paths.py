"""The k shortest paths are the first k of all that there are, whatever is read to find them."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from itertools import pairwise, takewhile
from pathlib import Path
from typing import Any

import networkx as nx
import pytest
from graph_plain import N, Plain, R, graphs, make
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from cortex.graph.paths import UNIT, shortest_paths
from cortex.graph.reverse import INFINITE, Heard, Reverse
from cortex.graph.steps import HOPS, Steps
from cortex.store.database import Database

MOST_TIES = 3_000


@pytest.fixture(scope="module")
def database() -> Iterator[Database]:
    with tempfile.TemporaryDirectory() as folder:
        opened = Database(Path(folder) / "cortex.db")
        yield opened
        opened.close()


def with_hubs(relations: int) -> Any:
    """From how many relations on a node is read as a hub."""
    patch = pytest.MonkeyPatch()
    for name in ("paths", "reverse"):
        patch.setattr(f"cortex.graph.{name}.HUB", relations)
    return patch


def lengths_of(plain: Plain, start: int, target: int, derived: bool) -> nx.Graph:
    """Between any two nodes the strongest relation, then the earliest; sessions left out."""
    graph = nx.Graph()
    graph.add_nodes_from((start, target))
    for key, source, far, _, is_derived, weight in sorted(plain.edges):
        ends = {source, far} - {start, target}
        if (is_derived and not derived) or any(plain.kinds[each] is N.SESSION for each in ends):
            continue
        length = round((2 - weight) * UNIT)
        if graph.get_edge_data(source, far, {"length": INFINITE})["length"] > length:
            graph.add_edge(source, far, length=length, relation=key)
    return graph


def first(plain: Plain, graph: nx.Graph, start: int, target: int, k: int) -> list[Any]:
    """(length, nodes, relations) by networkx, whose order of ties is its own."""
    if not nx.has_path(graph, start, target):
        return []
    found: list[tuple[int, int, list[Any], list[int]]] = []

    def is_needed(nodes: list[int]) -> bool:
        length = nx.path_weight(graph, nodes, "length")
        if len(found) >= k and length > found[k - 1][0]:
            return False
        assume(len(found) < MOST_TIES)
        found.append((length, len(nodes), [plain.place[each] for each in nodes[1:]], nodes))
        return True

    for _ in takewhile(is_needed, nx.shortest_simple_paths(graph, start, target, "length")):
        pass
    return [
        (length, tuple(nodes), tuple(graph.edges[step]["relation"] for step in pairwise(nodes)))
        for length, _, _, nodes in sorted(found)[:k]
    ]


@pytest.mark.parametrize("hub", [200, 4, 2])
@settings(max_examples=80, deadline=None)
@given(
    drawn=graphs(),
    ends=st.tuples(st.integers(0, 40), st.integers(0, 40)),
    k=st.sampled_from([1, 2, 5, 20]),
    derived=st.booleans(),
)
def test_paths_are_networkx_s_in_our_order(
    database: Database, hub: int, drawn: Any, ends: tuple[int, int], k: int, derived: bool
) -> None:
    plain = make(database, *drawn)
    start, target = (plain.keys[end % len(plain.keys)] for end in ends)
    graph = lengths_of(plain, start, target, derived)
    expected = first(plain, graph, start, target, k)
    patch = with_hubs(hub)
    try:
        found, bounded = shortest_paths(plain.graph, start, target, k, include_derived=derived)
    finally:
        patch.undo()
    assert [(round(way.length * UNIT), way.nodes, way.relations) for way in found] == expected
    assert not bounded


def star(database: Database, spokes: int) -> Plain:
    """Two nodes joined by a hub's `spokes`, and beside it by a way of four steps."""
    edges = [(0, number, R.LEADS_TO) for number in range(1, spokes + 1)]
    beside = spokes + 1
    edges += [(1, beside, R.SUPPORTS), (beside, beside + 1, R.SUPPORTS)]
    edges += [(beside + 1, beside + 2, R.SUPPORTS), (beside + 2, 2, R.SUPPORTS)]
    return make(database, [N.FACT] * (beside + 3), edges)


def test_a_path_over_a_hub_does_not_read_the_hub(database: Database) -> None:
    plain = star(database, 2_000)
    found, bounded = shortest_paths(plain.graph, plain.keys[1], plain.keys[2], 2, max_expanded=60)
    assert [way.length for way in found] == [2.0, 4.0]
    assert found[0].nodes == (plain.keys[1], plain.keys[0], plain.keys[2])
    assert not bounded


def test_an_end_without_another_way_out_is_not_looked_for_everywhere(database: Database) -> None:
    count = 400
    ring = [(number, (number + 1) % count, R.LEADS_TO) for number in range(count)]
    plain = make(database, [N.FACT] * (count + 2), [*ring, (0, count, R.SUPPORTS)])
    found, bounded = shortest_paths(
        plain.graph, plain.keys[3], plain.keys[count], 1, max_expanded=30
    )
    assert [way.length for way in found] == [4.0]
    assert not bounded
    nowhere = shortest_paths(plain.graph, plain.keys[3], plain.keys[-1], 3, max_expanded=30)
    assert nowhere == ([], False)


def test_paths_that_were_found_before_the_bound_are_the_shortest(database: Database) -> None:
    plain = star(database, 50)
    every, _ = shortest_paths(plain.graph, plain.keys[1], plain.keys[2], 5)
    for most in range(1, 40):
        found, bounded = shortest_paths(
            plain.graph, plain.keys[1], plain.keys[2], 5, max_expanded=most
        )
        assert found == every[: len(found)]
        assert bounded or found == every


@pytest.mark.parametrize("hub", [200, 2])
def test_what_the_reverse_search_says_is_left_is_never_too_much(
    database: Database, hub: int
) -> None:
    edges = [(0, 1, R.LEADS_TO, 0.5), (1, 2, R.LEADS_TO), (2, 3, R.LEADS_TO), (0, 4, R.LEADS_TO)]
    plain = make(database, [N.FACT] * 7, [*edges, (4, 3, R.BLOCKS, 0.2), (3, 5, R.LEADS_TO)])
    true = [0.0, 1.5, 2.5, 2.8, 1.0, 3.8]
    at = [plain.graph.index(key) for key in plain.keys]
    patch = with_hubs(hub)
    reverse = Reverse(Steps(plain.graph, at[6], at[0], False), at[6], at[0])
    while reverse.beyond != INFINITE:
        for node, left in zip(at, true, strict=False):
            assert reverse.at_least(node, frozenset()) >> HOPS <= left * UNIT
        reverse.widen()
    patch.undo()
    assert [(reverse.label[node] >> HOPS) / UNIT for node in at[:6]] == true
    assert reverse.at_least(at[6], frozenset()) == INFINITE
    assert reverse.told(at[6], Heard())[0] == []
