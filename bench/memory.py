"""Memory of the real server over time: while nobody asks, and over many mixed calls.

Memory is the proportional set size of the server and its worker: pages that processes share
are divided among them. "Flat" compares the samples after the first fifth of the calls, when
model, graph, vectors and worker are there: the largest by the least of them.
Run: python -m bench.memory [--nodes N] [--idle SECONDS] [--calls N] [--out FILE].
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, NamedTuple

from bench.context import Context
from bench.graph_size import made, resident
from bench.prepared import PLACE, Prepared, prepare
from bench.report import about
from bench.servers import Arguments, Servers, cpu_of
from cortex.config import FILE_NAME
from cortex.graph.capture import capture
from cortex.graph.columns import Columns
from cortex.graph.workspace import WorkspaceGraph
from cortex.store.database import Database

SAMPLES: Final = 20
_OF_RELATIONS: Final = ("near", "far", "payload", "light", "weight")


def mixture(context: Context, calls: int) -> list[tuple[str, Arguments]]:
    """What agents ask for, in turn: six reads, two searches, two writes, a count of events."""
    starts = context.starts
    questions, texts = context.questions(calls), context.texts(calls)

    def of(name: str, values: list[str]) -> Arguments:
        return lambda turn: {name: values[turn % len(values)]}

    return [
        ("desktop_open", lambda _: {}),
        ("graph_search", of("query", questions)),
        ("desktop_focus", of("node_id", list(starts.leaves))),
        ("graph_traverse", of("start_id", list(starts.tasks))),
        ("graph_walk", of("start_id", list(starts.heads))),
        ("graph_add_node", lambda turn: {"type": "fact", "text": texts[turn]}),
        ("vector_search", of("query", questions[::-1])),
        ("graph_get_node", of("node_id", list(starts.leaves))),
        ("graph_update_node", lambda turn: {"node_id": starts.leaves[turn % len(starts.leaves)],
                                            "data": {"turn": turn}}),
        ("session_timeline", lambda turn: {"by": "week"} if turn % 10 == 0 else {}),
    ]  # fmt: skip


def mixed(context: Context, calls: int) -> dict[str, Any]:
    """Memory in MB every twentieth part of the calls, and how flat it is."""
    servers = context.servers()
    asked = mixture(context, calls)
    samples = []
    for part in range(SAMPLES):
        for number in range(part * calls // SAMPLES, (part + 1) * calls // SAMPLES):
            name, arguments = asked[number % len(asked)]
            servers.call(name, **arguments(number))
        samples.append(round(servers.pss(), 1))
        print(f"{(part + 1) * calls // SAMPLES:>6} calls: {samples[-1]:.0f} MB", flush=True)
    settled = samples[SAMPLES // 5 :]
    growth = max(settled) / min(settled) - 1
    return {"calls": calls, "pss_mb": samples, "spread": round(growth, 4), "met": growth <= 0.05}


def idle(servers: Servers, seconds: float) -> dict[str, Any]:
    """CPU seconds and memory in MB while nothing is asked, after a rest that lets work end.

    Kept is the promise where a hundredth of the time is used at most, and memory never rises
    by more than 5 %; it falls when the worker, idle for five minutes, ends.
    """
    time.sleep(min(30.0, seconds / 5))
    cpu, samples = cpu_of(servers.processes[0]), [round(servers.pss(), 1)]
    for _ in range(SAMPLES):
        time.sleep(seconds / SAMPLES)
        samples.append(round(servers.pss(), 1))
    used = cpu_of(servers.processes[0]) - cpu
    print(f"idle for {seconds:g} s: {used:.2f} s of CPU, {samples[0]} MB, then {samples[-1]}")
    met = used <= seconds / 100 and max(samples) <= samples[0] * 1.05
    return {"seconds": seconds, "cpu_seconds": round(used, 3), "pss_mb": samples, "met": met}


class GraphSize(NamedTuple):
    """Resident memory of one graph cache, and of the rows that it keeps for wide questions.

    `build_ms` is the CPU time of reading it from the database's rows.
    """

    megabytes: float
    node_bytes: float
    relation_bytes: float
    rows_megabytes: float
    build_ms: float


def graph_size(prepared: Prepared) -> GraphSize:
    """Taken in a process of its own, whose heap has no holes yet."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(_graph_size, (prepared,))


def _graph_size(prepared: Prepared) -> GraphSize:
    """Graphs are made again and again from the same columns, once without their relations."""
    with tempfile.TemporaryDirectory() as folder:
        database = Database(prepared.copy_to(Path(folder)) / FILE_NAME)
        began = time.process_time()
        read = made(database, PLACE)
        built = (time.process_time() - began) * 1000
        columns = capture(read).columns()
        database.close()

    def graph(filled: Columns) -> WorkspaceGraph:
        empty = WorkspaceGraph(PLACE)
        empty.fill(filled)
        return empty

    del read
    bare = replace(columns, **{name: getattr(columns, name)[:0] for name in _OF_RELATIONS})
    _, _, nodes = resident(lambda: graph(bare))
    _, _, whole = resident(lambda: graph(columns))
    last = graph(columns)
    for incoming in (False, True):
        last.rows(incoming=incoming)
    rows = last.row_cache.memory_bytes() / 1e6
    return GraphSize(
        whole,
        nodes * 1e6 / prepared.nodes,
        (whole - nodes) * 1e6 / prepared.relations,
        rows,
        built,
    )


def main() -> None:
    """Measure what is asked for, print it, and keep it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--idle", type=float, default=0, help="seconds; the promise is of 600")
    parser.add_argument("--calls", type=int, default=0, help="the promise is of 10,000")
    parser.add_argument("--out", type=Path, help="a JSON file")
    given = parser.parse_args()
    told: dict[str, Any] = about(given.seed, ["python", "-m", "bench.memory", *sys.argv[1:]])
    told["nodes"] = given.nodes
    if given.idle or given.calls:
        with tempfile.TemporaryDirectory(prefix="cortex-bench-") as folder:
            context = Context(prepare(given.nodes, 3 * given.nodes, given.seed), Path(folder), 1)
            if given.calls:
                told["mixed"] = {**mixed(context, given.calls), "command": told["command"]}
            if given.idle:
                for name, arguments in mixture(context, 10):
                    context.servers().call(name, **arguments(0))
                told["idle"] = {
                    **idle(context.servers(), given.idle), "command": told["command"]
                }  # fmt: skip
            context.close()
    if given.out:
        before = json.loads(given.out.read_text("utf-8")) if given.out.exists() else {}
        told = {**before, **told} if before.get("nodes") == given.nodes else told
        given.out.write_text(json.dumps(told, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main()
