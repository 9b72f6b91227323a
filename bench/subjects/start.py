"""The real server from nothing: the tools listed, then the first answers.

Spoken to in lines, so that no client's start is counted. "Cold" is a file that is not in the
system's cache (Linux); everything else is in it.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Final, NamedTuple

import psutil

from bench.context import Context
from bench.prepared import PLACE
from cortex.cli.timing import Figure, Target, figure_of, value_of
from cortex.config import FILE_NAME
from tests.harness import Wire

_RUNS: Final = 5
_FORGET: Final = """
import os, sys
with open(sys.argv[1], "rb") as file:
    os.fsync(file.fileno())
    os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
"""


class Start(NamedTuple):
    """Milliseconds of one start, and the size of the list; `cpu` is the server's own until then."""

    listed: float
    cpu: float
    answered: float
    searched: float
    characters: int


def measure(context: Context) -> Iterator[Figure]:
    """Initialize and list; the first graph answer with and without a graph snapshot."""
    context.close_memory()
    home, nodes = context.home, context.nodes
    derived = home / f"{FILE_NAME}.derived"

    def figure(name: str, values: list[float], note: str = "", limit: float = 0) -> Figure:
        targets = (Target(limit, "p50"),) if limit else ()
        return figure_of(name, values, note=note, targets=targets, where="stdio", nodes=nodes)

    start(context)  # a snapshot is saved at its end, if the memory is worth one
    warm = [start(context) for _ in range(_RUNS)]
    yield figure("initialize, tools/list", [each.listed for each in warm], "wall", 1000)
    yield figure("initialize, tools/list, CPU", [each.cpu for each in warm], limit=1000)
    yield value_of("tools/list", warm[0].characters, "characters", where="stdio", nodes=nodes,
                   below=24_000, note="four make a token")  # fmt: skip
    saved = any(derived.glob("graph-*"))
    limit = 1000 if nodes <= 100_000 else 2000
    if saved:
        yield figure("first graph answer", [each.answered for each in warm],
                     "after the list, graph from its snapshot", limit)  # fmt: skip
    yield figure("first search", [each.searched for each in warm], "then, the model loaded")
    bare = []
    for _ in range(2 if saved else 1):
        for file in derived.glob("graph-*"):
            file.unlink()
        bare.append(start(context))
    yield figure("first graph answer, from rows", [each.answered for each in bare],
                 "after the list", 0 if saved else limit)  # fmt: skip
    if hasattr(os, "posix_fadvise"):
        for file in (home / FILE_NAME, *derived.glob("*")):
            # In a process of its own: closing the file here would drop SQLite's locks.
            subprocess.run([sys.executable, "-c", _FORGET, str(file)], check=True)
        cold = start(context)
        yield figure("first graph answer, disk cold", [cold.answered], "after the list")


def start(context: Context) -> Start:
    """Start a server, ask it for its tools, for a memory, and for what is like a question."""
    began = time.perf_counter()
    wire = Wire(context.home, workspace=PLACE)
    try:
        wire.greet()
        listing = wire.ask("tools/list")
        listed = time.perf_counter()
        used = psutil.Process(wire.process.pid).cpu_times()
        wire.call("graph_get_node", node_id=context.starts.leaves[0])
        answered = time.perf_counter()
        wire.call("vector_search", query=context.questions(1)[0])
        searched = time.perf_counter()
        wire.end(20)
    finally:
        wire.close()
    return Start(
        (listed - began) * 1000,
        (used.user + used.system) * 1000,
        (answered - listed) * 1000,
        (searched - answered) * 1000,
        len(json.dumps(listing["result"], ensure_ascii=False, separators=(",", ":"))),
    )
