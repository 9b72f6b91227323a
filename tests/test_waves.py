"""The laws of waves, and their state in the file."""

from __future__ import annotations

import json
import math
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cortex.config import load_settings
from cortex.domain import waves as law
from cortex.domain.errors import InvalidError
from cortex.domain.instants import Instant, later
from cortex.domain.waves import PLAIN, Wave
from cortex.graph.differentiation import communities, differentiation
from cortex.graph.integration import DENSE, components, integration
from cortex.graph.similarity import SimilarityGraph, from_links
from cortex.memory import Memory, open_memory
from cortex.services.fields import Fields
from cortex.services.waves import strength_at, wave_field
from tests.local import ask, run_cortex, told
from tests.parity import embedder

amplitudes = st.floats(0.0, 4.0)
phases = st.floats(-math.pi, math.pi)
spans = st.floats(0.0, 2000.0)
START = Instant("2026-05-12T20:00:00.000000Z")


class Hand:
    """A clock that is set by hand."""

    def __init__(self) -> None:
        self.now = START

    def __call__(self) -> Instant:
        return self.now

    def passes(self, **time: float) -> None:
        self.now = later(self.now, **time)


@pytest.fixture
def clock() -> Hand:
    return Hand()


@pytest.fixture
def memory(timed: Memory) -> Memory:
    return timed


@pytest.fixture
def timed(home: Path, clock: Hand) -> Iterator[Memory]:
    plain = load_settings(home=home, workspace="w", env={})
    opened = open_memory(plain, clock=clock, embedder=embedder())
    yield opened
    opened.close()


def note(memory: Memory, text: str, kind: str = "note") -> str:
    return memory.adding.add_node(kind, Fields(text=text)).id


def strength(memory: Memory, node: str) -> float:
    return memory.hybrid.waves.strength_of(node)


def sql(home: Path, statement: str, *bound: Any) -> list[Any]:
    """What a shell beside the server would see and do."""
    with closing(sqlite3.connect(home / "cortex.db")) as shell:
        rows = shell.execute(statement, bound).fetchall()
        shell.commit()
        return rows


# Laws


@given(amplitudes, spans, st.floats(1.0, 1000.0))
def test_strength_halves_with_each_half_life(amplitude: float, span: float, half: float) -> None:
    wave = Wave(amplitude, half_life=half)
    later_on = law.strength(wave, span + half, 7, span + half)
    assert later_on == pytest.approx(law.strength(wave, span, 7, span) / 2)


@given(amplitudes, amplitudes, spans)
def test_boosting_then_waiting_is_waiting_then_boosting_by_what_is_left(
    amplitude: float, amount: float, span: float
) -> None:
    boosted_first = law.reinforced(amplitude, amount) * law.decay(span)
    waited_first = law.reinforced(amplitude * law.decay(span), amount * law.decay(span))
    assert boosted_first == pytest.approx(waited_first)


@given(st.floats(0.01, 10.0), st.floats(0.01, 10.0), st.floats(-1.5, 1.5))
def test_waves_in_phase_add_and_waves_in_antiphase_take_away(
    one: float, other: float, difference: float
) -> None:
    constructive = law.interference(one, other, difference)
    destructive = law.interference(one, other, difference + math.pi)
    assert 1.0 >= constructive > 0.0 > destructive >= -1.0
    assert law.opposed(one, other, difference) == pytest.approx(destructive)


def test_equal_waves_interfere_wholly_and_a_silent_one_not_at_all() -> None:
    assert law.interference(2.0, 2.0, 0.0) == 1.0
    assert law.interference(0.0, 3.0, 0.0) == 0.0
    assert law.interference(0.0, 0.0, 0.0) == 0.0


@given(st.floats(0.0, 10.0), st.floats(0.0, 20.0), phases)
def test_no_reinforcement_leaves_the_bounds(amplitude: float, amount: float, apart: float) -> None:
    assert 0.0 <= law.reinforced(amplitude, amount, apart) <= law.MOST


@given(st.lists(phases, min_size=1))
def test_the_order_parameter_lies_between_0_and_1(angles: list[float]) -> None:
    assert 0.0 <= law.order_parameter(angles) <= 1.0


