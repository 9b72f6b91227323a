"""Embedding over HTTP: a model that another process runs, Ollama's or OpenAI's kind.

Found out once, at the first answer: which protocol it speaks, what dimension its vectors
have, and with Ollama the digest of the model. Until then nothing is known, so nothing is
asked when a memory is opened, and an endpoint that is down costs the graph nothing.

A question waits 5 s, texts 30. A model that is being read from disk may need longer than a
question waits, and Ollama gives up the reading when its caller hangs up: after a question
that timed out, a thread of its own asks once more with all patience, and further questions
are refused at once until that has answered, or for 5 s.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from cortex.domain.endpoints import Endpoint, EndpointSettings
from cortex.domain.errors import UnavailableError
from cortex.vectors.endpoint_client import EndpointClient, NoSuchRoute, SlowEndpointError
from cortex.vectors.models import Fingerprint, endpoint_name
from cortex.vectors.prefixes import Prefixes, prefixes_of
from cortex.vectors.protocols import (
    MalformedReply,
    Route,
    body_of,
    digest_of,
    routes_of,
    vectors_of,
)

BATCH: Final = 32
_QUERY_SECONDS: Final = 5.0
_PASSAGE_SECONDS: Final = 30.0
_QUIET: Final = 5.0
_RECHECK: Final = 60.0
_REPLY: Final = 1 << 20
_VECTOR: Final = 1 << 19  # bytes of JSON: 16,384 numbers of 32 characters
_TAGS: Final = 1 << 22


@dataclass(frozen=True, slots=True)
class EndpointSession:
    """An endpoint that has answered. Vectors have shape (texts, dimension), rows of length 1."""

    source: EndpointSource
    fingerprint: Fingerprint

    def embed_queries(self, texts: Sequence[str]) -> NDArray[np.float32]:
        prefixed = [self.source.prefixes.query + text for text in texts]
        return self._checked(self.source.ask_soon(prefixed))

    def embed_passages(self, texts: Sequence[str]) -> NDArray[np.float32]:
        prefixed = [self.source.prefixes.passage + text for text in texts]
        return self._checked(self.source.ask(prefixed, _PASSAGE_SECONDS))

    def _checked(self, rows: NDArray[np.float32]) -> NDArray[np.float32]:
        revision = self.source.revision()
        if (rows.shape[1], revision) != (self.fingerprint.dimension, self.fingerprint.revision):
            raise self.source.client.unavailable(
                f"gave vectors of {rows.shape[1]} dimensions, revision {revision or 'unknown'}, "
                f"and was {self.fingerprint}",
                "Put its old model back, or start again and run `cortex reindex`",
            )
        return rows


class EndpointSource:
    """One endpoint for the life of an embedder; safe to use from threads.

    `patient` is the thread that waits for a slow answer, once there was one.
    """

    batch = BATCH

    def __init__(
        self, endpoint: Endpoint, settings: EndpointSettings, *, named: bool = True
    ) -> None:
        by_name = prefixes_of(endpoint.model)
        query, passage = settings.query_prefix, settings.passage_prefix
        self.prefixes = Prefixes(
            by_name.query if query is None else query,
            by_name.passage if passage is None else passage,
        )
        self._endpoint = endpoint
        # A key is for what its owner chose, not for what a file names.
        self._settings = settings if named else replace(settings, key="", openai_key="")
        self._named = named
        self._lock = threading.Lock()
        self._client: EndpointClient | None = None
        self._route: Route | None = None
        self._revision = ""
        self._checked_at = 0.0
        self._quiet_until = 0.0
        self._why: UnavailableError | None = None
        self.patient: threading.Thread | None = None

    @property
    def client(self) -> EndpointClient:
        with self._lock:
            if self._client is None:
                self._client = EndpointClient(self._endpoint, self._settings)
            return self._client

    def identify(self) -> Fingerprint | None:
        """None: only the endpoint knows."""
        return None

    def load(self) -> EndpointSession:
        """Ask for one vector, and learn from it what the vectors are."""
        if not (self._named or self._endpoint.loopback):
            raise UnavailableError(
                f"the memory's vectors are of {self._endpoint.source}; no setting of this process "
                "says that its texts may be sent there",
                "",
                f"Set CORTEX_EMBED_URL={self._endpoint.url} and CORTEX_EMBED_MODEL="
                f"{self._endpoint.model}, or run `cortex reindex --model offline`",
            )
        dimension = self.ask_soon([f"{self.prefixes.passage}dimension"]).shape[1]
        fingerprint = Fingerprint(
            endpoint_name(self._endpoint),
            self.revision(),
            dimension,
            "endpoint",
            True,
            self.prefixes.passage,
        )
        return EndpointSession(self, fingerprint)

    def ask_soon(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Vectors for someone who waits: in 5 s, or an error, at once while it is too slow."""
        with self._lock:
            why = self._why if time.monotonic() < self._quiet_until else None
        if why is not None:
            raise UnavailableError(why.message) from why
        try:
            return self.ask(texts, _QUERY_SECONDS)
        except SlowEndpointError as error:
            self._have_patience(error)
            raise

    def ask(self, texts: Sequence[str], seconds: float) -> NDArray[np.float32]:
        """Vectors of at most 32 texts, as they stand, in the order of the texts."""
        route = self._route
        routes = (route,) if route else routes_of(self._endpoint.url, self._settings.dialect)
        for each in routes:
            try:
                rows = self._posted(each, texts, seconds)
            except NoSuchRoute:
                continue
            self._route, self._quiet_until = each, 0.0
            return rows
        tried = " and ".join(each.url for each in routes)
        raise self.client.unavailable(
            f"serves no embeddings (tried {tried})",
            "Correct CORTEX_EMBED_URL, or say which protocol it speaks by CORTEX_EMBED_PROTOCOL",
        )

    def _posted(self, route: Route, texts: Sequence[str], seconds: float) -> NDArray[np.float32]:
        body = body_of(route, self._endpoint.model, texts)
        limit = _REPLY + len(texts) * _VECTOR
        reply = self.client.post(route.url, body, seconds, limit)
        try:
            return vectors_of(route, reply, len(texts))
        except MalformedReply as error:
            raise self.client.unavailable(f"cannot be used: {error}") from error

    def revision(self) -> str:
        """The digest of the model, where the endpoint tells one; asked again after a minute."""
        route = self._route
        if route is None or route.dialect != "ollama":
            return ""
        if time.monotonic() - self._checked_at >= _RECHECK or not self._checked_at:
            try:
                reply = self.client.get(route.tags, _QUERY_SECONDS, _TAGS)
                self._revision = digest_of(reply, self._endpoint.model)
            except NoSuchRoute:
                self._revision = ""  # something that speaks this protocol, and keeps no list
            self._checked_at = time.monotonic()
        return self._revision

    def close(self) -> None:
        with self._lock:
            if self._client is not None:
                self._client.close()

    def _have_patience(self, error: UnavailableError) -> None:
        """Let one thread wait for the answer, and those who ask meanwhile not wait at all."""
        with self._lock:
            self._why, self._quiet_until = error, time.monotonic() + _QUIET
            if self.patient is None or not self.patient.is_alive():
                self.patient = threading.Thread(target=self._wait, name="endpoint", daemon=True)
                self.patient.start()

    def _wait(self) -> None:
        try:
            self.ask([f"{self.prefixes.passage}dimension"], _PASSAGE_SECONDS)
        except UnavailableError as error:
            self._why = error  # told to whoever asks until the quiet ends
