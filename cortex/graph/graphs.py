"""The graphs in memory, least recently used out, how they are locked, when they are saved.

A view takes the graph's lock, then opens a read transaction, then catches up: so a snapshot
is never older than the graph it is shown with, and the lock is held while the graph is read,
since the next reader may change it. Blocks are milliseconds.

Lock order: the database's write lock, then one graph's lock. `view` never waits for the
write lock (a read transaction in WAL mode waits for nobody), and `within` takes the graph's
lock inside a write transaction, so nobody waits in a circle — as long as no block opens a
write transaction or another view: that raises here instead of waiting for ever.

A graph is saved where that is worth more than it costs: one that was built from the store, so
that the next process need not, and one that has moved on by a twentieth of its size since; at
the end a two-hundredth is enough. Small ones are built in less than half a second and get no
file. It happens in the background, and no request waits but for the copy of the arrays.
"""

from __future__ import annotations

import logging
import threading
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from cortex.domain.errors import CortexError
from cortex.domain.values import WorkspaceId
from cortex.graph.background import Background
from cortex.graph.capture import capture
from cortex.graph.saved import head_of
from cortex.graph.shelf import Shelf
from cortex.graph.workspace import UNBUILT, WorkspaceGraph
from cortex.store.database import Database, Snapshot, Transaction

logger = logging.getLogger(__name__)

LEAST_SAVED: Final = 20_000  # nodes and relations
_SHARE: Final = 20
_SHARE_AT_END: Final = 200


class _Entry:
    def __init__(self, workspace: WorkspaceId, shelf: Shelf | None) -> None:
        self.lock = threading.Lock()
        self.graph = WorkspaceGraph(workspace, shelf)
        self.bytes = 0


class _Locked:
    """Holds a graph's lock; when it is let go, what is too much in memory goes.

    No generator: it is on the way of every answer.
    """

    __slots__ = ("_entry", "_graphs", "_here", "_workspace")

    def __init__(self, graphs: Graphs, here: threading.local, workspace: WorkspaceId) -> None:
        self._graphs = graphs
        self._here = here
        self._workspace = workspace

    def __enter__(self) -> WorkspaceGraph:
        if getattr(self._here, "busy", False):
            raise RuntimeError("a graph view is already open in this thread")
        self._entry = self._graphs.entry(self._workspace)
        self._entry.lock.acquire()
        self._here.busy = True
        return self._entry.graph

    def __exit__(self, *_: object) -> None:
        self._here.busy = False
        self._entry.bytes = self._entry.graph.memory_bytes()
        self._entry.lock.release()
        self._graphs.trim(self._entry)


class Graphs:
    """Graphs of one database by workspace; those longest unused go above the budget.

    The one in use stays, even where it alone is larger.
    """

    def __init__(self, budget_bytes: int, shelf: Shelf | None = None) -> None:
        self._budget = budget_bytes
        self._shelf = shelf
        self._entries: OrderedDict[WorkspaceId, _Entry] = OrderedDict()
        self._lock = threading.Lock()
        self._here = threading.local()
        self._background = Background("graphs")

    @contextmanager
    def view(
        self, database: Database, workspace: WorkspaceId
    ) -> Iterator[tuple[Snapshot, WorkspaceGraph]]:
        """A read transaction and the graph as it sees it; the lock is held to the end."""
        with self._locked(workspace) as graph, database.read() as snapshot:
            graph.catch_up(snapshot)
            if self._is_due(graph, _SHARE):
                self._background.run(workspace, lambda: self.save(database, workspace, _SHARE))
            yield snapshot, graph

    def warm(self, database: Database, workspace: WorkspaceId) -> None:
        """Bring a graph that was saved into memory, in the background."""

        def load() -> None:
            with self.view(database, workspace):
                pass

        if self._shelf is not None and self._shelf.path(workspace).exists():
            self._background.run(("warm", workspace), load)

    def close(self, database: Database) -> None:
        """End the background, save what has moved on, and drop what is of no workspace."""
        self._background.close()
        for workspace, entry in list(self._entries.items()):
            if self._is_due(entry.graph, _SHARE_AT_END):
                try:
                    self.save(database, workspace, _SHARE_AT_END)
                except CortexError as error:  # a damaged or vanished file: those who read are told
                    logger.info("the graph of %s is not saved: %s", workspace, error)
        if self._shelf is not None and self._shelf.files():
            try:
                self.prune(database)
            except CortexError as error:
                logger.info("saved graphs are left as they are: %s", error)

    def _is_due(self, graph: WorkspaceGraph, share: int) -> bool:
        if self._shelf is None or not self._shelf.writable or graph.size() < LEAST_SAVED:
            return False
        return graph.saved_at == UNBUILT or graph.seq - graph.saved_at >= graph.size() // share

    def save(self, database: Database, workspace: WorkspaceId, share: int | None = None) -> None:
        """Write the graph's file; with a `share` where it has moved by that part of its size."""
        if self._shelf is None:
            return
        with self._locked(workspace) as graph, database.read() as snapshot:
            graph.catch_up(snapshot)
            head = self._shelf.find_head(snapshot, workspace)  # another process's, perhaps
            graph.saved_at = UNBUILT if head is None else head.seq
            if share is not None and not self._is_due(graph, share):
                return
            epoch, seq = graph.epoch, graph.seq
            graph.saved_at = seq
            moment = snapshot.changes.moment(seq)
            if moment is None:  # nothing was ever written, or a shell took the log away
                return
            taken = capture(graph)
        columns = taken.columns()
        del taken
        self._shelf.save(head_of(columns, workspace, epoch, seq, moment), columns)
        self.prune(database)

    def prune(self, database: Database) -> None:
        """Drop the graphs of workspaces that hold nothing any more, and their files."""
        shelf = self._shelf
        # Before the transaction: a file that was there is of a workspace that was there too.
        files = [] if shelf is None or not shelf.writable else shelf.files()
        with database.read() as snapshot:
            places = snapshot.nodes.workspaces()
        if shelf is not None:
            kept = {shelf.path(place) for place in places}
            shelf.remove(path for path in files if path not in kept)
        with self._lock:
            for place in self._entries.keys() - set(places):
                del self._entries[place]

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

    def _locked(self, workspace: WorkspaceId) -> _Locked:
        """The graph, and nobody else has it. RuntimeError where this thread has one already."""
        return _Locked(self, self._here, workspace)

    def entry(self, workspace: WorkspaceId) -> _Entry:
        with self._lock:
            entry = self._entries.get(workspace)
            if entry is None:
                entry = self._entries[workspace] = _Entry(workspace, self._shelf)
            self._entries.move_to_end(workspace)
            return entry

    def trim(self, used: _Entry) -> None:
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
        """Drop every graph from memory; the next view loads or builds its own."""
        with self._lock:
            self._entries.clear()

    def forget(self) -> None:
        """Drop every graph and what was saved of it; the next view reads the store."""
        self.clear()
        if self._shelf is not None:
            self._shelf.clear()
