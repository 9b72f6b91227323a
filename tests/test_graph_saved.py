"""A graph that was saved says what the store says, or it is not used."""

from __future__ import annotations

import logging
import os
import sqlite3
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from graph_world import HERE, THERE, World, add_node, differences, opened, shell_on
from hypothesis import given, settings
from hypothesis import strategies as st
from test_graph_cache import STEP, STORY

from cortex.config import load_settings
from cortex.domain.taxonomy import RelationType
from cortex.domain.values import WorkspaceId
from cortex.graph import graphs as graphs_module
from cortex.graph import saved, shelf
from cortex.graph.capture import capture
from cortex.graph.graphs import Graphs
from cortex.graph.shelf import Shelf
from cortex.graph.workspace import WorkspaceGraph
from cortex.memory import Memory, open_memory
from cortex.services.keeping.restoring import restoring
from cortex.store.backup import back_up
from cortex.store.changes import Changes
from cortex.store.database import Database, Snapshot

AMPLE = 1 << 30
ROOT = Path(__file__).parents[1]


@pytest.fixture(autouse=True)
def _small_graphs_are_saved(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(graphs_module, "LEAST_SAVED", 1)


class Counted(WorkspaceGraph):
    """Counts how often it was read from the store."""

    builds = 0

    def _build(self, snapshot: Snapshot) -> None:
        self.builds += 1
        super()._build(snapshot)


def start(database: Database, workspace: WorkspaceId = HERE) -> Counted:
    """What a new process would hold, equal to the store."""
    graph = Counted(workspace, Shelf(database.path, writable=True))
    with database.read() as snapshot:
        graph.catch_up(snapshot)
        assert differences(snapshot, graph) == []
    return graph


def save(database: Database, workspace: WorkspaceId = HERE) -> Path:
    """The file of the graph as it is now, whether that is worth it or not."""
    files = Shelf(database.path, writable=True)
    Graphs(AMPLE, files).save(database, workspace)
    return files.path(workspace)


def write(database: Database, count: int, workspace: WorkspaceId = HERE) -> list[Any]:
    """A chain of so many nodes."""
    with database.write("test") as transaction:
        made = [add_node(transaction, workspace=workspace) for _ in range(count)]
        for near, far in pairwise(made):
            transaction.relations.insert(
                workspace, near[1], far[1], RelationType.LEADS_TO, transaction.at, 0.5
            )
    return made


@contextmanager
def kept(count: int = 50) -> Iterator[tuple[Database, Path]]:
    """A store of a chain, and the file of its graph."""
    with opened() as (_, [database]):
        write(database, count)
        yield database, save(database)


# ── the law ───────────────────────────────────────────────────────────────────────────────


def lost(steps: list[tuple[str, int, int, int, int, int]]) -> list[str]:
    """The first differences that a graph from its file and the log shows on the way.

    After each step the last number says whether a new process looks, and whether it saves.
    """
    with opened(2) as (path, databases):
        world = World(path, databases)
        files = Shelf(path, writable=True)
        for name, who, a, b, c, look in [("insert", 0, 2, 0, 1, 3), *steps, ("status",) + (3,) * 5]:
            world.apply(name, who % 2, a, b, c)
            for workspace in (HERE, THERE) if look & 1 else ():
                graph = WorkspaceGraph(workspace, files)
                with databases[0].read() as snapshot:
                    graph.catch_up(snapshot)
                    if found := differences(snapshot, graph):
                        return [name, *found]
                if look & 2:
                    save(databases[0], workspace)
        world.shell.close()
    return []


@settings(max_examples=30, deadline=None)
@given(st.lists(STEP, max_size=40))
def test_a_saved_graph_and_the_log_say_what_the_store_says_after_any_operations(
    steps: list[tuple[str, int, int, int, int, int]],
) -> None:
    assert lost(steps) == []


def test_a_saved_graph_is_loaded_and_not_built() -> None:
    with kept() as (database, _):
        write(database, 5)
        assert start(database).builds == 0


def save_a_change_early(patch: pytest.MonkeyPatch) -> None:
    """Planted fault: the file claims one change more than it has."""
    real = saved.head_of

    def ahead(columns: Any, workspace: str, epoch: str, seq: int, moment: str) -> Any:
        return real(columns, workspace, epoch, seq + 1, moment)

    patch.setattr(graphs_module, "head_of", ahead)
    patch.setattr(Changes, "moment", lambda *_: "any")


def test_the_comparison_sees_a_file_that_claims_more_than_it_has(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    save_a_change_early(monkeypatch)
    assert lost(STORY)


def test_free_indices_are_left_out_of_what_is_saved() -> None:
    with opened() as (path, [database]):
        graphs = Graphs(AMPLE, Shelf(path, writable=True))
        write(database, 50)
        look(graphs, database)
        with database.write("test") as transaction:
            transaction.nodes.delete([3, 7, 50])
        graphs.save(database, HERE)
        again = start(database)
        assert again.builds == 0
        assert len(again.key) == again.graph.num_nodes() == 47


def test_a_relation_that_had_no_end_here_when_the_graph_was_saved_comes_back_with_it() -> None:
    with opened() as (path, [database]):
        graphs = Graphs(AMPLE, Shelf(path, writable=True))
        write(database, 50)
        look(graphs, database)
        move = "UPDATE nodes SET workspace_id = ? WHERE rowkey = 5"
        shell_on(path, (move, (THERE,)))
        graphs.save(database, HERE)
        shell_on(path, (move, (HERE,)))
        assert start(database).edges().total() == 49


# ── what does not fit is not used ─────────────────────────────────────────────────────────


@pytest.mark.parametrize("keep", [0, 7, 15, 40, 200, -1])
def test_a_torn_file_is_not_used(keep: int) -> None:
    with kept() as (database, path):
        path.write_bytes(path.read_bytes()[:keep])
        assert start(database).builds == 1


def test_a_file_with_any_byte_flipped_is_not_used() -> None:
    with kept(20) as (database, path):
        whole = path.read_bytes()
        for place in range(0, len(whole), 29):
            path.write_bytes(whole[:place] + bytes([whole[place] ^ 4]) + whole[place + 1 :])
            assert start(database).builds == 1, f"byte {place}"


def test_a_file_of_another_order_of_types_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    with kept() as (database, _):
        monkeypatch.setattr(saved, "_TAXONOMY", 7)
        assert start(database).builds == 1


def test_the_file_of_another_workspace_is_not_used() -> None:
    with kept() as (database, path):
        write(database, 3, THERE)
        path.replace(Shelf(database.path, writable=True).path(THERE))
        assert start(database, THERE).builds == 1


def test_a_folder_in_the_place_of_the_file_is_not_used() -> None:
    with kept() as (database, path):
        path.unlink()
        path.mkdir()
        assert start(database).builds == 1


def test_a_file_below_the_floor_of_the_log_is_not_used(home: Path) -> None:
    with closing(open_memory(load_settings(home=home, workspace=HERE, env={}))) as memory:
        database = memory.engine.database
        write(database, 10)
        save(database)
        write(database, 10)
        memory.compacting.compact("0")
        assert start(database).builds == 1


def test_a_file_from_before_a_restore_is_not_used(home: Path) -> None:
    config = load_settings(home=home, workspace=HERE, env={})
    with closing(Database(config.database)) as database:
        write(database, 10)
        back_up(config.database, home / "copy.db")
        write(database, 10)
        save(database)
    with restoring(config, home / "copy.db") as ready:
        ready.run()
    with closing(Database(config.database)) as database:
        write(database, 30)
        assert start(database).builds == 1


def test_a_database_that_was_put_back_by_hand_and_written_again_is_not_mistaken(
    tmp_path: Path,
) -> None:
    path = tmp_path / "cortex.db"
    with closing(Database(path)) as database:
        write(database, 10)
    before = path.read_bytes()
    with closing(Database(path)) as database:
        write(database, 10)
        save(database)
    path.write_bytes(before)
    with closing(Database(path)) as database:
        assert start(database).builds == 1
        write(database, 40)
        assert start(database).builds == 1


def test_vacuum_and_a_renamed_workspace_leave_the_file_in_use(home: Path) -> None:
    with closing(open_memory(load_settings(home=home, workspace=HERE, env={}))) as memory:
        database = memory.engine.database
        write(database, 100)
        write(database, 100, THERE)
        save(database)
        memory.workspaces.rename(THERE, "elsewhere")
        with closing(sqlite3.connect(database.path, isolation_level=None)) as shell:
            shell.execute("VACUUM")
        assert start(database).builds == 0


def test_a_file_that_cannot_be_followed_from_is_not_tried_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with kept() as (database, _):
        write(database, 5)
        graph = Counted(HERE, Shelf(database.path, writable=True))
        with monkeypatch.context() as patch, database.read() as snapshot:
            patch.setattr(WorkspaceGraph, "_put_relation", lambda *_: 1 / 0)
            with pytest.raises(ZeroDivisionError):
                graph.catch_up(snapshot)
        with database.read() as snapshot:
            graph.catch_up(snapshot)
            assert graph.builds == 1
            assert differences(snapshot, graph) == []


# ── when it is saved ──────────────────────────────────────────────────────────────────────


@pytest.fixture
def writes(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The change up to which each file was written, in order."""
    made: list[int] = []
    real = Shelf.save

    def noted(self: Shelf, head: saved.Head, columns: Any) -> None:
        made.append(head.seq)
        real(self, head, columns)

    monkeypatch.setattr(Shelf, "save", noted)
    return made


def look(graphs: Graphs, database: Database) -> None:
    with graphs.view(database, HERE) as (snapshot, graph):
        assert differences(snapshot, graph) == []
    graphs._background.drain()


def test_a_graph_is_saved_when_built_and_again_when_it_has_moved_by_a_twentieth(
    writes: list[int],
) -> None:
    with opened() as (path, [database]):
        graphs = Graphs(AMPLE, Shelf(path, writable=True))
        write(database, 100)
        for _ in range(14):
            look(graphs, database)
            write(database, 1)
        assert writes == [199, 209]
        graphs.close(database)
        assert writes == [199, 209, 213]


def test_a_process_does_not_repeat_what_another_has_saved(writes: list[int]) -> None:
    with opened() as (path, [database]):
        write(database, 100)
        one, other = (Graphs(AMPLE, Shelf(path, writable=True)) for _ in range(2))
        for graphs in (one, other):
            look(graphs, database)
        write(database, 30)
        for graphs in (one, other):
            look(graphs, database)
        assert len(writes) == 2


def test_a_small_graph_gets_no_file(monkeypatch: pytest.MonkeyPatch, writes: list[int]) -> None:
    monkeypatch.setattr(graphs_module, "LEAST_SAVED", 200)
    with opened() as (path, [database]):
        graphs = Graphs(AMPLE, Shelf(path, writable=True))
        write(database, 100)
        look(graphs, database)
        graphs.close(database)
        assert writes == []


def test_the_file_is_its_owner_s_alone() -> None:
    with kept() as (_, path):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


def test_where_nothing_can_be_written_one_line_says_so(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with opened() as (path, [database]):
        path.with_name(path.name + ".derived").write_text("a file where the folder should be")
        graphs = Graphs(AMPLE, Shelf(path, writable=True))
        for _ in range(3):
            write(database, 50)
            look(graphs, database)
        graphs.close(database)
        told = [each for each in caplog.records if each.levelno >= logging.WARNING]
        assert len(told) == 1


def test_a_memory_that_is_open_for_reading_writes_no_file(home: Path) -> None:
    with closing(open_memory(load_settings(home=home, workspace=HERE, env={}))) as memory:
        write(memory.engine.database, 20)
    only = load_settings(home=home, workspace=HERE, read_only=True, env={})
    with closing(open_memory(only)) as memory:
        look(memory.engine.graphs, memory.engine.database)
    assert not list((home / "cortex.db.derived").glob("graph-*"))


def test_a_memory_that_is_closed_and_opened_again_loads_its_graph(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = load_settings(home=home, workspace=HERE, env={})
    with closing(open_memory(config)) as memory:
        write(memory.engine.database, 20)
        look(memory.engine.graphs, memory.engine.database)
    monkeypatch.setattr(WorkspaceGraph, "_build", lambda *_: 1 / 0)
    with closing(open_memory(config)) as memory:
        look(memory.engine.graphs, memory.engine.database)


def test_reindex_removes_the_files_of_graphs(memory: Memory) -> None:
    write(memory.engine.database, 20, memory.settings.workspace)
    path = save(memory.engine.database, memory.settings.workspace)
    assert path.exists()
    memory.indexing.reindex(None, lambda *_: None)
    assert not path.exists()


WRITER = """
import sys
from pathlib import Path
from cortex.graph.graphs import Graphs
from cortex.graph.shelf import Shelf
from cortex.store.database import Database
database = Database(Path(sys.argv[1]))
graphs = Graphs(1 << 30, Shelf(database.path, writable=True))
while True:
    graphs.save(database, "here")
"""


def test_a_process_killed_while_it_writes_leaves_a_whole_file(tmp_path: Path) -> None:
    path = tmp_path / "cortex.db"
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    with closing(Database(path)) as database:
        write(database, 500)
        there = Shelf(path, writable=True).path(HERE)
        for turn in range(3):
            with subprocess.Popen([sys.executable, "-c", WRITER, str(path)], env=env) as process:
                while not there.exists():
                    assert process.poll() is None
                    time.sleep(0.001 * turn)
                process.kill()
            assert start(database).builds == 0
            save(database)  # sweeps the draft that was left
            left = [each for each in there.parent.iterdir() if "graph" in each.name]
            assert left == [there]
            there.unlink()


def test_columns_come_back_from_a_file_as_they_were() -> None:
    with kept() as (database, path):
        columns = capture(start(database)).columns()
        with path.open("rb") as file:
            read = saved.read_columns(file, saved.read_head(file))
        for name in saved.Columns.__slots__:
            assert np.array_equal(getattr(read, name), getattr(columns, name)), name


def test_a_file_is_used_only_where_following_costs_less_than_building() -> None:
    with kept() as (database, _):
        write(database, 200)
        assert start(database).builds == 1
        assert shelf.LEAST_REBUILD < 200
