"""Which files of a folder are read, and their text.

A link is never followed: inside the root its target is met under its own name, and
outside it is not part of what was asked for. The root itself may be a link, hidden, or
in site-packages, because someone named it.
"""

from __future__ import annotations

import codecs
import hashlib
import io
import os
import stat
import tokenize
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from types import MappingProxyType
from typing import Final

from cortex.domain.errors import InvalidError, NotFoundError, TooLargeError, UnavailableError
from cortex.services.ingest.ignoring import Rules, rules_for
from cortex.services.ingest.pieces import SourceFile, SourceKind

MAX_BYTES: Final = 1 << 20
_SNIFFED: Final = 8 << 10

# suffix: (kind, language)
SUFFIXES: Final[Mapping[str, tuple[SourceKind, str]]] = MappingProxyType(
    {
        ".md": ("markdown", "markdown"),
        ".markdown": ("markdown", "markdown"),
        ".txt": ("text", "text"),
        ".rst": ("text", "rst"),
        ".py": ("python", "python"),
        ".pyi": ("python", "python"),
    }
)


class Reason(StrEnum):
    """Why something below the root is not read; a folder counts once, whatever it holds."""

    HIDDEN = "hidden folder"
    GENERATED = "generated folder"
    ENVIRONMENT = "virtual environment"
    SITE_PACKAGES = "site-packages"
    LINK = "symbolic link"
    KIND = "other kind of file"
    GITIGNORE = "ignored by .gitignore"
    IGNORE = "ignored by .ignore"
    CORTEXIGNORE = "ignored by .cortexignore"
    SIZE = "over 1 MiB"
    BINARY = "binary content"
    UNREADABLE = "unreadable"


GENERATED: Final = MappingProxyType(
    {
        "__pycache__": Reason.GENERATED,
        "node_modules": Reason.GENERATED,
        "site-packages": Reason.SITE_PACKAGES,
    }
)

_IGNORED: Final = MappingProxyType(
    {
        ".gitignore": Reason.GITIGNORE,
        ".ignore": Reason.IGNORE,
        ".cortexignore": Reason.CORTEXIGNORE,
    }
)


@dataclass(frozen=True, slots=True)
class Found:
    """A file that will be read."""

    path: Path
    size: int


@dataclass(frozen=True, slots=True)
class Skipped:
    """A file or folder that will not; `detail` is the system's own word on it."""

    path: Path
    reason: Reason
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Survey:
    """All that a walk met: the totals of a progress bar are `len(found)` and `size`."""

    root: Path
    found: tuple[Found, ...]
    skipped: Mapping[Reason, int]
    unreadable: tuple[Skipped, ...]

    @property
    def paths(self) -> tuple[Path, ...]:
        return tuple(file.path for file in self.found)

    @property
    def size(self) -> int:
        """Bytes in all."""
        return sum(file.size for file in self.found)


def survey_sources(root: Path, only: Collection[Path] = ()) -> Survey:
    """Walk the root to its end before anything is parsed."""
    found: list[Found] = []
    skipped: Counter[Reason] = Counter()
    unreadable: list[Skipped] = []
    for met in iter_sources(root, only):
        match met:
            case Found():
                found.append(met)
            case Skipped():
                skipped[met.reason] += 1
                if met.reason is Reason.UNREADABLE:
                    unreadable.append(met)
    return Survey(root, tuple(found), MappingProxyType(dict(skipped)), tuple(unreadable))


def iter_sources(root: Path, only: Collection[Path] = ()) -> Iterator[Found | Skipped]:
    """Everything below the root, depth first, each folder by name; or the one file.

    With `only`, what lies at or below these absolute paths, as the whole walk would say.
    Raises NotFoundError when there is no such path, UnavailableError when the system
    will not say.
    """
    root = root.absolute()
    try:
        mode = root.stat().st_mode  # the root is followed when it is a link
        rules = rules_for(root) if stat.S_ISDIR(mode) else None
    except (FileNotFoundError, NotADirectoryError):
        raise NotFoundError(
            f"path {str(root)!r} does not exist",
            "Valid: a folder, or a file ending in " + ", ".join(SUFFIXES),
            "Name another path",
        ) from None
    except OSError as error:
        raise _unavailable(root, error) from error
    if rules is None:
        yield _examine(root)
        return
    ways = {folder for path in only for folder in path.parents}
    pending = [_Place(root, rules, whole=not only or root in only)]
    while pending:
        place = pending.pop()
        try:
            yield from _visit(place, root, pending, only, ways)
        except OSError as error:
            yield Skipped(place.path, Reason.UNREADABLE, error.strerror or "")