@given(phases, st.integers(1, 50))
def test_equal_phases_are_in_perfect_order(angle: float, count: int) -> None:
    assert law.order_parameter([angle] * count) == pytest.approx(1.0)


def test_opposite_phases_have_no_order() -> None:
    assert law.order_parameter([0.0, math.pi]) == pytest.approx(0.0)
    assert law.order_parameter([]) == 0.0


@given(amplitudes, st.integers(0, 10_000), spans)
def test_the_signal_never_exceeds_the_strength(amplitude: float, count: int, span: float) -> None:
    wave = Wave(amplitude)
    envelope = law.strength(wave, span, count, 0.0)
    assert abs(law.signal(envelope, law.rate(wave, count, span), 0.3, span)) <= envelope
    assert envelope <= law.MOST + law.MOST_BONUS


def test_half_of_importance_is_worth_one_half_life() -> None:
    assert law.amplitude_of(0.5) == PLAIN.amplitude
    later_on = law.strength(Wave(law.amplitude_of(1.0)), law.HALF_LIFE)
    assert later_on == law.strength(PLAIN, 0.0)


@given(phases, st.integers(-3, 3))
def test_a_wrapped_phase_is_the_same_angle(angle: float, turns: int) -> None:
    wrapped = law.wrapped(angle + 2 * math.pi * turns)
    assert -math.pi <= wrapped <= math.pi
    assert math.cos(wrapped) == pytest.approx(math.cos(angle), abs=1e-9)


# Integration and differentiation


def graph_of(*links: tuple[int, int], weight: float = 1.0) -> SimilarityGraph:
    ends = np.array(links, np.int64).reshape(-1, 2)
    return from_links(ends[:, 0], ends[:, 1], np.full(len(ends), weight))


def ring(count: int) -> SimilarityGraph:
    return graph_of(*((at, (at + 1) % count) for at in range(count)))


@pytest.mark.parametrize(
    ("links", "value"),
    [
        ([(1, 2)], 1.0),  # eigenvalues 0, 2
        ([(1, 2), (2, 3), (3, 4)], 0.5),  # a path of n: 1 − cos(π / (n − 1))
        ([(1, 2), (2, 3), (3, 4), (4, 5)], 1.0 - math.sqrt(0.5)),
        ([(1, 2), (2, 3), (1, 3)], 1.0),  # a triangle: 0, 3/2, 3/2
        ([(1, 2), (3, 4)], 0.0),
        ([], 0.0),
    ],
)
def test_integration_is_as_computed_by_hand(links: list[tuple[int, int]], value: float) -> None:
    assert integration(graph_of(*links)) == pytest.approx(value, abs=1e-12)


def test_two_halves_without_a_link_between_them_have_no_integration() -> None:
    halves = [(a, b) for first in (0, 500) for a, b in _clique(first, 40)]
    assert integration(graph_of(*halves)) == 0.0
    assert 0.0 < integration(graph_of(*halves, (0, 500))) < 0.05


def _clique(first: int, size: int) -> list[tuple[int, int]]:
    return [(first + a, first + b) for a in range(size) for b in range(a)]


def test_integration_does_not_depend_on_the_scale_of_the_weights() -> None:
    links = [(1, 2), (2, 3), (3, 4), (4, 1), (4, 5)]
    assert integration(graph_of(*links, weight=0.5)) == pytest.approx(
        integration(graph_of(*links)), abs=1e-12
    )


def test_a_large_graph_has_the_integration_of_lapack() -> None:
    random = np.random.default_rng(5)
    ends = np.unique(np.sort(random.integers(0, DENSE + 200, (DENSE * 6, 2)), axis=1), axis=0)
    ends = ends[ends[:, 0] < ends[:, 1]]
    graph = from_links(ends[:, 0], ends[:, 1], random.uniform(0.5, 1.0, len(ends)))
    degree = np.add.reduceat(graph.weight, graph.indptr[:-1])
    tail = np.repeat(np.arange(len(graph)), np.diff(graph.indptr))
    matrix = np.eye(len(graph))
    matrix[tail, graph.neighbor] -= graph.weight / np.sqrt(degree[tail] * degree[graph.neighbor])
    assert integration(graph) == pytest.approx(np.linalg.eigvalsh(matrix)[1], abs=1e-3)


