"""The law that every derived store obeys, and two memories on one file to try it on.

`Twins` are two memories of one file, as two processes hold them (each with its own
connections, graphs and vector index), beside a foreign shell: raw SQL, foreign keys off.
`Twins.check` compares both with the tables, and the tables with their log.
"""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from functools import cache, cached_property
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from cortex.config import load_settings
from cortex.domain.chunking import chunk
from cortex.domain.errors import CortexError
from cortex.domain.instants import Instant, as_datetime, render
from cortex.domain.taxonomy import (
    STATUSES,
    NodeType,
    RelationType,
    Status,
)
from cortex.domain.values import NodeId, WorkspaceId, text_hash
from cortex.graph.workspace import WorkspaceGraph
from cortex.memory import Memory, open_memory
from cortex.services.meaning.semantic import Meaning
from cortex.vectors.embedded import EmbeddedIndex
from cortex.vectors.embedder import Embedder
from cortex.vectors.index import VectorFilter
from cortex.vectors.models import resolve_model
from tests.graph_world import kept_differences
from tests.parity_tables import Row, Tables

PLACES: Final = (WorkspaceId("w"), WorkspaceId("v"))
WORDS: Final = ("alpha", "bravo", "delta", "gamma", "kappa", "lambda", "omega", "sigma")
TAGS: Final = ("red", "green")
START: Final = Instant("2040-01-01T00:00:00.000000Z")  # later than any shell's own clock

_MISCOUNTED: Final = """
SELECT workspace_id, status, SUM(nodes) FROM (
    SELECT workspace_id, status, nodes FROM tallies
    UNION ALL
    SELECT workspace_id, status, -1 FROM nodes)
 GROUP BY workspace_id, status HAVING SUM(nodes) <> 0
"""
_VECTORS: Final = """
SELECT DISTINCT e.node_key FROM embeddings AS e JOIN nodes AS n ON n.rowkey = e.node_key
 WHERE e.model = :model AND n.workspace_id = :place
"""
_READY: Final = """
SELECT s.node_key, s.text_hash FROM index_state AS s JOIN nodes AS n ON n.rowkey = s.node_key
 WHERE s.state = 'ready' AND n.workspace_id = :place
"""
_UNPAID: Final = """
SELECT s.node_key FROM index_state AS s
 WHERE s.state = 'ready' AND NOT EXISTS (
       SELECT 1 FROM embeddings AS e
        WHERE e.node_key = s.node_key AND e.text_hash = s.text_hash)
"""
_DANGLING: Final = """
SELECT 'relation', rowkey FROM relations WHERE from_id NOT IN (SELECT id FROM nodes)
    OR to_id NOT IN (SELECT id FROM nodes)
UNION ALL
SELECT 'parent', rowkey FROM nodes WHERE parent_id NOT IN (SELECT id FROM nodes)
UNION ALL
SELECT 'embedding', node_key FROM embeddings WHERE node_key NOT IN (SELECT rowkey FROM nodes)
UNION ALL
SELECT 'index_state', node_key FROM index_state WHERE node_key NOT IN (SELECT rowkey FROM nodes)
UNION ALL
SELECT 'access', node_key FROM accesses WHERE node_key NOT IN (SELECT rowkey FROM nodes)
"""


class RememberingEmbedder(Embedder):
    """The real offline model; what it has embedded once it does not compute again."""

    @cached_property
    def known(self) -> dict[tuple[str, ...], NDArray[np.float32]]:
        return {}

    def embed_passages(self, texts: Sequence[str]) -> NDArray[np.float32]:
        key = tuple(texts)
        if key not in self.known:
            self.known[key] = super().embed_passages(texts)
        return self.known[key]


@cache
def embedder() -> Embedder:
    """One for all tests of this process."""
    return RememberingEmbedder(
        resolve_model("offline"), cache_dir=Path("/nonexistent"), idle_seconds=1e9
    )


class Clock:
    """A clock that is set by hand; it may go back, as clocks do."""

    def __init__(self) -> None:
        self.at = START

    def __call__(self) -> Instant:
        self.move(0.001)
        return self.at

    def move(self, seconds: float) -> None:
        self.at = render(as_datetime(self.at) + timedelta(seconds=seconds))


