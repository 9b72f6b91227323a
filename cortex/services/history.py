"""Navigation history and access counts: queued by reads, written soon after.

A read never waits for the write lock (invariant 7). What it would note goes into a bounded
queue; a background thread writes it, and whoever reads the history first offers to. Where
the lock is held the entries wait; past the bound further ones are dropped and counted.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, Final

from cortex.domain.errors import CortexError
from cortex.domain.taxonomy import Action
from cortex.domain.values import Node, NodeId, WorkspaceId, shorten
from cortex.services.engine import Engine
from cortex.services.screening import screened_query
from cortex.store.database import Transaction
from cortex.store.navigation import Visit

_BOUND: Final = 2000
_PAUSE: Final = 0.5
_RETRY: Final = 1.0
_PATIENCE: Final = 0.05

Note = Callable[[Transaction], None]


class History:
    """Notes what was visited; losable, and never in a reader's way.

    `owes_focus` says that a focus may still wait: what shows the focus flushes then.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._queue: deque[Note] = deque()
        self._lock = threading.Lock()
        self._wake = threading.Event()
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self.dropped = 0
        self.owes_focus = False

    def visit(
        self, workspace: WorkspaceId, node: NodeId, action: Action, context: dict[str, Any]
    ) -> None:
        """Queue one entry of the history."""
        entry = {**context, "actor": self._engine.actor}
        if action in (Action.FOCUS, Action.BRANCH):
            self.owes_focus = True

        def note(transaction: Transaction) -> None:
            transaction.navigation.add(Visit(workspace, node, action, entry, transaction.at))
            transaction.navigation.touch([node], transaction.at)

        self._put(note)

    def opened(self, nodes: Sequence[NodeId]) -> None:
        """Queue one access of each node."""
        wanted = list(nodes)
        self._put(lambda transaction: transaction.navigation.touch(wanted, transaction.at))

    def traversed(self, start: Node, relations: Sequence[str], total: int) -> None:
        context = {"relations": [str(name) for name in relations], "found": total}
        self.visit(start.workspace_id, start.id, Action.TRAVERSE, context)

    def searched(self, workspace: WorkspaceId, query: str, best: NodeId | None) -> None:
        """A search that found nothing is noted by its query alone, under no node."""
        context = {"query": shorten(screened_query(query), 200)}
        self.visit(workspace, best or NodeId(""), Action.SEARCH, context)

    @property
    def waiting(self) -> int:
        """Entries that are not written yet."""
        return len(self._queue)

    def flush(self, wait: float = _PATIENCE) -> bool:
        """Write what waits, if the lock is had within `wait` seconds; True when none is left."""
        with self._lock:
            notes = list(self._queue)
            if not notes or self._engine.settings.read_only:
                return not notes
            try:
                with self._engine.database.write(self._engine.actor, wait=wait) as transaction:
                    for note in notes:
                        note(transaction)
            except CortexError:
                return False  # still queued, counted by `waiting`, and tried again soon
            for _ in notes:
                self._queue.popleft()
            self.owes_focus = self.owes_focus and bool(self._queue)
            return not self._queue

    def _put(self, note: Note) -> None:
        if self._engine.settings.read_only or self._stop.is_set():
            return
        if len(self._queue) >= _BOUND:
            self.dropped += 1  # the newest gives way: the flush in hand owns the front
            return
        self._queue.append(note)
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="history", daemon=True)
            self._thread.start()
        self._wake.set()

    def _run(self) -> None:
        while not self._stop.is_set():
            self._wake.wait()
            self._wake.clear()
            self._stop.wait(_PAUSE)  # a burst of reads becomes one commit
            while not self._stop.is_set() and not self.flush():
                self._stop.wait(_RETRY)

    def close(self) -> None:
        """Write what waits if the lock is free, then stop."""
        self._stop.set()
        self._wake.set()
        self.flush()
