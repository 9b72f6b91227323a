"""Files of graphs: gone with their workspace, and looked at by the doctor."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Final

import pytest
from graph_world import HERE, THERE

from cortex.config import Settings, load_settings
from cortex.domain.values import WorkspaceId
from cortex.graph import graphs as graphs_module
from cortex.graph import saved
from cortex.graph.columns import Columns
from cortex.graph.graphs import Graphs
from cortex.graph.shelf import Shelf
from cortex.memory import Memory, open_memory
from cortex.services.doctor.examining import Doctor, Examined
from cortex.services.doctor.findings import BY_FIX, Finding, State
from cortex.services.fields import Fields
from cortex.store.database import Database


@pytest.fixture(autouse=True)
def _small_graphs_are_saved(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(graphs_module, "LEAST_SAVED", 1)


def fill(memory: Memory, *places: WorkspaceId) -> None:
    """Some notes in each, and the files of their graphs."""
    for place in places:
        for number in range(5):
            memory.adding.add_node("note", Fields(text=f"note {number}"), workspace=place)
        memory.engine.graphs.save(memory.engine.database, place)


def file_of(memory: Memory, place: WorkspaceId) -> Path:
    return Shelf(memory.engine.database.path, writable=False).path(place)


# ── gone with their workspace ─────────────────────────────────────────────────────────────

ENDS: Final[dict[str, Callable[[Memory], object]]] = {
    "deleted": lambda memory: memory.workspaces.delete(THERE),
    "renamed": lambda memory: memory.workspaces.rename(THERE, "elsewhere"),
    "merged": lambda memory: memory.workspaces.merge(THERE, HERE),
}


@pytest.mark.parametrize("end", ENDS.values(), ids=ENDS.keys())
def test_the_file_of_a_workspace_that_is_gone_goes_and_others_stay(
    memory: Memory, end: Callable[[Memory], object]
) -> None:
    fill(memory, HERE, THERE)
    assert file_of(memory, THERE).exists()
    end(memory)
    assert not file_of(memory, THERE).exists()
    assert file_of(memory, HERE).exists()


def test_what_a_process_left_of_a_workspace_that_is_gone_goes_when_another_ends(
    home: Path,
) -> None:
    config = load_settings(home=home, workspace=HERE, env={})
    with closing(open_memory(config)) as memory:
        fill(memory, HERE, THERE)
        there = file_of(memory, THERE)
        shutil.copyfile(there, kept := there.with_suffix(".kept"))
        memory.workspaces.delete(THERE)
        kept.rename(there)
    assert not there.exists()


def test_a_memory_that_is_open_for_reading_removes_no_file(home: Path) -> None:
    with closing(open_memory(load_settings(home=home, workspace=HERE, env={}))) as memory:
        fill(memory, HERE)
    stray = file_of(memory, THERE)
    stray.touch()
    only = load_settings(home=home, workspace=HERE, read_only=True, env={})
    with closing(open_memory(only)) as memory:
        memory.viewport.open(None)
    assert stray.exists()


# ── looked at by the doctor ───────────────────────────────────────────────────────────────


@pytest.fixture
def ill(home: Path) -> Settings:
    """A memory with the file of a graph, whose log has gone on since."""
    config = load_settings(home=home, workspace=HERE, env={})
    with closing(open_memory(config)) as memory:
        fill(memory, HERE)
        memory.indexing.wait(None, 60.0)
    with closing(Database(config.database)) as database:
        files = Shelf(database.path, writable=True)
        Graphs(0, files).save(database, HERE)
    return config


def place(settings: Settings) -> Path:
    return Shelf(settings.database, writable=False).path(HERE)


def looked(examined: Examined) -> Finding:
    [finding] = [each for each in examined.findings if each.check == "saved graphs"]
    return finding


def read(settings: Settings) -> tuple[saved.Head, Columns]:
    with place(settings).open("rb") as file:
        head = saved.read_head(file)
        return head, saved.read_columns(file, head)


def rewrite(settings: Settings, head: saved.Head, columns: Columns) -> None:
    """A file whose checksums are right."""
    place(settings).write_bytes(b"")
    saved.write(place(settings), head, columns)


def change_head(settings: Settings, **changed: object) -> None:
    head, columns = read(settings)
    rewrite(settings, replace(head, **changed), columns)  # type: ignore[arg-type]  # by name


def tear(settings: Settings) -> None:
    place(settings).write_bytes(place(settings).read_bytes()[:-9])


def flip(settings: Settings) -> None:
    whole = bytearray(place(settings).read_bytes())
    whole[40] ^= 4
    place(settings).write_bytes(whole)


def misname(settings: Settings) -> None:
    place(settings).rename(Shelf(settings.database, writable=False).path(THERE))


def say_otherwise(settings: Settings) -> None:
    """As many rows, one of them of another status."""
    head, columns = read(settings)
    status = columns.status.copy()
    status[2] += 1
    rewrite(settings, head, replace(columns, status=status))


FAULTS: Final[dict[str, tuple[Callable[[Settings], object], str]]] = {
    "torn": (tear, "torn or damaged"),
    "with a byte flipped": (flip, "damaged"),
    "named as another's": (misname, "named as another workspace's"),
    "from the future": (lambda ill: change_head(ill, seq=10_000), "from change 10000"),
    "of another log": (lambda ill: change_head(ill, moment="x"), "than it was saved after"),
    "of no workspace": (lambda ill: change_head(ill, workspace="gone"), "no workspace 'gone'"),
    "that says otherwise": (say_otherwise, "on one side alone"),
}


def test_a_saved_graph_that_is_right_is_compared_with_the_store(ill: Settings) -> None:
    finding = looked(Doctor(ill).examine())
    assert (finding.state, finding.count) == (State.OK, 1)


@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS.keys())
def test_a_bad_file_is_found_and_by_fix_removed(
    ill: Settings, fault: tuple[Callable[[Settings], object], str]
) -> None:
    plant, said = fault
    plant(ill)
    finding = looked(Doctor(ill).examine())
    assert finding.mend == BY_FIX
    assert said in finding.examples[0]
    examined = Doctor(ill).mend()
    assert examined.mended == ("saved graphs",)
    assert (examined.faults, examined.warnings) == (0, 0)
    assert not list(place(ill).parent.glob("graph-*"))


def test_a_file_of_a_workspace_that_is_gone_is_no_more_than_a_warning(ill: Settings) -> None:
    change_head(ill, workspace="gone")
    assert looked(Doctor(ill).examine()).state is State.WARNING


@pytest.mark.parametrize("changed", [{"epoch": "older"}, {"taxonomy": 7}])
def test_a_file_that_is_not_used_for_its_age_is_no_fault(
    ill: Settings, changed: dict[str, object]
) -> None:
    change_head(ill, **changed)
    finding = looked(Doctor(ill).examine())
    assert (finding.state, finding.count) == (State.OK, 0)
    assert "1 not in use" in finding.said


def test_the_examination_removes_no_file(ill: Settings) -> None:
    flip(ill)
    Doctor(ill).examine()
    assert place(ill).exists()
