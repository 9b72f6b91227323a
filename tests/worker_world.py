"""A memory with a random life, for comparing what the worker says with what SQLite says.

Its clock often stands still and sometimes goes back; actors take turns; nodes are edited,
superseded, archived, focused, deleted, and made again with their old id.
"""

from __future__ import annotations

import json
import random
import sqlite3
from contextlib import suppress
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final

from analytics.client import Worker
from analytics.queries import Events, Query
from cortex.domain.activity import EventRow, Row
from cortex.domain.errors import ConflictError
from cortex.domain.instants import Instant, render
from cortex.domain.taxonomy import NODE_TYPES, RELATION_TYPES, STATUSES, Action, RelationType
from cortex.domain.values import NodeId, WorkspaceId, new_id
from cortex.store.database import Database, Transaction
from cortex.store.navigation import Visit

PLACES: Final = (WorkspaceId("here"), WorkspaceId("it's there"))
ACTORS: Final = ("editor#1", "editor#2", "shell")
ALL: Final = 100_000


class Clock:
    """Moves when told; microseconds, hours and days are among its steps."""

    def __init__(self, start: str = "2026-03-01T00:00:00+00:00") -> None:
        self.moment = datetime.fromisoformat(start)

    def __call__(self) -> Instant:
        return render(self.moment)

    def forward(self, **delta: float) -> None:
        self.moment += timedelta(**delta)


class Life:
    """A file, and what happens to it."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.rng = random.Random(seed)
        self.clock = Clock()
        self.file = folder / "cortex.db"
        self.database = Database(self.file, clock=self.clock)
        self.lost: list[NodeId] = []

    def close(self) -> None:
        self.database.close()

    def live(self, transactions: int) -> None:
        """Some transactions, of some steps each."""
        for _ in range(transactions):
            self.clock.forward(**self.rng.choice(({}, {}, {"microseconds": 1}, {"hours": 9},
                                                  {"days": 2}, {"seconds": -5})))  # fmt: skip
            with self.database.write(self.rng.choice(ACTORS)) as transaction:
                for _ in range(self.rng.randrange(1, 12)):
                    # A second root, a ring, a superseded node made active: refused, undone.
                    with suppress(sqlite3.IntegrityError, ConflictError):
                        self._step(transaction)

    def _step(self, transaction: Transaction) -> None:
        rng = self.rng
        place = rng.choice(PLACES)
        nodes = list(transaction.nodes.brief(place))
        step = rng.choices(
            ("add", "again", "link", "edit", "status", "delete", "visit", "touch"),
            (8, 1, 7, 3, 3, 2, 8, 2),
        )[0]
        if step == "add" or len(nodes) < 4:
            self._add(transaction, place, NodeId(new_id()))
            return
        if step == "again":
            if self.lost:
                self._add(transaction, place, self.lost.pop())
            return
        one, other = rng.sample(nodes, 2)
        match step:
            case "link":
                kind = rng.choice((*RELATION_TYPES, RelationType.SUPERSEDES))
                self._link(transaction, place, one.id, other.id, kind)
            case "edit":
                text = rng.choice(("one", "two", "three"))
                data = {"text": text, "pinned": rng.random() < 0.2}
                transaction.nodes.set_data(one.key, data, transaction.at)
            case "status":
                transaction.nodes.set_status([one.key], rng.choice(STATUSES))
            case "delete":
                transaction.nodes.delete([one.key])
                self.lost.append(NodeId(one.id))
            case "visit":
                node = NodeId(rng.choice((one.id, one.id, one.id, "", *self.lost[-1:])))
                context = {"actor": rng.choice(ACTORS)} if rng.random() < 0.9 else {}
                action = rng.choice(tuple(Action))
                transaction.navigation.add(Visit(place, node, action, context, transaction.at))
            case "touch":
                transaction.navigation.touch([NodeId(one.id)], transaction.at)

    def _add(self, transaction: Transaction, place: WorkspaceId, node: NodeId) -> None:
        kind = self.rng.choice(NODE_TYPES)
        made = transaction.nodes.insert(
            node, kind, place, None, {"text": kind.value}, transaction.at
        )
        above = [each.id for each in transaction.nodes.brief(place) if each.id != made.id]
        if above and self.rng.random() < 0.7:
            parent = self.rng.choice(above)
            self._link(transaction, place, parent, made.id, RelationType.CONTAINS)

    def _link(
        self, transaction: Transaction, place: WorkspaceId, near: str, far: str, kind: RelationType
    ) -> None:
        transaction.relations.insert(
            place, NodeId(near), NodeId(far), kind, transaction.at, self.rng.random()
        )

    def compact(self, share: float) -> None:
        """Fold the older part of the log away, as compaction does."""
        shell = sqlite3.connect(self.file, isolation_level=None)
        shell.execute("BEGIN IMMEDIATE")
        (newest,) = shell.execute("SELECT MAX(seq) FROM changes").fetchone()
        floor = int(newest * share)
        shell.execute("DELETE FROM changes WHERE seq <= ?", (floor,))
        shell.execute("UPDATE meta SET value = ? WHERE key = 'log_floor'", (str(floor),))
        shell.execute("COMMIT")
        shell.close()

    # What SQLite says

    def events(
        self,
        place: WorkspaceId,
        start: Instant | None = None,
        stop: Instant | None = None,
        actor: str | None = None,
        take: int = ALL,
        skip: int = 0,
    ) -> list[EventRow]:
        with self.database.read() as snapshot:
            return snapshot.timeline.events(place, start, stop, actor, take, skip)

    def idle(self, place: WorkspaceId, cutoff: Instant, keep: int, hot: list[str]) -> list[int]:
        with self.database.read() as snapshot:
            return snapshot.archiving.idle(place, cutoff, keep, json.dumps(hot))

    def sql(self, statement: str, **bound: str | int) -> list[tuple[object, ...]]:
        """Rows as a shell would read them."""
        shell = sqlite3.connect(self.file)
        try:
            return shell.execute(statement, bound).fetchall()
        finally:
            shell.close()


def rows(worker: Worker, query: Query[Row]) -> list[Row]:
    """The rows of an answer."""
    return list(worker.ask(query).rows)


def same_events(life: Life, worker: Worker, query: Events) -> bool:
    """Whether both list the same."""
    ours = [tuple(row) for row in worker.ask(query).rows]
    theirs = life.events(
        WorkspaceId(query.workspace),
        None if query.start is None else Instant(query.start),
        None if query.stop is None else Instant(query.stop),
        query.actor,
        query.take,
        query.skip,
    )
    return ours == [tuple(row) for row in theirs]
