"""The files of vectors beside a memory: taken at a start, followed from the log, never believed
when the store is another one."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from cortex.config import load_settings
from cortex.domain.values import WorkspaceId
from cortex.memory import Memory, open_memory
from cortex.vectors.embedded import EmbeddedIndex
from cortex.vectors.embedder import Embedder
from cortex.vectors.models import resolve_model
from tests.local import ask, run_cortex, start_cortex

TEXTS = ("the gateway drops idle sockets", "invoices are paid within 30 days", "owls hunt at night")
W = WorkspaceId("w")


@pytest.fixture(scope="module")
def embedder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Embedder]:
    made = Embedder(
        resolve_model("offline"), cache_dir=tmp_path_factory.mktemp("models"), idle_seconds=600.0
    )
    yield made
    made.close()


@contextmanager
def process(home: Path, embedder: Embedder, *, read_only: bool = False) -> Iterator[Memory]:
    """A memory as a process has it, whose partitions of any size have files."""
    settings = load_settings(home=home, workspace="w", read_only=read_only, env={})
    with closing(open_memory(settings, embedder=embedder)) as memory:
        index_of(memory).files.smallest = 1  # type: ignore[union-attr]  # it has files
        yield memory


def index_of(memory: Memory) -> EmbeddedIndex:
    index = memory.semantic.meaning().index
    assert isinstance(index, EmbeddedIndex)
    return index


def add(memory: Memory, text: str, **more: str) -> str:
    return str(ask(memory, "graph_add_node", type="fact", text=text, **more)["id"])


def found(memory: Memory, query: str) -> list[str]:
    answer = ask(memory, "vector_search", query=query, workspace_id="w")
    assert (answer["degraded"], answer["pending"]) == (None, 0)
    return [hit["id"] for hit in answer["hits"]]


def files(home: Path) -> list[Path]:
    return sorted((home / "cortex.db.derived").glob("vectors-*.bin"))


@pytest.fixture
def ids(home: Path, embedder: Embedder) -> list[str]:
    """Three facts in the memory of `home`, whose vectors have a file."""
    with process(home, embedder) as memory:
        made = [add(memory, text) for text in TEXTS]
        assert [found(memory, text)[:1] for text in TEXTS] == [[one] for one in made]
        index_of(memory).drop()
        found(memory, TEXTS[0])  # a rebuild, which writes the file
        index_of(memory).wait_written(10.0)
    assert len(files(home)) == 1
    return made


def test_a_start_takes_the_file_and_finds_the_same(
    home: Path, embedder: Embedder, ids: list[str]
) -> None:
    before = files(home)[0].stat().st_ino
    with process(home, embedder) as memory:
        assert [found(memory, text)[0] for text in TEXTS] == ids
        assert index_of(memory).mapped_bytes()
        assert index_of(memory).memory_bytes() == 3
    assert files(home)[0].stat().st_ino == before, "nothing was built"


def test_what_was_written_since_the_file_is_found(
    home: Path, embedder: Embedder, ids: list[str]
) -> None:
    with process(home, embedder) as memory:
        ask(memory, "graph_update_node", node_id=ids[0], text="the kettle whistles in the kitchen")
        ask(memory, "graph_delete_node", node_id=ids[1])
        added = add(memory, "tides follow the moon")
        memory.indexing.wait(W, 10.0)  # and no search, so that the file stays as it is
    with process(home, embedder) as memory:
        assert found(memory, "a kettle in the kitchen")[0] == ids[0]
        assert found(memory, TEXTS[0]) == []
        assert ids[1] not in found(memory, TEXTS[1])
        assert found(memory, "the moon and the tides")[0] == added


def test_a_database_put_back_and_written_again_is_not_answered_from_the_newer_file(
    home: Path, embedder: Embedder, ids: list[str], tmp_path: Path
) -> None:
    old = shutil.copy(home / "cortex.db", tmp_path / "old.db")
    with process(home, embedder) as memory:
        lost = add(memory, "a fact that is lost")
        assert found(memory, "a fact that is lost")[0] == lost
        index_of(memory).drop()
        found(memory, "anything")
    for name in ("cortex.db", "cortex.db-wal", "cortex.db-shm"):
        (home / name).unlink(missing_ok=True)
    shutil.copy(old, home / "cortex.db")
    with process(home, embedder) as memory:
        again = [add(memory, f"another fact, number {number}") for number in range(6)]
        memory.indexing.wait(W, 10.0)
        assert set(found(memory, "another fact")) == set(again)
        assert index_of(memory).ids(W) == {*ids, *again}


def test_a_restored_memory_is_not_answered_from_the_file(
    home: Path, embedder: Embedder, ids: list[str], tmp_path: Path
) -> None:
    backup = tmp_path / "backup.db"
    run_cortex(home, "backup", str(backup))
    with process(home, embedder) as memory:
        ask(memory, "graph_delete_node", node_id=ids[0])
        assert found(memory, TEXTS[0]) == []
        index_of(memory).wait_written(10.0)
    run_cortex(home, "restore", str(backup), "--yes")
    with process(home, embedder) as memory:
        assert found(memory, TEXTS[0])[0] == ids[0]


def test_a_file_below_the_floor_of_the_log_is_built_anew(
    home: Path, embedder: Embedder, ids: list[str]
) -> None:
    with process(home, embedder) as memory:
        ask(memory, "graph_delete_node", node_id=ids[0])
        add(memory, "tides follow the moon")
        memory.indexing.wait(W, 10.0)
        memory.compacting.compact("0")
    with process(home, embedder) as memory:
        assert found(memory, TEXTS[0]) == []
        assert len(index_of(memory).ids(W)) == 3


def test_a_reindex_builds_the_file_anew(home: Path, embedder: Embedder, ids: list[str]) -> None:
    before = files(home)[0].stat().st_mtime_ns
    with process(home, embedder) as memory:
        memory.indexing.reindex(None, lambda done, total: None)
        assert files(home) == []
        assert found(memory, TEXTS[0])[0] == ids[0]
    assert files(home)[0].stat().st_mtime_ns > before


def test_a_node_that_moved_to_another_workspace_leaves_the_first_ones_file(
    home: Path, embedder: Embedder, ids: list[str]
) -> None:
    with process(home, embedder) as memory:
        memory.workspaces.rename("w", "v")
        add(memory, "tides follow the moon", workspace_id="w")
        memory.indexing.wait(W, 10.0)
    with process(home, embedder) as memory:
        assert not set(found(memory, TEXTS[0])) & set(ids)


def test_the_file_of_a_deleted_workspace_goes_with_the_next_start(
    home: Path, embedder: Embedder, ids: list[str]
) -> None:
    assert len(ids) == 3
    with process(home, embedder) as memory:
        add(memory, "a fact elsewhere", workspace_id="v")
        memory.workspaces.delete("w")
    with process(home, embedder):
        assert files(home) == []


def test_who_only_reads_takes_the_file_and_writes_none(
    home: Path, embedder: Embedder, ids: list[str]
) -> None:
    with process(home, embedder, read_only=True) as memory:
        assert found(memory, TEXTS[0])[0] == ids[0]
        assert index_of(memory).mapped_bytes()
    files(home)[0].unlink()
    with process(home, embedder, read_only=True) as memory:
        assert found(memory, TEXTS[0])[0] == ids[0]
    assert files(home) == []


def test_two_processes_share_one_file_and_see_each_other(
    home: Path, embedder: Embedder, ids: list[str]
) -> None:
    with process(home, embedder) as one, process(home, embedder) as other:
        assert found(one, TEXTS[0])[0] == found(other, TEXTS[0])[0] == ids[0]
        added = add(one, "tides follow the moon")
        assert found(one, "the moon and the tides")[0] == added
        index_of(one).wait_written(10.0)  # one of four is new: it is worth a file
        assert found(other, "the moon and the tides")[0] == added
        assert index_of(other).mapped_bytes() == files(home)[0].stat().st_size


def test_the_doctor_finds_rows_of_the_file_that_changed(
    home: Path, embedder: Embedder, ids: list[str]
) -> None:
    assert len(ids) == 3
    with files(home)[0].open("r+b") as file:
        file.seek(5000)
        file.write(b"\x7f" * 40)
    with start_cortex(home, "doctor", "--json") as doctor:
        told, _ = doctor.communicate(timeout=60)
    assert "the file of the vectors of w is damaged" in told


def test_the_status_says_what_the_files_take(
    home: Path, embedder: Embedder, ids: list[str]
) -> None:
    assert len(ids) == 3
    size = files(home)[0].stat().st_size
    with process(home, embedder) as memory:
        assert memory.status()["index"]["file_bytes"] == size > 0