def test_components_are_those_of_a_walk() -> None:
    graph = graph_of((9, 2), (2, 5), (4, 7), (8, 1), (1, 3), (3, 8))
    assert dict(zip(graph.keys.tolist(), components(graph).tolist(), strict=True)) == {
        1: 0, 3: 0, 8: 0, 2: 1, 5: 1, 9: 1, 4: 2, 7: 2,
    }  # fmt: skip


def test_a_long_chain_is_one_component() -> None:
    assert components(graph_of(*((at, at + 1) for at in range(5000)))).max() == 0


def test_cliques_joined_by_one_link_are_communities() -> None:
    graph = graph_of(*_clique(0, 6), *_clique(10, 5), (0, 10))
    assert communities(graph).tolist() == [0] * 6 + [1] * 5


def test_communities_are_the_same_each_time() -> None:
    random = np.random.default_rng(2)
    ends = random.integers(0, 300, (900, 2))
    graph = from_links(ends[:, 0], ends[:, 1], random.uniform(0.5, 1.0, 900))
    assert communities(graph).tolist() == communities(graph).tolist()


def vectors(*degrees: float) -> Any:
    angles = np.radians(degrees)
    return np.stack([np.cos(angles), np.sin(angles)], axis=1).astype(np.float32)


@pytest.mark.parametrize(
    ("groups", "degrees", "value"),
    [
        ([0, 0, 1], [0, 0, 90], 1.0),
        ([0, 1], [0, 60], 0.5),
        ([0, 1, 2], [0, 90, 180], 1.0),  # mean cosine −1/3, clipped
        ([0, 1], [20, 20], 0.0),
        ([0, 0], [0, 90], 0.0),  # one community
        ([], [], 0.0),
    ],
)
def test_differentiation_is_as_computed_by_hand(
    groups: list[int], degrees: list[float], value: float
) -> None:
    found = differentiation(np.array(groups, np.int64), vectors(*degrees), np.ones(len(groups)))
    assert found == pytest.approx(value, abs=1e-6)


def test_a_strong_memory_draws_the_centroid_of_its_community() -> None:
    groups = np.array([0, 0, 1])
    near = differentiation(groups, vectors(0, 90, 0), np.array([9.0, 1.0, 1.0]))
    far = differentiation(groups, vectors(0, 90, 0), np.array([1.0, 9.0, 1.0]))
    assert near < 0.1 < 0.8 < far


# State in the file


def test_a_plain_memory_has_no_row_and_halves_in_a_week(timed: Memory, clock: Hand) -> None:
    node = note(timed, "plain")
    assert strength(timed, node) == 1.0
    clock.passes(days=7)
    assert strength(timed, node) == 0.5
    assert sql(timed.settings.home, "SELECT * FROM waves") == []


def test_a_boost_adds_its_amount_and_decays_with_the_rest(timed: Memory, clock: Hand) -> None:
    node = note(timed, "boosted")
    clock.passes(days=7)
    done = timed.hybrid.waves.boost(node, 1.5)
    assert (done.strength_before, done.strength) == (0.5, 2.0)
    clock.passes(days=14)
    assert strength(timed, node) == 0.5


def test_reading_changes_strength_and_writes_nothing_but_a_count(
    timed: Memory, clock: Hand
) -> None:
    node = note(timed, "opened often")
    before = sql(timed.settings.home, "SELECT * FROM nodes")
    for _ in range(8):
        timed.reading.get([node])
    timed.history.flush(5.0)
    assert strength(timed, node) == pytest.approx(1.5)
    assert sql(timed.settings.home, "SELECT * FROM nodes") == before
    assert sql(timed.settings.home, "SELECT * FROM waves") == []


def test_a_boost_does_not_move_updated_at(timed: Memory, clock: Hand) -> None:
    node = note(timed, "as it was")
    before = timed.reading.whole(node).updated_at
    clock.passes(hours=1)
    timed.hybrid.waves.boost(node)
    assert timed.reading.whole(node).updated_at == before


