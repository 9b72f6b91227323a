"""How much memory server, worker and graph take; `python -m bench.memory` watches it for long."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Final

import psutil

from bench.context import Context
from bench.generate import GeneratedIds
from bench.memory import graph_size, mixture
from bench.prepared import PLACE
from bench.servers import pss_of
from bench.worker import give_history
from cortex.cli.timing import Figure, value_of
from cortex.config import FILE_NAME
from cortex.domain.values import NodeId

_HISTORY: Final = 1_000_000
_LARGE: Final = 100_000  # of which the promises are
_IDS: Final = "SELECT rowkey, id FROM nodes ORDER BY rowkey"


def measure(context: Context) -> Iterator[Figure]:
    """After every kind of call: server and worker, the graph alone, a long history."""
    context.close_memory()
    context.stop()
    servers, nodes = context.servers(), context.nodes
    for turn, (name, arguments) in enumerate(3 * mixture(context, 30)):
        servers.call(name, **arguments(turn))
    [server] = servers.processes
    promised = nodes == _LARGE
    yield value_of(
        "server with its worker", servers.pss(), "MB", where="stdio", nodes=nodes,
        note="proportional set size, model loaded",
    )  # fmt: skip
    yield value_of(
        "server, its own", own_megabytes(server), "MB", where="stdio", nodes=nodes,
        note="without pages of files", below=500 if promised else None,
    )  # fmt: skip
    graph = graph_size(context.prepared)
    told = f"{graph.node_bytes:.0f} bytes a node, {graph.relation_bytes:.0f} a relation; "
    yield value_of(
        "graph", graph.megabytes, "MB", nodes=nodes,
        # Of a small one the system's pages say nothing.
        note=f"{told if nodes >= _LARGE else ''}rows {graph.rows_megabytes:.1f} MB more",
    )  # fmt: skip
    yield value_of("graph built", graph.build_ms, "ms", nodes=nodes, note="from rows, CPU")
    if promised:
        context.stop()
        file = context.home / FILE_NAME
        with closing(sqlite3.connect(file)) as shell:
            made = GeneratedIds(PLACE, {key: NodeId(node) for key, node in shell.execute(_IDS)})
        give_history(file, made, _HISTORY, context.seed)
        servers = context.servers()
        servers.call("session_timeline", by="day")
        [worker] = servers.processes[0].children(recursive=True)
        yield value_of(
            "worker, a history of a million", pss_of(worker), "MB", where="stdio", nodes=nodes,
            below=300,
        )  # fmt: skip


def own_megabytes(process: psutil.Process) -> float:
    """Memory that belongs to the process alone and to no file (Linux), else what is its own."""
    rollup = Path(f"/proc/{process.pid}/smaps_rollup")
    if not rollup.exists():
        return float(process.memory_full_info().uss) / 1e6
    for line in rollup.read_text().splitlines():
        if line.startswith("Pss_Anon:"):
            return int(line.split()[1]) / 1000
    return float(process.memory_full_info().uss) / 1e6