class Twins:
    """Two memories and a shell on one new file."""

    def __init__(self, home: Path) -> None:
        self.clock = Clock()
        settings = replace(
            load_settings(home=home, workspace="w", env={}), keep_newest=3, archive_days=1.0
        )
        self.memories = tuple(
            open_memory(settings, client=name, clock=self.clock, embedder=embedder())
            for name in ("one", "two")
        )
        for memory in self.memories:
            memory.engine.after_write = lambda: None  # indexing runs when a step says so
        index = self.memories[1].semantic.meaning().index
        assert isinstance(index, EmbeddedIndex)
        assert index.files is not None
        index.files.smallest = 1  # the second takes its vectors from files as often as it can
        self.path = settings.database
        self.shell = sqlite3.connect(self.path, isolation_level=None)  # foreign keys are off
        self.shell.row_factory = sqlite3.Row
        self.looking_away = 0
        self._seen = Tables(self.shell)
        self._held: dict[WorkspaceId, frozenset[NodeId]] = {}

    def close(self) -> None:
        for memory in self.memories:
            memory.close()
        self.shell.close()

    @property
    def tables(self) -> Tables:
        """The rows as they were at the last check."""
        return self._seen

    @contextmanager
    def asking(self) -> Iterator[None]:
        """A request that may be refused: with its own reason, and then without any trace."""
        before = self.memories[0].generation()
        try:
            yield
        except CortexError as error:
            if "the store refused" in str(error):
                raise AssertionError("a service ran into a constraint") from error
            if self.memories[0].generation() != before:
                raise AssertionError("a refused request left a trace") from error

    def sql(self, statement: str, **bound: Any) -> bool:
        """A statement of the foreign shell; False where the schema refuses it."""
        try:
            self.shell.execute(statement, bound)
        except sqlite3.IntegrityError:
            return False
        return True

    def look(self, who: int) -> None:
        """One memory still shows what the last check saw: nothing was committed since."""
        memory = self.memories[who]
        self._check_graphs(memory, self._seen)
        meaning = memory.semantic.meaning()
        for place in PLACES:
            with memory.semantic.current(meaning, place):
                assert meaning.index.ids(place) == self._held[place], "vectors of the uncommitted"

    # ── the law ───────────────────────────────────────────────────────────────────────────

    def check(self) -> None:
        """Raise AssertionError where anything derived differs from the tables."""
        now = Tables(self.shell, self._seen.seq)
        self._check_log(now)
        self._seen = now
        now.check_rules()
        assert not self.shell.execute(_DANGLING).fetchall(), "a row of what is gone"
        assert not self.shell.execute(_MISCOUNTED).fetchall(), "tallies are not the counts"
        first, second = self.memories
        self._check_view(first, now)
        if self.looking_away:
            self.looking_away -= 1
        else:
            self._check_view(second, now)
        # What a shell changed is mended by the next writer: here, one that writes nothing.
        with second.engine.write():
            pass
        self._check_keywords(second, now)
        self._check_outbox(now)

    def check_history(self) -> None:
        """The whole log, undone from the tables as they are, ends in two empty tables."""
        now = Tables(self.shell, 0)
        assert now.undone() == ({}, {}), "the log does not lead back to the empty store"

    def _check_log(self, now: Tables) -> None:
        before = self._seen
        assert now.undone() == (before.nodes, before.relations), "a change is not in the log"
        times = [before.last_at, *(row["at"] for row in now.log)]
        assert times == sorted(times), f"the log's time went back: {times}"

    def _check_view(self, memory: Memory, now: Tables) -> None:
        self._check_graphs(memory, now)
        meaning = memory.semantic.meaning()
        for place in PLACES:
            with memory.semantic.current(meaning, place):
                self._check_vectors(meaning, place, now)

    def _check_graphs(self, memory: Memory, now: Tables) -> None:
        for place in PLACES:
            with memory.engine.graphs.view(memory.engine.database, place) as (snapshot, graph):
                check_graph(graph, now)
                assert not kept_differences(snapshot, graph), "rows beside the graph"

    def _check_vectors(self, meaning: Meaning, place: WorkspaceId, now: Tables) -> None:
        points = {
            row["node_key"]: now.nodes[row["node_key"]]
            for row in self.shell.execute(_VECTORS, {"model": meaning.key, "place": place})
        }
        points = {key: row for key, row in points.items() if now.is_vectorised(key)}
        held = {row["id"] for row in points.values()}
        assert meaning.index.ids(place) == held, f"vectors of {place}"
        self._held[place] = meaning.index.ids(place)
        probe = meaning.embedder.embed_query("alpha")

        def expect(where: VectorFilter, wanted: Iterable[Row]) -> None:
            hits = meaning.index.search([place], probe, 999, where)
            assert {hit.node_id for hit in hits} == {row["id"] for row in wanted}, where

        for status in STATUSES:
            wanted = [row for row in points.values() if row["status"] == status]
            expect(VectorFilter(statuses=frozenset({status})), wanted)
        for tag in TAGS:
            wanted = [row for key, row in points.items() if tag in now.data[key].get("tags", ())]
            expect(VectorFilter(tags=frozenset({tag})), wanted)
        for kind in {row["type"] for row in points.values()}:
            wanted = [row for row in points.values() if row["type"] == kind]
            expect(VectorFilter(types=frozenset({NodeType(kind)})), wanted)
        self._check_meaning(meaning, place, now)

    def _check_meaning(self, meaning: Meaning, place: WorkspaceId, now: Tables) -> None:
        """A node whose index is ready lies where its present words lie."""
        alike: dict[tuple[str, str], set[str]] = {}
        for key, known in self.shell.execute(_READY, {"place": place}):
            # Else a shell changed it a moment ago.
            if now.is_vectorised(key) and text_hash(*now.said(key)) == known:
                alike.setdefault(now.said(key), set()).add(now.nodes[key]["id"])
        for (title, text), nodes in alike.items():
            [piece] = chunk(text, title)
            [vector] = meaning.embedder.embed_passages([piece.text])
            hits = meaning.index.search([place], vector, 999, VectorFilter())
            near = {hit.node_id for hit in hits if hit.score > 0.9995}
            assert nodes <= near, f"a vector is not of the words {title!r} {text!r}"

    def _check_keywords(self, memory: Memory, now: Tables) -> None:
        words = {key: now.words(key) for key in now.nodes}
        with memory.engine.database.read() as snapshot:
            for word in (*WORDS, *TAGS):
                wanted = {key for key, said in words.items() if word in said}
                hits = snapshot.keywords.search(word, None, 999)
                assert {hit.key for hit in hits} == wanted, f"the nodes that say {word}"
            wanted = {key for key, said in words.items() if said}
            assert set(snapshot.keywords.keys()) == wanted, "the rows of the keyword index"

    def _check_outbox(self, now: Tables) -> None:
        """Each text of a vectorised node is paid or owed; nothing else is."""
        owed = {
            row["node_key"]: (row["workspace_id"], row["text_hash"])
            for row in self.shell.execute("SELECT * FROM index_state")
        }
        wanted = {
            key: (row["workspace_id"], text_hash(*now.said(key)))
            for key, row in now.nodes.items()
            if now.is_vectorised(key)
        }
        assert owed == wanted, "what is owed to the vector index"
        assert not self.shell.execute(_UNPAID).fetchall(), "ready, and without its vector"
        vectors = {key for (key,) in self.shell.execute("SELECT node_key FROM embeddings")}
        assert vectors <= set(wanted), "vectors of nodes that have none"