@pytest.mark.parametrize("amount", [0.0, -1.0, 10.1, math.nan])
def test_a_boost_out_of_range_is_refused(memory: Memory, amount: float) -> None:
    node = note(memory, "x")
    with pytest.raises(InvalidError, match="out of range"):
        memory.hybrid.waves.boost(node, amount)


def test_a_repeated_boost_under_its_key_is_done_once(memory: Memory) -> None:
    node = note(memory, "x")
    first = memory.hybrid.waves.boost(node, 1.0, key="k")
    assert memory.hybrid.waves.boost(node, 1.0, key="k") == first
    assert strength(memory, node) == pytest.approx(2.0, abs=1e-3)


def test_every_edit_of_a_wave_is_logged_with_the_row_before_it(timed: Memory) -> None:
    node = note(timed, "logged")
    timed.hybrid.waves.boost(node, 1.0)
    timed.hybrid.waves.boost(node, 0.3)
    timed.mutation.delete(node)
    rows = sql(
        timed.settings.home,
        "SELECT op, workspace_id, before FROM changes WHERE entity = 'wave' ORDER BY seq",
    )
    assert [row[:2] for row in rows] == [("insert", "w"), ("update", "w"), ("delete", "w")]
    assert float(json.loads(rows[2][2])["amplitude"]) == 2.3
    assert sql(timed.settings.home, "SELECT * FROM waves") == []


def test_undo_takes_a_boost_back_and_redo_gives_it_again(timed: Memory) -> None:
    node = note(timed, "undone")
    timed.hybrid.waves.boost(node, 1.0)
    timed.hybrid.waves.boost(node, 0.7)
    timed.undoing.undo(1)
    assert strength(timed, node) == 2.0
    timed.undoing.undo(1)
    assert strength(timed, node) == 1.0
    timed.undoing.undo(1, redo=True)
    assert strength(timed, node) == 2.0


def test_undoing_a_deletion_brings_the_wave_back(timed: Memory) -> None:
    node = note(timed, "gone and back")
    timed.hybrid.waves.boost(node, 2.123456789)
    timed.mutation.delete(node)
    timed.undoing.undo(1)
    assert strength(timed, node) == 1.0 + 2.123456789


def test_a_shell_can_write_no_wave_without_a_node_and_none_out_of_range(memory: Memory) -> None:
    note(memory, "x")
    home = memory.settings.home
    key = sql(home, "SELECT MAX(rowkey) FROM nodes")[0][0]
    put = "INSERT INTO waves(node_key, amplitude, half_life, at) VALUES (?, ?, ?, ?)"
    for bad in ((key + 1, 1.0, 1.0), (key, 11.0, 1.0), (key, 1.0, 0.0)):
        with pytest.raises(sqlite3.IntegrityError):
            sql(home, put, *bad, START)
    sql(home, put, key, 1.0, 1.0, START)
    logged = sql(home, "SELECT actor, op FROM changes WHERE entity = 'wave'")
    assert logged == [("shell", "insert")]
    with pytest.raises(sqlite3.IntegrityError):
        sql(home, put.replace("INSERT", "INSERT OR REPLACE"), key, 2.0, 1.0, START)


def test_the_field_of_many_is_the_law_of_each(timed: Memory, clock: Hand) -> None:
    nodes = [note(timed, f"number {at}") for at in range(5)]
    timed.hybrid.waves.boost(nodes[1], 3.0)
    for _ in range(3):
        timed.reading.get([nodes[2]])
    timed.history.flush(5.0)
    clock.passes(days=3)
    with timed.engine.database.read() as snapshot:
        states = list(snapshot.waves.iter_active(timed.settings.workspace))
    field = wave_field(states, clock.now)
    assert field.strength() == pytest.approx([strength_at(s, clock.now) for s in states])
    assert field.order_parameter() == law.order_parameter(field.phase.tolist())
    expected = [
        law.signal(strength_at(s, clock.now), law.rate(s.wave, s.accesses, 72.0), 0.0, 72.0)
        for s in states
    ]
    assert field.signal() == pytest.approx(expected)


# What follows strength


