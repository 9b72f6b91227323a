"""The graphs in memory, least recently used out, and how they are locked.

A view takes the graph's lock, then opens a read transaction, then catches up: so a snapshot
is never older than the graph it is shown with, and the lock is held while the graph is read,
since the next reader may change it. Blocks are milliseconds.

Lock order: the database's write lock, then one graph's lock. `view` never waits for the
write lock (a read transaction in WAL mode waits for nobody), and `within` takes the graph's
lock inside a write transaction, so nobody waits in a circle — as long as no block opens a
write transaction or another view: that raises here instead of waiting for ever.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager

from cortex.domain.values import WorkspaceId
from cortex.graph.workspace import WorkspaceGraph
from cortex.store.database import Database, Snapshot, Transaction


class _Entry:
    def __init__(self, workspace: WorkspaceId) -> None:
        self.lock = threading.Lock()
        self.graph = WorkspaceGraph(workspace)
        self.bytes = 0


class Graphs:
    """Graphs of one database by workspace; those longest unused go above the budget.

    The one in use stays, even where it alone is larger.
    """

    def __init__(self, budget_bytes: int) -> None:
        self._budget = budget_bytes
        self._entries: OrderedDict[WorkspaceId, _Entry] = OrderedDict()
        self._lock = threading.Lock()
        self._here = threading.local()

    @contextmanager
    def view(
        self, database: Database, workspace: WorkspaceId
    ) -> Iterator[tuple[Snapshot, WorkspaceGraph]]:
        """A read transaction and the graph as it sees it; the lock is held to the end."""
        with self._locked(workspace) as graph, database.read() as snapshot:
            graph.catch_up(snapshot)
            yield snapshot, graph

    @contextmanager
    def within(self, snapshot: Snapshot, workspace: WorkspaceId) -> Iterator[WorkspaceGraph]:
        """The graph as an open transaction sees it, before that changes anything.

        What is not committed may be rolled back, and its numbers in the log given to others:
        a graph must never follow it. So a transaction that has written raises RuntimeError.
        """
        with self._locked(workspace) as graph:
            if isinstance(snapshot, Transaction) and snapshot.generation().seq >= snapshot.tx:
                raise RuntimeError("within() belongs before the transaction's first change")
            graph.catch_up(snapshot)
            yield graph

    @contextmanager
    def _locked(self, workspace: WorkspaceId) -> Iterator[WorkspaceGraph]:
        if getattr(self._here, "busy", False):
            raise RuntimeError("a graph view is already open in this thread")
        entry = self._entry(workspace)
        with entry.lock:
            self._here.busy = True
            try:
                yield entry.graph
            finally:
                self._here.busy = False
                entry.bytes = entry.graph.memory_bytes()
        self._trim(entry)

    def _entry(self, workspace: WorkspaceId) -> _Entry:
        with self._lock:
            entry = self._entries.get(workspace)
            if entry is None:
                entry = self._entries[workspace] = _Entry(workspace)
            self._entries.move_to_end(workspace)
            return entry

    def _trim(self, used: _Entry) -> None:
        # A dropped entry that another thread still holds serves it to the end, then goes.
        with self._lock:
            total = sum(entry.bytes for entry in self._entries.values())
            for workspace, entry in list(self._entries.items()):
                if total <= self._budget:
                    return
                if entry is not used:
                    total -= entry.bytes
                    del self._entries[workspace]

    def memory_bytes(self) -> int:
        """An estimate over all graphs held."""
        with self._lock:
            return sum(entry.bytes for entry in self._entries.values())

    def clear(self) -> None:
        """Drop every graph; the next view builds its own."""
        with self._lock:
            self._entries.clear()
