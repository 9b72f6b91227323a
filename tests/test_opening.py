"""How a server starts and ends: good and bad files, full disks, other programs beside it."""

from __future__ import annotations

import ast
import resource
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest

from cortex.config import load_settings
from cortex.memory import open_memory
from cortex.services.fields import Fields
from cortex.tools.catalogue import DEFAULT_SETS, TOOLS
from cortex.tools.registry import select
from tests.harness import ROOT, Wire, parameters, wired

linux = pytest.mark.skipif(sys.platform != "linux", reason="looks into another process by /proc")


def start(
    home: Path, *options: str, cwd: Path, limit: Callable[[], None] | None = None
) -> tuple[int, str]:
    """Exit code and stderr of a server whose client says nothing."""
    target = parameters(home, *options, cwd=cwd)
    done = subprocess.run(
        [target.command, *target.args],
        env=target.env,
        cwd=target.cwd,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=30,
        preexec_fn=limit,
    )
    assert done.stdout == "", "stdout belongs to the protocol"
    return done.returncode, done.stderr


def rows(home: Path, query: str) -> list[Any]:
    """What another process sees in the file."""
    connection = sqlite3.connect(home / "cortex.db")
    try:
        return connection.execute(query).fetchall()
    finally:
        connection.close()


def seeded(home: Path, count: int = 20) -> Path:
    """A closed memory of `count` tasks, all of it in the main file."""
    memory = open_memory(load_settings(home=home, workspace="w", env={}))
    for number in range(count):
        memory.adding.add_node("task", Fields(title=f"task {number}", text="word " * 200))
    memory.close()
    assert not Path(f"{home}/cortex.db-wal").exists()
    return home / "cortex.db"


# What cannot be opened


@pytest.mark.parametrize(
    "content", [b"not a database at all\n" * 400, b"SQLite format 3\x00" + b"\xff" * 8000]
)
def test_a_file_that_is_no_database_is_refused_and_left_as_it_was(
    tmp_path: Path, content: bytes
) -> None:
    file = tmp_path / "cortex.db"
    file.write_bytes(content)
    code, stderr = start(tmp_path, cwd=tmp_path)
    assert code != 0
    assert stderr.startswith(f"cortex: unavailable: {file} is not a SQLite database. ")
    assert stderr.count("\n") == 1
    assert file.read_bytes() == content


def test_a_database_of_another_program_is_refused_and_left_as_it_was(tmp_path: Path) -> None:
    file = tmp_path / "cortex.db"
    other = sqlite3.connect(file)
    other.executescript("CREATE TABLE bookmarks (url); INSERT INTO bookmarks VALUES ('a')")
    other.close()
    before = file.read_bytes()
    code, stderr = start(tmp_path, cwd=tmp_path)
    assert code != 0
    assert stderr.count("\n") == 1
    assert "another program (tables: bookmarks)" in stderr
    assert file.read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == ["cortex.db"]


def test_a_folder_that_cannot_be_made_or_written_is_one_line_and_no_start(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    places = [tmp_path / "file" / "below", Path("/proc/cortex")]
    for place in places if sys.platform == "linux" else places[:1]:
        code, stderr = start(place, cwd=tmp_path)
        assert code != 0
        assert stderr.startswith(f"cortex: unavailable: {place}/cortex.db cannot be ")
        assert stderr.count("\n") == 1


def test_a_file_of_a_newer_cortex_is_refused(tmp_path: Path) -> None:
    file = seeded(tmp_path, 1)
    newer = sqlite3.connect(file)
    newer.execute("PRAGMA user_version = 99")
    newer.close()
    code, stderr = start(tmp_path, cwd=tmp_path)
    assert code != 0
    assert "newer cortex (schema 99)" in stderr


@pytest.mark.parametrize(
    "options",
    [("--tools", "nope"), ("--read-only",), ("--workspace", "a\nb")],
)
def test_a_start_that_cannot_be_meant_is_one_line_and_no_start(
    tmp_path: Path, options: tuple[str, ...]
) -> None:
    code, stderr = start(tmp_path / "home", *options, cwd=tmp_path)
    assert code != 0
    assert stderr.startswith("cortex: ")
    assert stderr.count("\n") == 1
    assert "Traceback" not in stderr


def test_damaged_pages_make_calls_unavailable_and_the_server_lives(tmp_path: Path) -> None:
    file = seeded(tmp_path, 150)
    whole = file.read_bytes()
    half = len(whole) // 8192 * 4096  # the schema is whole, so that it opens
    file.write_bytes(whole[:half] + b"\x5a" * (len(whole) - half))
    with wired(tmp_path) as server:
        for tool in ("desktop_open", "graph_search", "session_timeline"):
            done = server.call(tool, **({"query": "task"} if tool == "graph_search" else {}))
            assert done["isError"]
            text = done["content"][0]["text"]
            assert text.startswith(f"unavailable: {file} is damaged. ")
            assert "\n" not in text
        assert server.end() == 0


def test_a_damaged_schema_is_one_line_and_no_start(tmp_path: Path) -> None:
    file = seeded(tmp_path, 1)
    content = file.read_bytes()[:4096] + b"\x5a" * 100_000
    file.write_bytes(content)
    code, stderr = start(tmp_path, cwd=tmp_path)
    assert code != 0
    assert stderr.startswith(f"cortex: unavailable: {file} is damaged. ")
    assert stderr.count("\n") == 1
    assert file.read_bytes() == content


# A full disk


def small(limit: int) -> Callable[[], None]:
    return lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))


