"""Times the analytics worker beside SQLite with its indexes, on one file, in one run.

The memory is generated, with a history of a million entries and some edits. Times are wall
times of whole calls: the worker's include the pipe and the look whether the file changed.
`ratio` is SQLite's p50 by the worker's; below 1, SQLite is the faster. Answers of both are
compared before they are timed. Memory is the worker's, with all that was asked behind it.
Run: python -m bench.worker [--nodes N] [--relations M] [--history H] [--seed S].
"""

from __future__ import annotations

import argparse
import json
import random
import sqlite3
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

import psutil

from analytics.client import Worker
from analytics.queries import (
    ActivityByType,
    Buckets,
    Chronological,
    Churn,
    Counts,
    Events,
    Idle,
    IdleTimes,
    Lineage,
    Query,
)
from bench.generate import GeneratedIds, generate
from bench.timing import header
from cortex.domain.activity import Unit
from cortex.domain.instants import Instant, as_datetime, before, render
from cortex.domain.taxonomy import Action, NodeType, Status
from cortex.domain.values import NodeId, WorkspaceId, new_id
from cortex.store.database import Database, Snapshot

START: Final = Instant("2026-01-01T00:00:00.000000Z")
DAYS: Final = 120
LAST: Final = render(as_datetime(START) + timedelta(days=DAYS))
RUNS: Final = 15
PLACE: Final = WorkspaceId("bench")
_HABITS: Final = (
    (Action.FOCUS, 35),
    (Action.TRAVERSE, 25),
    (Action.SEARCH, 20),
    (Action.OPEN, 15),
    (Action.BRANCH, 5),
)

_VISIT: Final = """
INSERT INTO navigation_history(workspace_id, node_id, action, context, created_at)
VALUES (?, ?, ?, ?, ?)
"""
_ACCESSES: Final = """
INSERT OR REPLACE INTO accesses(node_key, count, last_at)
SELECT n.rowkey, COUNT(*), MAX(h.created_at)
  FROM navigation_history AS h JOIN nodes AS n ON n.id = h.node_id GROUP BY n.rowkey
"""
_COUNTS: Final = """
SELECT 'node', type, status, COUNT(*) FROM nodes WHERE workspace_id = :place GROUP BY type, status
UNION ALL
SELECT 'relation', type, NULL, COUNT(*) FROM relations WHERE workspace_id = :place GROUP BY type
"""


def give_history(file: Path, made: GeneratedIds, entries: int, seed: int) -> None:
    """Visits of nodes that were young at the time, by 500 connections, over 120 days."""
    rng = random.Random(seed)
    ids = list(made.ids.values())
    actions = [action.value for action, _ in _HABITS]
    weights = [weight for _, weight in _HABITS]

    def visits() -> Iterator[tuple[str, str, str, str, str]]:
        begin = as_datetime(START)
        for number in range(entries):
            newest = len(ids) * number // entries
            node = ids[max(0, newest - int(rng.expovariate(1 / 2000)))]
            actor = json.dumps({"actor": f"editor#{number * 500 // entries}"})
            at = render(begin + timedelta(days=DAYS * number / entries))
            yield PLACE, node, rng.choices(actions, weights)[0], actor, at

    with sqlite3.connect(file) as shell:
        shell.executemany(_VISIT, visits())
        shell.execute(_ACCESSES)
    shell.close()


