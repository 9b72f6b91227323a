"""The server's log: quiet on stderr, a file of its own in the home, no texts of memories."""

from __future__ import annotations

import logging
import os
import re
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from cortex.cli import logs
from cortex.cli.logs import KEPT, SIZE, LogTarget, log_target, set_up_logging
from cortex.domain.errors import InvalidError
from cortex.tools.catalogue import DEFAULT_SETS, TOOLS
from cortex.tools.registry import select
from tests.harness import wired
from tests.local import start_cortex

SECRET = "the launch code is zebra"


@pytest.fixture(autouse=True)
def _logging_as_it_was() -> Iterator[None]:
    root, ours = logging.getLogger(), logging.getLogger("cortex")
    before = (root.handlers[:], root.level, ours.level)
    yield
    for handler in root.handlers:
        if handler not in before[0]:
            handler.close()
    root.handlers, root.level = before[0], before[1]
    ours.setLevel(before[2])


def files(home: Path) -> list[Path]:
    return sorted((home / "logs").glob("*"))


def test_a_served_session_is_told_in_order_without_its_texts(home: Path) -> None:
    with wired(home) as wire:
        wire.call("graph_add_node", type="fact", text=SECRET)
        wire.call("graph_search", query=SECRET)
        wire.call("graph_get_node", node_id=SECRET)
        wire.call(SECRET)
        pid = wire.process.pid
        assert wire.end() == 0
        said = wire.stderr()
        heard = wire.heard
    [file] = files(home)
    text = file.read_text()
    wanted = [
        rf"INFO cortex\.cli\.serving: cortex \S+ starts: process {pid}, workspace 'w'"
        rf".*{len(select(TOOLS, DEFAULT_SETS, False))} tools",
        r"INFO cortex\.server\.app: client 'wire', connection [0-9a-f]{8}",
        r"call graph_add_node: ok, \d+ ms",
        r"call graph_search: ok, \d+ ms",
        r"call graph_get_node: \w+, \d+ ms",
        r"call an unknown tool: not_found, \d+ ms",
        r"INFO cortex\.server\.stdio: stopped, exit code 0",
    ]
    assert re.search(".*".join(wanted), text, re.S), text
    assert all(re.match(r"\d{4}-\d\d-\d\dT[\d:]{8}\.\d{3}Z ", line) for line in text.splitlines())
    assert "zebra" not in text
    assert said == "", "hosts show what stands on stderr as errors"
    assert all(line.startswith(b'{"jsonrpc"') for line in heard)


def test_only_the_owner_may_read_it(home: Path) -> None:
    with wired(home):
        pass
    [file] = files(home)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700


def test_two_servers_of_one_home_write_a_file_each(home: Path) -> None:
    with wired(home) as one, wired(home) as other:
        one.call("desktop_open")
        other.call("desktop_open")
        pids = {str(one.process.pid), str(other.process.pid)}
    assert {file.stem.rpartition("-")[2] for file in files(home)} == pids


def test_off_makes_no_file_and_a_named_one_is_appended_to(home: Path, tmp_path: Path) -> None:
    with wired(home, CORTEX_LOG="off") as wire:
        wire.end()
    assert files(home) == []
    named = tmp_path / "mine.log"
    named.write_text("before\n")
    with wired(home, CORTEX_LOG=f"INFO:{named}") as wire:
        wire.end()
    assert named.read_text().startswith("before\n")
    assert "exit code 0" in named.read_text()
    assert files(home) == []


def test_an_unknown_level_ends_the_start_with_the_valid_ones(home: Path) -> None:
    with start_cortex(home, "serve", CORTEX_LOG="loud") as process:
        out, err = process.communicate("", timeout=30)
    assert (process.returncode, out) == (2, "")
    assert "debug, info, warning, error, off" in err


def test_a_home_that_cannot_be_logged_in_is_served_all_the_same(home: Path) -> None:
    home.mkdir()
    (home / "logs").write_text("a file where the folder would be")
    with wired(home) as wire:
        assert not wire.call("desktop_open").get("isError")
        assert wire.end() == 0
        assert "no log file" in wire.stderr()


def test_other_commands_leave_no_log(home: Path) -> None:
    with start_cortex(home, "status") as process:
        assert process.wait(60) == 0
        process.communicate()
    assert not (home / "logs").exists()


@pytest.mark.parametrize(
    ("text", "target"),
    [
        ("", LogTarget(logging.INFO)),
        (" DEBUG ", LogTarget(logging.DEBUG)),
        ("off", LogTarget(None)),
        ("error:/var/x.log", LogTarget(logging.ERROR, Path("/var/x.log"))),
        (":/var/x.log", LogTarget(logging.INFO, Path("/var/x.log"))),
    ],
)
def test_the_variable_is_a_level_and_a_path(text: str, target: LogTarget) -> None:
    assert log_target(text) == target


def test_a_path_alone_is_refused() -> None:
    with pytest.raises(InvalidError, match="LEVEL:PATH"):
        log_target("/var/x.log")


def test_it_rotates_and_stays_below_its_bound(home: Path) -> None:
    path = set_up_logging(home, {})
    assert path is not None
    for _ in range(60):
        logging.getLogger("cortex.test").info("x" * 100_000)
    kept = files(home)
    assert len(kept) == logs.ROTATED + 1
    assert all(file.stat().st_size <= SIZE for file in kept)
    assert {stat.S_IMODE(file.stat().st_mode) for file in kept} == {0o600}


def test_the_oldest_are_removed_but_not_those_of_running_processes(home: Path) -> None:
    folder = home / "logs"
    folder.mkdir(parents=True)
    mine = folder / f"cortex-20200101T000000Z-{os.getpid()}.log"
    mine.touch()
    for number in range(KEPT + 5):
        (folder / f"cortex-20210101T0000{number:02}Z-99999999.log").touch()
    set_up_logging(home, {})
    left = files(home)
    assert mine in left
    assert len(left) == KEPT + 1
    assert not (folder / "cortex-20210101T000000Z-99999999.log").exists()


def test_libraries_are_heard_from_warnings_on(home: Path) -> None:
    path = set_up_logging(home, {"CORTEX_LOG": "debug"})
    assert path is not None
    logging.getLogger("mcp.server").info("what passes through")
    logging.getLogger("mcp.server").warning("something is wrong")
    logging.getLogger("cortex.x").debug("a detail")
    text = path.read_text()
    assert "passes" not in text
    assert "something is wrong" in text
    assert "a detail" in text