def test_followers_pass_over_logged_waves(timed: Memory) -> None:
    node = note(timed, "followed")
    timed.indexing.wait(None, 60)
    timed.reading.traverse(node)
    graph = ask(timed, "graph_get_node", node_id=node)
    timed.hybrid.waves.boost(node)
    again = ask(timed, "graph_get_node", node_id=node)
    assert {**again, "generation": 0} == {**graph, "generation": 0}
    assert again["generation"] == graph["generation"] + 1
    timeline = ask(timed, "session_timeline")["events"]
    assert {event["kind"] for event in timeline} <= {"created", "traverse", "open", "related"}


def test_a_boosted_memory_comes_first_among_the_cold_ones(timed: Memory, clock: Hand) -> None:
    nodes = [note(timed, f"number {at}") for at in range(4)]
    timed.viewport.focus(nodes[3])
    timed.hybrid.waves.boost(nodes[0], 2.0)
    clock.passes(days=1)
    newest = note(timed, "the newest")
    ids = [node["id"] for node in ask(timed, "desktop_open")["cold"]]
    assert ids[0] == nodes[0]
    assert ids.index(newest) < ids.index(nodes[1])


def test_of_memories_opened_as_often_the_newest_are_the_likely_strongest(timed: Memory) -> None:
    nodes = [note(timed, f"number {at}") for at in range(6)]
    timed.reading.get(nodes)
    timed.reading.get([nodes[1]])
    timed.history.flush(5.0)
    with timed.engine.database.read() as snapshot:
        keys = snapshot.waves.likely(timed.settings.workspace, 3)
        found = {node.id for node in snapshot.nodes.by_keys(keys)}
    assert found == {nodes[1], nodes[5], nodes[4]}


def test_what_was_opened_long_ago_stands_behind_what_is_new(timed: Memory, clock: Hand) -> None:
    old, focus = note(timed, "opened once"), note(timed, "in focus")
    timed.reading.get([old])
    timed.viewport.focus(focus)
    clock.passes(days=5)
    new = note(timed, "new")
    ids = [node["id"] for node in ask(timed, "desktop_open")["cold"]]
    assert ids.index(new) < ids.index(old)


def test_pages_of_cold_memories_show_each_once(timed: Memory, clock: Hand) -> None:
    nodes = []
    for at in range(60):
        nodes.append(note(timed, f"number {at}"))
        clock.passes(hours=1)
    timed.viewport.focus(nodes[5])
    for at in (3, 30, 50):
        timed.hybrid.waves.boost(nodes[at], 1.0)
    seen: list[str] = []
    cursor = None
    while True:
        desktop = timed.viewport.open(None, cursor=cursor, page=7)
        seen += [node.id for node in desktop.cold]
        cursor = desktop.next_cursor
        if cursor is None:
            break
    assert sorted(seen) == sorted(set(nodes) - {nodes[5]})


def test_a_strong_memory_is_archived_later(home: Path, clock: Hand) -> None:
    from dataclasses import replace

    settings = replace(load_settings(home=home, workspace="w", env={}), keep_newest=1)
    memory = open_memory(settings, clock=clock, embedder=embedder())
    plain, strong = note(memory, "plain"), note(memory, "strong")
    memory.hybrid.waves.boost(strong, 1.0)
    statuses = []
    for _ in range(2):
        clock.passes(days=10)
        note(memory, "life goes on")
        memory.viewport.open(None)
        statuses.append([memory.reading.whole(node).status.value for node in (plain, strong)])
    memory.close()
    assert statuses == [["archived", "active"], ["archived", "archived"]]


# For people


def test_observe_shows_sparklines_and_numbers(home: Path) -> None:
    plain = load_settings(home=home, workspace="w", env={})
    memory = open_memory(plain, embedder=embedder())
    node = note(memory, "Redis holds the sessions")
    memory.hybrid.waves.boost(node, 4.0)
    assert "strength: mean 5.00" in told(memory, "observe")
    memory.close()
    shown = run_cortex(home, "observe", "--workspace", "w")
    assert "order parameter R  1.000" in shown
    assert "█" in shown
    assert "strengthened" in shown
    seen = json.loads(run_cortex(home, "observe", "--workspace", "w", "--json"))
    assert seen["strength"]["counts"] == [0, 0, 0, 0, 0, 0, 1]