@dataclass(frozen=True, slots=True)
class _Place:
    """A path still to visit; `whole` when all below it is asked for."""

    path: Path
    rules: Rules
    whole: bool


def _visit(
    place: _Place, root: Path, pending: list[_Place], only: Collection[Path], ways: set[Path]
) -> Iterator[Found | Skipped]:
    path = place.path
    mode = root.stat().st_mode if path is root else path.lstat().st_mode
    if path is not root and (reason := _unfit(path, mode, place.rules)):
        yield Skipped(path, reason)
    elif stat.S_ISDIR(mode):
        names = sorted(os.listdir(path), reverse=True)
        # A folder whose own rules cannot be read is not read either: they may hide secrets.
        rules = place.rules.within(path, names)
        for name in names:
            child = path / name
            whole = place.whole or child in only
            if whole or child in ways:
                pending.append(_Place(child, rules, whole))
    elif place.whole:
        yield _examine(path)


def _unfit(path: Path, mode: int, rules: Rules) -> Reason | None:
    """Why a path below the root is not even looked into."""
    if stat.S_ISLNK(mode):
        return Reason.LINK
    folder = stat.S_ISDIR(mode)
    if folder and path.name.startswith("."):
        return Reason.HIDDEN
    if folder and os.path.isfile(path / "pyvenv.cfg"):
        return Reason.ENVIRONMENT
    if folder and path.name in GENERATED:
        return GENERATED[path.name]
    if not folder and path.suffix.lower() not in SUFFIXES:
        return Reason.KIND
    hidden_by = rules.hides(path, folder=folder)
    return _IGNORED[hidden_by] if hidden_by else None


def _examine(path: Path) -> Found | Skipped:
    if path.suffix.lower() not in SUFFIXES:
        return Skipped(path, Reason.KIND)
    try:
        about = path.stat()
        if not stat.S_ISREG(about.st_mode):  # opening a pipe would wait for its writer
            return Skipped(path, Reason.UNREADABLE, "Not a regular file")
        if about.st_size > MAX_BYTES:
            return Skipped(path, Reason.SIZE)
        with path.open("rb") as file:
            start = file.read(_SNIFFED)
    except OSError as error:
        return Skipped(path, Reason.UNREADABLE, error.strerror or "")
    return Skipped(path, Reason.BINARY) if b"\0" in start else Found(path, about.st_size)


def read_source(path: Path, root: Path) -> tuple[SourceFile, str]:
    """The file's facts and its text; bytes that are no text become U+FFFD.

    Raises UnavailableError when it cannot be read, TooLargeError when it has grown,
    InvalidError for a kind of file that is not read.
    """
    path, root = path.absolute(), root.absolute()
    if path.suffix.lower() not in SUFFIXES:
        raise InvalidError(
            f"{path.name!r} is not a kind of file that is read",
            "Valid: " + ", ".join(SUFFIXES),
            "Name another file",
        )
    kind, language = SUFFIXES[path.suffix.lower()]
    try:
        with path.open("rb") as file:
            about = os.fstat(file.fileno())
            raw = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise _unavailable(path, error) from error
    if len(raw) > MAX_BYTES:
        raise TooLargeError(f"{path.name!r} is over 1 MiB", "", "Split it")
    relative = path.name if path == root else path.relative_to(root).as_posix()
    source = SourceFile(
        path=path,
        # A name that is not UTF-8 still needs a text of its own.
        relative=os.fsencode(relative).decode("utf-8", "backslashreplace"),
        size=len(raw),
        modified_ns=about.st_mtime_ns,
        sha256=hashlib.sha256(raw).hexdigest(),
        language=language,
        kind=kind,
    )
    return source, _decode(raw, kind)


def _decode(raw: bytes, kind: SourceKind) -> str:
    if kind == "python" and not raw.startswith(codecs.BOM_UTF8):
        try:
            encoding, _ = tokenize.detect_encoding(io.BytesIO(raw).readline)
            return raw.decode(encoding, "replace")
        except (SyntaxError, LookupError, UnicodeError):
            pass  # PEP 263 names no usable codec: read as any other file
    return raw.decode("utf-8-sig", "replace")


def _unavailable(path: Path, error: OSError) -> UnavailableError:
    return UnavailableError(
        f"{str(path)!r} cannot be read ({error.strerror})",
        "Valid: a path that this process may read",
        "Correct its permissions",
    )
