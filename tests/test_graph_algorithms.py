"""The graph's algorithms agree with plain definitions of what they compute."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from graph_plain import ALL, N, Plain, R, graphs, make
from hypothesis import given, settings
from hypothesis import strategies as st

from cortex.domain.errors import NotFoundError
from cortex.domain.taxonomy import (
    HIERARCHY,
    NODE_TYPES,
    REASONING,
    RELATION_TYPES,
)
from cortex.graph.breadth_first import Direction, Traversal
from cortex.graph.descent import ancestors, descendants
from cortex.graph.expansion import relations_within, subgraph
from cortex.graph.proximity import adjacent, neighbours
from cortex.graph.row_cache import RowCache
from cortex.graph.traversal import traverse
from cortex.graph.walking import walk
from cortex.store.database import Database


@pytest.fixture(scope="module")
def database() -> Iterator[Database]:
    with tempfile.TemporaryDirectory() as folder:
        opened = Database(Path(folder) / "cortex.db")
        yield opened
        opened.close()


TYPE_SETS = st.one_of(st.none(), st.frozensets(st.sampled_from(RELATION_TYPES), max_size=8))
KIND_SETS = st.one_of(st.none(), st.frozensets(st.sampled_from(NODE_TYPES), max_size=8))
DIRECTIONS = st.sampled_from(["out", "in", "both"])
LOOPS, ROWS = 1 << 40, 1


def with_large(value: int) -> Any:
    """From which size on a frontier goes to the rows."""
    patch = pytest.MonkeyPatch()
    for name in ("breadth_first", "expansion"):
        patch.setattr(f"cortex.graph.{name}.LARGE", value)
    patch.setattr(RowCache, "prefers", lambda *_, **__: True)
    return patch


@pytest.mark.parametrize("large", [LOOPS, ROWS, 3])
@settings(max_examples=150, deadline=None)
@given(
    drawn=graphs(),
    start=st.integers(0, 40),
    wanted=TYPE_SETS,
    depth=st.integers(0, 5),
    direction=DIRECTIONS,
    kinds=KIND_SETS,
    limit=st.integers(0, 12),
    derived=st.booleans(),
)
def test_traverse_agrees_with_a_naive_search(
    database: Database,
    large: int,
    drawn: Any,
    start: int,
    wanted: Any,
    depth: int,
    direction: Direction,
    kinds: Any,
    limit: int,
    derived: bool,
) -> None:
    plain = make(database, *drawn)
    key = plain.keys[start % len(plain.keys)]
    steps = plain.steps(wanted, direction, derived)
    expected = plain.answer([key], *plain.reach([key], steps, depth), kinds, limit)
    patch = with_large(large)
    try:
        got = traverse(
            plain.graph,
            key,
            relations=wanted,
            depth=depth,
            direction=direction,
            node_types=kinds,
            limit=limit,
            include_derived=derived,
        )
    finally:
        patch.undo()
    assert got == expected


@pytest.mark.parametrize("large", [LOOPS, ROWS, 3])
@settings(max_examples=100, deadline=None)
@given(
    drawn=graphs(),
    starts=st.lists(st.integers(0, 40), min_size=1, max_size=3),
    depth=st.integers(0, 4),
    limit=st.integers(0, 12),
    derived=st.booleans(),
)
def test_subgraph_agrees_with_a_naive_search_that_does_not_go_through_sessions(
    database: Database,
    large: int,
    drawn: Any,
    starts: list[int],
    depth: int,
    limit: int,
    derived: bool,
) -> None:
    plain = make(database, *drawn)
    keys = list(dict.fromkeys(plain.keys[start % len(plain.keys)] for start in starts))
    steps = plain.steps(None, "both", derived)
    expected = plain.answer(keys, *plain.reach(keys, steps, depth, closed=True), None, limit)
    patch = with_large(large)
    try:
        got = subgraph(plain.graph, keys, depth, limit, derived)
        within = relations_within(plain.graph, [*keys, *(key for key, _ in got.nodes)], derived)
    finally:
        patch.undo()
    assert got == expected
    kept = {*keys, *(key for key, _ in got.nodes)}
    assert within == sorted(
        edge[0] for edge in plain.edges if {edge[1], edge[2]} <= kept and (derived or not edge[4])
    )


@pytest.mark.parametrize("large", [LOOPS, ROWS])
@settings(max_examples=60, deadline=None)
@given(drawn=graphs(), start=st.integers(0, 40))
def test_descendants_and_ancestors_agree_with_naive_searches(
    database: Database, large: int, drawn: Any, start: int
) -> None:
    plain = make(database, *drawn)
    key = plain.keys[start % len(plain.keys)]
    below = plain.reach([key], plain.steps(HIERARCHY, "out", False), 50)
    patch = with_large(large)
    try:
        got = descendants(plain.graph, key)
    finally:
        patch.undo()
    assert got == [node for node, _ in plain.answer([key], *below, None, ALL).nodes]
    parent = {e[2]: e[1] for e in plain.edges if e[3] is R.CONTAINS and not e[4]}
    chain = [key]
    while (above := parent.get(chain[-1])) is not None and above not in chain:
        chain.append(above)
    assert ancestors(plain.graph, key) == chain[1:]


@settings(max_examples=60, deadline=None)
@given(drawn=graphs(), start=st.integers(0, 40), steps=st.integers(0, 8), forward=st.booleans())
def test_a_walk_agrees_with_its_definition(
    database: Database, drawn: Any, start: int, steps: int, forward: bool
) -> None:
    plain = make(database, *drawn)
    here = plain.keys[start % len(plain.keys)]
    path: list[tuple[int | None, int]] = [(None, here)]
    for _ in range(steps):
        choices = [
            (-weight, key, target if forward else source)
            for key, source, target, kind, derived, weight in plain.edges
            if kind in REASONING and not derived and here == (source if forward else target)
        ]
        choices = [c for c in choices if c[2] not in [node for _, node in path]]
        if not choices:
            break
        _, relation, here = min(choices)
        path.append((relation, here))
    assert walk(plain.graph, path[0][1], steps, "forward" if forward else "backward") == path


@settings(max_examples=60, deadline=None)
@given(
    drawn=graphs(),
    a=st.integers(0, 40),
    b=st.integers(0, 40),
    wanted=TYPE_SETS,
    derived=st.booleans(),
)
def test_neighbours_are_the_other_ends_and_adjacent_says_so(
    database: Database, drawn: Any, a: int, b: int, wanted: Any, derived: bool
) -> None:
    plain = make(database, *drawn)
    first, second = (plain.keys[n % len(plain.keys)] for n in (a, b))

    def around(kinds: Any) -> list[int]:
        steps = plain.steps(kinds, "both", derived)
        return sorted({f for n, f, _ in steps if n == first}, key=plain.place.__getitem__)

    graph = plain.graph
    assert neighbours(graph, first, wanted, include_derived=derived) == around(wanted)
    assert neighbours(graph, first, limit=2, include_derived=derived) == around(None)[:2]
    assert adjacent(graph, first, second, include_derived=derived) == (second in around(None))


def options(**given: Any) -> dict[str, Any]:
    return {
        "relations": None,
        "depth": 3,
        "direction": "out",
        "node_types": None,
        "limit": 100,
    } | given


def test_a_cycle_reaches_each_of_its_nodes_once_and_never_the_start(database: Database) -> None:
    cycle = [(0, 1, R.LEADS_TO), (1, 2, R.LEADS_TO), (2, 0, R.LEADS_TO)]
    plain = make(database, [N.FACT] * 3, cycle)
    found = traverse(plain.graph, plain.keys[0], **options(depth=10))
    assert found.nodes == [(plain.keys[1], 1), (plain.keys[2], 2)]
    assert found.relations == [edge[0] for edge in plain.edges]
    assert [node for _, node in walk(plain.graph, plain.keys[0], 10)] == plain.keys


def test_a_contradiction_is_walked_against_its_direction(database: Database) -> None:
    plain = make(database, [N.FACT] * 3, [(0, 1, R.CONTRADICTS), (2, 1, R.SUPPORTS)])
    assert traverse(plain.graph, plain.keys[1], **options()).nodes == [(plain.keys[0], 1)]
    assert traverse(plain.graph, plain.keys[0], **options(direction="in")).nodes == [
        (plain.keys[1], 1),
        (plain.keys[2], 2),
    ]


def test_the_filter_holds_on_the_second_hop_too(database: Database) -> None:
    plain = make(database, [N.FACT] * 4, [(0, 1, R.BLOCKS), (1, 2, R.ANSWERS), (1, 3, R.BLOCKS)])
    found = traverse(plain.graph, plain.keys[0], **options(relations=frozenset({R.BLOCKS})))
    assert found.nodes == [(plain.keys[1], 1), (plain.keys[3], 2)]


def test_a_node_type_that_is_not_returned_is_walked_through(database: Database) -> None:
    plain = make(database, [N.FACT, N.NOTE, N.FACT], [(0, 1, R.LEADS_TO), (1, 2, R.LEADS_TO)])
    found = traverse(plain.graph, plain.keys[0], **options(node_types=frozenset({N.FACT})))
    assert found == Traversal([(plain.keys[2], 2)], [], 1, False)


def test_a_derived_relation_is_walked_only_when_asked(database: Database) -> None:
    plain = make(database, [N.FACT] * 2, [(0, 1, R.RELATED_TO, 0.9, True)])
    assert traverse(plain.graph, plain.keys[0], **options()).nodes == []
    assert traverse(plain.graph, plain.keys[0], **options(include_derived=True)).total == 1
    assert subgraph(plain.graph, [plain.keys[0]], 2, 10).total == 0
    assert not adjacent(plain.graph, *plain.keys)


@pytest.mark.parametrize("large", [LOOPS, ROWS])
def test_siblings_below_a_session_are_not_two_hops_apart(database: Database, large: int) -> None:
    below = [(0, 1, R.CONTAINS), (0, 2, R.CONTAINS)]
    plain = make(database, [N.SESSION, N.FACT, N.FACT], below)
    patch = with_large(large)
    from_leaf = subgraph(plain.graph, [plain.keys[1]], 2, 10)
    from_root = subgraph(plain.graph, [plain.keys[0]], 2, 10)
    patch.undo()
    assert from_leaf.nodes == [(plain.keys[0], 1)]
    assert from_root.total == 2


def test_a_walk_takes_the_strongest_then_the_earliest_relation(database: Database) -> None:
    edges = [
        (0, 1, R.LEADS_TO, 0.5),
        (0, 2, R.TRIGGERS, 0.9),
        (0, 3, R.LEADS_TO, 0.9),
        (0, 4, R.BLOCKS, 1.0),
    ]
    plain = make(database, [N.THOUGHT] * 5, edges)
    assert walk(plain.graph, plain.keys[0], 1) == [
        (None, plain.keys[0]),
        (plain.edges[1][0], plain.keys[2]),
    ]
    assert walk(plain.graph, plain.keys[2], 1, "backward")[1] == (
        plain.edges[1][0],
        plain.keys[0],
    )


def test_an_isolated_node_reaches_nothing(database: Database) -> None:
    plain = make(database, [N.FACT], [])
    key = plain.keys[0]
    nothing = Traversal([], [], 0, False)
    assert traverse(plain.graph, key, **options()) == nothing
    assert subgraph(plain.graph, [key], 3, 10) == nothing
    assert walk(plain.graph, key, 5) == [(None, key)]
    assert descendants(plain.graph, key) == ancestors(plain.graph, key) == []
    assert neighbours(plain.graph, key) == relations_within(plain.graph, [key]) == []


def test_no_types_at_all_reach_nothing(database: Database) -> None:
    plain = make(database, [N.FACT] * 2, [(0, 1, R.BLOCKS)])
    for large in (LOOPS, ROWS):
        patch = with_large(large)
        found = traverse(plain.graph, plain.keys[0], **options(relations=frozenset()))
        patch.undo()
        assert found.nodes == []


def test_a_start_that_is_not_there_is_not_found(database: Database) -> None:
    plain = make(database, [N.FACT], [])
    for call in (
        lambda: traverse(plain.graph, ALL, **options()),
        lambda: subgraph(plain.graph, [plain.keys[0], ALL], 2, 10),
        lambda: walk(plain.graph, ALL, 2),
        lambda: descendants(plain.graph, ALL),
        lambda: ancestors(plain.graph, ALL),
        lambda: neighbours(plain.graph, ALL),
    ):
        with pytest.raises(NotFoundError):
            call()
    assert relations_within(plain.graph, [plain.keys[0], ALL]) == []
    assert not adjacent(plain.graph, plain.keys[0], ALL)


HUB = 5000


@pytest.fixture(scope="module")
def hub(database: Database) -> Plain:
    """One node with 5,000 relations out, each far end with one more behind it."""
    spokes = [(0, n, R.LEADS_TO) for n in range(1, HUB + 1)]
    behind = [(n, n + HUB, R.LEADS_TO) for n in range(1, HUB + 1)]
    return make(database, [N.FACT] * (2 * HUB + 1), spokes + behind)


def test_a_hub_is_cut_to_its_earliest_neighbours_with_the_total(hub: Plain) -> None:
    found = traverse(hub.graph, hub.keys[0], **options(depth=2, limit=50))
    assert found.nodes == [(key, 1) for key in hub.keys[1:51]]
    assert found.relations == [edge[0] for edge in hub.edges[:50]]
    assert (found.total, found.truncated) == (2 * HUB, True)


def test_loops_and_rows_answer_alike_on_a_hub(hub: Plain) -> None:
    answers = []
    for large in (LOOPS, ROWS):
        patch = with_large(large)
        answers.append(
            (
                traverse(hub.graph, hub.keys[0], **options(depth=2, limit=ALL)),
                subgraph(hub.graph, [hub.keys[HUB]], 3, 700),
                relations_within(hub.graph, hub.keys[: HUB + 500]),
            )
        )
        patch.undo()
    assert answers[0] == answers[1]
    assert answers[0][0].total == 2 * HUB


@pytest.mark.parametrize("large", [LOOPS, ROWS])
def test_the_first_of_many_are_the_earliest_wherever_they_are_stored(
    database: Database, large: int
) -> None:
    spokes = [(0, n, R.LEADS_TO) for n in range(1, 201)]
    plain = make(database, [N.FACT] * 201, spokes, [0, *range(200, 0, -1)])
    patch = with_large(large)
    found = traverse(plain.graph, plain.keys[0], **options(limit=3))
    patch.undo()
    assert [key for key, _ in found.nodes] == plain.keys[:-4:-1]


@pytest.mark.parametrize("large", [LOOPS, ROWS])
def test_the_bound_on_visited_nodes_ends_behind_a_whole_level(hub: Plain, large: int) -> None:
    patch = with_large(large)
    found = traverse(hub.graph, hub.keys[0], **options(depth=3, limit=ALL), max_visited=100)
    patch.undo()
    assert (len(found.nodes), found.total, found.truncated) == (HUB, HUB, True)


def test_a_cascade_is_never_bounded(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cortex.graph.breadth_first.MAX_VISITED", 3)
    tree = [((n - 1) // 2, n, R.CONTAINS) for n in range(1, 200)]
    plain = make(database, [N.TASK] * 200, tree)
    assert descendants(plain.graph, plain.keys[0]) == plain.keys[1:]
    assert ancestors(plain.graph, plain.keys[199]) == [
        plain.keys[n] for n in (99, 49, 24, 11, 5, 2, 0)
    ]


def test_rows_are_built_once_loops_have_cost_as_much(hub: Plain) -> None:
    cache = hub.graph.row_cache = RowCache(hub.graph.graph)
    assert not cache.prefers(100, out=True, back=False)
    assert cache.prefers(10_000, out=True, back=False)
    hub.graph.rows(incoming=False)
    assert cache.prefers(1, out=True, back=False)
    assert not cache.prefers(1, out=True, back=True)
