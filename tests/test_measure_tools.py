"""Centralities and communities through the tools: the real worker, on a real memory."""

from __future__ import annotations

import json
import random
import sqlite3
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from itertools import count
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client

from analytics.client import Worker
from analytics.queries import Centrality, Counts
from cortex.config import load_settings
from cortex.domain.errors import InvalidError
from cortex.domain.taxonomy import NodeType, RelationType
from cortex.domain.values import NodeId, WorkspaceId, new_id
from cortex.memory import Memory, open_memory
from tests.harness import Wire, call, connected, refused, wired
from tests.local import ask


def two_stars(memory: Memory) -> tuple[str, str]:
    """Two hubs with five leaves each, joined by nothing but the session root."""
    hubs = []
    for name in ("tokens", "invoices"):
        hub = ask(memory, "graph_add_node", type="entity", title=name)["id"]
        for number in range(5 if name == "tokens" else 4):
            leaf = ask(memory, "graph_add_node", type="fact", text=f"{name} fact {number}")["id"]
            ask(memory, "graph_add_relation", from_id=leaf, to_id=hub, type="related_to")
        hubs.append(hub)
    return hubs[0], hubs[1]


def test_the_hub_of_the_larger_star_has_the_highest_degree(memory: Memory) -> None:
    tokens, invoices = two_stars(memory)
    found = ask(memory, "graph_centrality", measure="degree")
    assert [node["id"] for node in found["nodes"][:2]] == [tokens, invoices]
    assert found["exact"] is True
    assert found["total"] == 11, "the session root is left out"


def test_what_was_written_a_moment_ago_is_measured(memory: Memory) -> None:
    tokens, _ = two_stars(memory)
    before = ask(memory, "graph_centrality", measure="degree")
    for number in range(3):
        leaf = ask(memory, "graph_add_node", type="fact", text=f"late {number}")["id"]
        ask(memory, "graph_add_relation", from_id=leaf, to_id=tokens, type="related_to")
    after = ask(memory, "graph_centrality", measure="degree")
    assert after["nodes"][0]["score"] == before["nodes"][0]["score"] + 3
    assert after["generation"] == memory.generation()


def test_the_two_stars_are_two_communities(memory: Memory) -> None:
    tokens, invoices = two_stars(memory)
    found = ask(memory, "graph_communities")
    assert [group["size"] for group in found["communities"][:2]] == [6, 5]
    assert [group["members"][0]["id"] for group in found["communities"][:2]] == [tokens, invoices]


@pytest.mark.parametrize("measure", ["pagerank", "betweenness", "closeness", "harmonic", "core"])
def test_every_measure_names_its_source(memory: Memory, measure: str) -> None:
    two_stars(memory)
    assert ask(memory, "graph_centrality", measure=measure)["source"]


def test_an_empty_memory_has_nothing_to_measure(memory: Memory) -> None:
    assert ask(memory, "graph_centrality")["nodes"] == []
    assert ask(memory, "graph_communities")["communities"] == []


def test_an_unknown_measure_is_refused_with_the_known_ones(memory: Memory) -> None:
    with pytest.raises(InvalidError, match="pagerank"):
        ask(memory, "graph_centrality", measure="fame")


@pytest.mark.anyio
async def test_a_server_answers_while_the_worker_measures(home: Path) -> None:
    async with connected(home) as client:
        node = await call(client, "graph_add_node", type="fact", text="one")
        done: list[str] = []
        async with anyio.create_task_group() as group:
            group.start_soon(_measured, client, done)
            await call(client, "graph_get_node", node_id=node["id"])
            done.append("read")
        assert done == ["read", "measured"], "the worker was still starting"
        assert "pagerank" in await refused(client, "graph_centrality", measure="fame")


async def _measured(client: Client, done: list[str]) -> None:
    await call(client, "graph_centrality")
    done.append("measured")


def dense(home: Path) -> None:
    """2,500 notes without words, so that nothing is embedded, and 40,000 links between them."""
    rng = random.Random(1)
    place = WorkspaceId("w")
    pairs = {tuple(rng.sample(range(2_500), 2)) for _ in range(40_000)}
    settings = load_settings(home=home, workspace=place, env={})
    with closing(open_memory(settings)) as memory, memory.engine.write() as transaction:
        at = transaction.at
        ids = [
            transaction.nodes.insert(NodeId(new_id()), NodeType.NOTE, place, None, {}, at).id
            for _ in range(2_500)
        ]
        for near, far in sorted(pairs):
            transaction.relations.insert(place, ids[near], ids[far], RelationType.LEADS_TO, at)


def test_pings_and_reads_are_answered_while_exact_betweenness_runs(home: Path) -> None:
    dense(home)
    with wired(home) as wire:
        node = wire.call("graph_centrality", measure="degree", limit=1)  # the worker has started
        node_id = node["structuredContent"]["nodes"][0]["id"]
        say(wire, "measure", "tools/call", graph_centrality={"measure": "betweenness"})
        between = []
        for turn in count():
            if turn % 2:
                say(wire, turn, "tools/call", graph_get_node={"node_id": node_id, "depth": 0})
            else:
                say(wire, turn, "ping")
            answer = wire.reply()
            if answer["id"] == "measure":
                break
            between.append(answer)
        assert len(between) > 4, "the measure, of a second or more, came first"
        assert [answer["id"] for answer in between] == list(range(len(between)))
        assert all("error" not in answer for answer in between)
        said = answer["result"]["structuredContent"]
        assert (said["exact"], said["total"]) == (True, 2_500)


def test_a_checkpoint_goes_through_while_a_measure_runs(home: Path) -> None:
    dense(home)
    file = home / "cortex.db"
    with (
        Worker(file) as worker,
        ThreadPoolExecutor(1) as pool,
        closing(sqlite3.connect(file, isolation_level=None)) as shell,
    ):
        worker.ask(Counts("w"))
        measured = pool.submit(worker.ask, Centrality("w", "betweenness"))
        held: list[int] = []
        while True:
            shell.execute("UPDATE meta SET value = value")  # so that there is something to do
            (busy, _, _) = shell.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
            if measured.done():
                break
            held.append(busy)
        assert measured.result().rows
        assert held[-1] == 0, "the measure kept the file"


def say(wire: Wire, number: int | str, method: str, **tool: dict[str, Any]) -> None:
    """Send a request of that id, and wait for nothing."""
    params = [{"name": name, "arguments": arguments} for name, arguments in tool.items()]
    request = {"jsonrpc": "2.0", "id": number, "method": method}
    wire.write(json.dumps(request | ({"params": params[0]} if params else {})).encode())
