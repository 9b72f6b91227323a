"""Two processes write, the worker reads: every answer is of one moment, and no file breaks."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from collections import Counter
from contextlib import closing
from pathlib import Path

from analytics.client import Worker
from analytics.queries import Buckets, Churn, Counts, Events, Idle, Mirrored
from cortex.domain.taxonomy import NodeType, Status
from cortex.domain.values import NodeId, WorkspaceId, new_id
from cortex.store.database import Database
from tests.harness import ROOT

QUESTIONS = 150
CROWD = 400

# Each transaction adds a fact, a note, a supports and a focus; archives one of the crowd and
# wakes another; and deletes an error that the one before added. It goes on until its stdin is
# closed, and at least twenty times; then it prints how many there were.
WRITER = """
import random, sys, threading, time
from pathlib import Path
from cortex.domain.taxonomy import Action, NodeType, RelationType, Status
from cortex.domain.values import NodeId, WorkspaceId, new_id
from cortex.store.database import Database
from cortex.store.navigation import Visit
place, rng = WorkspaceId("w"), random.Random(int(sys.argv[2]))
database = Database(Path(sys.argv[1]))
crowd = [int(key) for key in sys.argv[3].split(",")]
reader = threading.Thread(target=sys.stdin.read, daemon=True)
reader.start()
done, error = 0, None
asleep = [crowd.pop()]
while reader.is_alive() or done < 20:
    with database.write(f"writer {sys.argv[2]}") as t:
        fact, note, new = (
            t.nodes.insert(NodeId(new_id()), kind, place, None, {"text": "x" * 500}, t.at)
            for kind in (NodeType.FACT, NodeType.NOTE, NodeType.ERROR))
        t.relations.insert(place, note.id, fact.id, RelationType.SUPPORTS, t.at)
        t.navigation.add(Visit(place, fact.id, Action.FOCUS, {"actor": "a"}, t.at))
        tired = crowd.pop(rng.randrange(len(crowd)))
        t.nodes.set_status([tired], Status.ARCHIVED)
        t.nodes.set_status(asleep, Status.ACTIVE)
        crowd, asleep = crowd + asleep, [tired]
        if error is not None:
            t.nodes.delete([error])
        error = new.key
    done += 1
    time.sleep(rng.random() * 0.01)
database.close()
print(done)
"""


def populate(file: Path) -> list[list[int]]:
    """A crowd of tasks, half for each writer, of which it archives the last."""
    with closing(Database(file)) as database, database.write("crowd") as transaction:
        keys = [
            transaction.nodes.insert(
                NodeId(new_id()), NodeType.TASK, WorkspaceId("w"), None, {}, transaction.at
            ).key
            for _ in range(CROWD)
        ]
        halves = [keys[: CROWD // 2], keys[CROWD // 2 :]]
        transaction.nodes.set_status([half[-1] for half in halves], Status.ARCHIVED)
    return halves


def wrong(worker: Worker) -> tuple[list[str], Mirrored]:
    """What each of four answers contradicts in itself, and the last one's generation."""
    found: list[str] = []
    counts = worker.ask(Counts("w"))
    kinds: Counter[str] = Counter()
    for row in counts.rows:
        kinds[row.type] += row.total
    tasks = {row.status: row.total for row in counts.rows if row.type == "task"}
    if tasks != {"active": CROWD - 2, "archived": 2}:
        found.append(f"tasks {tasks}")
    if not kinds["fact"] == kinds["note"] == kinds["supports"] or kinds["error"] > 2:
        found.append(f"kinds {kinds}")
    happened: Counter[str] = Counter()
    for bucket in worker.ask(Buckets("w")).rows:
        happened[bucket.kind] += bucket.total
    if happened["related"] != happened["focus"]:
        found.append(f"buckets {happened}")
    (week,) = worker.ask(Churn("w")).rows[:1]
    if (week.created - CROWD) % 3 or week.deleted < (week.created - CROWD) // 3 - 2:
        found.append(f"week {week}")
    page = worker.ask(Events("w", take=40))
    if [row.at for row in page.rows] != sorted((row.at for row in page.rows), reverse=True):
        found.append("events out of order")
    worker.ask(Idle("w", "2020-01-01T00:00:00.000000Z", 10))
    return found, page.generation


def test_answers_are_of_one_moment_while_two_processes_write(tmp_path: Path) -> None:
    file = tmp_path / "cortex.db"
    halves = populate(file)
    with Worker(file) as worker:
        writers = [
            subprocess.Popen(
                [sys.executable, "-c", WRITER, str(file), str(number), ",".join(map(str, half))],
                env={"PYTHONPATH": str(ROOT)}, text=True,
                stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            )
            for number, half in enumerate(halves)
        ]  # fmt: skip
        asked, seqs, wal = 0, [0], 0
        while asked < QUESTIONS:
            found, generation = wrong(worker)
            assert not found
            seqs.append(generation.seq)
            asked += 5
            wal = max(wal, file.with_name("cortex.db-wal").stat().st_size)
        done = [int(writer.communicate()[0]) for writer in writers]
        assert seqs == sorted(seqs)
        assert wal < 64_000_000, "the worker holds up the writers' checkpoints"
        assert min(done) >= 20
        last = {row.type: row.total for row in worker.ask(Counts("w")).rows if row.type == "fact"}
        assert last == {"fact": sum(done)}
        with closing(sqlite3.connect(file)) as shell:
            # The worker is still there, and holds nothing open.
            assert shell.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0] == 0
            assert file.with_name("cortex.db-wal").stat().st_size == 0
            assert shell.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
            committed = shell.execute("SELECT COUNT(*) FROM nodes WHERE type = 'fact'").fetchone()
            assert committed == (sum(done),)
