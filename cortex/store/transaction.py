"""What a transaction works with: every table, read at one moment or written."""

from __future__ import annotations

import sqlite3

from cortex.domain.instants import Instant
from cortex.domain.values import Generation
from cortex.store.activity import Activity
from cortex.store.archiving import Archiving
from cortex.store.changes import Changes
from cortex.store.compacting import LogFolding
from cortex.store.derive import derive
from cortex.store.dreams import Dreams
from cortex.store.embeddings import Embeddings, Outbox
from cortex.store.exports import ExportRows
from cortex.store.filerefs import Filerefs
from cortex.store.graph_rows import GraphRows
from cortex.store.health import HealthChecks
from cortex.store.idempotency import Idempotency
from cortex.store.idleness import Idleness
from cortex.store.integrity import Integrity
from cortex.store.integrity_derived import DerivedAudit
from cortex.store.integrity_log import LogAudit
from cortex.store.keywords import Keywords
from cortex.store.mending import Mending
from cortex.store.meta import Meta
from cortex.store.navigation import Navigation
from cortex.store.neighbours import Neighbours
from cortex.store.nodes import Nodes
from cortex.store.past import PastRows
from cortex.store.places import Places
from cortex.store.relations import Relations
from cortex.store.timeline import Timeline
from cortex.store.titles import Titles
from cortex.store.undo import UndoLog
from cortex.store.vectored import Vectored
from cortex.store.waves import Waves


class Snapshot:
    """A read transaction: every table as it stood at one moment.

    It goes with its connection from one transaction to the next: its tables are 27 objects.
    """

    def __init__(self, connection: sqlite3.Connection) -> None:
        self.connection = connection
        self.nodes = Nodes(connection)
        self.relations = Relations(connection)
        self.filerefs = Filerefs(connection)
        self.navigation = Navigation(connection)
        self.changes = Changes(connection)
        self.embeddings = Embeddings(connection)
        self.vectored = Vectored(connection)
        self.outbox = Outbox(connection)
        self.keywords = Keywords(connection)
        self.meta = Meta(connection)
        self.archiving = Archiving(connection)
        self.activity = Activity(connection)
        self.idleness = Idleness(connection)
        self.timeline = Timeline(connection)
        self.titles = Titles(connection)
        self.places = Places(connection)
        self.past = PastRows(connection)
        self.folding = LogFolding(connection)
        self.health = HealthChecks(connection)
        self.exports = ExportRows(connection)
        self.waves = Waves(connection)
        self.integrity = Integrity(connection)
        self.log_audit = LogAudit(connection)
        self.derived_audit = DerivedAudit(connection)
        self.neighbours = Neighbours(connection)
        self.dreams = Dreams(connection)
        self.graph_rows = GraphRows(connection)
        self._generation: Generation | None = None

    def begin(self) -> None:
        """Open the next transaction."""
        self.connection.execute("BEGIN")
        self._generation = None

    def generation(self) -> Generation:
        """What this transaction sees, which is one moment: asked once."""
        if self._generation is None:
            self._generation = self.changes.generation()
        return self._generation


class Transaction(Snapshot):
    """A write transaction; `at` is its one instant, `tx` its number in the log."""

    def __init__(self, connection: sqlite3.Connection, at: Instant, tx: int, actor: str) -> None:
        super().__init__(connection)
        self.idempotency = Idempotency(connection)
        self.undo_log = UndoLog(connection)
        self.mending = Mending(connection, at, tx, actor)
        self.at = at
        self.tx = tx
        self.actor = actor

    def derive(self) -> None:
        """Bring the keyword index and the outbox up to the log's end."""
        derive(self.meta, self.changes, self.nodes, self.keywords, self.embeddings, self.outbox)

    def generation(self) -> Generation:
        """What this transaction sees now: its own changes move it."""
        return self.changes.generation()
