"""Meaning: the model, and the vector index kept equal to the store.

The embedded index is caught up inside the read transaction that answers (invariant 3), under
one lock taken before the transaction begins, so that it never runs ahead of what the answer
sees. An index on a server is caught up in the background (`pushing.py`) and asked without
any lock: what it finds are candidates, read anew from the store.

The file says which model its vectors are of; another one is refused.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

import numpy as np

from cortex.domain.errors import CortexError, InvalidError, UnavailableError
from cortex.domain.values import WorkspaceId
from cortex.services.engine import Engine
from cortex.services.meaning.owed_points import Owing
from cortex.services.meaning.points import catch_up, exact
from cortex.services.meaning.pushing import Pushing, Target
from cortex.services.meaning.vector_files import remove_vector_files, vector_files
from cortex.store.database import Snapshot
from cortex.store.meta import FINGERPRINT, MEMORY_ID, MODEL
from cortex.store.tokens import query_tokens
from cortex.vectors.embedded import EmbeddedIndex
from cortex.vectors.embedder import Embedder
from cortex.vectors.index import ScoredPoint, Vector, VectorFilter, VectorIndex
from cortex.vectors.models import Fingerprint, resolve_model
from cortex.vectors.qdrant.circuit import Circuit
from cortex.vectors.qdrant.client import Server, connector
from cortex.vectors.qdrant.index import QdrantIndex

_NAMED_BY: Final = "CORTEX_MODEL and CORTEX_EMBED_URL"


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
        self._source: tuple[str, bool] | None = None
        self._meaning: Meaning | None = None
        self.pushing = None if engine.settings.qdrant is None else Pushing(engine, self._target)
        """Brings the index up to date where it is a server; None where it is embedded."""

    def source(self, snapshot: Snapshot) -> str:
        """The model that is wanted: the configured one, else the file's, else the offline."""
        return self._engine.settings.model or snapshot.meta.find(MODEL) or "offline"

    def embedder(self, source: str, *, named: bool = False) -> Embedder:
        """The embedder of a source; the one before is let go when another is wanted.

        `named` says that a person chose it in this call; the configured one always is. An
        endpoint that only the file names is not sent texts unless it is on this machine.
        """
        if self._shared is not None and self._shared.spec == resolve_model(source):
            return self._shared
        with self._lock:
            named = named or source == self._engine.settings.model or self._source == (source, True)
            if self._embedder is None or self._source != (source, named):
                if self._embedder is not None:
                    self._embedder.close()
                settings = self._engine.settings
                self._embedder = Embedder(
                    resolve_model(source),
                    cache_dir=settings.models,
                    idle_seconds=settings.model_idle,
                    endpoints=settings.endpoints,
                    named=named,
                )
                self._source = (source, named)
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
                index = self._open_index(fingerprint)
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
        embedder = self.embedder(configured)
        # An endpoint is not waited for: whether it serves the very model shows when it embeds.
        asked = embedder.spec.endpoint is None or embedder.settled
        if asked or (stored and embedder.is_other_than(Fingerprint.parse(stored))):
            refuse_other_model(configured, stored, embedder)

    def search(
        self,
        query: Vector,
        meaning: Meaning,
        workspace: WorkspaceId | None,
        top_k: int,
        where: VectorFilter,
    ) -> list[ScoredPoint]:
        """Nearest neighbours with exact scores: as fresh as the store is now where the index is
        embedded, else as fresh as `lag` says.
        """
        if self.pushing is not None:
            places = [workspace] if workspace else self._places()
            try:
                hits = meaning.index.search(places, query, top_k, where)
            except UnavailableError:
                self.pushing.doubt()
                raise
            with self._engine.database.read() as snapshot:
                return exact(snapshot, meaning.key, query, hits)
        with self.current(meaning, workspace) as places:
            return meaning.index.search(places, query, top_k, where)

    def hybrid(
        self,
        text: str,
        query: Vector,
        meaning: Meaning,
        workspace: WorkspaceId | None,
        top_k: int,
        where: VectorFilter,
    ) -> list[ScoredPoint]:
        """Candidates by meaning and by word, fused on the server, with its scores.

        An option where the index is a server; raises InvalidError where it is embedded, whose
        words are the keyword index's.
        """
        if not isinstance(meaning.index, QdrantIndex):
            raise InvalidError(
                "the embedded index ranks by meaning alone",
                "Valid: with CORTEX_QDRANT_URL",
                "Use search and the keyword index",
            )
        places = [workspace] if workspace else self._places()
        return meaning.index.hybrid(places, query, query_tokens(text), top_k, where)

    def lag(self, workspace: WorkspaceId | None) -> int:
        """How many nodes with vectors the index does not show as they are, 0 when embedded."""
        return 0 if self.pushing is None else self.pushing.lag_if_known(workspace)

    def wait(self, workspace: WorkspaceId | None, seconds: float) -> int:
        """Wait until a server's index is in step, at most so long; then as `lag`."""
        return 0 if self.pushing is None else self.pushing.wait(workspace, seconds)

    def notify(self) -> None:
        """Something was written."""
        if self.pushing is not None:
            self.pushing.notify()

    def rebuild(self, progress: Callable[[int, int], None]) -> None:
        """Fill a server's index anew; the embedded one is built by the next search."""
        if self.pushing is not None:
            self.pushing.rebuild(progress)
            return
        with self._lock:
            if self._meaning is not None and isinstance(self._meaning.index, EmbeddedIndex):
                self._meaning.index.drop()
            remove_vector_files(self._engine)

    def _places(self) -> list[WorkspaceId]:
        with self._engine.database.read() as snapshot:
            return snapshot.nodes.workspaces()

    def _open_index(self, fingerprint: Fingerprint) -> VectorIndex:
        settings = self._engine.settings.qdrant
        if settings is None:
            files = vector_files(self._engine, model_key(fingerprint), fingerprint.dimension)
            if not files.read_only:
                files.keep_only(self._places())
            return EmbeddedIndex(fingerprint.dimension, files)
        connect = connector(settings.url, settings.api_key, settings.timeout)
        server = Server(connect, settings.url, Circuit())
        return QdrantIndex(server, settings.collection, fingerprint, self._memory_id)

    def _memory_id(self) -> str | None:
        with self._engine.database.read() as snapshot:
            return snapshot.meta.find(MEMORY_ID)

    def _target(self) -> Target:
        meaning = self.meaning()
        assert isinstance(meaning.index, QdrantIndex)
        owing = Owing(self._engine.database, meaning.key, meaning.fingerprint.dimension)
        return Target(owing, meaning.index)

    @contextmanager
    def current(
        self, meaning: Meaning, workspace: WorkspaceId | None
    ) -> Iterator[list[WorkspaceId]]:
        """Hold the index at the store's present state, for one workspace or for all."""
        with self._lock, self._engine.database.read() as snapshot:
            places = [workspace] if workspace else snapshot.nodes.workspaces()
            for place in places:
                catch_up(snapshot, meaning.index, meaning.key, meaning.fingerprint.dimension, place)
            yield places

    def close(self) -> None:
        if self.pushing is not None:
            self.pushing.close()
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
    if embedder.spec.endpoint and embedder.is_other_than(theirs):  # known without asking it
        raise _other_model(source, theirs, embedder.spec.name)
    try:
        ours = embedder.fingerprint
    except CortexError as error:
        if embedder.spec.name == theirs.name:
            raise
        raise UnavailableError(
            f"the memory's vectors are of {theirs}; this process is set to {source}, which "
            f"cannot be loaded ({error.message})",
            "",
            f"Unset {_NAMED_BY}, or run `cortex reindex --model {source}`",
        ) from error
    if ours != theirs:
        raise _other_model(source, theirs, ours)


def _other_model(source: str, theirs: Fingerprint, ours: object) -> UnavailableError:
    return UnavailableError(
        f"the memory's vectors are of {theirs}; this process is set to {ours}",
        "Valid: one model for all vectors",
        f"Run `cortex reindex --model {source}` to migrate, or unset {_NAMED_BY}",
    )


def packed(vectors: Sequence[Vector]) -> list[bytes]:
    """Vectors as they are stored: float16, one value of bytes a chunk."""
    return [np.asarray(vector, dtype=np.float16).tobytes() for vector in vectors]
