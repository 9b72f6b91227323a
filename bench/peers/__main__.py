"""Times cortex and its peers on the same memories, in one run.

Servers are driven over MCP on stdio by the same client; graph libraries beside the engine in one
process. Run: python -m bench.peers [--sizes 1000,10000,100000] [--peers NAME,…] [--out FILE].
Installs go into `peers` below CORTEX_BENCH_CACHE, or the user's cache folder.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import anyio
import psutil

from bench.peers import in_process
from bench.peers.basic_memory import BasicMemory
from bench.peers.cortex_server import Cortex
from bench.peers.measuring import LOAD, Figure, measured, too_slow
from bench.peers.memories import build
from bench.peers.memory_service import MemoryService
from bench.peers.peer import NotHere, Peer
from bench.peers.server_memory import KnowledgeGraph, MemoryLibsql, ServerMemory
from bench.peers.table import tables
from bench.prepared import cache
from bench.timing import header

SERVERS: Final[tuple[type[Peer], ...]] = (
    ServerMemory,
    KnowledgeGraph,
    MemoryLibsql,
    MemoryService,
    BasicMemory,
)
GRAPHS: Final = ("cte", "networkx", "igraph")
NAMES: Final = (*GRAPHS, *(each.name for each in SERVERS))
NOT_TRIED: Final = {
    "mcp-knowledge-graph, without a scope": "npm gave no such package (E404)",
    "mcp-memory-keeper": "better-sqlite3 comes by an install script, and none is run here",
    "mem0": "needs a model service for each write",
}
BASE: Final = frozenset({Cortex.name, in_process.ENGINE})


def with_ratios(figures: Sequence[Figure]) -> list[Figure]:
    """Each figure with its p50 by that of cortex for the same operation and size."""
    base = {(each.operation, each.size): each.p50 for each in figures if each.peer in BASE}
    done = []
    for each in figures:
        own = base.get((each.operation, each.size))
        ratio = round(each.p50 / own, 3) if own and each.p50 is not None else None
        done.append(replace(each, ratio=ratio))
    return done


def installed(
    place: Path, chosen: Sequence[str]
) -> tuple[list[Peer], dict[str, str], list[dict[str, str]]]:
    """The peers that can be had here, their versions, and why the others are left out."""
    peers: list[Peer] = []
    versions: dict[str, str] = {}
    left_out = [{"peer": name, "reason": why} for name, why in NOT_TRIED.items()]
    for peer in (Cortex(), *(kind() for kind in SERVERS if kind.name in chosen)):
        try:
            versions[peer.name] = peer.install(place)
            peers.append(peer)
        except NotHere as reason:
            left_out.append({"peer": peer.name, "reason": str(reason)})
    if {"networkx", "igraph"} & set(chosen):
        try:
            versions |= in_process.install(place)
        except NotHere as reason:
            left_out.append({"peer": "networkx and igraph", "reason": str(reason)})
    return peers, versions, left_out


def one_size(
    size: int,
    seed: int,
    peers: Sequence[Peer],
    graphs: Sequence[str],
    load_seconds: float,
    before: Sequence[Figure],
) -> list[Figure]:
    """All figures at one size; what was made for it is removed again.

    A peer whose loading at a smaller size says that this one would not do is not tried.
    """
    paces = {each.peer: each for each in before if each.operation == LOAD and each.size < size}
    with tempfile.TemporaryDirectory(prefix="cortex-peers-") as folder:
        world, bench = build(Path(folder) / "world", size, seed)
        print(f"{size} memories, {len(world.relations)} relations; load {busy()}", flush=True)
        figures = in_process.measured(bench, size, graphs)
        bench.sql.close()
        bench.database.close()
        for peer in peers:
            why = too_slow(paces.get(peer.name), size, load_seconds)
            if why:
                figures.append(Figure(peer.name, LOAD, size, note=why))
                continue
            home = Path(folder) / peer.name
            figures += anyio.run(measured, peer, world, home, seed, load_seconds)
            shutil.rmtree(home, ignore_errors=True)
    return figures


def busy() -> str:
    """What else the machine does: its load average of the last minute."""
    return f"{psutil.getloadavg()[0]:.1f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", default="1000,10000,100000")
    parser.add_argument("--peers", default=",".join(NAMES), help="cortex is always one")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--load-seconds", type=float, default=600)
    parser.add_argument("--out", type=Path, help="a JSON file that keeps one run a size")
    given = parser.parse_args()
    sizes, chosen = [int(size) for size in given.sizes.split(",")], given.peers.split(",")
    unknown = sorted(set(chosen) - set(NAMES))
    if unknown:
        sys.exit(f"no such peer: {', '.join(unknown)}. There are {', '.join(NAMES)}.")
    place = cache() / "peers"
    place.mkdir(parents=True, exist_ok=True)
    peers, versions, left_out = installed(place, chosen)
    have = [name for name in GRAPHS if name == "cte" or name in versions]
    graphs = [name for name in have if name in chosen]
    began = busy()
    kept = kept_before(given.out, given.seed)
    machines: dict[str, str] = kept.get("machines", {})
    figures = [Figure(**row) for row in kept.get("figures", ()) if row["size"] not in sizes]
    for size in sizes:
        figures += one_size(size, given.seed, peers, graphs, given.load_seconds, figures)
        rows = [asdict(each) for each in with_ratios(sorted(figures, key=lambda each: each.size))]
        if given.out:  # after each size: a run is long
            result = described(given, versions, began, rows, left_out, peers)
            machines[str(size)] = result["machine"]
            result["machines"] = machines
            text = json.dumps(result, indent=1, ensure_ascii=False)
            given.out.write_text(text + "\n", "utf-8")
    print("\n" + tables(rows, sizes))


def kept_before(file: Path | None, seed: int) -> dict[str, Any]:
    """What the file holds of the same seed, so that one size can be measured again."""
    if file is None or not file.exists():
        return {}
    kept: dict[str, Any] = json.loads(file.read_text("utf-8"))
    return kept if kept["seed"] == seed else {}


def described(
    given: argparse.Namespace,
    versions: dict[str, str],
    began: str,
    rows: list[dict[str, Any]],
    left_out: list[dict[str, str]],
    peers: Sequence[Peer],
) -> dict[str, Any]:
    """Figures with all that is needed to take them again."""
    sizes = ",".join(map(str, dict.fromkeys(row["size"] for row in rows)))  # kept ones too
    node = subprocess.run(["node", "--version"], capture_output=True, text=True, check=False)
    machine = f"{header()}, {os.cpu_count()} cores, load {began} before and {busy()} after"
    return {
        "command": f"python -m bench.peers --sizes {sizes} --peers {given.peers}",
        "date": datetime.now(UTC).date().isoformat(),
        "seed": given.seed,
        "versions": {**versions, "node": node.stdout.strip(), "python": platform.python_version()},
        "machine": machine,
        "loading": {peer.name: peer.loading for peer in peers},
        "figures": rows,
        "left_out": left_out,
    }


if __name__ == "__main__":
    main()
