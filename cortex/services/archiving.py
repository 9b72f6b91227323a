"""What lies idle is archived when a desktop is opened: what that goes by, and how.

It goes by the workspace's own clock, and leaves what is hot or strong. What is idle is read
without a lock; a hundred nodes are archived at once, which takes some 50 ms, and the rest in
the background in as small steps, so that neither the one who opens nor a writer waits for tens
of thousands after a large import. If the process ends meanwhile, the rest follows another day.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Sequence
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

GC_WAIT: Final = 0.05
STEP: Final = 100
_PAUSE: Final = 0.05  # between two steps, for those who wait for the write lock


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

    def collect(self, place: WorkspaceId, notes: list[str]) -> int:
        """Archive what lies idle, the rest of it in the background; how many so far.

        Skipped, and said in `notes`, while another writer holds the lock.
        """
        settings = self._engine.settings
        if settings.read_only:
            return 0
        today = self._engine.now()[:10]
        with self._engine.database.read() as snapshot:
            if snapshot.meta.find(LAST_GC + place) == today:
                return 0
            terms = archive_terms(snapshot, place, settings)
            idle = [] if terms is None else _idle(snapshot, place, terms)
        cutoff = terms.cutoff if terms else today
        try:
            with self._engine.write(wait=GC_WAIT) as transaction:
                if transaction.meta.find(LAST_GC + place) == today:
                    return 0  # another process was faster
                transaction.meta.set(LAST_GC + place, today)
                done = _archive(transaction, place, idle[:STEP], Instant(cutoff))
        except BusyError:
            notes.append("archiving skipped: another writer holds the memory")
            return 0
        if rest := idle[STEP:]:
            notes.append(f"{len(rest)} more idle memories are archived in the background")
            self._background.run(place, partial(self._go_on, place, rest, Instant(cutoff)))
        return done

    def _go_on(self, place: WorkspaceId, keys: Sequence[int], cutoff: Instant) -> None:
        for first in range(0, len(keys), STEP):
            if self._closing.wait(_PAUSE):
                return
            with self._engine.write() as transaction:
                _archive(transaction, place, keys[first : first + STEP], cutoff)

    def drain(self) -> None:
        """Wait until nothing is left to archive."""
        self._background.drain()

    def close(self) -> None:
        """Stop after the step in hand."""
        self._closing.set()
        self._background.close()


def _idle(snapshot: Snapshot, place: WorkspaceId, terms: Terms) -> list[int]:
    return snapshot.archiving.idle(place, terms.cutoff, terms.keep, json.dumps(terms.hot))


def _archive(
    transaction: Transaction, place: WorkspaceId, keys: Sequence[int], cutoff: Instant
) -> int:
    idle = transaction.archiving.still(keys, place, cutoff)
    return transaction.nodes.set_status(idle, Status.ARCHIVED)
