"""What hangs on a node, and how two nodes hang together."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from itertools import pairwise

import pytest
from typer.testing import CliRunner

from cortex.cli.app import app
from cortex.domain.errors import InvalidError, NotFoundError
from cortex.domain.instants import Clock, Instant, later, now
from cortex.domain.taxonomy import NodeType, RelationType
from cortex.domain.values import NodeId, WorkspaceId, new_id
from cortex.graph.paths import UNIT, shortest_paths
from cortex.graph.support import unsupported
from cortex.memory import Memory
from cortex.services.fields import Fields
from tests.local import ask

W = WorkspaceId("w")


def add(memory: Memory, text: str, kind: str = "fact", parent: str | None = None) -> str:
    return memory.adding.add_node(kind, Fields(text=text), parent=parent).id


def join(memory: Memory, source: str, kind: str, target: str, weight: float = 1.0) -> None:
    memory.linking.add_relation(source, target, kind, weight=weight)


# Paths


def test_a_strong_path_is_shorter_than_a_weak_one_of_as_many_relations(memory: Memory) -> None:
    a, b, c, d = (add(memory, name) for name in "abcd")
    join(memory, a, "leads_to", b, 0.5)
    join(memory, b, "leads_to", d)
    join(memory, a, "leads_to", c)
    join(memory, d, "leads_to", c)  # walked against its direction
    found = memory.routing.paths(a, d, k=5)
    assert [[node.id for node in path.nodes] for path in found.paths] == [[a, c, d], [a, b, d]]
    assert [path.length for path in found.paths] == [2.0, 2.5]
    answer = ask(memory, "graph_path", from_id=a, to_id=d)
    assert [node["id"] for node in answer["paths"][0]["nodes"]] == [a, c, d]
    assert [each["type"] for each in answer["paths"][0]["relations"]] == ["leads_to", "leads_to"]


def test_of_two_relations_between_two_nodes_the_stronger_one_is_the_way(memory: Memory) -> None:
    a, b = add(memory, "a"), add(memory, "b")
    join(memory, a, "leads_to", b, 0.2)
    join(memory, b, "supports", a, 0.8)
    [path] = memory.routing.paths(a, b).paths
    assert [each.type for each in path.relations] == [RelationType.SUPPORTS]
    assert path.length == pytest.approx(1.2)


def test_no_path_leads_through_the_session_but_one_may_end_there(memory: Memory) -> None:
    a, b = add(memory, "a"), add(memory, "b")
    assert memory.routing.paths(a, b).paths == ()
    with memory.engine.database.read() as snapshot:
        root = snapshot.nodes.root(W)
    assert root is not None
    [path] = memory.routing.paths(a, root.id).paths
    assert [each.type for each in path.relations] == [RelationType.CONTAINS]


def test_derived_relations_are_no_way_unless_asked(memory: Memory) -> None:
    a, b = add(memory, "a"), add(memory, "b")
    memory.linking.add_relation(a, b, "related_to", data={"derived": True})
    assert memory.routing.paths(a, b).paths == ()
    assert len(memory.routing.paths(a, b, derived=True).paths) == 1


def test_a_node_is_at_no_distance_from_itself_and_k_is_bounded(memory: Memory) -> None:
    a = add(memory, "a")
    [path] = memory.routing.paths(a, a).paths
    assert (path.length, [node.id for node in path.nodes], path.relations) == (0.0, [a], ())
    with pytest.raises(InvalidError, match="Valid: 1 to 20"):
        memory.routing.paths(a, a, k=21)
    other = memory.adding.add_node("fact", Fields(text="b"), workspace="v").id
    with pytest.raises(NotFoundError):
        memory.routing.paths(a, other)


def scatter(memory: Memory, seed: int, nodes: int = 9, relations: int = 16) -> list[int]:
    """A random graph, some of it not hanging together; keys."""
    rng = random.Random(seed)
    place = WorkspaceId(f"random-{seed}")
    clock: Clock = iter_clock(now())
    with memory.engine.write() as transaction:
        made = [
            transaction.nodes.insert(NodeId(new_id()), NodeType.NOTE, place, None, {"text": "x"},
                                     clock())
            for _ in range(nodes)
        ]  # fmt: skip
        for _ in range(relations):
            near, far = rng.sample(made, 2)
            kind = rng.choice([RelationType.LEADS_TO, RelationType.DEPENDS_ON])
            if transaction.relations.find(near.id, far.id, kind) is None:
                weight = rng.choice([1.0, 1.0, 0.5, 0.25])
                transaction.relations.insert(place, near.id, far.id, kind, transaction.at, weight)
    return [node.key for node in made]


def iter_clock(at: Instant) -> Clock:
    """Some nodes share their instant, so that ids decide."""
    ticks: Iterator[int] = iter(range(1_000))
    return lambda: later(at, seconds=next(ticks) // 3)


def every_path(
    lengths: dict[tuple[int, int], int], start: int, target: int
) -> list[tuple[int, list[int]]]:
    """All simple paths with their lengths, by walking them."""
    found: list[tuple[int, list[int]]] = []

    def walk(path: list[int], length: int) -> None:
        if path[-1] == target:
            found.append((length, path))
            return
        for (near, far), cost in lengths.items():
            if near == path[-1] and far not in path:
                walk([*path, far], length + cost)

    walk([start], 0)
    return found


@pytest.mark.parametrize("seed", range(12))
def test_the_k_paths_are_the_first_k_of_all_there_are(memory: Memory, seed: int) -> None:
    keys = scatter(memory, seed)
    place = WorkspaceId(f"random-{seed}")
    with memory.engine.graphs.view(memory.engine.database, place) as (snapshot, graph):
        lengths: dict[tuple[int, int], int] = {}
        for relation in snapshot.relations.iter_all(place):
            near, far = (snapshot.nodes.find(end) for end in (relation.from_id, relation.to_id))
            assert near is not None
            assert far is not None
            cost = round((2.0 - relation.weight) * UNIT)
            for pair in ((near.key, far.key), (far.key, near.key)):
                lengths[pair] = min(lengths.get(pair, cost), cost)
        rank = {key: at for at, key in enumerate(graph.order())}
        for target in keys[1:]:
            every = sorted(
                every_path(lengths, keys[0], target),
                key=lambda found: (found[0], len(found[1]), [rank[key] for key in found[1]]),
            )
            for k in (1, 4, 20):
                found, bounded = shortest_paths(graph, keys[0], target, k)
                assert not bounded
                assert [list(path.nodes) for path in found] == [path for _, path in every[:k]]
                assert [round(path.length * UNIT) for path in found] == [n for n, _ in every[:k]]
                for path in found:
                    rows = snapshot.relations.by_keys(path.relations)
                    ids = [node.id for node in snapshot.nodes.by_keys(path.nodes)]
                    for relation, ends in zip(rows, pairwise(ids), strict=True):
                        assert {relation.from_id, relation.to_id} == set(ends)


def test_the_search_ends_at_its_bound_and_says_so(memory: Memory) -> None:
    keys = scatter(memory, 99, nodes=60, relations=200)
    with memory.engine.graphs.view(memory.engine.database, WorkspaceId("random-99")) as (_, graph):
        assert shortest_paths(graph, keys[0], keys[1], 20, max_expanded=5)[1]
        assert not shortest_paths(graph, keys[0], keys[1], 20)[1]


# Impact


def test_what_lies_below_goes_stale_and_what_rests_on_it_alone_loses_support(
    memory: Memory,
) -> None:
    task = add(memory, "the plan", "task")
    step = memory.adding.decompose(task, ["a step"]).ids[0]
    finding = add(memory, "found on the way", parent=step)
    decision = add(memory, "decided by it", "decision")
    join(memory, finding, "supports", decision)
    derived = add(memory, "follows from the decision")
    join(memory, derived, "derives_from", decision)
    twice = add(memory, "stands on two", "decision")
    join(memory, finding, "supports", twice)
    join(memory, add(memory, "the other leg"), "supports", twice)
    found = memory.impacts.impact(task)
    assert [(node.id, depth) for node, depth in found.stale] == [(step, 1), (finding, 2)]
    lost = [(node.id, depth) for node, depth in found.unsupported]
    assert lost == [(decision, 3), (derived, 4)]
    answer = ask(memory, "graph_impact", node_id=task)
    assert [item["id"] for item in answer["unsupported"]] == [decision, derived]
    assert (answer["stale_total"], answer["unsupported_total"], answer["truncated"]) == (
        2,
        2,
        False,
    )


def test_support_that_is_stale_already_holds_nothing_up(memory: Memory) -> None:
    leg, other, decision = add(memory, "leg"), add(memory, "other"), add(memory, "d", "decision")
    for each in (leg, other):
        join(memory, each, "supports", decision)
    assert memory.impacts.impact(leg).unsupported == ()
    memory.mutation.update(other, Fields(), status="stale")
    assert [node.id for node, _ in memory.impacts.impact(leg).unsupported] == [decision]
    assert memory.impacts.impact(other).unsupported == ()


def test_what_falls_in_two_ways_falls_once_both_have_fallen(memory: Memory) -> None:
    base = add(memory, "base")
    left, right, top = (add(memory, name) for name in ("left", "right", "top"))
    for source, target in ((base, left), (base, right), (left, top), (right, top)):
        join(memory, source, "supports", target)
    found = memory.impacts.impact(base).unsupported
    assert [(node.id, depth) for node, depth in found] == [(left, 1), (right, 1), (top, 2)]
    assert memory.impacts.impact(left).unsupported == ()


def test_nodes_that_support_each_other_in_a_circle_stand(memory: Memory) -> None:
    base, a, b = (add(memory, name) for name in ("base", "a", "b"))
    for source, target in ((base, a), (a, b), (b, a)):
        join(memory, source, "supports", target)
    assert memory.impacts.impact(base).unsupported == ()


@pytest.mark.parametrize("seed", range(6))
def test_who_loses_support_is_the_least_fixed_point_of_the_rule(memory: Memory, seed: int) -> None:
    rng = random.Random(seed)
    ids = [add(memory, f"{seed} {n}", rng.choice(["fact", "decision"])) for n in range(14)]
    for _ in range(20):
        source, target = rng.sample(ids, 2)
        join(memory, source, rng.choice(["supports", "derives_from", "leads_to"]), target)
    for each in rng.sample(ids, 3):
        memory.mutation.update(each, Fields(), status="archived")
    with memory.engine.graphs.view(memory.engine.database, W) as (snapshot, graph):
        nodes = {node.id: node for node in snapshot.nodes.iter_all(W)}
        active = {node.key for node in nodes.values() if node.status == "active"}
        givers: dict[int, set[int]] = {}
        for relation in snapshot.relations.iter_all(W):
            near, far = nodes[relation.from_id].key, nodes[relation.to_id].key
            if relation.type is RelationType.SUPPORTS:
                givers.setdefault(far, set()).add(near)
            if relation.type is RelationType.DERIVES_FROM:
                givers.setdefault(near, set()).add(far)
        for node in nodes.values():
            fallen = {node.key}
            while True:
                more = {
                    key
                    for key, all_givers in givers.items()
                    if key in active and key not in fallen
                    if (all_givers & active) and all_givers & active <= fallen
                }
                if not more:
                    break
                fallen |= more
            found, _ = unsupported(graph, {node.key: 0})
            assert {key for key, _ in found} == fallen - {node.key}


# The commands


def cortex(memory: Memory, *arguments: str) -> str:
    line = [*arguments, "--home", str(memory.settings.home), "--workspace", "w"]
    done = CliRunner().invoke(app, line, terminal_width=120)
    assert done.exit_code == 0, done.output
    return done.stdout


def test_the_commands_say_what_the_tools_say(memory: Memory) -> None:
    a, b = add(memory, "Tokens [b]expire[/b]"), add(memory, "So clients renew", "decision")
    join(memory, a, "supports", b)
    assert f"-supports-> {b[:8]}" in cortex(memory, "path", a[:8], b[:8])
    assert "Tokens [b]expire[/b]" in cortex(memory, "path", b, a)
    assert "no path" in cortex(memory, "path", a, add(memory, "alone"))
    assert json.loads(cortex(memory, "path", a, b, "--json"))["paths"][0]["length"] == 1.0
    assert "unsupported: 1" in cortex(memory, "impact", a)
    assert json.loads(cortex(memory, "impact", a, "--json"))["unsupported"][0]["id"] == b
