"""The engine beside a recursive CTE, networkx and igraph, on the same file in one process.

A library holds one graph of all relations and chooses among them in every call, as engine and CTE
do. "Prepared" it has, before anything is timed, a graph a question of just the relations that this
one asks for, so that its own searches in C can run. Neither follows the file: the engine looks in
every call for what was written since, and reads in one transaction. CPU time of the thread.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final, Protocol

import psutil

from bench.graph_engine import Bench, Case, milliseconds, quantiles
from bench.peers.graph_rows import GraphRows, read
from bench.peers.installing import importable
from bench.peers.measuring import Figure
from bench.peers.whole_graphs import IgraphWhole, NetworkxWhole

ENGINE: Final = "cortex engine"
CTE: Final = "recursive CTE"
PREPARED: Final = ", prepared"
CASES: Final = (
    "typed depth 3",
    "subgraph depth 2, 50 of",
    "subgraph of a hub",
    "descendants",
    "walk, 10 steps",
)
_NOTE: Final = "in one process, CPU ms; answers equal"


class Library(Protocol):
    """The questions of the table, from a key."""

    def typed(self, start: int) -> Any: ...
    def surroundings(self, start: int) -> Any: ...
    def below(self, start: int) -> Any: ...
    def walk(self, start: int) -> Any: ...


def question(library: Library, case: str) -> Callable[[int], Any]:
    """The library's answer to a case of bench/graph_engine."""
    return {
        "typed depth 3": library.typed,
        "subgraph depth 2, 50 of": library.surroundings,
        "subgraph of a hub": library.surroundings,
        "descendants": library.below,
        "walk, 10 steps": library.walk,
    }[case]


def resident() -> float:
    """The proportional set size of this process in MB."""
    gc.collect()
    return float(psutil.Process().memory_full_info().pss) / 1e6


def install(cache: Path) -> dict[str, str]:
    """networkx and igraph importable from a folder of their own, and their versions."""
    folder = cache / f"graph-libraries-{sys.version_info.major}.{sys.version_info.minor}"
    importable(folder, "networkx>=3.4", "igraph>=1.0")
    return {name: version(name) for name in ("networkx", "igraph")}


def libraries(rows: GraphRows, chosen: Sequence[str]) -> list[tuple[str, Library, float]]:
    """Name, graph and the MB that this process grew by, the rows not counted."""
    makers: list[tuple[str, Callable[[GraphRows], Library]]] = []
    if "networkx" in chosen:
        from bench.peers.with_networkx import NetworkxGraphs

        makers += [("networkx", NetworkxWhole), (f"networkx{PREPARED}", NetworkxGraphs)]
    if "igraph" in chosen:
        from bench.peers.with_igraph import IgraphGraphs

        makers += [("igraph", IgraphWhole), (f"igraph{PREPARED}", IgraphGraphs)]
    made: list[tuple[str, Library, float]] = []
    for name, make in makers:
        before = resident()
        library = make(rows)
        made.append((name, library, resident() - before))
    return made


def measured(bench: Bench, size: int, chosen: Sequence[str]) -> list[Figure]:
    """Figures of each case; where an answer differs, that peer's row says so and has no time."""
    figures: list[Figure] = []
    cases = {case.name: case for case in bench.cases() if case.name in CASES}
    before = resident()
    bench.untyped(bench.made.leaves[0])  # the engine's graph is built
    engine = resident() - before
    rivals = libraries(read(bench.sql), chosen)
    for name, case in cases.items():
        answers = [case.alike(case.engine(start)) for start in case.starts]
        figures.append(timed(ENGINE, case, case.engine, size, engine))
        others: list[tuple[str, Callable[[int], Any], float | None]] = [
            (rival, question(library, name), held) for rival, library, held in rivals
        ]
        if "cte" in chosen:
            others.append((CTE, case.cte, None))
        for rival, call, held in others:
            if [case.alike(call(start)) for start in case.starts] == answers:
                figures.append(timed(rival, case, call, size, held))
            else:
                figures.append(Figure(rival, name, size, found=False, note="answers differ"))
    return figures


def timed(
    peer: str, case: Case, call: Callable[[int], Any], size: int, held: float | None
) -> Figure:
    times = milliseconds(call, case.starts)
    p50, p95 = quantiles(times)
    megabytes = None if held is None else round(held, 1)
    return Figure(
        peer, case.name, size, round(p50, 4), round(p95, 4), len(times),
        pss_mb=megabytes, found=True, note=_NOTE,
    )  # fmt: skip
