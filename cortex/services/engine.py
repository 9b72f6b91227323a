"""What every service works with: the file, the graphs, the settings, and who is asking."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from cortex.config import Settings
from cortex.domain.caller import CALLER
from cortex.domain.instants import Instant
from cortex.domain.values import WorkspaceId, workspace_name
from cortex.graph.graphs import Graphs
from cortex.services.drift import Drift
from cortex.store.database import WRITE_WAIT, Database, Transaction


class Engine:
    """Shared by the services of one process.

    `after_write` is called after each commit, in the writing thread.
    """

    def __init__(self, settings: Settings, database: Database, graphs: Graphs, actor: str) -> None:
        self.settings = settings
        self.database = database
        self.graphs = graphs
        self.drift = Drift(database, settings)
        self._actor = actor
        self.sighting = threading.Lock()
        """Near duplicates are looked for by one thread at a time: several wait for the GIL."""
        self.after_write: Callable[[], None] = lambda: None

    @property
    def actor(self) -> str:
        """Client and connection of the request being served, as the log records it.

        Outside a request, this process.
        """
        caller = CALLER.get()
        return f"{caller.client or 'mcp'}#{caller.connection}" if caller.connection else self._actor

    def workspace(self, argument: str | None) -> WorkspaceId:
        """The workspace that a write goes to: the argument, else this process's own."""
        return workspace_name(argument) if argument else self.settings.workspace

    def scope(self, argument: str | None) -> WorkspaceId | None:
        """The workspace that a search looks in; None means everywhere."""
        if argument:
            return workspace_name(argument)
        return self.settings.workspace if self.settings.search_scope == "workspace" else None

    @contextmanager
    def write(self, *, wait: float = WRITE_WAIT, short: bool = False) -> Iterator[Transaction]:
        """One write transaction of this actor; followers are told once it is durable.

        `short` as Database.write says.
        """
        with self.database.write(self.actor, wait=wait, short=short) as transaction:
            yield transaction
        self.after_write()

    def now(self) -> Instant:
        """This memory's clock."""
        return self.database.clock()

    def generation(self) -> int:
        """The newest change of the log."""
        with self.database.read() as snapshot:
            return snapshot.generation().seq
