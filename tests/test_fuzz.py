"""Calls of any shape, files with flipped bytes, bytes that are no protocol: always a clear answer.

In a test run some hundred calls, the same each time; `make fuzz` makes FUZZ_CALLS of them
(10,000) from a fresh seed, and measures memory.
"""

from __future__ import annotations

import json
import os
import queue
import random
import shutil
import sqlite3
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import psutil
import pytest
from hypothesis import HealthCheck, Phase, given, settings

from cortex.config import load_settings
from cortex.domain.errors import ConflictError, CortexError, NotFoundError, UnavailableError
from cortex.memory import open_memory
from cortex.services.fields import Fields
from cortex.tools.catalogue import TOOLS
from tests.fuzz.calls import Call, calls
from tests.harness import ROOT, parameters

CALLS = int(os.environ.get("FUZZ_CALLS", "250"))
SWEEP = 250  # calls between two sweeps, so that what grows is the process and not its store
HANG = 60.0
CODES = frozenset(each.code for each in (CortexError, *CortexError.__subclasses__()))


class Target:
    """One real server on stdio, asked line by line; every answer is checked."""

    def __init__(self, home: Path) -> None:
        launch = parameters(home, "--tools", "all", CORTEX_SEARCH_WAIT="0.2")
        self.log = (home.parent / "stderr").open("wb+")
        self.process = subprocess.Popen(
            [launch.command, *launch.args],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.log,
            env=launch.env,
            cwd=launch.cwd,
        )
        self._lines: queue.Queue[bytes] = queue.Queue()
        threading.Thread(target=self._listen, daemon=True).start()
        self.number = 0
        self.outcomes: Counter[str] = Counter()
        self.sizes: list[int] = []
        self.slowest = (0.0, "")
        me = {"name": "fuzz", "version": "1"}
        self.ask("initialize", protocolVersion="2025-11-25", capabilities={}, clientInfo=me)
        self.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        self.tools = self.ask("tools/list")["result"]["tools"]
        self.ids = self.seed()

    def _listen(self) -> None:
        assert self.process.stdout
        for line in self.process.stdout:
            self._lines.put(line)

    def send(self, message: Any) -> None:
        assert self.process.stdin
        self.process.stdin.write(json.dumps(message).encode() + b"\n")
        self.process.stdin.flush()

    def ask(self, method: str, **params: Any) -> Any:
        self.number += 1
        self.send({"jsonrpc": "2.0", "id": self.number, "method": method, "params": params})
        return self.answer(self.number)

    def answer(self, number: int) -> Any:
        """The answer to that request; the server must be alive, and not hang."""
        while True:
            reply = json.loads(self._lines.get(timeout=HANG))
            if "id" in reply:
                assert reply["id"] == number
                return reply

    def call(self, name: str, arguments: Any) -> Any:
        return self.ask("tools/call", name=name, arguments=arguments)

    def seed(self) -> list[str]:
        """A few nodes to refer to; all of them are below two session roots."""
        made = []
        for kind in ("task", "fact", "decision", "note", "fileref"):
            given_ = {
                "type": kind,
                "title": f"a {kind}",
                "path": "src/a.py",
                "text": "zebra bridge",
            }
            made.append(self.call("graph_add_node", given_)["result"]["structuredContent"]["id"])
        self.call("graph_add_relation", {"from_id": made[0], "to_id": made[1], "type": "leads_to"})
        self.call("graph_decompose", {"task_id": made[0], "subtasks": ["one", "two"]})
        return made

    def sweep(self) -> None:
        """Delete everything again, and note what memory the process has of its own."""
        for place in ("w", "other"):
            opened = self.call("desktop_open", {"workspace_id": place})["result"]
            root = opened["structuredContent"]["session_id"]
            done = self.call(
                "graph_delete_node", {"node_id": root, "cascade": True, "workspace_id": place}
            )
            assert not done["result"].get("isError"), done
        self.sizes.append(psutil.Process(self.process.pid).memory_full_info().uss)

    def check(self, call: Call) -> None:
        """Make the call; its answer must be true to the protocol and to the house rules."""
        begun = time.monotonic()
        outcome = self._read(call.uri) if call.uri else self._call(call)
        self.outcomes[outcome] += 1
        self.slowest = max(self.slowest, (time.monotonic() - begun, call.tool or call.uri[:40]))
        if sum(self.outcomes.values()) % SWEEP == 0:
            self.sweep()

    def _call(self, call: Call) -> str:
        reply = self.call(call.tool, call.arguments)
        if "error" in reply:  # arguments that are no object: the protocol's own refusal
            assert not isinstance(call.arguments, dict | None)
            assert "Traceback" not in reply["error"]["message"]
            return "protocol error"
        result = reply["result"]
        text = "\n".join(block["text"] for block in result["content"])
        assert "Traceback" not in text
        code = text.partition(":")[0]
        if result.get("isError"):
            assert code in CODES
            assert "\n" not in text
            assert "internal error" not in text, (call.tool, text, self.said())
            assert result["structuredContent"]["error"]["code"] == code
            return code
        assert isinstance(result["structuredContent"]["generation"], int | str)
        return "done"

    def _read(self, uri: str) -> str:
        reply = self.ask("resources/read", uri=uri)
        if "error" in reply:
            message = reply["error"]["message"]
            assert "Traceback" not in message
            assert "internal error" not in message, (uri, message, self.said())
            return f"resource {message.partition(':')[0]}"
        json.loads(reply["result"]["contents"][0]["text"])
        return "resource read"

    def said(self) -> str:
        self.log.flush()
        return Path(self.log.name).read_text(errors="replace")[-3000:]

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        for stream in (self.process.stdin, self.process.stdout, self.log):
            assert stream
            stream.close()


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Target]:
    made = Target(tmp_path_factory.mktemp("fuzz") / "home")
    yield made
    made.close()


