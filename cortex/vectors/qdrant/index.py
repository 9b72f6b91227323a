"""Qdrant as a vector index: what is put into the collection, and asked of it.

It is not asked within a store's transaction: see `services/meaning/pushing.py` for who fills it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import islice
from typing import Final, TypeVar

import numpy as np

from cortex.domain.errors import InvalidError, UnavailableError
from cortex.domain.values import Generation, NodeId, WorkspaceId
from cortex.vectors.embedded import unit_rows
from cortex.vectors.index import Point, ScoredPoint, Vector, VectorFilter
from cortex.vectors.models import Fingerprint
from cortex.vectors.qdrant.circuit import Circuit
from cortex.vectors.qdrant.client import Server
from cortex.vectors.qdrant.errors import MissingError
from cortex.vectors.qdrant.owner import Owner
from cortex.vectors.qdrant.sparse import document, question
from cortex.vectors.qdrant.values import Entry, payload

BATCH: Final = 256
_ROWS: Final = 1_024  # of vectors in one request: about 5 MB of JSON
_LARGEST: Final = 1_048_575  # numbers in one multivector, the server's bound
_MARK: Final = "mark:"
_T = TypeVar("_T")


class QdrantIndex:
    """`VectorIndex` on a server; safe to use from threads.

    Approximate where the server has built its graph (above some 10,000 points), exact below.
    Which collection it is: see `qdrant_owner.py`.
    """

    def __init__(
        self,
        server: Server,
        collection: str,
        fingerprint: Fingerprint,
        memory: Callable[[], str | None],
    ) -> None:
        self.collection = collection
        self._server = server
        self._owner = Owner(server, collection, fingerprint, memory)
        self._fingerprint = fingerprint
        self._name: str | None = None
        self._closed = False

    @property
    def circuit(self) -> Circuit:
        return self._server.circuit

    @property
    def place(self) -> str:
        """The server, without anything secret."""
        return self._server.place

    @property
    def dimension(self) -> int:
        return self._fingerprint.dimension

    def name(self) -> str:
        """The collection that holds this memory's vectors of this model.

        Raises UnavailableError when there is none, or only one that holds something else,
        with the command that makes one.
        """
        if self._closed:
            raise UnavailableError("the vector index is closed", "", "Start the server again")
        if self._name is None:
            self._name = self._owner.find()
        return self._name

    def exists(self) -> bool:
        """Whether the collection is there; raises where another's is in its place."""
        try:
            self.name()
        except MissingError:
            return False
        return True

    def prepare(self, *, beside: bool = False) -> None:
        """Make the collection where there is none; `beside` another's, under its own name."""
        self._name = self._owner.make(beside=beside)

    def watermark(self, workspace: WorkspaceId) -> Generation | None:
        return self.watermarks([workspace]).get(workspace)

    def watermarks(self, workspaces: Sequence[WorkspaceId]) -> dict[WorkspaceId, Generation]:
        """Up to where each workspace is pushed; those that never were are left out."""
        if not workspaces:
            return {}
        keys = [_MARK + place for place in workspaces]
        found = self._on(lambda name: self._server.reserved(name, keys))
        return {
            WorkspaceId(key.removeprefix(_MARK)): Generation(
                str(mark["epoch"]), int(mark["floor"]), int(mark["seq"]), int(mark["embeddings"])
            )
            for key, mark in found.items()
        }

    def raise_watermarks(self, workspaces: Iterable[WorkspaceId], to: Generation) -> None:
        """Say that these are pushed up to there; within an epoch, marks never fall."""
        stream = iter(sorted(set(workspaces)))
        while places := list(islice(stream, BATCH)):
            marks = {_MARK + place: to._asdict() for place in places}
            self._on(partial(self._server.reserve, values=marks, version=to))

    def put(self, points: Iterable[Point], version: Generation) -> int:
        """Upsert points that were read at this generation, in batches; how many they were."""
        count = 0
        for batch in _batches(self._entry(point) for point in points):
            self._on(partial(self._server.put, entries=batch, version=version))
            count += len(batch)
        return count

    def remove(self, ids: Sequence[NodeId], workspace: WorkspaceId | None = None) -> None:
        """Delete points, in batches; with a workspace, only those that are in it."""
        for start in range(0, len(ids), _ROWS):
            some = ids[start : start + _ROWS]
            self._on(partial(self._server.remove, ids=some, workspace=workspace))

    def rebuild(
        self, workspace: WorkspaceId, points: Iterable[Point], watermark: Generation
    ) -> None:
        """Upsert every point, then delete the rest: searches go on meanwhile."""
        kept: set[NodeId] = set()

        def noted() -> Iterable[Point]:
            for point in points:
                self._refuse_stranger(workspace, point)
                kept.add(point.node_id)
                yield point

        self.put(noted(), watermark)
        self.remove(sorted(self.ids(workspace) - kept), workspace)
        self.raise_watermarks([workspace], watermark)

    def apply(
        self,
        workspace: WorkspaceId,
        upserts: Sequence[Point],
        deletes: Sequence[NodeId],
        watermark: Generation,
    ) -> None:
        """Delete, then upsert: an id that is in both stays. A bad point changes nothing."""
        for point in upserts:
            self._refuse_stranger(workspace, point)
        entries = [self._entry(point) for point in upserts]
        self.remove(list(deletes), workspace)
        for batch in _batches(entries):
            self._on(partial(self._server.put, entries=batch, version=watermark))
        self.raise_watermarks([workspace], watermark)

    def search(
        self,
        workspaces: Sequence[WorkspaceId],
        vector: Vector,
        top_k: int,
        where: VectorFilter,
    ) -> list[ScoredPoint]:
        """The best nodes; of a tie at the cut the server chooses, the rest go by id."""
        query = self._query(vector, top_k)
        if not workspaces:
            return []
        hits = self._on(lambda name: self._server.nearest(name, workspaces, query, top_k, where))
        return _sorted(hits)

    def hybrid(
        self,
        workspaces: Sequence[WorkspaceId],
        vector: Vector,
        words: Sequence[str],
        top_k: int,
        where: VectorFilter,
        *,
        k: int = 60,
    ) -> list[ScoredPoint]:
        """Meaning and words, fused on the server; the scores are those of the fusion.

        Source: Cormack, Clarke, Büttcher, SIGIR 2009 (reciprocal ranks, k = 60).
        """
        query = self._query(vector, top_k)
        if not workspaces:
            return []
        terms = question(words)
        hits = self._on(
            lambda name: self._server.fused(name, workspaces, query, terms, top_k, where, k)
        )
        return _sorted(hits)

    def ids(self, workspace: WorkspaceId) -> frozenset[NodeId]:
        return self._on(lambda name: self._server.ids(name, workspace))

    def count(self, workspace: WorkspaceId) -> int:
        """How many nodes of the workspace the server holds."""
        return self._on(lambda name: self._server.count(name, workspace))

    def close(self) -> None:
        self._closed = True
        self._server.close()

    def _on(self, ask: Callable[[str], _T]) -> _T:
        name = self.name()
        try:
            return ask(name)
        except MissingError:
            self._name = None  # it was dropped; whoever pushes next makes it again
            raise

    def _query(self, vector: Vector, top_k: int) -> Vector:
        if top_k < 1:
            raise InvalidError(f"top_k {top_k} is too small", "Valid: 1 and more", "Raise it")
        query: Vector = unit_rows(np.asarray(vector)[None], self.dimension, "the query")[0]
        return query

    def _entry(self, point: Point) -> Entry:
        rows = unit_rows(point.vectors, self.dimension, f"point {point.node_id}")
        fitting = rows[: _LARGEST // self.dimension].astype(np.float64)
        return Entry(
            point.node_id, payload(point), fitting.round(7).tolist(), document(point.words)
        )

    @staticmethod
    def _refuse_stranger(workspace: WorkspaceId, point: Point) -> None:
        if point.workspace_id != workspace:
            raise InvalidError(
                f"point {point.node_id} is of workspace {point.workspace_id!r}",
                f"Valid: points of {workspace!r}",
                "Put it into its own partition",
            )


def _batches(entries: Iterable[Entry]) -> Iterable[list[Entry]]:
    """At most BATCH points and about _ROWS vectors each."""
    batch: list[Entry] = []
    rows = 0
    for entry in entries:
        if batch and (len(batch) == BATCH or rows + len(entry.rows) > _ROWS):
            yield batch
            batch, rows = [], 0
        batch.append(entry)
        rows += len(entry.rows)
    if batch:
        yield batch


def _sorted(hits: list[ScoredPoint]) -> list[ScoredPoint]:
    # The server's float32 sums part equal vectors in the seventh digit.
    return sorted(hits, key=lambda hit: (-round(hit.score, 6), hit.node_id, hit.workspace_id))
