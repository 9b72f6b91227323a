"""Opening the file: made private, once, whole, and only when it is ours."""

from __future__ import annotations

import sqlite3
import stat
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from cortex.domain.errors import UnavailableError
from cortex.domain.taxonomy import NodeType
from cortex.domain.values import NodeId, WorkspaceId, new_id
from cortex.store.database import Database
from cortex.store.schema import APPLICATION_ID, MIGRATIONS
from tests.harness import ROOT

OPEN_AT_ONCE = """
import sys, time
from pathlib import Path
from cortex.store.database import Database
home, go = Path(sys.argv[1]), Path(sys.argv[2])
print("here", flush=True)
while not go.exists():
    pass
for number in range(int(sys.argv[3])):
    database = Database(home / str(number) / "cortex.db")
    with database.read() as snapshot:
        print(snapshot.generation().epoch)
    database.close()
"""
DIE_IN_THE_MIDDLE = """
import os, sys
from pathlib import Path
from cortex.store import database
statements = database.MIGRATIONS[0]
def dying():
    yield from statements[: len(statements) // 2]
    os._exit(9)
database.MIGRATIONS = (dying(),)
database.Database(Path(sys.argv[1]))
"""
COUNT_AND_CLOSE = """
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1])
print(connection.execute("SELECT count(*) FROM nodes").fetchone()[0])
connection.close()
"""


def run(code: str, *arguments: str) -> subprocess.Popen[str]:
    """Python code in a process of its own."""
    return subprocess.Popen(
        [sys.executable, "-c", code, *arguments],
        env={"PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def output(process: subprocess.Popen[str]) -> str:
    out, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    return out


def add(database: Database) -> None:
    with database.write("test") as transaction:
        transaction.nodes.insert(
            NodeId(new_id()), NodeType.FACT, WorkspaceId("w"), None, {}, transaction.at
        )


def test_a_new_file_is_its_owners_alone(home: Path) -> None:
    Database(home / "cortex.db").close()
    assert stat.S_IMODE(home.stat().st_mode) == 0o700
    assert stat.S_IMODE((home / "cortex.db").stat().st_mode) == 0o600


def test_the_log_beside_the_file_is_its_owners_alone(home: Path) -> None:
    database = Database(home / "cortex.db")
    add(database)
    assert {stat.S_IMODE(file.stat().st_mode) for file in home.rglob("*") if file.is_file()} == {
        0o600
    }
    database.close()


def test_processes_that_open_new_homes_at_once_all_succeed(home: Path, tmp_path: Path) -> None:
    go = tmp_path / "go"
    rounds = 60
    processes = [run(OPEN_AT_ONCE, str(home), str(go), str(rounds)) for _ in range(4)]
    for process in processes:
        assert process.stdout
        assert process.stdout.readline() == "here\n"
    go.touch()
    epochs = {output(process) for process in processes}
    assert len(epochs) == 1, "one file has one epoch"
    assert len(epochs.pop().split()) == rounds


def test_a_crash_inside_a_migration_leaves_nothing_of_it(home: Path) -> None:
    home.mkdir()
    path = home / "cortex.db"
    process = run(DIE_IN_THE_MIDDLE, str(path))
    process.communicate(timeout=60)
    assert process.returncode == 9
    shell = sqlite3.connect(path)
    assert shell.execute("SELECT count(*) FROM sqlite_master").fetchone() == (0,)
    assert shell.execute("PRAGMA user_version").fetchone() == (0,)
    shell.close()
    database = Database(path)
    add(database)
    database.close()


def test_a_migration_that_fails_leaves_nothing_of_it(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = (*MIGRATIONS, ("CREATE TABLE extra (x)", "CREATE TABLE extra (x)"))
    monkeypatch.setattr("cortex.store.database.MIGRATIONS", broken)
    with pytest.raises(UnavailableError):
        Database(home / "cortex.db")
    shell = sqlite3.connect(home / "cortex.db")
    assert shell.execute("SELECT count(*) FROM sqlite_master").fetchone() == (0,)
    shell.close()


def test_a_second_migration_keeps_the_rows_and_the_epoch(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    database = Database(home / "cortex.db")
    add(database)
    with database.read() as snapshot:
        before = snapshot.generation()
    database.close()
    more = (*MIGRATIONS, ("CREATE TABLE extra (x)",))
    monkeypatch.setattr("cortex.store.database.MIGRATIONS", more)
    database = Database(home / "cortex.db")
    with database.read() as snapshot:
        assert snapshot.generation() == before
        assert snapshot.nodes.count(WorkspaceId("w")) == 1
    database.close()


@pytest.fixture
def first_schema(home: Path) -> Path:
    """A file as the first schema made it, with one node."""
    path = home / "cortex.db"
    with closing(Database(path)) as database:
        add(database)
    with closing(sqlite3.connect(path, isolation_level=None)) as shell:
        for name in ("nodes_files", "relations_to_files", "changes_of_nodes"):
            shell.execute(f"DROP INDEX {name}")
        shell.execute("PRAGMA user_version = 1")
    return path


def test_a_file_of_the_first_schema_gets_what_later_ones_added(first_schema: Path) -> None:
    with closing(Database(first_schema)) as database, database.read() as snapshot:
        assert snapshot.integrity.differences() == []
        (node,) = snapshot.nodes.newest(WorkspaceId("w"), 10)
        assert snapshot.filerefs.rested_on([node.id], 10) == []


def test_an_older_file_is_not_read_before_it_was_brought_up_to_date(first_schema: Path) -> None:
    with pytest.raises(UnavailableError, match=r"without --read-only"):
        Database(first_schema, read_only=True)


def test_a_file_of_a_newer_schema_is_refused_untouched(home: Path) -> None:
    Database(home / "cortex.db").close()
    shell = sqlite3.connect(home / "cortex.db")
    shell.execute(f"PRAGMA user_version = {len(MIGRATIONS) + 1}")
    shell.close()
    before = (home / "cortex.db").read_bytes()
    with pytest.raises(UnavailableError, match="newer cortex"):
        Database(home / "cortex.db")
    assert (home / "cortex.db").read_bytes() == before


def test_a_file_of_another_program_is_refused_untouched(home: Path) -> None:
    home.mkdir()
    shell = sqlite3.connect(home / "cortex.db")
    shell.execute("CREATE TABLE theirs (x)")
    shell.close()
    before = (home / "cortex.db").read_bytes()
    with pytest.raises(UnavailableError, match="another program"):
        Database(home / "cortex.db")
    assert (home / "cortex.db").read_bytes() == before


def test_the_file_says_whose_it_is(home: Path) -> None:
    Database(home / "cortex.db").close()
    shell = sqlite3.connect(home / "cortex.db")
    assert shell.execute("PRAGMA application_id").fetchone() == (APPLICATION_ID,)
    assert shell.execute("PRAGMA user_version").fetchone() == (len(MIGRATIONS),)
    shell.close()


def test_a_second_memory_in_one_process_drops_no_lock_of_the_first(home: Path) -> None:
    # POSIX locks belong to the process: closing any descriptor of the file drops them all,
    # and then the next process to close takes the log away from under the first.
    first = Database(home / "cortex.db")
    add(first)
    second = Database(home / "cortex.db")
    assert output(run(COUNT_AND_CLOSE, str(first.path))) == "1\n"
    add(first)
    assert output(run(COUNT_AND_CLOSE, str(first.path))) == "2\n"
    first.close()
    second.close()