@pytest.mark.parametrize("limit", [0, 65536])
def test_a_start_on_a_full_disk_is_one_line_and_the_next_start_is_clean(
    tmp_path: Path, limit: int
) -> None:
    home = tmp_path / "home"
    code, stderr = start(home, cwd=tmp_path, limit=small(limit))
    assert code != 0
    assert stderr.startswith("cortex: unavailable: ")
    assert stderr.count("\n") == 1
    assert start(home, cwd=tmp_path) == (0, "")
    assert rows(home, "PRAGMA integrity_check") == [("ok",)]
    assert rows(home, "SELECT count(*) FROM nodes") == [(0,)]


@linux
def test_a_disk_that_fills_up_refuses_writes_loses_none_and_serves_again(tmp_path: Path) -> None:
    home = tmp_path / "home"
    long = "x" * 20_000
    with wired(home) as server:
        made = [server.call("graph_add_node", type="task", title="first")]
        room = (home / "cortex.db-wal").stat().st_size + 200_000
        everything = (resource.RLIM_INFINITY, resource.RLIM_INFINITY)
        resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE, (room, everything[1]))
        while not made[-1]["isError"] and len(made) < 50:
            made.append(server.call("graph_add_node", type="task", title="next", text=long))
        refusal = made.pop()["content"][0]["text"]
        assert refusal.startswith("unavailable: ")
        assert "\n" not in refusal
        ids = {done["structuredContent"]["id"] for done in made}
        read = server.call("graph_get_node", node_id=sorted(ids)[0])
        assert not read["isError"], "reading goes on"
        resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE, everything)
        after = server.call("graph_add_node", type="task", title="after", text=long)
        assert not after["isError"]
        ids.add(after["structuredContent"]["id"])
        assert server.end() == 0
    assert rows(home, "PRAGMA integrity_check") == [("ok",)]
    assert {id_ for (id_,) in rows(home, "SELECT id FROM nodes WHERE type = 'task'")} == ids


# The end


def busy(home: Path) -> Wire:
    """A server with a memory, a model and a written node."""
    server = Wire(home)
    server.greet()
    assert not server.call("vector_store", text="the build runs on two cores")["isError"]
    assert server.call("vector_search", query="build")["structuredContent"]["hits"]
    return server


@pytest.mark.parametrize("way", ["EOF", "SIGTERM", "SIGINT"])
def test_a_server_ends_with_zero_within_five_seconds_and_leaves_nothing(
    tmp_path: Path, way: str
) -> None:
    server = busy(tmp_path / "home")
    try:
        children = psutil.Process(server.process.pid).children(recursive=True)
        if way == "EOF":
            assert server.end(5.0) == 0
        else:
            server.process.send_signal(getattr(signal, way))
            assert server.process.wait(5.0) == 0
        _, alive = psutil.wait_procs(children, 1.0)
        assert not alive
        assert "Traceback" not in server.stderr()
    finally:
        server.close()
    assert rows(tmp_path / "home", "PRAGMA integrity_check") == [("ok",)]


def test_what_was_acknowledged_before_a_kill_is_there_after_it(tmp_path: Path) -> None:
    home = tmp_path / "home"
    with wired(home) as server:
        ids = [
            server.call("graph_add_node", type="task", title=str(n))["structuredContent"]["id"]
            for n in range(5)
        ]
        server.process.kill()
        server.process.wait()
    with wired(home) as server:
        got = server.call("graph_get_node", node_id=ids, depth=0)["structuredContent"]
        assert [node["id"] for node in got["starts"]] == ids


