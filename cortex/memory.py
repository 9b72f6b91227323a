"""Wiring: the only place where the file, the derived stores and the services meet."""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from analytics.client import Worker
from analytics.history import WorkerHistory
from analytics.measuring import WorkerMeasures
from cortex.config import Settings
from cortex.domain.errors import CortexError
from cortex.domain.instants import Clock, now
from cortex.graph.graphs import Graphs
from cortex.graph.shelf import Shelf
from cortex.services.activity import Activity
from cortex.services.adding import Adding
from cortex.services.composition.composing import Composing
from cortex.services.dreaming.dreaming import Dreaming
from cortex.services.engine import Engine
from cortex.services.fabric.fabric import Fabric
from cortex.services.health import Checkup
from cortex.services.history import History
from cortex.services.hybrid.hybrid import Hybrid
from cortex.services.impact import Impacts
from cortex.services.ingest.writing import Ingest
from cortex.services.inspecting import Inspecting
from cortex.services.keeping.compacting import Compacting
from cortex.services.keeping.exporting import Exporting
from cortex.services.keeping.importing import Importing
from cortex.services.keeping.undoing import Undoing
from cortex.services.linking import Linking
from cortex.services.meaning.index_status import index_status
from cortex.services.meaning.indexing import Indexing
from cortex.services.meaning.semantic import Semantic
from cortex.services.measures import Measures
from cortex.services.mutation import Mutation
from cortex.services.past import Past
from cortex.services.reading import Reading
from cortex.services.retrieval.search import Search
from cortex.services.routes import Routing
from cortex.services.timeline import Timeline
from cortex.services.viewport import Viewport
from cortex.services.workspaces import Workspaces
from cortex.store.database import Database
from cortex.store.meta import FINGERPRINT, UPGRADE_REPORT
from cortex.store.upgrade import announce
from cortex.vectors.embedder import Embedder


@dataclass(frozen=True)
class Memory:
    """An open memory: one service per subject, shared by the threads of this process."""

    engine: Engine
    adding: Adding
    linking: Linking
    mutation: Mutation
    reading: Reading
    viewport: Viewport
    timeline: Timeline
    search: Search
    indexing: Indexing
    semantic: Semantic
    history: History
    ingest: Ingest
    importing: Importing
    inspecting: Inspecting
    workspaces: Workspaces
    past: Past
    checkup: Checkup
    impacts: Impacts
    routing: Routing
    measures: Measures
    activity: Activity
    undoing: Undoing
    compacting: Compacting
    exporting: Exporting
    analytics: Worker
    fabric: Fabric
    composing: Composing
    hybrid: Hybrid
    dreaming: Dreaming

    @property
    def settings(self) -> Settings:
        return self.engine.settings

    def generation(self) -> int:
        """The newest change of the log."""
        return self.engine.generation()

    def status(self) -> Mapping[str, Any]:
        """Counts, index state and model, for people and programs."""
        database = self.engine.database
        with database.read() as snapshot:
            places = {
                str(place): {
                    "nodes": snapshot.nodes.count(place),
                    "relations": snapshot.relations.count(place),
                    "statuses": {
                        status.value: count
                        for status, count in snapshot.nodes.counts(place).items()
                    },
                }
                for place in snapshot.nodes.workspaces()
            }
            counts = snapshot.outbox.counts()
            failed, why = snapshot.outbox.failed(None)
            model = snapshot.meta.find(FINGERPRINT)
            generation = snapshot.generation()
            upgrade = snapshot.meta.find(UPGRADE_REPORT)
        index = index_status(self.engine, self.semantic)
        return {
            "file": str(database.path),
            "workspace": self.settings.workspace,
            "workspaces": places,
            "index": {state: counts.get(state, 0) for state in ("ready", "pending", "failed")}
            | index,
            "index_problem": self.semantic_problem()
            or index.get("problem")
            or (why if failed else None),
            "model": json.loads(model) if model else None,
            "generation": generation.seq,
            "epoch": generation.epoch,
            "upgrade": None if upgrade is None else json.loads(upgrade),
        }

    def semantic_problem(self) -> str | None:
        """Why semantic search is out, or None; loads no model where it need not."""
        try:
            self.semantic.meaning()
        except CortexError as error:
            return error.message
        return self.indexing.problem

    def close(self) -> None:
        """End the worker, write what waits, stop the threads, save the graphs, close the file."""
        self.analytics.close()
        self.viewport.close()
        self.hybrid.close()
        self.indexing.close()
        self.history.close()
        self.semantic.close()
        self.engine.graphs.close(self.engine.database)
        self.engine.database.close()


def open_memory(
    settings: Settings,
    *,
    client: str = "python",
    once: bool = False,
    clock: Clock = now,
    database: Database | None = None,
    embedder: Embedder | None = None,
) -> Memory:
    """Open the memory of `settings.home`, creating it when there is none.

    `client` names who asks in the log; `once` says that little will be asked, so that counts
    over time come from SQLite instead of a worker that would first read the file whole;
    `database` is one that was opened already; `embedder` one that several memories share, and
    that its owner closes. Raises UnavailableError for a folder or file that cannot be used.
    """
    store = database or Database(settings.database, clock=clock, read_only=settings.read_only)
    if store.upgraded is not None:
        announce(store.upgraded)
    actor = f"{client}#{os.getpid()}-{secrets.token_hex(3)}"
    shelf = Shelf(store.path, writable=not settings.read_only)
    engine = Engine(settings, store, Graphs(settings.graph_budget, shelf), actor)
    history = History(engine)
    semantic = Semantic(engine, embedder)
    indexing = Indexing(engine, semantic)
    search = Search(engine, semantic, indexing, history)
    viewport, mutation = Viewport(engine, history), Mutation(engine)
    fabric = Fabric(engine, search, history)
    hybrid = Hybrid(engine, semantic, search, history, viewport, mutation, fabric)

    def followed() -> None:
        indexing.notify()
        hybrid.following.notify()

    engine.after_write = followed
    worker = Worker(store.path)  # starts nothing before it is asked
    told = None if once else WorkerHistory(worker)
    if not once:
        engine.graphs.warm(store, settings.workspace)
    return Memory(
        engine,
        Adding(engine),
        Linking(engine),
        mutation,
        Reading(engine, history),
        viewport,
        Timeline(engine, history, told),
        search,
        indexing,
        semantic,
        history,
        Ingest(engine),
        Importing(engine),
        Inspecting(engine),
        Workspaces(engine),
        Past(engine),
        Checkup(engine),
        Impacts(engine),
        Routing(engine),
        Measures(engine, WorkerMeasures(worker)),
        Activity(engine, history, told),
        Undoing(engine),
        Compacting(engine),
        Exporting(engine),
        worker,
        fabric,
        Composing(engine),
        hybrid,
        Dreaming(engine),
    )
