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
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from types import MappingProxyType
from typing import Final

from cortex.domain.errors import InvalidError, NotFoundError, TooLargeError, UnavailableError
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
    SIZE = "over 1 MiB"
    BINARY = "binary content"
    UNREADABLE = "unreadable"


_FOLDERS: Final = MappingProxyType(
    {
        "__pycache__": Reason.GENERATED,
        "node_modules": Reason.GENERATED,
        "site-packages": Reason.SITE_PACKAGES,
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


def survey_sources(root: Path) -> Survey:
    """Walk the root to its end before anything is parsed."""
    found: list[Found] = []
    skipped: list[Skipped] = []
    for met in iter_sources(root):
        match met:
            case Found():
                found.append(met)
            case Skipped():
                skipped.append(met)
    return Survey(
        root=root,
        found=tuple(found),
        skipped=MappingProxyType(dict(Counter(met.reason for met in skipped))),
        unreadable=tuple(met for met in skipped if met.reason is Reason.UNREADABLE),
    )


def iter_sources(root: Path) -> Iterator[Found | Skipped]:
    """Everything below the root, depth first, each folder by name; or the one file.

    Raises NotFoundError when there is no such path, UnavailableError when the system
    will not say.
    """
    root = root.absolute()
    try:
        mode = root.stat().st_mode  # the root is followed when it is a link
    except (FileNotFoundError, NotADirectoryError):
        raise NotFoundError(
            f"path {str(root)!r} does not exist",
            "Valid: a folder, or a file ending in " + ", ".join(SUFFIXES),
            "Name another path",
        ) from None
    except OSError as error:
        raise _unavailable(root, error) from error
    if not stat.S_ISDIR(mode):
        yield _examine(root)
        return
    pending = [root]
    while pending:
        path = pending.pop()
        try:
            mode = root.stat().st_mode if path is root else path.lstat().st_mode
            if path is not root and (reason := _unfit(path, mode)):
                yield Skipped(path, reason)
            elif stat.S_ISDIR(mode):
                pending.extend(path / name for name in sorted(os.listdir(path), reverse=True))
            else:
                yield _examine(path)
        except OSError as error:
            yield Skipped(path, Reason.UNREADABLE, error.strerror or "")


def _unfit(path: Path, mode: int) -> Reason | None:
    """Why a path below the root is not even looked into."""
    if stat.S_ISLNK(mode):
        return Reason.LINK
    if not stat.S_ISDIR(mode):
        return None
    if path.name.startswith("."):
        return Reason.HIDDEN
    if os.path.isfile(path / "pyvenv.cfg"):
        return Reason.ENVIRONMENT
    return _FOLDERS.get(path.name)


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
