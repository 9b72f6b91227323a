"""Backups of a memory in use, and restoring them under those who use it."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from cortex.config import Settings, load_settings
from cortex.domain.errors import (
    BusyError,
    ConflictError,
    CortexError,
    InvalidError,
    NotFoundError,
    UnavailableError,
)
from cortex.domain.taxonomy import NodeType
from cortex.domain.values import NodeId, WorkspaceId, new_id
from cortex.memory import Memory
from cortex.services.fields import Fields
from cortex.services.keeping.backing_up import BackingUp
from cortex.services.keeping.restoring import Restored, restoring
from cortex.store.backup import contents_of
from cortex.store.database import Database
from cortex.store.restore import make_ready, overwrite
from tests.harness import ROOT, call, connected
from tests.local import run_cortex, start_cortex
from tests.worker_world import Life

W = WorkspaceId("w")
# A process of its own that dies, or finds no room, at the page that is named.
DYING = """
import os, resource, signal, sys
from pathlib import Path
from cortex.config import load_settings
from cortex.services.keeping.backing_up import BackingUp
from cortex.services.keeping.restoring import restoring

what, home, file, page = sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3]), int(sys.argv[4])
settings = load_settings(home=home, env={})

def die(done, total):
    if done >= page:
        os.kill(os.getpid(), signal.SIGKILL)

if what == "full":
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (page, page))
    die = lambda *_: None
if what == "backup" or (what == "full" and not file.exists()):
    BackingUp(settings).back_up(file, progress=die)
else:
    with restoring(settings, file) as ready:
        ready.run(die)
