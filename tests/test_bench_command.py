"""`cortex bench`: the short form on a copy of one's own memory."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest

from cortex.memory import Memory
from tests.local import ask, run_cortex, start_cortex

TOOLS = ("open", "get", "traverse", "walk", "timeline", "focus", "add")


@pytest.fixture
def kept(memory: Memory) -> Memory:
    task = ask(memory, "graph_add_node", type="task", title="Sign tokens")["id"]
    for number in range(12):
        ask(memory, "graph_add_node", type="fact", parent_id=task, text=f"Token rule {number}")
    return memory


def test_it_times_each_call_in_the_process_and_over_stdio(kept: Memory, home: Path) -> None:
    kept.close()
    copies = home.parent / "tmp"
    copies.mkdir()
    before = hashlib.sha256((home / "cortex.db").read_bytes()).digest()
    said = run_cortex(home, "bench", "--calls", "2", "-w", "w", TMPDIR=str(copies))
    rows = [line.split() for line in said.splitlines()]
    for where in ("engine", "stdio"):
        assert {row[0] for row in rows if where in row} >= {*TOOLS, "search"}
    assert "p95 < 10" in said
    assert "targets met" in said
    assert hashlib.sha256((home / "cortex.db").read_bytes()).digest() == before
    assert list(copies.iterdir()) == []


def test_it_measures_while_the_memory_is_in_use_and_adds_nothing_to_it(
    kept: Memory, home: Path
) -> None:
    before = kept.generation()
    found = json.loads(run_cortex(home, "bench", "--calls", "1", "--json"))
    assert kept.generation() == before
    assert (found["workspace"], found["nodes"]) == ("w", 14)  # the root, the task, the facts
    assert {figure["where"] for figure in found["figures"]} == {"engine", "stdio"}


def test_a_home_without_a_memory_is_refused_and_stays_empty(home: Path) -> None:
    home.mkdir()
    with start_cortex(home, "bench") as process:
        _, err = process.communicate(timeout=60)
    assert process.returncode == 1
    assert "there is no memory" in err
    assert list(home.iterdir()) == []
