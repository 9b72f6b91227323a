"""The embedder: texts to vectors, with one model that is loaded when it is needed.

Whoever asks first loads it, the others wait; it is let go when nothing used it for a
while. A failure is never remembered, so what was repaired works at the next call. How a
model is loaded and run is told in `loading.py`.

Cost of the offline model on one thread: 0.7 s to load, of which 0.4 are the import of
fastembed; 6 ms a query; 39 ms a chunk of 600 characters; 230 MB with its libraries, of
which 160 come back when it is let go; 0.2 s to load again.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from cortex.domain.errors import UnavailableError
from cortex.domain.values import clean
from cortex.vectors.index import Vector
from cortex.vectors.loading import Session, identify, load
from cortex.vectors.models import Fingerprint, ModelSpec

BATCH: Final = 4  # 32 chunks at once take 220 MB more and are slower
_QUERIES: Final = 256
_LONGEST_QUERY: Final = 32_768  # characters; beyond the context of every model here


class Embedder:
    """One model for one process; safe to use from threads.

    Every method but `loaded`, `release_if_idle` and `close` raises UnavailableError when
    the model cannot be loaded or run, saying what to repair. `idle_seconds` and the `now`
    of `release_if_idle` are of `time.monotonic`.
    """

    def __init__(
        self, spec: ModelSpec, *, cache_dir: Path, idle_seconds: float, threads: int = 1
    ) -> None:
        self.spec = spec
        self._cache_dir = cache_dir
        self._idle_seconds = idle_seconds
        self._threads = threads
        self._loading = threading.Lock()
        self._state = threading.Lock()
        self._session: Session | None = None
        self._settled: Fingerprint | None = None
        self._queries: OrderedDict[str, Vector] = OrderedDict()
        self._used = time.monotonic()
        self._running = 0
        self._closed = False

    @property
    def loaded(self) -> bool:
        return self._session is not None

    @property
    def fingerprint(self) -> Fingerprint:
        """What the vectors are; loads the model only for a folder that hides its dimension.

        The offline model's is known by heart; a folder's costs the sums of its files, once;
        a name's costs the import of fastembed. It is settled by the first load: vectors of
        two models never mix in one process.
        """
        found = self._settled or identify(self.spec, self._cache_dir)
        return found or self._ready().fingerprint

    def warm(self) -> None:
        """Load the model and run it once, so that the next query is quick."""
        self.embed_passages(["warm"])

    def embed_query(self, text: str) -> Vector:
        """The vector of a question, shape (dimension,), length 1, read-only.

        The last 256 questions are remembered. Characters beyond 32,768 are not read.
        """
        text = clean(text[:_LONGEST_QUERY])
        with self._state:
            known = self._queries.get(text)
            if known is not None:
                self._queries.move_to_end(text)
                return known
        vector: Vector = self._run(lambda session: session.embed_queries([text]))[0]
        vector.flags.writeable = False
        with self._state:
            self._queries[text] = vector
            if len(self._queries) > _QUERIES:
                self._queries.popitem(last=False)
        return vector

    def embed_passages(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """The vectors of chunks, shape (len(texts), dimension), rows of length 1."""
        cleaned = [clean(text) for text in texts]
        batches = [cleaned[start : start + BATCH] for start in range(0, len(cleaned), BATCH)]
        parts = [self._run(partial(Session.embed_passages, texts=batch)) for batch in batches]
        if not parts:
            return np.empty((0, self.fingerprint.dimension), np.float32)
        return np.concatenate(parts)

    def release_if_idle(self, now: float) -> bool:
        """Let the model go when nothing used it for `idle_seconds`; whether it was let go."""
        with self._state:
            idle = not self._running and now - self._used >= self._idle_seconds
            if self._session is None or not idle:
                return False
            self._session = None
        _return_memory()
        return True

    def close(self) -> None:
        """Let go of the model and the remembered queries; later calls are refused."""
        with self._state:
            self._closed = True
            held, self._session = self._session, None
            self._queries.clear()
        if held is not None:
            del held
            _return_memory()

    def _run(self, embed: Callable[[Session], NDArray[np.float32]]) -> NDArray[np.float32]:
        """Run on the loaded model, which is not idle meanwhile."""
        with self._state:
            self._running += 1
        try:
            return embed(self._ready())
        finally:
            with self._state:
                self._running -= 1
                self._used = time.monotonic()

    def _ready(self) -> Session:
        """The loaded model; whoever comes while it is loading waits for that one load."""
        session = self._session
        if session is not None:
            return session
        with self._loading:
            if self._closed:
                raise UnavailableError("the embedder is closed", then="Start the server again")
            session = self._session
            if session is None:
                session = self._loaded_anew()
            return session

    def _loaded_anew(self) -> Session:
        session = load(self.spec, self._cache_dir, self._threads)
        with self._state:
            if self._settled not in (None, session.fingerprint):
                raise UnavailableError(
                    f"model {self._settled} became {session.fingerprint} while it was in use",
                    "Valid: one model for the life of the process",
                    "Put the old files back, or start again and run `cortex reindex`",
                )
            self._settled = session.fingerprint
            if not self._closed:
                self._session = session
            return session


def _return_memory() -> None:
    """Give the model's pages back: glibc would keep half of them for later."""
    gc.collect()
    # Where there is no glibc, its allocator decides.
    with contextlib.suppress(AttributeError, OSError, TypeError):
        ctypes.CDLL(None).malloc_trim(0)
