"""Times pings and reads of the real server while its worker computes betweenness.

One request follows the other over stdio until the measure's answer comes; then as many with
nothing beside them. Wall milliseconds of the client. The nodes have no words, so that no
embedding runs beside it. Run: python -m bench.ping [--nodes N] [--relations M] [--seed S].
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any, Final

import numpy as np

from bench.timing import header
from cortex.domain.taxonomy import NodeType, RelationType
from cortex.domain.values import NodeId, WorkspaceId, new_id
from cortex.store.database import Database

PLACE: Final = WorkspaceId("bench")
_BATCH: Final = 5_000
_BROKEN: Final = 60_000  # pings after which something is wrong


def fill(file: Path, nodes: int, relations: int, seed: int) -> None:
    """Notes without words, joined at random."""
    rng = random.Random(seed)
    pairs = {(rng.randrange(nodes), rng.randrange(nodes)) for _ in range(relations)}
    joined = sorted(pair for pair in pairs if pair[0] != pair[1])
    database = Database(file)
    ids: list[NodeId] = []
    for part in range(0, nodes, _BATCH):
        with database.write("bench") as transaction:
            for _ in range(part, min(part + _BATCH, nodes)):
                node = NodeId(new_id())
                transaction.nodes.insert(node, NodeType.NOTE, PLACE, None, {}, transaction.at)
                ids.append(node)
    for part in range(0, len(joined), _BATCH):
        with database.write("bench") as transaction:
            for near, far in joined[part : part + _BATCH]:
                transaction.relations.insert(
                    PLACE, ids[near], ids[far], RelationType.LEADS_TO, transaction.at
                )
    database.close()


class Server:
    """A real one, spoken to in lines."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process

    def say(self, number: int | str, method: str, params: dict[str, Any]) -> None:
        assert self._process.stdin is not None
        message = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
        self._process.stdin.write(json.dumps(message).encode() + b"\n")
        self._process.stdin.flush()

    def hear(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        while True:
            message: dict[str, Any] = json.loads(self._process.stdout.readline())
            if "id" in message:
                return message

    def ask(self, number: int | str, method: str, params: dict[str, Any]) -> dict[str, Any]:
        self.say(number, method, params)
        return self.hear()

    def tool(self, name: str, **arguments: Any) -> dict[str, Any]:
        answer = self.ask(name, "tools/call", {"name": name, "arguments": arguments})
        content: dict[str, Any] = answer["result"]["structuredContent"]
        return content


@contextmanager
def serving(home: str) -> Iterator[Server]:
    command = [sys.executable, "-m", "cortex", "serve", "--home", home, "--workspace", PLACE]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    server = Server(process)
    client = {"name": "bench", "version": "1"}
    params = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client}
    server.ask("hello", "initialize", params)
    try:
        yield server
    finally:
        assert process.stdin is not None
        process.stdin.close()
        process.wait(20)


def timed(server: Server, node: str, times: dict[str, list[float]]) -> str | None:
    """One ping, one read; the measure's answer where it comes in between."""
    read = {"name": "graph_get_node", "arguments": {"node_id": node, "depth": 0}}
    for name, method, params in (("ping", "ping", {}), ("graph_get_node", "tools/call", read)):
        began = time.perf_counter()
        answer = server.ask(name, method, params)
        if answer["id"] == "measure":
            server.hear()  # what was asked last
            return str(answer["result"]["structuredContent"]["source"])
        times.setdefault(name, []).append((time.perf_counter() - began) * 1000)
    return None


def main() -> None:
    """Fill, serve, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=3_000)
    parser.add_argument("--relations", type=int, default=60_000)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as home:
        fill(Path(home, "cortex.db"), given.nodes, given.relations, given.seed)
        with serving(home) as server:
            best = server.tool("graph_centrality", measure="degree", limit=1)
            node = best["nodes"][0]["id"]
            arguments = {"name": "graph_centrality", "arguments": {"measure": "betweenness"}}
            timed(server, node, {})  # the graph is read in
            beside: dict[str, list[float]] = {}
            alone: dict[str, list[float]] = {}
            began = time.perf_counter()
            server.say("measure", "tools/call", arguments)
            for turn in count():
                source = timed(server, node, beside)
                if source is not None or turn > _BROKEN:
                    break
            took = time.perf_counter() - began
            for _ in range(200):
                timed(server, node, alone)
    print(f"{given.nodes} nodes, {given.relations} relations, seed {given.seed}; {header()}")
    print(f"betweenness ({source}) took {took:.1f} s; target of a ping beside it: < 20 ms\n")
    print("| request | beside | p50 ms | p95 ms | max ms | runs |\n|---|---|---|---|---|---|")
    for what, times in (("betweenness", beside), ("nothing", alone)):
        for name, figures in times.items():
            p50, p95, most = np.percentile(figures, [50, 95, 100])
            print(f"| {name} | {what} | {p50:.2f} | {p95:.2f} | {most:.2f} | {len(figures)} |")


if __name__ == "__main__":
    main()
