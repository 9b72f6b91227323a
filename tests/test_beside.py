"""A server beside others: during maintenance, after one was killed, and while nobody asks."""

from __future__ import annotations

import json
import sqlite3
import time
from contextlib import closing
from pathlib import Path

import psutil

from tests.harness import wired
from tests.local import start_cortex


def test_thirty_two_adds_during_a_reindex_are_each_acknowledged_or_refused(home: Path) -> None:
    with wired(home) as wire:
        for number in range(10):
            wire.call("graph_add_node", type="fact", text=f"an older fact, number {number}")
        with start_cortex(home, "reindex", "--json") as maintenance:
            for number in range(32):
                params = {"name": "graph_add_node"}
                given = {"type": "fact", "title": f"added beside, {number}"}
                line = {"jsonrpc": "2.0", "id": f"add {number}", "method": "tools/call"}
                wire.write(json.dumps({**line, "params": {**params, "arguments": given}}).encode())
            answers = [wire.reply()["result"] for _ in range(32)]
            _, errors = maintenance.communicate(timeout=120)
        assert maintenance.returncode == 0, errors
    refused = [a["content"][0]["text"] for a in answers if a.get("isError")]
    assert all(text.startswith("busy: ") for text in refused)
    with closing(sqlite3.connect(home / "cortex.db")) as connection:
        kept = connection.execute(
            "SELECT count(*) FROM nodes WHERE json_extract(data, '$.title') LIKE 'added beside%'"
        ).fetchone()[0]
    assert kept == 32 - len(refused)


def test_the_second_server_finds_by_meaning_after_the_first_was_killed(home: Path) -> None:
    with wired(home) as first, wired(home) as second:
        first.call("graph_add_node", type="fact", text="The zebra crosses at the old bridge.")
        assert first.call("vector_search", query="striped animal")["structuredContent"]["hits"]
        first.process.kill()
        first.process.wait()
        found = second.call("vector_search", query="striped animal over the river")
        assert found["structuredContent"]["hits"]
        assert found["structuredContent"]["degraded"] is None
        assert not second.call("graph_add_node", type="fact", text="after").get("isError")


def test_a_server_that_nobody_asks_uses_no_processor(home: Path) -> None:
    with wired(home) as wire:
        wire.call("graph_add_node", type="fact", text="the zebra")
        wire.call("vector_search", query="zebra")
        time.sleep(2)  # what the calls left to do in the background
        process = psutil.Process(wire.process.pid)
        before, held = process.cpu_times(), process.memory_full_info().uss
        time.sleep(4)
        after = process.cpu_times()
        assert (after.user + after.system) - (before.user + before.system) < 0.1
        assert process.memory_full_info().uss < held * 1.02