# A cold start


@linux
def test_a_cold_start_without_network_lists_its_tools_before_anything_heavy_is_loaded(
    tmp_path: Path,
) -> None:
    nowhere = {f"{kind}_proxy": "http://127.0.0.1:9" for kind in ("http", "https", "all")}
    with wired(tmp_path / "home", **nowhere) as server:
        tools = server.ask("tools/list")["result"]["tools"]
        maps = {Path(m.path).name for m in psutil.Process(server.process.pid).memory_maps()}
        assert len(tools) == len(select(TOOLS, DEFAULT_SETS, False))
        assert not [name for name in maps if "onnx" in name]
        server.call("vector_store", text="Passwords are hashed with argon2")
        found = server.call("vector_search", query="how are secrets stored")["structuredContent"]
        assert found["degraded"] is None
        assert found["hits"][0]["title"] == "Passwords are hashed with argon2"


def test_a_model_that_is_not_there_is_named_and_keywords_answer(tmp_path: Path) -> None:
    with wired(tmp_path / "home", "--model", str(tmp_path / "no-model")) as server:
        server.call("graph_add_node", type="task", title="rotate the signing keys")
        found = server.call("graph_search", query="signing")["structuredContent"]
        assert str(tmp_path / "no-model") in found["degraded"]
        assert [hit["title"] for hit in found["hits"]] == ["rotate the signing keys"]


# Another SQLite beside ours

ATTACHED = """
import importlib.util, pathlib, duckdb
root = pathlib.Path(importlib.util.find_spec("duckdb_extension_sqlite_scanner").origin).parent
duck = duckdb.connect()
duck.execute(f"LOAD '{next(root.glob('extensions/*/sqlite_scanner.duckdb_extension'))}'")
duck.execute("SET sqlite_disable_multithreaded_scans = true")
duck.execute("SET disabled_optimizers = 'common_subplan'")
duck.execute("ATTACH '%s' AS s (TYPE sqlite, READ_ONLY)")
def ask(sql):
    return duck.execute(sql).fetchall()
print(ask("SELECT * FROM sqlite_query('s', 'SELECT sqlite_version()')")[0][0].split(".")[:2])
print(ask("SELECT count(*) FROM s.nodes WHERE type = 'task'")[0][0])
print(ask("SELECT count(*) FROM s.relations r JOIN s.nodes n ON n.id = r.to_id")[0][0])
print(ask("SELECT * FROM sqlite_query('s', 'SELECT max(seq), count(*) FROM changes')")[0][0])
for table in ("navigation_history", "embeddings", "index_state", "accesses", "waves", "meta"):
    ask(f"SELECT * FROM s.{table}")
ask("DETACH s")
duck.close()
"""


def test_commits_survive_a_duckdb_child_that_attaches_the_file(tmp_path: Path) -> None:
    home = tmp_path / "home"
    with wired(home) as server:
        for number in range(3):
            server.call("graph_add_node", type="task", title=f"before {number}")
        child = subprocess.run(
            [sys.executable, "-c", ATTACHED % (home / "cortex.db")],
            capture_output=True,
            text=True,
            check=True,
            timeout=60,
        )
        assert child.stdout.split("\n")[:3] == ["['3', '38']", "3", "3"]
        other = sqlite3.connect(home / "cortex.db", isolation_level=None)
        other.execute("UPDATE nodes SET data = data WHERE rowid = 1")
        other.close()  # the last but one connection: it may checkpoint, and must not delete the log
        for number in range(5):
            done = server.call("graph_add_node", type="task", title=f"after {number}")
            assert not done["isError"]
        assert rows(home, "SELECT count(*) FROM nodes WHERE type = 'task'") == [(8,)]
        assert rows(home, "PRAGMA integrity_check") == [("ok",)]


def test_no_module_of_cortex_imports_duckdb() -> None:
    guilty = []
    for file in sorted((ROOT / "cortex").rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text())):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            if any(name.split(".")[0] == "duckdb" for name in names):
                guilty.append(str(file.relative_to(ROOT)))
    assert guilty == []


@linux
def test_a_server_at_work_has_no_duckdb_in_its_memory(tmp_path: Path) -> None:
    with wired(tmp_path / "home") as server:
        for tool in ("desktop_open", "session_timeline", "temporal_walk"):
            assert not server.call(tool)["isError"]
        maps = psutil.Process(server.process.pid).memory_maps()
        assert not [m.path for m in maps if "duckdb" in m.path]
