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
from collections.abc import Callable, Iterator
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
from cortex.domain.instants import Instant, as_datetime, before, render
from cortex.domain.taxonomy import Action, NodeType, Status
from cortex.domain.values import NodeId, WorkspaceId, new_id
from cortex.store.database import Database

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
_DAILY: Final = """
SELECT substr(at, 1, 10) AS day, kind, COUNT(*) FROM (
    SELECT created_at AS at, 'created' AS kind FROM nodes WHERE workspace_id = :place
    UNION ALL
    SELECT c.at, CASE WHEN json_extract(c.before, '$.status') IS NOT n.status
                      THEN 'status' ELSE 'changed' END
      FROM changes AS c JOIN nodes AS n ON n.rowkey = c.key
     WHERE c.workspace_id = :place AND c.entity = 'node' AND c.op = 'update'
       AND (json_extract(c.before, '$.data') IS NOT n.data
            OR json_extract(c.before, '$.status') IS NOT n.status)
    UNION ALL
    SELECT at, 'deleted' FROM changes
     WHERE workspace_id = :place AND entity = 'node' AND op = 'delete'
    UNION ALL
    SELECT created_at, 'related' FROM relations WHERE workspace_id = :place
    UNION ALL
    SELECT created_at, action FROM navigation_history WHERE workspace_id = :place)
 GROUP BY day, kind ORDER BY day, kind
"""
_HOURS: Final = """
SELECT substr(created_at, 1, 13) AS hour, COUNT(*) FROM navigation_history
 WHERE workspace_id = :place AND action = 'focus' AND created_at BETWEEN :start AND :stop
 GROUP BY hour ORDER BY hour
"""
_FOCUSED_TYPES: Final = """
SELECT n.type, h.action, COUNT(*)
  FROM navigation_history AS h LEFT JOIN nodes AS n ON n.id = h.node_id
 WHERE h.workspace_id = :place GROUP BY n.type, h.action
"""
_COUNTS: Final = """
SELECT type, status, COUNT(*) FROM nodes WHERE workspace_id = :place GROUP BY type, status
UNION ALL
SELECT type, NULL, COUNT(*) FROM relations WHERE workspace_id = :place GROUP BY type
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


class Bench:
    """One file, the worker, and SQLite on it."""

    def __init__(self, database: Database, worker: Worker) -> None:
        self.database = database
        self.worker = worker
        self.shell = sqlite3.connect(database.path)

    def row(self, name: str, query: Query[Any], other: Callable[[], Any] | None = None) -> None:
        """Compare, time, print."""
        rows = self.worker.ask(query).rows
        if other is not None and len(other()) != len(rows):
            raise AssertionError(f"{name}: {len(rows)} rows, SQLite has {len(other())}")
        ours = p50(lambda: self.worker.ask(query))
        theirs = p50(other) if other is not None else None
        beside = "| | |" if theirs is None else f"| {theirs:.2f} | {theirs / ours:.2f} |"
        print(f"| {name} | {len(rows):,} | {ours:.2f} {beside}", flush=True)

    def sql(self, statement: str, **bound: str) -> list[tuple[Any, ...]]:
        return self.shell.execute(statement, {"place": PLACE, **bound}).fetchall()

    def events(self, query: Events) -> list[Any]:
        with self.database.read() as snapshot:
            return snapshot.timeline.events(
                PLACE,
                Instant(query.start or START),
                Instant(query.stop or LAST),
                query.actor,
                query.take,
                query.skip,
            )

    def idle(self, cutoff: Instant) -> list[int]:
        with self.database.read() as snapshot:
            return snapshot.archiving.idle(PLACE, cutoff, 100, "[]")


def measure(bench: Bench, made: GeneratedIds) -> None:
    """One line of the table after another."""
    month = (before(LAST, days=60), before(LAST, days=30))
    page = Events(PLACE, *month, take=50)
    newest = Events(PLACE, START, LAST, take=50)
    actor = Events(PLACE, *month, actor="editor#300", take=500)
    hours = Buckets(PLACE, "hour", "focus", *month)
    bench.row("newest page of 50 events", newest, lambda: bench.events(newest))
    bench.row("page of 50 at the end of a month", page, lambda: bench.events(page))
    bench.row("500 events of one actor in a month", actor, lambda: bench.events(actor))
    bench.row("events by day and kind, all", Buckets(PLACE, "day"), lambda: bench.sql(_DAILY))
    bench.row("focuses by hour, a month", hours,
              lambda: bench.sql(_HOURS, start=month[0], stop=month[1]))  # fmt: skip
    bench.row("activity by type and kind, all", ActivityByType(PLACE))
    ours = p50(lambda: bench.sql(_FOCUSED_TYPES), 3)
    print(f"| (its history alone, in SQLite) | | | {ours:.2f} | |", flush=True)
    bench.row("churn by week", Churn(PLACE))
    bench.row("supports of facts, first 50", Chronological(PLACE, types=("fact",),
                                                           relation="supports"))  # fmt: skip
    bench.row("lineage", Lineage(made.ids[made.leaves[0]]))
    bench.row("counts", Counts(PLACE), lambda: bench.sql(_COUNTS))
    bench.row("the 50 longest idle", IdleTimes(PLACE))
    cutoff = before(LAST, days=7)
    bench.row("archive candidates, nothing archived yet", Idle(PLACE, cutoff, 100),
              lambda: bench.idle(cutoff))  # fmt: skip
    with bench.database.write("bench") as transaction:
        transaction.nodes.set_status(bench.idle(cutoff), Status.ARCHIVED)
    tomorrow = before(LAST, days=6)
    bench.row("archive candidates of the next day", Idle(PLACE, tomorrow, 100),
              lambda: bench.idle(tomorrow))  # fmt: skip


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
            print("| query | rows | worker p50 ms | SQLite p50 ms | ratio |\n|---|---|---|---|---|")
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
