"""Times the graph engine beside recursive CTEs on the same file, in the same run.

Every answer is compared with the CTE's before either is timed. `ratio` is the CTE's p50 by
the engine's. Times are CPU time of the thread, so that other work on the machine does not
count; the files are in the page cache.
Run: python -m bench.graph_engine [--nodes N] [--relations M] [--seed S] [--database FILE].
FILE is generated where it is not there, and written to: give a copy of one that is kept.
"""

from __future__ import annotations

import argparse
import platform
import random
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from bench import graph_statements as sql
from bench.generate import GeneratedIds, generate
from cortex.domain.taxonomy import RelationType
from cortex.domain.values import Node, NodeId, new_id
from cortex.graph.breadth_first import NO_LIMIT
from cortex.graph.descent import descendants
from cortex.graph.expansion import subgraph
from cortex.graph.graphs import Graphs
from cortex.graph.shelf import Shelf
from cortex.graph.traversal import traverse
from cortex.graph.walking import walk
from cortex.graph.workspace import WorkspaceGraph
from cortex.store.database import Database
from cortex.store.nodes import node_of

R = RelationType
TYPED: Final = frozenset({R.CONTAINS, R.DECOMPOSES_TO, R.SUPPORTS, R.DERIVES_FROM})
DEPTH: Final = 3
STEPS: Final = 10
PAGE: Final = 50
SECONDS: Final = 4.0


@dataclass(frozen=True, slots=True)
class Case:
    """One line of the table: the engine and the CTE, each from a start to comparable answers."""

    name: str
    starts: Sequence[int]
    engine: Callable[[int], Any]
    cte: Callable[[int], Any]
    alike: Callable[[Any], Any] = list


def milliseconds(call: Callable[[int], Any], starts: Sequence[int]) -> list[float]:
    """Times of single calls, over the starts again and again, for a few seconds."""
    times: list[float] = []
    began = time.perf_counter()
    while len(times) < 10 * len(starts) and time.perf_counter() - began < SECONDS:
        for start in starts:
            before = time.thread_time()
            call(start)
            times.append((time.thread_time() - before) * 1000)
    return times


def quantiles(times: Sequence[float]) -> tuple[float, float]:
    """p50 and p95."""
    cuts = statistics.quantiles(times, n=20) if len(times) > 1 else [times[0]] * 19
    return statistics.median(times), cuts[18]


def show(name: str, size: str, ours: Sequence[float], theirs: Sequence[float] = ()) -> None:
    p50, p95 = quantiles(ours)
    line = f"| {name} | {size} | {p50:.3f} | {p95:.3f} |"
    if theirs:
        cte50, cte95 = quantiles(theirs)
        line += f" {cte50:.2f} | {cte95:.2f} | {cte50 / p50:.0f}× |"
    else:
        line += " | | |"
    print(line)


