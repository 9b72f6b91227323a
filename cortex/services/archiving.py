"""What lies idle is archived when a desktop is opened: what that goes by, and how.

It goes by the workspace's own clock, and leaves what is hot or strong. A thread does it, which the
opening waits for a moment, so that a small memory is tidy before it is shown. Active nodes are
walked from the oldest on, some thousands in a read transaction, and the idle among them archived
in steps of a hundred, which take some 50 ms each, so that no writer waits for tens of thousands
after a large import. If the process ends meanwhile, the rest follows another day.

Idle is a node that nothing was done to, nor to anything below it. What lies above the living is
read once, as a set of keys; before each further piece, what has come alive since is added.
"""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Final, NamedTuple

from cortex.config import Settings
from cortex.domain.errors import BusyError
from cortex.domain.instants import Instant, before
from cortex.domain.taxonomy import Status
from cortex.domain.values import NodeId, WorkspaceId
from cortex.graph.background import Background
from cortex.services.engine import Engine
from cortex.services.waves import strong
from cortex.store.database import Snapshot, Transaction
from cortex.store.meta import LAST_GC
from cortex.store.timeline import ARCHIVER

STEP: Final = 100
PIECE: Final = 2_000
GOING_ON: Final = "what lies idle is archived in the background"
SKIPPED: Final = "archiving was skipped: another writer held the memory"
_PAUSE: Final = 0.05  # between two steps, for those who wait for the write lock
_MOMENT: Final = 0.1  # seconds that an opening waits
_WAIT: Final = 2.0
_OVERLAP: Final = 60.0  # seconds: a transaction bears its beginning, and is seen from its end on


class Terms(NamedTuple):
    """Idle since before `cutoff`, beside `hot` (in focus lately, or strong still) and the newest
    `keep`; `last` is the latest life."""

    last: Instant
    cutoff: Instant
    keep: int
    hot: list[NodeId]


def archive_terms(snapshot: Snapshot, place: WorkspaceId, settings: Settings) -> Terms | None:
    """The terms of a workspace now; None where nothing ever happened."""
    last = snapshot.archiving.last_activity(place)
    if last is None:
        return None
    cutoff = before(last, days=settings.archive_days)
    hot = snapshot.navigation.focused(place, settings.hot_focuses)
    hot += strong(snapshot, place, last, settings.archive_days)
    return Terms(last, cutoff, settings.keep_newest, hot)


class Archiver:
    """Archives idle nodes, at most once a day and workspace."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._background = Background("archiving")
        self._closing = threading.Event()
        self._state = threading.Condition()
        self._done: Counter[WorkspaceId] = Counter()
        self._seen: dict[WorkspaceId, str] = {}
        self._going: set[WorkspaceId] = set()
        self._skipped: set[WorkspaceId] = set()

    def collect(self, place: WorkspaceId, notes: list[str]) -> int:
        """How many nodes this process archived since it was asked last; `notes` says the rest.

        What is due is begun; whoever begins it waits a moment, enough for a small memory.
        """
        if self._engine.settings.read_only:
            return 0
        with self._state:
            again = place in self._skipped
        if again:
            notes.append(SKIPPED)
        begun = (again or self._is_due(place)) and self._begin(place, again)
        with self._state:
            moment = _MOMENT if begun else 0.0
            if not self._state.wait_for(lambda: place not in self._going, moment):
                notes.append(GOING_ON)
            return self._done.pop(place, 0)

    def _is_due(self, place: WorkspaceId) -> bool:
        today = self._engine.now()[:10]
        if self._seen.get(place) == today:
            return False
        self._seen[place] = today
        with self._engine.database.read() as snapshot:
            return snapshot.meta.find(LAST_GC + place) != today

    def _begin(self, place: WorkspaceId, again: bool) -> bool:
        """Start it, unless it goes on already."""
        with self._state:
            if place in self._going:
                return False
            self._skipped.discard(place)
            self._going.add(place)
        self._background.run(place, partial(self._work, place, again))
        return True

    def _work(self, place: WorkspaceId, again: bool) -> None:
        skipped = False
        try:
            self._archive(place, again)
        except BusyError:
            skipped = True
        finally:
            with self._state:
                if skipped:
                    self._skipped.add(place)
                self._going.discard(place)
                self._state.notify_all()

    def _archive(self, place: WorkspaceId, begun: bool) -> None:
        engine, today = self._engine, self._engine.now()[:10]
        with engine.database.read() as snapshot:
            if not begun and snapshot.meta.find(LAST_GC + place) == today:
                return  # another process was faster
            terms = archive_terms(snapshot, place, engine.settings)
        if terms is None:
            return
        for keys in self._iter_idle(place, terms):
            if keys:
                with engine.database.write(ARCHIVER, wait=_WAIT) as transaction:
                    if not begun and not _claim(transaction, place, today):
                        return
                    idle = transaction.archiving.still(keys, place, terms.cutoff)
                    done = transaction.nodes.set_status(idle, Status.ARCHIVED)
                begun = True
                engine.after_write()
                with self._state:
                    self._done[place] += done
            if self._closing.wait(_PAUSE if keys else 0.0):
                return
        if not begun:
            with engine.database.write(ARCHIVER, wait=_WAIT) as transaction:
                _claim(transaction, place, today)

    def _iter_idle(self, place: WorkspaceId, terms: Terms) -> Iterator[Sequence[int]]:
        """Keys of what is idle, at most STEP at once; now and then none, to be stopped at."""
        now, database = self._engine.now, self._engine.database
        seen = before(now(), seconds=_OVERLAP)
        with database.read() as snapshot:
            stays = set(snapshot.archiving.spared(place, terms.keep, json.dumps(terms.hot)))
            stays.update(snapshot.archiving.above(place, terms.cutoff))
        after = ("", "")
        while True:
            looked = before(now(), seconds=_OVERLAP)
            with database.read() as snapshot:
                stays.update(snapshot.archiving.above(place, max(seen, terms.cutoff)))
                rows = snapshot.archiving.old(place, terms.cutoff, after, PIECE)
                keys = [key for key, *_ in rows if key not in stays]
                idle = snapshot.archiving.still(keys, place, terms.cutoff)
            seen = looked
            for first in range(0, len(idle), STEP):
                yield idle[first : first + STEP]
            if len(rows) < PIECE:
                return
            yield ()
            after = rows[-1][1:]

    def drain(self) -> None:
        """Wait until nothing is left to archive."""
        self._background.drain()

    def close(self) -> None:
        """Stop after a step: one that was begun gets its first, or short calls never archive."""
        self._closing.set()
        self._background.drain()
        self._background.close()


def _claim(transaction: Transaction, place: WorkspaceId, today: str) -> bool:
    """Note that today's archiving has begun; False where another process was faster."""
    if transaction.meta.find(LAST_GC + place) == today:
        return False
    transaction.meta.set(LAST_GC + place, today)
    return True
