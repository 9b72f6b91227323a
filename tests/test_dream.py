"""Dreams: planned, applied, repeated, undone; what they may touch and what they may not."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bench.dreamers import DAYS, START, write_dreamer
from cortex.config import load_settings
from cortex.domain.dreams import LITE, STEPS
from cortex.domain.errors import InvalidError
from cortex.domain.instants import Instant, later, render
from cortex.domain.taxonomy import RelationType
from cortex.domain.values import WorkspaceId
from cortex.domain.waves import Wave
from cortex.memory import Memory, open_memory
from cortex.services.dreaming.applying import write_plan
from cortex.services.dreaming.dreaming import Dreamt
from cortex.services.dreaming.planning import plan_dream
from cortex.services.fields import Fields
from tests.harness import call, connected
from tests.local import ask, run_cortex, told
from tests.parity import embedder

W = WorkspaceId("w")
TABLES = {
    "nodes": "SELECT * FROM nodes ORDER BY rowkey",
    "relations": "SELECT * FROM relations ORDER BY rowkey",
    "waves": "SELECT * FROM waves ORDER BY node_key",
    "accesses": "SELECT * FROM accesses ORDER BY node_key",
    "tallies": "SELECT * FROM tallies WHERE nodes > 0 ORDER BY workspace_id, status",
    "keywords": "SELECT rowid, title, body FROM keywords ORDER BY rowid",
}
REDIS = (
    "The billing-api uses Redis for caching of sessions",
    "Redis keeps the sessions of the billing API in its cache",
    "Sessions of the billing API are cached in Redis for one hour",
    "The Redis cache of the billing API holds user sessions",
)
CATS = ("Cats sleep most of the day", "A cat sleeps sixteen hours a day", "Most cats sleep all day")


class Hand:
    """A clock that is set by hand."""

    def __init__(self, now: Instant) -> None:
        self.now = now

    def __call__(self) -> Instant:
        return self.now

    def passes(self, **time: float) -> None:
        self.now = later(self.now, **time)


@pytest.fixture
def clock() -> Hand:
    return Hand(Instant("2026-05-12T20:00:00.000000Z"))


@pytest.fixture
def memory(home: Path, clock: Hand) -> Iterator[Memory]:
    """On the real file; the real model is one for all tests."""
    opened = open_memory(
        load_settings(home=home, workspace="w", env={}), clock=clock, embedder=embedder()
    )
    yield opened
    opened.close()


@pytest.fixture
def sleeper(home: Path) -> Iterator[Memory]:
    """300 memories of 20 subjects over two years, linked; nothing is embedded."""
    opened = asleep(home)
    write_dreamer(opened.engine.database, 300, 20, workspace=W, dimension=32)
    yield opened
    opened.close()


def asleep(home: Path) -> Memory:
    clock = Hand(render(START))
    clock.passes(days=DAYS)
    opened = open_memory(load_settings(home=home, workspace="w", env={}), clock=clock)
    opened.engine.after_write = lambda: None
    return opened


def rows(memory: Memory) -> dict[str, list[tuple[Any, ...]]]:
    """Every row of the truth, byte for byte, and every keyword row."""
    with closing(sqlite3.connect(memory.settings.database)) as shell:
        return {name: shell.execute(statement).fetchall() for name, statement in TABLES.items()}


def dream(memory: Memory, mode: str = "apply", depth: str = "deep") -> Dreamt:
    return memory.dreaming.dream(mode, depth)


def by_step(done: Dreamt, step: str) -> list[dict[str, Any]]:
    return [change for change in done.changes if change["step"] == step]


def note(memory: Memory, text: str, kind: str = "note", **fields: Any) -> str:
    return memory.adding.add_node(kind, Fields(text=text, **fields)).id


def told_all(memory: Memory) -> list[str]:
    """Seven memories of two subjects, with their vectors."""
    ids = [note(memory, text) for text in (*REDIS, *CATS)]
    assert memory.indexing.wait(None, 60) == 0
    return ids


def patterns(memory: Memory) -> list[Any]:
    with memory.engine.database.read() as snapshot:
        return snapshot.dreams.patterns(W)


# Laws


@pytest.mark.parametrize("depth", ["lite", "deep"])
def test_a_plan_writes_nothing(sleeper: Memory, depth: str) -> None:
    before = rows(sleeper)
    assert dream(sleeper, "plan", depth).total > 0
    assert rows(sleeper) == before


@pytest.mark.parametrize("depth", ["lite", "deep"])
def test_what_is_planned_is_what_is_applied(sleeper: Memory, depth: str) -> None:
    planned, applied = dream(sleeper, "plan", depth), dream(sleeper, "apply", depth)
    assert applied.changes == planned.changes
    assert applied.tx is not None
    assert planned.tx is None


@settings(max_examples=6, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.integers(0, 10**6), st.booleans(), st.sampled_from([(60, 5), (120, 40), (150, 8)]))
def test_applied_twice_is_applied_once(
    tmp_path_factory: pytest.TempPathFactory, seed: int, linked: bool, size: tuple[int, int]
) -> None:
    memory = asleep(tmp_path_factory.mktemp("twice"))
    count, subjects = size
    write_dreamer(
        memory.engine.database, count, subjects, seed, workspace=W, dimension=24, linked=linked
    )
    try:
        assert dream(memory).total > 0
        before = rows(memory)
        for depth in ("deep", "lite"):
            assert dream(memory, "apply", depth).changes == []
        assert rows(memory) == before
    finally:
        memory.close()


def test_a_lite_dream_applied_twice_is_applied_once_and_leaves_the_rest_to_a_deep_one(
    sleeper: Memory,
) -> None:
    first = dream(sleeper, "apply", "lite")
    assert {change["step"] for change in first.changes} <= LITE
    assert dream(sleeper, "apply", "lite").total == 0
    assert dream(sleeper).total > 0
    assert dream(sleeper, "apply", "lite").total == 0


def test_a_holiday_gives_a_dream_nothing_to_do(home: Path) -> None:
    memory = asleep(home)
    write_dreamer(memory.engine.database, 100, 8, workspace=W, dimension=24)
    dream(memory)
    clock = memory.engine.database.clock
    assert isinstance(clock, Hand)
    clock.passes(days=400)
    assert dream(memory).total == 0
    memory.close()


def test_undo_restores_every_row_byte_for_byte_and_redo_gives_it_back(sleeper: Memory) -> None:
    before = rows(sleeper)
    dream(sleeper)
    after = rows(sleeper)
    sleeper.undoing.undo()
    assert rows(sleeper) == before
    sleeper.undoing.undo(redo=True)
    assert rows(sleeper) == after


def test_after_an_undo_the_same_dream_is_dreamt(sleeper: Memory) -> None:
    first = dream(sleeper)
    sleeper.undoing.undo()
    assert dream(sleeper).changes == first.changes


def test_every_change_has_its_step_its_row_and_its_reason(sleeper: Memory) -> None:
    done = dream(sleeper, "plan")
    assert sum(done.steps.values()) == done.total == len(done.changes)
    assert list(done.steps) == list(STEPS)
    for change in done.changes:
        assert change["reason"]
        assert change["before"] != change["after"]
        assert ("node_id" in change) != ("relation" in change)


# What is never lost


def test_a_dream_removes_no_node_and_no_stated_relation(sleeper: Memory) -> None:
    before = rows(sleeper)
    dream(sleeper)
    after = rows(sleeper)
    assert {row[1] for row in before["nodes"]} <= {row[1] for row in after["nodes"]}
    assert {row[1] for row in before["relations"]} <= {row[1] for row in after["relations"]}


def test_no_text_title_or_date_of_a_memory_moves(sleeper: Memory) -> None:
    def told_of(node: tuple[Any, ...]) -> tuple[Any, ...]:
        return (*node[1:6], *node[7:])  # all but the status

    before = {told_of(node) for node in rows(sleeper)["nodes"]}
    dream(sleeper)
    assert before <= {told_of(node) for node in rows(sleeper)["nodes"]}


def test_by_default_sixty_days_and_their_dreams_lose_no_row_and_add_none(
    memory: Memory, clock: Hand
) -> None:
    told_all(memory)
    ask(memory, "desktop_open")
    with memory.engine.database.read() as snapshot:
        before = snapshot.nodes.count(W)
    for day in range(60):
        clock.passes(days=1)
        ask(memory, "desktop_open")
        if day % 7 == 6:
            ask(memory, "dream", mode="apply")
    with memory.engine.database.read() as snapshot:
        assert snapshot.nodes.count(W) == before
    assert ask(memory, "dream", mode="apply")["changes"] == []


def faint_world(memory: Memory, clock: Hand) -> dict[str, str]:
    """A hundred days ago these were made; a hundred others since, the last one today."""
    ids = {
        "plain": note(memory, "Nothing supports this plain remark"),
        "goal": note(memory, "We want to be done", "goal"),
        "constraint": note(memory, "Never on a Friday", "constraint"),
        "pinned": note(memory, "Kept on the desktop", pinned=True),
        "focused": note(memory, "Looked at just now"),
        "task": note(memory, "A task is no memory", "task"),
        "boosted": note(memory, "Valued highly"),
    }
    memory.hybrid.waves.boost(ids["boosted"], 9.0)
    with memory.engine.write() as transaction:
        node = transaction.nodes.find(ids["boosted"])
        assert node is not None
        transaction.waves.put(node.key, Wave(10.0, half_life=8760.0), transaction.at)
    clock.passes(days=100)
    for at in range(100):
        note(memory, f"Number {at}", "task")
    ask(memory, "desktop_focus", node_id=ids["focused"])
    return ids


def test_what_is_faint_idle_and_alone_is_archived_and_nothing_else(
    memory: Memory, clock: Hand
) -> None:
    memory.engine.after_write = lambda: None
    ids = faint_world(memory, clock)
    done = dream(memory)
    assert [change["node_id"] for change in by_step(done, "prune")] == [ids["plain"]]
    assert memory.reading.whole(ids["plain"]).status.value == "archived"


def test_what_its_neighbours_support_is_not_archived_however_faint(
    memory: Memory, clock: Hand
) -> None:
    ids = told_all(memory)
    clock.passes(days=100)
    for at in range(110):
        note(memory, f"Number {at}", "task")
    assert by_step(dream(memory, "plan"), "prune") == []
    assert memory.hybrid.waves.strength_of(ids[0]) < 1 / 16


# Waves


def test_supported_memories_are_strengthened_and_a_stronger_one_stays(memory: Memory) -> None:
    ids = told_all(memory)
    memory.hybrid.waves.boost(ids[0], 5.0)
    raised = {change["node_id"] for change in by_step(dream(memory), "strengthen")}
    assert raised == set(ids[1:])
    assert memory.hybrid.waves.strength_of(ids[0]) == pytest.approx(6.0, abs=1e-3)


def test_what_somebody_let_fade_stays_faded(memory: Memory) -> None:
    ids = told_all(memory)
    memory.hybrid.forgetting.forget(ids[0], "decay")
    done = dream(memory)
    assert ids[0] not in {change["node_id"] for change in by_step(done, "strengthen")}
    assert memory.hybrid.waves.strength_of(ids[0]) == pytest.approx(0.5, abs=1e-3)


def test_a_memory_that_proved_itself_lives_longer_from_now_on_and_is_no_stronger_now(
    memory: Memory, clock: Hand
) -> None:
    memory.engine.after_write = lambda: None
    node = note(memory, "Opened now and then")
    for _ in range(5):
        memory.reading.get([node])
    memory.history.flush(5.0)
    clock.passes(days=40)
    note(memory, "today", "task")
    before = memory.hybrid.waves.strength_of(node)
    [change] = by_step(dream(memory, "apply", "deep"), "transfer")
    assert change["before"]["half_life"] == 168.0
    assert change["after"]["half_life"] == 8760.0
    with memory.engine.database.read() as snapshot:
        found = snapshot.nodes.find(node)
        assert found is not None
        state = snapshot.waves.of_keys([found.key])[found.key]
    assert state.wave.amplitude == pytest.approx(2 ** (-40 / 7), rel=1e-6)
    assert memory.hybrid.waves.strength_of(node) >= before


def test_nothing_becomes_semantic_that_was_never_opened(memory: Memory, clock: Hand) -> None:
    told_all(memory)
    clock.passes(days=40)
    note(memory, "today", "task")
    earned = {change["after"]["half_life"] for change in by_step(dream(memory), "transfer")}
    assert earned == {720.0}


def test_memories_of_one_subject_come_into_step(memory: Memory, clock: Hand) -> None:
    for text in REDIS:
        note(memory, text)
        clock.passes(days=60)
    assert memory.indexing.wait(None, 60) == 0
    phases = [change["after"] for change in by_step(dream(memory), "sync")]
    assert len(phases) == 4
    assert max(phases) - min(phases) < 0.1


def test_a_contradiction_is_the_worst_pair_and_stays_undecided(memory: Memory) -> None:
    one, other = note(memory, REDIS[0]), note(memory, "The billing-api uses no cache")
    memory.linking.add_relation(one, other, "contradicts")
    done = dream(memory)
    [worst] = done.pairs["worst"]
    assert set(worst["nodes"]) == {one, other}
    assert worst["contradicts"] is True
    assert worst["interference"] == pytest.approx(-1.0, abs=1e-3)
    assert {memory.reading.whole(node).status.value for node in (one, other)} == {"active"}


# Patterns and links


def test_each_subject_becomes_one_pattern_of_its_own_sentences(memory: Memory) -> None:
    ids = told_all(memory)
    dream(memory)
    found = patterns(memory)
    assert len(found) == 2
    for node in found:
        assert set(node.text.split("\n")) <= {*REDIS, *CATS}
        assert node.data["derived"] is True
        with memory.engine.database.read() as snapshot:
            ties = snapshot.relations.outgoing(node.id, (RelationType.DERIVES_FROM,))
        assert {tie.to_id for tie in ties} in (set(ids[:4]), set(ids[4:]))
        assert all(tie.derived for tie in ties)


def test_a_subject_that_grows_renews_its_pattern(memory: Memory, clock: Hand) -> None:
    told_all(memory)
    dream(memory)
    before = {node.id for node in patterns(memory)}
    clock.passes(hours=1)
    new = note(memory, "Redis caches the user sessions of our billing API")
    assert memory.indexing.wait(None, 60) == 0
    changes = by_step(dream(memory), "bundle")
    assert {node.id for node in patterns(memory)} == before
    ties = [each["relation"]["to_id"] for each in changes if "relation" in each]
    assert ties == [new]
    assert dream(memory).total == 0


def test_a_pattern_that_somebody_wrote_in_or_put_away_is_left_so(memory: Memory) -> None:
    told_all(memory)
    dream(memory)
    one, other = patterns(memory)
    memory.mutation.update(one.id, Fields(text="In my own words"))
    memory.hybrid.forgetting.forget(other.id, "archive")
    memory.indexing.wait(None, 60)
    before = rows(memory)
    assert dream(memory).total == 0
    assert rows(memory) == before


def test_a_pattern_outlives_the_archiving_of_its_memories(memory: Memory, clock: Hand) -> None:
    ids = told_all(memory)
    dream(memory)
    for node in ids:
        memory.hybrid.forgetting.forget(node, "archive")
    dream(memory)
    assert {node.status.value for node in patterns(memory)} == {"active"}


def rewrite(memory: Memory, nodes: list[str], texts: tuple[str, ...]) -> None:
    """Other texts for these memories, read and linked."""
    for node, text in zip(nodes, texts, strict=True):
        memory.mutation.update(node, Fields(text=text))
    assert memory.indexing.wait(None, 60) == 0
    memory.hybrid.following.catch_up()


def test_a_pattern_whose_memories_scatter_turns_stale_and_comes_back_with_them(
    memory: Memory,
) -> None:
    ids = told_all(memory)
    dream(memory)
    rewrite(memory, ids[:2], ("Cats sleep a lot during the day", "Any cat sleeps all day long"))
    assert "stale" in [change["after"] for change in by_step(dream(memory), "bundle")]
    assert sorted(node.status.value for node in patterns(memory)) == ["active", "stale"]
    assert dream(memory).total == 0
    rewrite(memory, ids[:2], REDIS[:2])
    dream(memory)
    assert [node.status.value for node in patterns(memory)] == ["active", "active"]
    assert dream(memory).total == 0


def test_what_the_follower_does_after_a_dream_gives_the_next_nothing_to_do(home: Path) -> None:
    plain = load_settings(home=home, workspace="w", env={})
    chosen = replace(plain, waves=replace(plain.waves, neighbours="on"))
    memory = open_memory(chosen, embedder=embedder())
    told_all(memory)
    memory.hybrid.following.catch_up()
    assert by_step(dream(memory), "replay") == []
    assert memory.indexing.wait(None, 60) == 0
    memory.hybrid.following.catch_up()  # it links the patterns too
    assert dream(memory).total == 0
    memory.close()


def test_subjects_that_nothing_joins_are_wired_and_the_link_is_no_neighbour(
    memory: Memory,
) -> None:
    told_all(memory)
    for text in ("The gateway checks JWT tokens", "JWT tokens are verified by the API gateway",
                 "Requests with a bad JWT are refused by the gateway"):  # fmt: skip
        note(memory, text)
    assert memory.indexing.wait(None, 60) == 0
    [link] = by_step(dream(memory), "wire")
    one, other = link["relation"]["from_id"], link["relation"]["to_id"]
    plain = ask(memory, "find_related", node_id=one, depth=1)["nodes"]
    assert other not in {node["id"] for node in plain}
    derived = ask(memory, "find_related", node_id=one, depth=1, include_derived=True)["nodes"]
    assert other in {node["id"] for node in derived}
    assert dream(memory).total == 0


def test_where_links_are_off_none_is_made(home: Path) -> None:
    plain = load_settings(home=home, workspace="w", env={})
    chosen = replace(plain, waves=replace(plain.waves, neighbours="off"))
    memory = open_memory(chosen, embedder=embedder())
    told_all(memory)
    done = dream(memory)
    assert by_step(done, "replay") == []
    assert any("CORTEX_NEIGHBOURS is off" in each for each in done.notes)
    memory.close()


def test_a_stated_relation_between_neighbours_is_not_written_over(memory: Memory) -> None:
    one, other = note(memory, REDIS[0]), note(memory, REDIS[1])
    memory.linking.add_relation(one, other, "related_to", weight=0.3)
    assert memory.indexing.wait(None, 60) == 0
    assert dream(memory).total == 0


# Beside other writers


def test_a_row_that_changed_since_the_plan_is_left_alone(sleeper: Memory) -> None:
    plan = plan_dream(sleeper.engine, W, "deep")
    touched = plan.waves[0].key
    with sleeper.engine.write() as transaction:
        transaction.waves.put(touched, Wave(7.0), transaction.at)
        [node] = transaction.nodes.by_keys([touched])
    with sleeper.engine.write() as transaction:
        made = write_plan(transaction, plan)
    assert len(made) < len(plan.changes)
    assert node.id not in {change.subject for change in made}
    with sleeper.engine.database.read() as snapshot:
        assert snapshot.waves.of_keys([touched])[touched].wave.amplitude == 7.0


def test_a_memory_deleted_since_the_plan_takes_nothing_with_it(memory: Memory) -> None:
    ids = told_all(memory)
    plan = plan_dream(memory.engine, W, "deep")
    memory.mutation.delete(ids[0])
    with memory.engine.write() as transaction:
        made = write_plan(transaction, plan)
    assert 0 < len(made) < len(plan.changes)
    assert all(ids[0] not in change.subject for change in made)
    dream(memory)
    assert dream(memory).total == 0


def test_two_dreams_planned_at_once_write_each_change_once(sleeper: Memory) -> None:
    plans = [plan_dream(sleeper.engine, W, "deep") for _ in range(2)]
    made = []
    for plan in plans:
        with sleeper.engine.write() as transaction:
            made.append(write_plan(transaction, plan))
    assert (len(made[0]), made[1]) == (len(plans[0].changes), ())


# Faces


def test_an_empty_workspace_dreams_of_nothing(memory: Memory) -> None:
    done = ask(memory, "dream", mode="apply", depth="deep", workspace_id="nowhere")
    assert (done["changes"], done["tx"], done["total"]) == ([], None, 0)
    with memory.engine.database.read() as snapshot:
        assert snapshot.nodes.workspaces() == []


@pytest.mark.parametrize(("mode", "depth"), [("rem", "lite"), ("plan", "abyssal")])
def test_an_unknown_mode_or_depth_is_refused_with_the_valid_ones(
    memory: Memory, mode: str, depth: str
) -> None:
    with pytest.raises(InvalidError, match="Valid"):
        memory.dreaming.dream(mode, depth)


def test_a_repeated_apply_under_its_key_gives_its_answer_again(sleeper: Memory) -> None:
    first = sleeper.dreaming.dream("apply", "deep", key="k")
    assert first.total > 0
    assert sleeper.dreaming.dream("apply", "deep", key="k") == first


def test_the_answer_is_bounded_and_says_how_much_there_is(sleeper: Memory) -> None:
    seen = ask(sleeper, "dream", depth="deep")
    assert len(json.dumps(seen, ensure_ascii=False)) < 26_000
    assert len(seen["changes"]) < seen["total"]
    assert seen["truncated"] is True
    assert len(told(sleeper, "dream", depth="deep")) <= 8_000


def test_the_command_plans_first_and_prints_every_change(sleeper: Memory) -> None:
    planned = dream(sleeper, "plan")
    home = sleeper.settings.home
    sleeper.close()
    seen = json.loads(run_cortex(home, "dream", "--deep", "--json", "-w", "w"))
    assert seen["changes"] == planned.changes
    applied = run_cortex(home, "dream", "--deep", "--apply", "-w", "w")
    assert f"changed {planned.total}" in applied
    assert "changed nothing" in run_cortex(home, "dream", "--deep", "--apply", "-w", "w")


@pytest.mark.anyio
async def test_a_client_that_asks_hears_how_far_a_dream_has_come(home: Path) -> None:
    memory = asleep(home)
    write_dreamer(memory.engine.database, 100, 8, workspace=W, dimension=24)
    memory.close()
    heard: list[tuple[float, float | None, str | None]] = []

    async def hear(done: float, total: float | None, message: str | None) -> None:
        heard.append((done, total, message))

    async with connected(home, "--tools", "hybrid") as client:
        arguments = {"mode": "apply", "depth": "deep"}
        done = await client.call_tool("dream", arguments, progress_callback=hear)
        assert not done.is_error
        assert (await call(client, "dream", mode="apply", depth="deep"))["total"] == 0
    steps = [each[0] for each in heard]
    assert steps == sorted(set(steps))
    assert heard[-1][0] == heard[-1][1]
    assert any("bundle" in (each[2] or "") for each in heard)
