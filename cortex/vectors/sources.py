"""Where vectors come from: one protocol, and which of its three kinds a model needs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from cortex.domain.endpoints import EndpointSettings
from cortex.vectors.batching import MOST_TEXTS
from cortex.vectors.http_embedding import EndpointSource
from cortex.vectors.loading import identify, load
from cortex.vectors.models import Fingerprint, ModelSpec
from cortex.vectors.nano import NanoSource
from cortex.vectors.prefixes import NO_PREFIXES, Prefixes


class Session(Protocol):
    """A model that runs. Vectors have shape (texts, dimension) and rows of length 1."""

    @property
    def fingerprint(self) -> Fingerprint: ...

    def embed_queries(self, texts: Sequence[str]) -> NDArray[np.float32]: ...

    def embed_passages(self, texts: Sequence[str]) -> NDArray[np.float32]: ...


class Source(Protocol):
    """A model that may not run yet. Every method raises UnavailableError, with the repair.

    `batch` is how many texts one call takes at most; `prefixes` what an endpoint's texts are
    given before.
    """

    @property
    def batch(self) -> int: ...

    @property
    def prefixes(self) -> Prefixes: ...

    def identify(self) -> Fingerprint | None:
        """What the vectors are, as far as it shows without running; else None."""

    def load(self) -> Session: ...

    def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class FastembedSource:
    """The offline model, a folder, or a name of fastembed's list."""

    spec: ModelSpec
    cache_dir: Path
    threads: int
    batch: ClassVar[int] = MOST_TEXTS
    prefixes: ClassVar[Prefixes] = NO_PREFIXES  # the session has those of its model

    def identify(self) -> Fingerprint | None:
        return identify(self.spec, self.cache_dir)

    def load(self) -> Session:
        return load(self.spec, self.cache_dir, self.threads)

    def close(self) -> None:
        """Nothing is held."""


def source_of(
    spec: ModelSpec,
    cache_dir: Path,
    threads: int,
    endpoints: EndpointSettings,
    *,
    named: bool,
) -> Source:
    """The source of a model; opens nothing."""
    if spec.endpoint is not None:
        return EndpointSource(spec.endpoint, endpoints, named=named)
    if spec.nano:
        return NanoSource(cache_dir, threads)
    return FastembedSource(spec, cache_dir, threads)