class Bench:
    def __init__(self, path: Path, nodes: int, relations: int, seed: int) -> None:
        self.database = Database(path)
        self.made: GeneratedIds = generate(self.database, nodes, relations, seed)
        self.graphs = Graphs(1 << 33, Shelf(path, writable=True))
        self.sql = sqlite3.connect(path)
        self.sql.execute("PRAGMA cache_size = -32000")
        self.sql.execute("PRAGMA temp_store = MEMORY")
        self.random = random.Random(seed)

    def rows(self, statement: str, start: int) -> list[tuple[Any, ...]]:
        return self.sql.execute(statement, {"start": self.made.ids[start]}).fetchall()

    def keys(self, statement: str) -> Callable[[int], list[int]]:
        return lambda start: [row[0] for row in self.rows(statement, start)]

    def typed(self, start: int) -> list[int]:
        with self.graphs.view(self.database, self.made.workspace) as (_, graph):
            return self._typed_keys(graph, start)

    def typed_rows(self, start: int) -> list[Node]:
        with self.graphs.view(self.database, self.made.workspace) as (snapshot, graph):
            return snapshot.nodes.by_keys(self._typed_keys(graph, start))

    @staticmethod
    def _typed_keys(graph: WorkspaceGraph, start: int) -> list[int]:
        found = traverse(
            graph,
            start,
            relations=TYPED,
            depth=DEPTH,
            direction="out",
            node_types=None,
            limit=NO_LIMIT,
        )
        return [key for key, _ in found.nodes]

    def untyped(self, start: int) -> list[int]:
        with self.graphs.view(self.database, self.made.workspace) as (_, graph):
            found = traverse(
                graph,
                start,
                relations=None,
                depth=DEPTH,
                direction="both",
                node_types=None,
                limit=PAGE,
            )
        return [key for key, _ in found.nodes]

    def subgraph(self, start: int) -> list[int]:
        with self.graphs.view(self.database, self.made.workspace) as (_, graph):
            return [key for key, _ in subgraph(graph, [start], 2, PAGE).nodes]

    def below(self, start: int) -> list[int]:
        with self.graphs.view(self.database, self.made.workspace) as (_, graph):
            return descendants(graph, start)

    def walk(self, start: int) -> list[tuple[int | None, int]]:
        with self.graphs.view(self.database, self.made.workspace) as (_, graph):
            return walk(graph, start, STEPS)

    def write(self) -> None:
        made = self.made
        with self.database.write("bench") as transaction:
            task = self.random.choice(made.tasks)
            node = transaction.nodes.insert(
                NodeId(new_id()),
                next(iter(transaction.nodes.by_keys([task]))).type,
                made.workspace,
                made.ids[task],
                {"title": "one more"},
                transaction.at,
            )
            transaction.relations.insert(
                made.workspace, made.ids[task], node.id, R.CONTAINS, transaction.at
            )

    def cases(self) -> Iterable[Case]:
        made = self.made
        wide = [goal for goal in made.goals if len(self.typed(goal)) >= 800][:10]
        leaves = self.random.sample(made.leaves, 20)
        heads = self.random.sample(made.chain_heads, 20)
        wide = wide or made.goals[:1]
        yield Case("typed depth 3", wide, self.typed, self.keys(sql.TYPED_KEYS))
        yield Case(
            "typed depth 3, rows fetched",
            wide,
            self.typed_rows,
            lambda start: [node_of(row) for row in self.rows(sql.TYPED, start)],
        )
        yield Case("untyped depth 3, 50 of", leaves, self.untyped, self.keys(sql.UNTYPED))
        yield Case("subgraph depth 2, 50 of", leaves, self.subgraph, self.keys(sql.SUBGRAPH))
        yield Case("subgraph of a hub", made.hubs, self.subgraph, self.keys(sql.SUBGRAPH))
        yield Case("descendants", [made.archive], self.below, self.keys(sql.BELOW), sorted)
        yield Case("walk, 10 steps", heads, self.walk, lambda start: self.rows(sql.WALK, start))

    def after_write(
        self, call: Callable[[int], Any], starts: Sequence[int], count: int
    ) -> list[float]:
        times = []
        for number in range(count):
            self.write()
            before = time.thread_time()
            call(starts[number % len(starts)])
            times.append((time.thread_time() - before) * 1000)
        return times

    def catch_up(self, _: int) -> None:
        with self.graphs.view(self.database, self.made.workspace):
            pass


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=20_000)
    parser.add_argument("--relations", type=int, default=60_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--database", type=Path)
    given = parser.parse_args()
    print(f"{given.nodes} nodes, {given.relations} relations, seed {given.seed};", end=" ")
    said = f"CPU ms; Python {platform.python_version()}, SQLite {sqlite3.sqlite_version}"
    print(said, flush=True)
    with tempfile.TemporaryDirectory() as folder:
        path = given.database or Path(folder) / "cortex.db"
        bench = Bench(path, given.nodes, given.relations, given.seed)
        bench.graphs.save(bench.database, bench.made.workspace)
        subprocess.run([sys.executable, "-m", "bench.graph_size", str(path)], check=True)
        print("| | nodes | p50 ms | p95 ms | CTE p50 | CTE p95 | ratio |")
        print("|---|---|---|---|---|---|---|")
        for case in bench.cases():
            sizes = []
            for start in case.starts:
                ours, theirs = case.engine(start), case.cte(start)
                assert case.alike(ours) == case.alike(theirs), f"{case.name} differs at {start}"
                sizes.append(len(ours))
            size = f"{min(sizes)}–{max(sizes)}" if min(sizes) < max(sizes) else str(sizes[0])
            theirs = milliseconds(case.cte, case.starts)
            show(case.name, size, milliseconds(case.engine, case.starts), theirs)
        leaves = bench.random.sample(bench.made.leaves, 20)
        show("catch-up after one write", "", bench.after_write(bench.catch_up, [0], 200))
        for name, call, starts in (
            ("untyped depth 3 after each write", bench.untyped, leaves),
            ("subgraph of a hub after each write", bench.subgraph, bench.made.hubs),
            ("descendants after each write", bench.below, [bench.made.archive]),
        ):
            show(name, "", bench.after_write(call, starts, 60))
        bench.sql.close()
        bench.database.close()


if __name__ == "__main__":
    main()