def edit(database: Database, made: GeneratedIds, seed: int) -> None:
    """Edit 5 % of the leaves."""
    rng = random.Random(seed)
    for part in range(0, len(made.leaves) // 20, 1000):
        with database.write("bench") as transaction:
            for key in rng.sample(made.leaves, 1000):
                transaction.nodes.set_data(key, {"text": f"edited {part}"}, transaction.at)


def p50(call: Callable[[], object], runs: int = RUNS) -> float:
    """Milliseconds of the median call, after one that is not counted."""
    call()
    times = []
    for _ in range(runs):
        began = time.perf_counter()
        call()
        times.append((time.perf_counter() - began) * 1000)
    return statistics.median(times)


def told(rows: Sequence[Any]) -> list[tuple[Any, ...]]:
    """The rows without their names, in an order of their own."""
    return sorted((tuple(row) for row in rows), key=str)


class Bench:
    """One file, the worker, and SQLite on it."""

    def __init__(self, database: Database, worker: Worker) -> None:
        self.database = database
        self.worker = worker
        self.shell = sqlite3.connect(database.path)

    def row(
        self,
        name: str,
        query: Query[Any],
        other: Callable[[], Sequence[Any]] | None = None,
        target: str = "",
    ) -> None:
        """Compare, time, print."""
        rows = self.worker.ask(query).rows
        if other is not None and told(other()) != told(rows):
            raise AssertionError(f"{name}: SQLite says something else")
        ours = p50(lambda: self.worker.ask(query))
        theirs = p50(other, 5) if other is not None else None
        beside = "| | |" if theirs is None else f"| {theirs:.2f} | {theirs / ours:.2f} |"
        print(f"| {name} | {len(rows):,} | {ours:.2f} {beside} {target} |", flush=True)

    def stored(self, read: Callable[[Snapshot], Sequence[Any]]) -> Callable[[], Sequence[Any]]:
        """A read of the store, each time in a snapshot of its own."""

        def call() -> Sequence[Any]:
            with self.database.read() as snapshot:
                return read(snapshot)

        return call

    def sql(self, statement: str, **bound: str) -> list[tuple[Any, ...]]:
        return self.shell.execute(statement, {"place": PLACE, **bound}).fetchall()

    def events(self, query: Events) -> Callable[[], Sequence[Any]]:
        start, stop = (None if at is None else Instant(at) for at in (query.start, query.stop))
        return self.stored(
            lambda snapshot: snapshot.timeline.events(
                PLACE, start, stop, query.actor, query.take, query.skip
            )
        )

    def counts(
        self,
        unit: Unit,
        kind: str | None = None,
        start: Instant | None = None,
        stop: Instant | None = None,
    ) -> Callable[[], Sequence[Any]]:
        return self.stored(lambda s: s.activity.buckets(PLACE, unit, kind, start, stop))

    def candidates(self, cutoff: Instant) -> Callable[[], Sequence[Any]]:
        def read(snapshot: Snapshot) -> Sequence[Any]:
            keys = snapshot.archiving.idle(PLACE, cutoff, 100, "[]")
            return snapshot.idleness.rows(PLACE, snapshot.archiving.last_activity(PLACE), keys, 50)

        return self.stored(read)


def measure(bench: Bench, made: GeneratedIds) -> None:
    """One line of the table after another."""
    month = (before(LAST, days=60), before(LAST, days=30))
    pages = (
        ("newest page of 50 events", Events(PLACE)),
        ("page of 50 at the end of a month", Events(PLACE, *month)),
        ("page of 50 of the newest session", Events(PLACE, actor="editor#499")),
        ("page of 50 of an old session", Events(PLACE, actor="editor#300")),
        ("500 events of one session in a month", Events(PLACE, *month, "editor#300", 500)),
    )
    for name, query in pages:
        bench.row(name, query, bench.events(query), "< 30")
    for unit in Unit:
        bench.row(f"events by {unit} and kind, all", Buckets(PLACE, unit.value), bench.counts(unit))
    focuses = Buckets(PLACE, "hour", "focus", *month)
    bench.row("focuses by hour, a month", focuses, bench.counts(Unit.HOUR, "focus", *month))
    types = bench.stored(lambda s: s.activity.by_type(PLACE, None, None))
    bench.row("activity by type and kind, all", ActivityByType(PLACE), types)
    bench.row("churn by week", Churn(PLACE),
              bench.stored(lambda s: s.activity.churn(PLACE, None, None)))  # fmt: skip
    bench.row("supports of facts, first 50", Chronological(PLACE, types=("fact",),
                                                           relation="supports"))  # fmt: skip
    node = NodeId(made.ids[made.leaves[0]])
    bench.row("lineage", Lineage(node), bench.stored(lambda s: s.activity.lineage(node)))
    bench.row("counts", Counts(PLACE), lambda: bench.sql(_COUNTS))
    bench.row("the 50 longest idle", IdleTimes(PLACE), bench.stored(
        lambda s: s.idleness.rows(PLACE, s.archiving.last_activity(PLACE), None, 50)))  # fmt: skip
    cutoff = before(LAST, days=7)
    bench.row("archive candidates, nothing archived yet", Idle(PLACE, cutoff, 100, take=50),
              bench.candidates(cutoff))  # fmt: skip
    with bench.database.write("bench") as transaction:
        idle = transaction.archiving.idle(PLACE, cutoff, 100, "[]")
        transaction.nodes.set_status(idle, Status.ARCHIVED)
    tomorrow = before(LAST, days=6)
    bench.row("archive candidates of the next day", Idle(PLACE, tomorrow, 100, take=50),
              bench.candidates(tomorrow), "< 50")  # fmt: skip


def one_write(bench: Bench) -> float:
    """Milliseconds from a commit to an answer that holds it, less those of the answer alone."""
    times = []
    for _ in range(RUNS):
        with bench.database.write("bench") as transaction:
            transaction.nodes.insert(
                NodeId(new_id()), NodeType.NOTE, PLACE, None, {}, transaction.at
            )
        began = time.perf_counter()
        bench.worker.ask(Counts(PLACE))
        times.append((time.perf_counter() - began) * 1000)
    return statistics.median(times) - p50(lambda: bench.worker.ask(Counts(PLACE)))


def main() -> None:
    """Generate, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=100_000)
    parser.add_argument("--relations", type=int, default=300_000)
    parser.add_argument("--history", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "cortex.db")
        database = Database(file)
        made = generate(database, given.nodes, given.relations, given.seed)
        give_history(file, made, given.history, given.seed)
        edit(database, made, given.seed)
        print(
            f"{given.nodes:,} nodes, {made.relations:,} relations, {given.history:,} entries of "
            f"the history, seed {given.seed}; {header()}\n"
        )
        with Worker(file) as worker:
            bench = Bench(database, worker)
            began = time.perf_counter()
            worker.ask(Counts(PLACE))
            started = time.perf_counter() - began
            assert worker.pid is not None
            process = psutil.Process(worker.pid)
            loaded = process.memory_info().rss / 1e6
            print(f"started, file read whole: {started:.2f} s; {loaded:.0f} MB\n")
            print(
                "| query | rows | worker p50 ms | SQLite p50 ms | ratio | target ms |\n"
                "|---|---|---|---|---|---|"
            )
            measure(bench, made)
            print(f"\ncatching up after one write: {one_write(bench):.2f} ms")
            memory = process.memory_full_info()
            print(f"memory: {memory.rss / 1e6:.0f} MB RSS, {peak(process):.0f} MB at its peak")
            bench.shell.close()
        database.close()


def peak(process: psutil.Process) -> float:
    """The most memory that a process has held, in MB (Linux; elsewhere what it holds now)."""
    status = Path(f"/proc/{process.pid}/status")
    if not status.exists():
        return float(process.memory_info().rss) / 1e6
    lines = dict(line.split(":", 1) for line in status.read_text().splitlines() if ":" in line)
    return int(lines["VmHWM"].split()[0]) / 1000


if __name__ == "__main__":
    main()
