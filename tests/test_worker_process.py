"""The worker's process: beside writers, without its extension, killed, idle, orphaned."""

from __future__ import annotations

import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import psutil
import pytest

from analytics.client import Worker
from analytics.queries import (
    ActivityByType,
    Buckets,
    Chronological,
    Churn,
    Counts,
    Events,
    Idle,
    IdleTimes,
)
from cortex.domain.errors import BusyError, UnavailableError
from cortex.domain.taxonomy import NodeType
from cortex.domain.values import NodeId, WorkspaceId, new_id
from tests.harness import ROOT
from tests.worker_world import PLACES, Life, rows

HERE = PLACES[0]
EVERY = (
    Events(HERE),
    Buckets(HERE),
    ActivityByType(HERE),
    Churn(HERE),
    Chronological(HERE),
    Counts(HERE),
    IdleTimes(HERE),
    Idle(HERE, "2026-03-09T00:00:00.000000Z", 3),
)
linux = pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc, or needs unshare")


@pytest.fixture
def life(tmp_path: Path) -> Iterator[Life]:
    made = Life(tmp_path, seed=3)
    made.live(30)
    yield made
    made.close()


@pytest.fixture
def worker(life: Life) -> Iterator[Worker]:
    with Worker(life.file) as started:
        yield started