"""


@pytest.fixture
def memory(memory: Memory) -> Memory:
    """Without the thread that embeds: its model would cost each test two seconds."""
    memory.engine.after_write = lambda: None
    return memory


@pytest.fixture
def settings(home: Path) -> Settings:
    return load_settings(home=home, env={})


def fill(memory: Memory, count: int, text: str = "kept") -> list[str]:
    return [
        memory.adding.add_node("fact", Fields(text=f"{text} {number}"), workspace=W).id
        for number in range(count)
    ]


def texts(path: Path) -> set[str]:
    with closing(Database(path)) as database, database.read() as snapshot:
        return {node.text for node in snapshot.nodes.iter_all(W) if node.text}


def restore(settings: Settings, file: Path) -> Restored:
    with restoring(settings, file) as ready:
        return ready.run()


def run_dying(*arguments: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", DYING, *map(str, arguments)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
    )


def damage(path: Path, start: int = 20_000) -> None:
    """Overwrite pages in the middle, where the file is at rest."""
    with path.open("r+b") as file:
        file.seek(start)
        file.write(b"\xff" * 30_000)


def big(home: Path, nodes: int = 300) -> Path:
    """A memory of some hundred pages, closed."""
    home.mkdir(parents=True, exist_ok=True)
    with closing(Database(home / "cortex.db")) as database, database.write("test") as transaction:
        for number in range(nodes):
            transaction.nodes.insert(
                NodeId(new_id()), NodeType.FACT, W, None, {"text": f"{number} " * 300},
                transaction.at,
            )  # fmt: skip
    return home / "cortex.db"


# ── backing up ────────────────────────────────────────────────────────────────────────────────


def test_a_hundred_nodes_that_no_checkpoint_wrote_are_in_the_backup(
    memory: Memory, settings: Settings, tmp_path: Path
) -> None:
    fill(memory, 100)
    assert settings.database.with_name("cortex.db-wal").stat().st_size > 0
    done = BackingUp(settings).back_up(tmp_path / "b.db")
    elsewhere = load_settings(home=tmp_path / "other", env={})
    restored = restore(elsewhere, tmp_path / "b.db")
    assert restored.safety is None
    assert restored.restored == done.contents
    assert len(texts(elsewhere.database)) == 100


def test_a_backup_made_while_another_writes_is_the_state_of_one_moment(
    memory: Memory, settings: Settings, tmp_path: Path
) -> None:
    stop = threading.Event()

    def write() -> None:
        while not stop.is_set():
            fill(memory, 1)

    writer = threading.Thread(target=write)
    writer.start()
    try:
        made = [BackingUp(settings).back_up(tmp_path / f"{n}.db").contents for n in range(8)]
    finally:
        stop.set()
        writer.join()
    # Each fact comes with its contains; the root with the first.
    assert all(held.nodes in (0, held.relations + 1) for held in made)
    assert [held.changes for held in made] == sorted(held.changes for held in made)


def test_a_backup_is_one_file_and_its_owners_alone(
    memory: Memory, settings: Settings, tmp_path: Path
) -> None:
    fill(memory, 1)
    BackingUp(settings).back_up(tmp_path / "new" / "b.db")
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["b.db"]
    assert (tmp_path / "new" / "b.db").stat().st_mode & 0o077 == 0


def test_a_backup_that_was_killed_leaves_a_draft_that_the_next_one_removes(
    tmp_path: Path, home: Path, settings: Settings
) -> None:
    big(home)
    folder = tmp_path / "to"
    folder.mkdir()
    assert run_dying("backup", home, folder, 1).returncode == -9
    assert [path.suffix for path in folder.iterdir()] == [".part"]
    done = BackingUp(settings).back_up(folder)
    assert [str(path) for path in folder.iterdir()] == [done.file]


def test_a_backup_that_was_killed_leaves_the_older_one_of_its_name(
    tmp_path: Path, home: Path, settings: Settings
) -> None:
    big(home)
    before = BackingUp(settings).back_up(tmp_path / "b.db").contents
    assert run_dying("backup", home, tmp_path / "b.db", 1).returncode == -9
    assert contents_of(tmp_path / "b.db") == before


def test_a_full_disk_ends_a_backup_with_its_reason_and_without_a_file(
    tmp_path: Path, home: Path
) -> None:
    big(home)
    done = run_dying("full", home, tmp_path / "to" / "b.db", 100_000)
    assert "UnavailableError" in done.stderr
    assert "b.db" in done.stderr
    assert list((tmp_path / "to").iterdir()) == []


def test_a_damaged_memory_is_not_backed_up(home: Path, settings: Settings, tmp_path: Path) -> None:
    damage(big(home))
    with pytest.raises(UnavailableError, match="damaged"):
        BackingUp(settings).back_up(tmp_path / "b.db")
    assert not (tmp_path / "b.db").exists()


def test_no_memory_is_backed_up_as_none(settings: Settings, tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match="no memory"):
        BackingUp(settings).back_up(tmp_path / "b.db")
    assert not settings.home.exists()


def test_a_backup_replaces_no_live_file_and_nothing_foreign(
    memory: Memory, settings: Settings, tmp_path: Path
) -> None:
    fill(memory, 1)
    other = big(tmp_path / "other")
    note = tmp_path / "note.txt"
    note.write_text("mine")
    for target in (settings.database, other, note):
        with pytest.raises(ConflictError, match="not touched"):
            BackingUp(settings).back_up(target)
    assert note.read_text() == "mine"
    assert fill(memory, 1)  # and the memory goes on


def test_of_a_folder_the_newest_are_kept_and_strangers_stay(
    memory: Memory, settings: Settings, tmp_path: Path
) -> None:
    fill(memory, 1)
    folder = tmp_path / "backups"
    strange = folder / "cortex-20200101T000000.000000Z.db"
    made = [BackingUp(settings).back_up(folder, keep=3).file]
    strange.write_text("not a backup, though it is called so")
    (folder / "cortex-mine.db").write_bytes(Path(made[0]).read_bytes())
    made += [BackingUp(settings).back_up(folder, keep=3).file for _ in range(4)]
    kept = {str(path) for path in folder.iterdir()}
    assert kept == {*made[-3:], str(strange), str(folder / "cortex-mine.db")}


def test_keep_goes_with_a_folder(memory: Memory, settings: Settings, tmp_path: Path) -> None:
    fill(memory, 1)
    BackingUp(settings).back_up(tmp_path / "b.db")
    for target, keep in ((tmp_path / "b.db", 2), (tmp_path, 0)):
        with pytest.raises(InvalidError, match="Valid"):
            BackingUp(settings).back_up(target, keep=keep)


# ── restoring ─────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def backup(memory: Memory, settings: Settings, tmp_path: Path) -> Path:
    """A backup of 3 facts; the memory has 2 more since."""
    fill(memory, 3)
    BackingUp(settings).back_up(tmp_path / "b.db")
    fill(memory, 2, "later")
    return tmp_path / "b.db"


def test_an_open_memory_sees_what_was_restored_at_its_next_call(
    memory: Memory, settings: Settings, backup: Path
) -> None:
    before = memory.engine.generation()
    epoch = memory.status()["epoch"]
    assert memory.viewport.open("w")
    restore(settings, backup)
    assert memory.engine.generation() < before
    assert memory.status()["epoch"] != epoch
    assert {node.text for node in nodes_of(memory)} == {"", "kept 0", "kept 1", "kept 2"}
    added = memory.adding.add_node("fact", Fields(text="after"), workspace=W)
    assert added.id in {node.id for node in nodes_of(memory)}


def nodes_of(memory: Memory) -> list[Any]:
    with memory.engine.database.read() as snapshot:
        return list(snapshot.nodes.iter_all(W))


def test_what_was_there_is_kept_beside(memory: Memory, settings: Settings, backup: Path) -> None:
    done = restore(settings, backup)
    assert done.safety is not None
    assert texts(Path(done.safety)) >= {"later 0", "later 1"}
    again = restore(settings, Path(done.safety))
    assert again.restored == done.present


def test_no_acknowledged_write_falls_between_the_copy_and_the_restore(
    memory: Memory, settings: Settings, backup: Path
) -> None:
    written: list[str] = []
    stop = threading.Event()

    def write() -> None:
        while not stop.is_set():
            text = f"while {len(written)}"
            memory.adding.add_node("fact", Fields(text=text), workspace=W)
            written.append(text)

    writer = threading.Thread(target=write)
    writer.start()
    try:
        while len(written) < 5:
            stop.wait(0.01)
        done = [restore(settings, backup) for _ in range(3)]
    finally:
        stop.set()
        writer.join()
    kept = set().union(*(texts(Path(each.safety)) for each in done if each.safety))
    assert kept | texts(settings.database) >= set(written)


@pytest.mark.parametrize("page", [1, 7, 40, 10_000])
def test_a_restore_that_was_killed_leaves_one_memory_or_the_other(
    tmp_path: Path, home: Path, settings: Settings, page: int
) -> None:
    big(home)
    BackingUp(settings).back_up(tmp_path / "b.db")
    with closing(Database(settings.database)) as database, database.write("test") as transaction:
        transaction.nodes.delete([1, 2, 3])
    before = contents_of(settings.database)
    assert run_dying("restore", home, tmp_path / "b.db", page).returncode in (0, -9)
    after = contents_of(settings.database)
    assert after == (before if page < 10_000 else contents_of(tmp_path / "b.db"))
    with closing(sqlite3.connect(settings.database)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    restore(settings, tmp_path / "b.db")
    assert not list(home.glob(".*"))


def test_a_full_disk_ends_a_restore_and_leaves_the_memory(
    tmp_path: Path, home: Path, settings: Settings
) -> None:
    big(home, 100)
    small = contents_of(settings.database)
    other = load_settings(home=tmp_path / "other", env={})
    BackingUp(other).back_up(tmp_path / "b.db") if big(other.home, 1000) else None
    done = run_dying("full", home, tmp_path / "b.db", 3_000_000)
    assert "UnavailableError" in done.stderr
    assert contents_of(settings.database) == small
    assert {path.name for path in home.iterdir()} <= {
        "cortex.db", "cortex.db-wal", "cortex.db-shm", "cortex.db.derived"
    }  # fmt: skip


def test_a_writer_that_does_not_end_is_waited_for_and_then_told(
    memory: Memory, settings: Settings, backup: Path, tmp_path: Path
) -> None:
    draft = tmp_path / "draft.db"
    make_ready(backup, draft)
    before = contents_of(settings.database)
    with closing(sqlite3.connect(settings.database, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(BusyError):
            overwrite(settings.database, draft, wait=0.2)
        other.execute("ROLLBACK")
    assert contents_of(settings.database) == before


def strangers(backup: Path, tmp_path: Path) -> Iterator[tuple[Path, type[CortexError], str]]:
    def copied(name: str, change: Callable[[sqlite3.Connection], Any]) -> Path:
        path = tmp_path / name
        path.write_bytes(backup.read_bytes())
        with closing(sqlite3.connect(path, isolation_level=None)) as connection:
            change(connection)
        return path

    damaged = copied("damaged.db", lambda _: None)
    damage(damaged)
    text = tmp_path / "text.db"
    text.write_text("no database" * 100)
    yield damaged, UnavailableError, "damaged"
    yield text, InvalidError, "no backup"
    yield tmp_path / "nothing.db", NotFoundError, "no file"
    yield (
        copied("newer.db", lambda c: c.execute("PRAGMA user_version = 99")),
        UnavailableError,
        "newer.db was written by a newer cortex",
    )
    yield (
        copied("foreign.db", lambda c: c.execute("PRAGMA application_id = 7")),
        InvalidError,
        "foreign.db is no memory",
    )
    yield (
        copied("lost.db", lambda c: c.executescript(LOSE)),
        UnavailableError,
        "points to a row",
    )


LOSE = """
PRAGMA foreign_keys = OFF;
DROP TRIGGER nodes_delete;
DELETE FROM nodes WHERE rowkey = 2;
"""


def test_what_is_no_sound_backup_is_refused_with_its_reason_and_changes_nothing(
    memory: Memory, settings: Settings, backup: Path, tmp_path: Path
) -> None:
    before = contents_of(settings.database)
    for file, error, said in strangers(backup, tmp_path):
        with pytest.raises(error, match=said):
            restore(settings, file)
    assert contents_of(settings.database) == before
    assert not list(settings.home.glob(".*"))
    with pytest.raises(InvalidError, match="itself"):
        restore(settings, settings.database)


def test_a_memory_of_a_newer_cortex_is_not_replaced(
    memory: Memory, settings: Settings, backup: Path
) -> None:
    with closing(sqlite3.connect(settings.database)) as newer:
        newer.execute("PRAGMA user_version = 99")
    with pytest.raises(UnavailableError, match="newer cortex"):
        restore(settings, backup)
    assert len(nodes_of(memory)) == 6


def test_a_backup_with_pages_of_another_size_is_restored(
    memory: Memory, settings: Settings, backup: Path
) -> None:
    with closing(sqlite3.connect(backup, isolation_level=None)) as connection:
        connection.execute("PRAGMA page_size = 16384")
        connection.execute("VACUUM")
    restore(settings, backup)
    assert len(nodes_of(memory)) == 4


def test_a_damaged_memory_is_restored_and_kept_as_it_was(
    tmp_path: Path, home: Path, settings: Settings
) -> None:
    big(home)
    sound = BackingUp(settings).back_up(tmp_path / "b.db").contents
    damage(settings.database)
    done = restore(settings, tmp_path / "b.db")
    assert done.present is None
    assert "damaged" in done.notes[0]
    assert done.safety is not None
    assert Path(done.safety).exists()
    assert contents_of(settings.database) == sound


def test_a_file_that_is_no_database_any_more_is_moved_by_a_person(
    tmp_path: Path, home: Path, settings: Settings
) -> None:
    big(home)
    BackingUp(settings).back_up(tmp_path / "b.db")
    damage(settings.database, 0)
    with pytest.raises(UnavailableError, match=r"move cortex\.db, cortex\.db-wal"):
        restore(settings, tmp_path / "b.db")


def test_the_vectors_come_back_and_what_is_the_homes_own_stays(
    tmp_path: Path, home: Path, settings: Settings
) -> None:
    with closing(Database(settings.database)) as database:
        with database.write("test") as transaction:
            transaction.embeddings.put(1, "m", "h", [b"\0" * 8])
            transaction.meta.set("memory_id", "theirs")
            transaction.meta.set("ingested_roots", '["/theirs"]')
        BackingUp(settings).back_up(tmp_path / "b.db")
        with database.write("test") as transaction:
            transaction.embeddings.drop(1, "m")
            transaction.meta.set("memory_id", "ours")
            transaction.meta.set("ingested_roots", '["/ours"]')
        restored = restore(settings, tmp_path / "b.db").restored
        with database.read() as snapshot:
            assert snapshot.meta.find("memory_id") == "ours"
            assert snapshot.meta.find("ingested_roots") == '["/ours"]'
            assert snapshot.embeddings.models() == {"m": 1}
    assert restored.vectors == 1


def test_a_backup_from_elsewhere_does_not_say_which_files_may_be_read(
    tmp_path: Path, home: Path, settings: Settings
) -> None:
    with closing(Database(settings.database)) as database, database.write("test") as transaction:
        transaction.meta.set("ingested_roots", '["/theirs"]')
    BackingUp(settings).back_up(tmp_path / "b.db")
    other = load_settings(home=tmp_path / "other", env={})
    restore(other, tmp_path / "b.db")
    with closing(Database(other.database)) as database, database.read() as snapshot:
        assert snapshot.meta.find("ingested_roots") == "[]"


def test_a_random_life_comes_back_as_it_was(tmp_path: Path) -> None:
    life = Life(tmp_path, 3)
    life.live(40)
    life.close()
    settings = load_settings(home=tmp_path, env={})
    there = rows_of(settings.database)
    BackingUp(settings).back_up(tmp_path / "b.db")
    elsewhere = load_settings(home=tmp_path / "other", env={})
    restore(elsewhere, tmp_path / "b.db")
    assert rows_of(elsewhere.database) == there


def rows_of(path: Path) -> dict[str, list[Any]]:
    """Every row of every table, but what a restore sets."""
    with closing(sqlite3.connect(path)) as connection:
        names = connection.execute(
            "SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name"
        ).fetchall()
        return {
            name: [
                row
                for row in connection.execute(f"SELECT * FROM {name}").fetchall()  # noqa: S608
                if row[0] not in ("epoch", "ingested_roots")
            ]
            for (name,) in names
        }


# ── under real servers, and from the command line ─────────────────────────────────────────────


@pytest.mark.anyio
async def test_two_servers_go_on_with_the_restored_memory(home: Path, tmp_path: Path) -> None:
    async with connected(home) as one, connected(home) as two:
        first = await call(one, "graph_add_node", type="decision", text="Tokens are RS256")
        run_cortex(home, "backup", str(tmp_path / "b.db"))
        later = await call(two, "graph_add_node", type="decision", text="Queues are Kafka",
                           relations=[f"supports:{first['id']}"])  # fmt: skip
        for client in (one, two):
            found = await call(client, "graph_search", query="kafka queues")
            assert later["id"] in {hit["id"] for hit in found["hits"]}
            around = await call(client, "graph_traverse", start_id=first["id"],
                                relation="supports", direction="in")  # fmt: skip
            assert len(around["nodes"]) == 1
            await call(client, "graph_centrality", measure="degree")
        said = run_cortex(home, "restore", str(tmp_path / "b.db"), "--yes", "--json")
        assert json.loads(said)["restored"]["nodes"] == 2
        for client in (one, two):
            found = await call(client, "graph_search", query="kafka queues")
            assert later["id"] not in {hit["id"] for hit in found["hits"]}
            found = await call(client, "graph_search", query="RS256 tokens")
            assert first["id"] in {hit["id"] for hit in found["hits"]}
            around = await call(client, "graph_traverse", start_id=first["id"],
                                relation="supports", direction="in")  # fmt: skip
            assert around["nodes"] == []
            ranked = await call(client, "graph_centrality", measure="degree")
            assert later["id"] not in json.dumps(ranked)
        again = await call(two, "graph_add_node", type="fact", text="Queues are NATS")
        found = await call(one, "graph_search", query="NATS")
        assert again["id"] in {hit["id"] for hit in found["hits"]}


def test_without_someone_to_ask_a_restore_changes_nothing(
    memory: Memory, home: Path, settings: Settings, backup: Path
) -> None:
    before = contents_of(settings.database)
    with start_cortex(home, "restore", str(backup)) as process:
        _, err = process.communicate("", timeout=60)
    assert process.returncode == 2
    assert "--yes" in err
    assert "the backup" in err  # both sides were shown
    assert contents_of(settings.database) == before


def test_a_dry_run_shows_both_sides_and_changes_nothing(
    memory: Memory, home: Path, settings: Settings, backup: Path
) -> None:
    before = sorted(path.name for path in home.iterdir())
    said = json.loads(run_cortex(home, "restore", str(backup), "--dry-run", "--json"))
    assert (said["present"]["nodes"], said["restored"]["nodes"]) == (6, 4)
    assert sorted(path.name for path in home.iterdir()) == before
    assert len(nodes_of(memory)) == 6


def test_a_dry_run_makes_no_home(tmp_path: Path, home: Path, settings: Settings) -> None:
    BackingUp(load_settings(home=big(tmp_path / "other").parent, env={})).back_up(tmp_path / "b.db")
    run_cortex(home, "restore", str(tmp_path / "b.db"), "--dry-run")
    assert not home.exists()