def check_graph(graph: WorkspaceGraph, now: Tables) -> None:
    """Raise AssertionError where the cached graph says otherwise than the tables."""
    nodes = {key: row for key, row in now.nodes.items() if row["workspace_id"] == graph.workspace}
    key_of = {row["id"]: key for key, row in nodes.items()}
    edges = {
        key: row for key, row in now.relations.items() if row["workspace_id"] == graph.workspace
    }
    assert graph.nodes() == {
        (key, NodeType(row["type"]), Status(row["status"])) for key, row in nodes.items()
    }, "nodes of the graph"
    assert graph.edges() == Counter(
        (
            key,
            key_of[row["from_id"]],
            key_of[row["to_id"]],
            RelationType(row["type"]),
            json.loads(row["data"]).get("derived") is True,
        )
        for key, row in edges.items()
    ), "relations of the graph"
    assert {key: graph.weight(key) for key in edges} == {
        key: row["weight"] for key, row in edges.items()
    }, "weights of the graph"
    assert graph.order() == sorted(
        nodes, key=lambda key: (nodes[key]["created_at"], nodes[key]["id"])
    )
    for key in range(1, now.newest_key + 1):
        index = graph.find(key)
        assert (index is not None) == (key in nodes), f"the graph finds node {key}"
        assert index is None or graph.key[index] == key, f"node {key} stands at another's index"
