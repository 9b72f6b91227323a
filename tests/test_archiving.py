"""Archiving: it happens behind the opening, in steps, and by the same rule as it is told of."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cortex.config import load_settings
from cortex.domain.instants import Instant, before, later
from cortex.domain.values import WorkspaceId
from cortex.graph.graphs import Graphs
from cortex.memory import Memory, open_memory
from cortex.services import archiving
from cortex.services.archiving import GOING_ON, SKIPPED, STEP, Archiver, Terms
from cortex.services.engine import Engine
from cortex.services.fields import Fields
from tests.worker_world import ACTORS, PLACES, Life

W = WorkspaceId("w")
OLD = 230
IDLE = OLD - 99  # beside the newest hundred, of which the one of the last day is


class Hand:
    """A clock that is set by hand."""

    now = Instant("2026-01-10T09:00:00.000000Z")

    def __call__(self) -> Instant:
        return self.now


def opened(home: Path, clock: Hand) -> Memory:
    return open_memory(load_settings(home=home, workspace=W, env={}), clock=clock)


@pytest.fixture
def clock() -> Hand:
    return Hand()


@pytest.fixture
def memory(tmp_path: Path, clock: Hand) -> Iterator[Memory]:
    """A month of absence after many notes, and one note today."""
    with closing(opened(tmp_path / "home", clock)) as memory:
        memory.viewport.open(None)
        memory.viewport.drain()
        for number in range(OLD):
            clock.now = later(clock.now, seconds=1)
            memory.adding.add_node("note", Fields(text=f"old {number}"))
        clock.now = later(clock.now, days=30)
        memory.adding.add_node("note", Fields(text="today"))
        yield memory


def archived(memory: Memory) -> int:
    return memory.viewport.open(None).archive.count


def test_an_opening_does_not_wait_for_all_and_says_what_goes_on(
    memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(archiving, "_MOMENT", 0.0)
    desktop = memory.viewport.open(None)
    assert desktop.archived_now < IDLE
    assert desktop.notes == (GOING_ON,)
    memory.viewport.drain()
    told = [memory.viewport.open(None) for _ in range(2)]
    assert [each.archived_now for each in told] == [IDLE - desktop.archived_now, 0]
    assert [each.notes for each in told] == [(), ()]


def test_the_day_s_first_opening_shows_a_small_memory_tidy(
    memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(archiving, "_MOMENT", 30.0)
    desktop = memory.viewport.open(None)
    assert (desktop.archived_now, desktop.archive.count) == (IDLE, IDLE)
    assert desktop.notes == ()


def test_nothing_is_archived_twice_a_day(memory: Memory, clock: Hand) -> None:
    memory.viewport.open(None)
    memory.viewport.drain()
    memory.adding.add_node("note", Fields(text="another"))
    memory.viewport.open(None)
    memory.viewport.drain()
    assert archived(memory) == IDLE
    clock.now = later(clock.now, days=1)
    memory.viewport.open(None)
    memory.viewport.drain()
    assert archived(memory) == IDLE + 1


def test_a_process_that_ends_at_once_has_archived_one_step(
    memory: Memory, clock: Hand, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(archiving, "_MOMENT", 0.0)
    memory.viewport.open(None)
    memory.close()
    with closing(opened(memory.settings.home, clock)) as again:
        assert archived(again) == STEP


def test_another_process_does_not_archive_again_that_day(memory: Memory, clock: Hand) -> None:
    memory.viewport.open(None)
    memory.viewport.drain()
    with closing(opened(memory.settings.home, clock)) as other:
        assert other.viewport.open(None).notes == ()


def test_archiving_is_skipped_and_said_while_another_writer_holds_the_memory_and_then_done(
    memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(archiving, "_WAIT", 0.1)
    with closing(sqlite3.connect(memory.settings.database, isolation_level=None)) as shell:
        shell.execute("BEGIN IMMEDIATE")
        memory.viewport.open(None)
        memory.viewport.drain()
        shell.execute("ROLLBACK")
    assert SKIPPED in memory.viewport.open(None).notes
    memory.viewport.drain()
    assert memory.viewport.open(None).notes == ()
    assert archived(memory) == IDLE


def test_a_node_that_gets_a_child_while_archiving_goes_on_stays(
    memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(archiving, "PIECE", 10)
    with memory.engine.database.read() as snapshot:
        rows = snapshot.archiving.old(W, Instant("2027"), ("", ""), 50)
    parent = rows[40][2]
    steps = memory.viewport._archiver._iter_idle(W, terms_of(memory))
    found = [*next(steps)]
    memory.adding.add_node("note", Fields(text="below"), parent=parent)
    found += [key for keys in steps for key in keys]
    assert rows[39][0] in found
    assert rows[40][0] not in found


def terms_of(memory: Memory) -> Terms:
    with memory.engine.database.read() as snapshot:
        terms = archiving.archive_terms(snapshot, W, memory.settings)
    assert terms is not None
    return terms


def test_what_archiving_did_is_nobody_s_last_session(memory: Memory) -> None:
    memory.viewport.open(None)
    memory.viewport.drain()
    assert memory.viewport.open(None).last_session is None


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 1 << 30), st.integers(0, 5), st.integers(0, 20), st.integers(1, 7))
def test_what_is_found_in_pieces_is_what_is_found_at_once(
    tmp_path_factory: pytest.TempPathFactory, seed: int, keep: int, days: int, piece: int
) -> None:
    life = Life(tmp_path_factory.mktemp("life"), seed)
    life.live(25)
    config = load_settings(home=life.file.parent, env={})
    archiver = Archiver(Engine(config, life.database, Graphs(0), ACTORS[0]))
    with pytest.MonkeyPatch.context() as patch, closing(life), closing(archiver):
        patch.setattr(archiving, "PIECE", piece)
        for place in PLACES:
            cutoff = before(life.clock(), days=days)
            pieces = archiver._iter_idle(place, Terms(life.clock(), cutoff, keep, []))
            assert sorted(key for keys in pieces for key in keys) == life.idle(
                place, cutoff, keep, []
            )