def test_any_call_has_a_true_answer_and_the_server_lives(target: Target) -> None:
    @settings(
        max_examples=CALLS,
        derandomize="FUZZ_CALLS" not in os.environ,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(calls(target.tools, target.ids))
    def one(call: Call) -> None:
        target.check(call)

    one()
    assert target.process.poll() is None
    assert target.outcomes["done"] > CALLS / 10, "most calls are refused: nothing was tested"
    assert target.outcomes["invalid"] > CALLS / 20
    report = [dict(target.outcomes), target.slowest, [size >> 20 for size in target.sizes]]
    print(*report, sep="\n")  # noqa: T201 - shown by -rP, which `make fuzz` gives


@pytest.mark.skipif(CALLS < 5_000, reason="memory settles after thousands of calls: make fuzz")
def test_memory_is_flat_after_the_first_half(target: Target) -> None:
    if len(target.sizes) < 10:
        pytest.skip("the calls of the test above were not made")
    half = len(target.sizes) // 2
    before, after = sorted(target.sizes[half - 5 : half])[2], sorted(target.sizes[-5:])[2]
    assert after < before * 1.05, [size >> 20 for size in target.sizes]


# A file with flipped bytes


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A closed memory of some dozens of nodes."""
    home = tmp_path_factory.mktemp("original") / "home"
    with closing(open_memory(load_settings(home=home, workspace="w", env={}))) as memory:
        task = memory.adding.add_node("task", Fields(title="the task"))
        for number in range(60):
            memory.adding.add_node(
                "fact",
                Fields(title=f"fact {number}", text=f"zebra {number} " * 40, tags=["a"]),
                parent=task.id,
            )
        memory.indexing.wait(None, 60)
    return home / "cortex.db"


READS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("desktop_open", {}),
    ("graph_search", {"query": "zebra"}),
    ("vector_search", {"query": "zebra"}),
    ("desktop_history", {}),
    ("temporal_walk", {}),
    ("graph_health", {}),
    ("graph_add_node", {"type": "fact", "text": "one more"}),
)


def flipped(original: Path, folder: Path, seed: int) -> Path:
    """A copy with some bytes changed: few or many, scattered or in a run."""
    chance = random.Random(seed)
    home = folder / "home"
    home.mkdir(mode=0o700)
    data = bytearray(original.read_bytes())
    start = chance.randrange(len(data))
    for _ in range(chance.choice((1, 8, 200, 4096))):
        place = chance.randrange(len(data)) if seed % 2 else start % len(data)
        data[place] ^= chance.randrange(1, 256)
        start += 1
    (home / "cortex.db").write_bytes(data)
    return home


@pytest.mark.parametrize("seed", range(12))
def test_a_file_with_flipped_bytes_works_or_says_that_it_is_damaged(
    original: Path, tmp_path: Path, seed: int
) -> None:
    before = original.read_bytes()
    home = flipped(original, tmp_path, seed)
    with suppress(UnavailableError, ConflictError, NotFoundError):  # anything else is a fault
        memory = open_memory(load_settings(home=home, workspace="w", env={}), once=True)
        with closing(memory):
            for name, given_ in READS:
                tool = next(each for each in TOOLS if each.name == name)
                with suppress(UnavailableError, ConflictError, NotFoundError):
                    tool.call(memory, given_)
    assert original.read_bytes() == before


@pytest.mark.parametrize("seed", range(100, 102))
def test_a_command_on_a_file_with_flipped_bytes_ends_without_a_traceback(
    original: Path, tmp_path: Path, seed: int
) -> None:
    home = flipped(original, tmp_path, seed)
    done = subprocess.run(
        [sys.executable, "-m", "cortex", "search", "zebra", "--home", str(home)],
        env={"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), "HOME": str(tmp_path)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode in (0, 69), done.stderr
    assert "Traceback" not in done.stderr + done.stdout
    assert (done.returncode == 0) or done.stderr.startswith("cortex: unavailable: ")


def test_a_search_over_a_time_with_a_changed_byte_says_that_the_file_is_damaged(
    original: Path, tmp_path: Path
) -> None:
    shutil.copytree(original.parent, tmp_path / "home")
    file = tmp_path / "home" / "cortex.db"
    with closing(sqlite3.connect(file)) as shell, shell:
        # As a changed byte would: past the rules of the schema.
        shell.execute("PRAGMA ignore_check_constraints = ON")
        for (trigger,) in shell.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'"):
            shell.execute(f'DROP TRIGGER "{trigger}"')
        shell.execute("UPDATE nodes SET created_at = '2026-11-30T23:0' || char(4) || ':29.718067Z'")
    memory = open_memory(load_settings(home=file.parent, workspace="w", env={}), once=True)
    with closing(memory):
        said = str(memory.search.vector_search("zebra").degraded)
    assert "the file is damaged: the time '2026-11-30T23:0\\x04:29" in said


# Bytes that are no protocol


def garbage(seed: int) -> bytes:
    """Lines of noise, half messages, wrong UTF-8, deep nesting, arrays; each ends."""
    chance = random.Random(seed)
    whole = json.dumps({"jsonrpc": "2.0", "id": seed, "method": "ping"}).encode()
    kinds = (
        chance.randbytes(chance.randrange(1, 3000)),
        whole[: chance.randrange(len(whole))],
        whole.replace(b"ping", b"p\xff\xfe"),
        b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":' + b'{"a":' * 3000,
        b"[" + b",".join([whole] * 5) + b"]",
        b'{"jsonrpc":"2.0","id":"\\ud800","method":"ping"}',
        b"\x00" * 2000,
        b"x" * (1 << 20),
    )
    return b"".join(chance.choice(kinds).replace(b"\n", b" ") + b"\n" for _ in range(12))


@pytest.mark.parametrize("seed", range(5))
def test_after_any_garbage_the_next_request_is_answered(target: Target, seed: int) -> None:
    assert target.process.stdin
    target.process.stdin.write(garbage(seed))
    target.number += 1
    target.send({"jsonrpc": "2.0", "id": f"ping {target.number}", "method": "ping"})
    while True:
        reply = json.loads(target._lines.get(timeout=HANG))
        assert reply["jsonrpc"] == "2.0"
        if reply.get("id") == f"ping {target.number}":
            break
    assert target.process.poll() is None


def test_the_fuzzed_file_is_sound(target: Target) -> None:
    home = Path(target.log.name).parent / "home"
    with closing(sqlite3.connect(home / "cortex.db")) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        assert connection.execute("PRAGMA foreign_key_check").fetchall() == []
    shutil.rmtree(home / "logs", ignore_errors=True)