def python(code: str, *arguments: str) -> subprocess.Popen[str]:
    """Another process on our code, its output to be read line by line."""
    return subprocess.Popen(
        [sys.executable, "-c", code, *arguments],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def add_note(life: Life) -> None:
    with life.database.write("test") as transaction:
        transaction.nodes.insert(
            NodeId(new_id()), NodeType.NOTE, HERE, None, {"text": "new"}, transaction.at
        )


def within(seconds: float, holds: Callable[[], bool]) -> bool:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if holds():
            return True
        time.sleep(0.05)
    return False


def gone(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


# Beside writers

HOLD = """
import sqlite3, sys
c = sqlite3.connect(sys.argv[1], isolation_level=None)
c.execute("BEGIN IMMEDIATE")
c.execute("UPDATE nodes SET status = 'stale' WHERE status = 'active'")
print("held", flush=True)
sys.stdin.readline()
c.execute("ROLLBACK")
"""


def test_every_query_is_answered_at_once_while_another_process_holds_the_write_lock(
    life: Life, worker: Worker
) -> None:
    before = [worker.ask(query) for query in EVERY]
    with python(HOLD, str(life.file)) as holder:
        assert holder.stdout and holder.stdin  # noqa: PT018  # both are pipes
        assert holder.stdout.readline() == "held\n"
        began = time.monotonic()
        assert [worker.ask(query) for query in EVERY * 6] == before * 6
        assert time.monotonic() - began < 6
        with Worker(life.file) as late:
            assert late.ask(Counts(HERE)) == before[5]
        holder.communicate("\n")


def test_commits_of_this_process_survive_a_worker_that_comes_and_goes(
    life: Life, worker: Worker
) -> None:
    for _ in range(4):
        worker.ask(Counts(HERE))
        other = python(
            "import sqlite3, sys; c = sqlite3.connect(sys.argv[1], isolation_level=None);"
            "c.execute('UPDATE meta SET value = value'); c.close()",
            str(life.file),
        )
        other.communicate()
        add_note(life)
        worker.close()
        worker = Worker(life.file)
        add_note(life)
    worker.close()
    fresh = python(
        "import sqlite3, sys; c = sqlite3.connect(sys.argv[1]);"
        "print(c.execute('PRAGMA integrity_check').fetchone()[0],"
        "c.execute(\"SELECT COUNT(*) FROM changes WHERE actor = 'test'\").fetchone()[0])",
        str(life.file),
    )
    assert fresh.communicate()[0] == "ok 8\n"


def test_the_next_answer_holds_what_was_committed_before_it(life: Life, worker: Worker) -> None:
    for _ in range(20):
        add_note(life)
        newest = worker.ask(Events(HERE, actor="test", take=1))
        with life.database.read() as snapshot:
            assert newest.generation.seq == snapshot.generation().seq
        assert len(newest.rows) == 1


# The extension

SHADOW = "import sys; sys.modules['duckdb_extension_sqlite_scanner'] = None\n"
NO_SOCKETS = """
def refuse(event, arguments):
    if event.startswith("socket."):
        raise RuntimeError(f"the worker used {event}")
sys.addaudithook(refuse)
"""


def test_without_the_extension_the_error_says_what_to_install_and_nothing_is_downloaded(
    life: Life, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "home"
    home.mkdir()
    (tmp_path / "sitecustomize.py").write_text(SHADOW + NO_SOCKETS)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setenv("HOME", str(home))
    with Worker(life.file) as worker:
        for _ in range(2):
            with pytest.raises(UnavailableError, match="pip install duckdb-extension-sqlite-sc"):
                worker.ask(Counts(HERE))
    assert list(home.iterdir()) == []


@linux
@pytest.mark.skipif(
    shutil.which("unshare") is None
    or subprocess.run(["unshare", "-rn", "true"], capture_output=True, check=False).returncode != 0,
    reason="this system gives no process a network of its own",
)
def test_without_a_network_the_bundled_extension_loads(life: Life) -> None:
    code = (
        "import sys, pathlib; from analytics.client import Worker;"
        "from analytics.queries import Counts;"
        "print(len(Worker(pathlib.Path(sys.argv[1])).ask(Counts('here')).rows))"
    )
    asked = subprocess.run(
        ["unshare", "-rn", sys.executable, "-c", code, str(life.file)],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=True,
        timeout=30,
    )
    assert int(asked.stdout) > 10


# What cannot be read


OLD_FILE = """
CREATE TABLE nodes (rowkey INTEGER PRIMARY KEY, id, type, workspace_id, parent_id, data, status,
                    created_at, updated_at);
CREATE TABLE relations (rowkey INTEGER PRIMARY KEY, id, workspace_id, from_id, to_id, type, weight,
                        data, created_at, updated_at);
CREATE TABLE navigation_history (id INTEGER PRIMARY KEY, workspace_id, node_id, action, context,
                                 created_at);
CREATE TABLE changes (seq INTEGER PRIMARY KEY, at, tx, actor, workspace_id, entity, key, op,
                      before);
CREATE TABLE accesses (node_key INTEGER PRIMARY KEY, count, last_at);
CREATE TABLE meta (key, value);
INSERT INTO meta VALUES ('epoch', 'old'), ('log_floor', '0');
INSERT INTO nodes VALUES
    (1, 'a', 'fact', 'here', NULL, '{}', 'active', :at, :at),
    (2, 'b', 'fact', 'here', NULL, '{}', 'active', :at, :at),
    (3, 'c', 'novel', 'here', NULL, '{}', 'active', :at, :at),
    (4, 'd', 'fact', 'here', NULL, '{', 'active', :at, :at);
INSERT INTO relations VALUES
    (1, 'r1', 'here', 'a', 'b', 'supports', 'heavy', '{}', :at, :at),
    (2, 'r2', 'here', 'b', 'a', 'supports', 0.1, '{}', :at, :at),
    (3, 'r3', 'here', 'a', 'b', 'blocks', 1, '{}', '2026-13-40T00:00:00.000000Z', :at);
INSERT INTO navigation_history VALUES
    (1, 'here', 'a', 'focus', 'no JSON', :at), (2, 'here', 'a', 'dance', '{}', :at);
"""


def test_a_cell_that_cannot_be_read_is_named_and_the_other_rows_are_returned(
    tmp_path: Path,
) -> None:
    file = tmp_path / "old.db"
    with closing(sqlite3.connect(file)) as shell:
        shell.executescript(OLD_FILE.replace(":at", "'2026-03-01T00:00:00.000000Z'"))
    with Worker(file) as worker:
        buckets = worker.ask(Buckets("here"))
        kinds = {row.kind: row.total for row in buckets.rows}
        assert kinds == {"created": 2, "related": 1, "focus": 1}
        assert buckets.unread == (
            "navigation_history 2: action cannot be read",
            "nodes 3: type cannot be read",
            "nodes 4: data cannot be read",
            "relations 1: weight cannot be read",
            "relations 3: created_at cannot be read",
        )
        with closing(sqlite3.connect(file)) as shell:
            shell.execute("UPDATE relations SET weight = 0.5 WHERE rowkey = 1")
            shell.execute(
                "INSERT INTO changes VALUES (1, '2026-03-01T00:00:00.000000Z', 1, 'shell', 'here',"
                " 'relation', 1, 'update', NULL)"
            )
            shell.commit()
        mended = worker.ask(Buckets("here", kind="related"))
        assert [row.total for row in mended.rows] == [2]
        assert "relations 1: weight cannot be read" not in mended.unread


@pytest.mark.parametrize(
    ("content", "said"),
    [(b"", "no memory"), (b"not a database at all " * 100, "not a SQLite database"),
     (None, "no memory at")],
)  # fmt: skip
def test_a_file_that_is_no_memory_is_refused_with_its_reason(
    tmp_path: Path, content: bytes | None, said: str
) -> None:
    file = tmp_path / "x.db"
    if content is not None:
        file.write_bytes(content)
    with Worker(file) as worker, pytest.raises(UnavailableError, match=said):
        worker.ask(Counts(HERE))


# Life and death


def test_a_killed_worker_is_started_again_by_the_next_call(worker: Worker) -> None:
    first = worker.ask(Counts(HERE))
    pid = worker.pid
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    assert worker.ask(Counts(HERE)) == first
    assert worker.pid not in (None, pid)


def test_a_worker_that_dies_at_every_start_is_an_error_that_says_why(
    life: Life, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = tmp_path / "duckdb"
    broken.mkdir()
    (broken / "__init__.py").write_text("raise ImportError('this wheel is of another platform')")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    with Worker(life.file) as worker, pytest.raises(UnavailableError, match="of another platform"):
        worker.ask(Counts(HERE))


def test_a_worker_that_nobody_asks_ends_and_comes_back(life: Life) -> None:
    with Worker(life.file, idle_seconds=0.5) as worker:
        first = worker.ask(Counts(HERE))
        assert worker.pid is not None
        assert within(5, lambda: worker.pid is None)
        assert worker.ask(Counts(HERE)) == first


@linux
def test_an_answer_that_comes_too_late_is_an_error_and_the_next_one_is_its_own(
    worker: Worker,
) -> None:
    wanted = worker.ask(Counts(HERE))
    pid = worker.pid
    assert pid is not None
    os.kill(pid, signal.SIGSTOP)
    with pytest.raises(BusyError):
        worker.ask(Buckets(HERE), timeout=0.3)
    assert gone(pid)
    assert worker.ask(Counts(HERE)) == wanted


@linux
def test_a_worker_that_still_reads_the_file_is_left_at_it_by_whoever_waits_no_longer(
    life: Life,
) -> None:
    with Worker(life.file) as warm:
        wanted = warm.ask(Buckets(HERE))
    with Worker(life.file) as worker:
        with pytest.raises(BusyError):
            worker.ask(Counts(HERE), timeout=0.0)
        pid = worker.pid
        assert pid is not None
        os.kill(pid, signal.SIGSTOP)
        with pytest.raises(BusyError):
            worker.ask(Buckets(HERE), wait=0.2)
        os.kill(pid, signal.SIGCONT)
        assert worker.ask(Buckets(HERE)) == wanted
        assert worker.pid == pid


@linux
def test_whoever_waits_no_longer_for_a_busy_worker_leaves_it_at_its_work(worker: Worker) -> None:
    wanted = worker.ask(Counts(HERE))
    pid = worker.pid
    assert pid is not None
    os.kill(pid, signal.SIGSTOP)
    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(worker.ask, Counts(HERE))
        assert within(5, first.running)
        with pytest.raises(BusyError):
            worker.ask(Buckets(HERE), wait=0.2)
        os.kill(pid, signal.SIGCONT)
        assert first.result(timeout=20) == wanted
    assert worker.pid == pid


def test_an_ended_worker_starts_again_with_the_next_question(worker: Worker) -> None:
    first = worker.ask(Counts(HERE))
    pid = worker.pid
    worker.end()
    assert worker.pid is None
    assert worker.ask(Counts(HERE)) == first
    assert worker.pid != pid


@linux
def test_closing_ends_a_question_that_another_thread_waits_for(worker: Worker) -> None:
    worker.ask(Counts(HERE))
    pid = worker.pid
    assert pid is not None
    os.kill(pid, signal.SIGSTOP)
    with ThreadPoolExecutor(1) as pool:
        asked = pool.submit(worker.ask, Counts(HERE))
        time.sleep(0.3)
        worker.close()
        with pytest.raises(UnavailableError, match="closed"):
            asked.result(timeout=5)
    assert gone(pid)


def test_threads_share_one_worker(worker: Worker) -> None:
    wanted = {query: worker.ask(query) for query in EVERY}
    with ThreadPoolExecutor(8) as pool:
        answers = pool.map(worker.ask, EVERY * 8)
        assert list(answers) == [wanted[query] for query in EVERY * 8]
    assert [child.pid for child in psutil.Process().children() if child.pid == worker.pid]


def test_a_worker_outlives_the_thread_that_started_it(worker: Worker) -> None:
    starter = threading.Thread(target=worker.ask, args=(Counts(HERE),))
    starter.start()
    starter.join()
    pid = worker.pid
    time.sleep(1.5)
    worker.ask(Counts(HERE))
    assert worker.pid == pid


def test_a_closed_worker_leaves_no_process_and_refuses(worker: Worker) -> None:
    worker.ask(Counts(HERE))
    pid = worker.pid
    assert pid is not None
    worker.close()
    assert within(1, lambda: gone(pid))
    with pytest.raises(UnavailableError):
        worker.ask(Counts(HERE))


PARENT = """
import os, subprocess, sys, pathlib
from analytics.client import Worker
from analytics.queries import Counts
worker = Worker(pathlib.Path(sys.argv[1]))
worker.ask(Counts("here"))
if sys.argv[2] == "shared":
    for descriptor in map(int, os.listdir("/proc/self/fd")):
        if descriptor > 2:
            try:
                os.set_inheritable(descriptor, True)
            except OSError:
                pass
    subprocess.Popen(["sleep", "8"], close_fds=False, stdout=subprocess.DEVNULL)
print(worker.pid, flush=True)
sys.stdin.readline()
"""


@pytest.mark.parametrize("pipe", ["alone", pytest.param("shared", marks=linux)])
def test_a_worker_ends_within_five_seconds_of_its_killed_parent(life: Life, pipe: str) -> None:
    with python(PARENT, str(life.file), pipe) as parent:
        assert parent.stdout
        pid = int(parent.stdout.readline())
        parent.kill()
        assert within(5, lambda: gone(pid))


def test_nothing_of_the_worker_reaches_this_process_stdout(
    life: Life, capfd: pytest.CaptureFixture[str]
) -> None:
    with Worker(life.file) as worker:
        for query in EVERY:
            rows(worker, query)
        pid = worker.pid
        assert pid is not None
        os.kill(pid, signal.SIGKILL)
        rows(worker, Counts(WorkspaceId("nowhere")))
    assert capfd.readouterr() == ("", "")
