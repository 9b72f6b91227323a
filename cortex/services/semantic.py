"""Meaning: the model, and the vector index kept equal to the store.

The index is caught up inside the read transaction that answers (invariant 3), under one
lock taken before the transaction begins, so that it never runs ahead of what the answer
sees. The file says which model its vectors are of; another one is refused.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np

from cortex.domain.errors import CortexError, UnavailableError
from cortex.domain.taxonomy import layer_of
from cortex.domain.values import Generation, Node, NodeId, WorkspaceId
from cortex.services.engine import Engine
from cortex.store.database import Snapshot
from cortex.store.derive import has_vector
from cortex.store.embeddings import Stored
from cortex.store.meta import FINGERPRINT, MODEL
from cortex.vectors.embedded import EmbeddedIndex
from cortex.vectors.embedder import Embedder
from cortex.vectors.index import Point, ScoredPoint, Vector, VectorFilter, VectorIndex
from cortex.vectors.models import Fingerprint, resolve_model


def model_key(fingerprint: Fingerprint) -> str:
    """The short name under which vectors of this fingerprint are stored."""
    return hashlib.sha256(fingerprint.text.encode()).hexdigest()[:16]


@dataclass(frozen=True, slots=True)
class Meaning:
    """One model with the index of its vectors."""

    source: str
    embedder: Embedder
    fingerprint: Fingerprint
    index: VectorIndex

    @property
    def key(self) -> str:
        return model_key(self.fingerprint)

    @property
    def holds(self) -> bool:
        """Whether the model that was loaded is the one that was announced."""
        return self.embedder.fingerprint == self.fingerprint


class Semantic:
    """The process's one model and index, made on first need.

    `shared` is an embedder of its owner, used where its model is wanted, and never closed.
    """

    def __init__(self, engine: Engine, shared: Embedder | None = None) -> None:
        self._engine = engine
        self._shared = shared
        self._lock = threading.RLock()
        self._embedder: Embedder | None = None
        self._source: str | None = None
        self._meaning: Meaning | None = None

    def source(self, snapshot: Snapshot) -> str:
        """The model that is wanted: the configured one, else the file's, else the offline."""
        return self._engine.settings.model or snapshot.meta.find(MODEL) or "offline"

    def embedder(self, source: str) -> Embedder:
        """The embedder of a source; the one before is let go when another is wanted."""
        if self._shared is not None and self._shared.spec == resolve_model(source):
            return self._shared
        with self._lock:
            if self._embedder is None or self._source != source:
                if self._embedder is not None:
                    self._embedder.close()
                settings = self._engine.settings
                self._embedder = Embedder(
                    resolve_model(source),
                    cache_dir=settings.models,
                    idle_seconds=settings.model_idle,
                )
                self._source = source
            return self._embedder

    def meaning(self) -> Meaning:
        """The model and index of this file.

        Raises UnavailableError when the model cannot be had, or the file's vectors are of
        another one, with the command that repairs it.
        """
        with self._engine.database.read() as snapshot:
            source = self.source(snapshot)
            stored = snapshot.meta.find(FINGERPRINT)
        embedder = self.embedder(source)
        refuse_other_model(source, stored, embedder)
        fingerprint = embedder.fingerprint
        with self._lock:
            present = self._meaning
            fresh = present and present.embedder is embedder and present.fingerprint == fingerprint
            if not fresh:
                if present is not None:
                    present.index.close()
                index = EmbeddedIndex(fingerprint.dimension)
                self._meaning = Meaning(source, embedder, fingerprint, index)
            assert self._meaning is not None
            return self._meaning

    def require(self) -> None:
        """Refuse a semantic write where the file's vectors are of another model.

        A model that merely cannot be loaded now is no refusal: the write stands and its
        vector is owed.
        """
        configured = self._engine.settings.model
        if configured is None:
            return
        with self._engine.database.read() as snapshot:
            stored = snapshot.meta.find(FINGERPRINT)
        refuse_other_model(configured, stored, self.embedder(configured))

    def search(
        self,
        query: Vector,
        meaning: Meaning,
        workspace: WorkspaceId | None,
        top_k: int,
        where: VectorFilter,
    ) -> list[ScoredPoint]:
        """Exact nearest neighbours, as fresh as the store is now."""
        with self.current(meaning, workspace) as places:
            return meaning.index.search(places, query, top_k, where)

    @contextmanager
    def current(
        self, meaning: Meaning, workspace: WorkspaceId | None
    ) -> Iterator[list[WorkspaceId]]:
        """Hold the index at the store's present state, for one workspace or for all."""
        with self._lock, self._engine.database.read() as snapshot:
            places = [workspace] if workspace else snapshot.nodes.workspaces()
            for place in places:
                catch_up(snapshot, meaning, place)
            yield places

    def close(self) -> None:
        with self._lock:
            if self._meaning is not None:
                self._meaning.index.close()
            if self._embedder is not None:
                self._embedder.close()
            self._meaning = self._embedder = None


def refuse_other_model(source: str, stored: str | None, embedder: Embedder) -> None:
    """Raise UnavailableError where the file's vectors are of another model (C14's rule)."""
    if stored is None:
        return
    theirs = Fingerprint.parse(stored)
    try:
        ours = embedder.fingerprint
    except CortexError as error:
        if embedder.spec.name == theirs.name:
            raise
        raise UnavailableError(
            f"the memory's vectors are of {theirs}; this process is set to {source}, which "
            f"cannot be loaded ({error.message})",
            "",
            f"Unset CORTEX_MODEL, or run `cortex reindex --model {source}`",
        ) from error
    if ours != theirs:
        raise UnavailableError(
            f"the memory's vectors are of {theirs}; this process is set to {ours}",
            "Valid: one model for all vectors",
            f"Run `cortex reindex --model {source}` to migrate, or unset CORTEX_MODEL",
        )


def catch_up(snapshot: Snapshot, meaning: Meaning, place: WorkspaceId) -> None:
    """Bring one partition to the snapshot's generation."""
    index, now = meaning.index, snapshot.generation()
    mark = index.watermark(place)
    if mark == now:
        return
    if mark is None or mark.epoch != now.epoch or mark.seq < now.floor:
        index.rebuild(place, iter_points(snapshot, meaning, place), now)
        return
    _apply(snapshot, meaning, place, mark, now)


def _apply(
    snapshot: Snapshot, meaning: Meaning, place: WorkspaceId, mark: Generation, now: Generation
) -> None:
    touched = set(snapshot.changes.touched(mark.seq, now.seq).nodes)
    touched.update(snapshot.embeddings.touched(mark.embeddings, now.embeddings))
    keys = sorted(touched)
    nodes = {node.key: node for node in snapshot.nodes.by_keys(keys)}
    stored = {item.key: item for item in snapshot.embeddings.of_nodes(keys, meaning.key)}
    upserts: list[Point] = []
    leaving = [str(row["id"]) for row in snapshot.changes.deleted("node", keys).values()]
    for key, node in nodes.items():
        point = None
        if node.workspace_id == place and key in stored:
            point = _point(node, stored[key], meaning.fingerprint.dimension)
        if point is None:
            leaving.append(node.id)
        else:
            upserts.append(point)
    meaning.index.apply(place, upserts, [NodeId(node) for node in leaving], now)


def iter_points(snapshot: Snapshot, meaning: Meaning, place: WorkspaceId) -> Iterator[Point]:
    """Every point of a workspace: two scans by rising key, joined as they go."""
    stored = snapshot.embeddings.of_workspace(place, meaning.key)
    item = next(stored, None)
    for node in snapshot.nodes.iter_all(place):
        while item is not None and item.key < node.key:
            item = next(stored, None)
        if item is None:
            return
        if item.key == node.key:
            point = _point(node, item, meaning.fingerprint.dimension)
            if point is not None:
                yield point


def _point(node: Node, stored: Stored, dimension: int) -> Point | None:
    layer = layer_of(node.type)
    if layer is None or not has_vector(node):  # a shell may have emptied it a moment ago
        return None
    rows = np.frombuffer(b"".join(stored.vectors), dtype=np.float16).reshape(-1, dimension)
    return Point(
        node.id,
        node.workspace_id,
        node.type,
        layer,
        node.tags,
        node.status,
        node.created_at,
        rows.astype(np.float32),
    )


def packed(vectors: Sequence[Vector]) -> list[bytes]:
    """Vectors as they are stored: float16, one value of bytes a chunk."""
    return [np.asarray(vector, dtype=np.float16).tobytes() for vector in vectors]
