"""Files that memories point to: their facts when noted, and whether they changed since."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

from cortex.domain.errors import InvalidError
from cortex.domain.taxonomy import NodeType, RelationType
from cortex.domain.values import Node, NodeId, WorkspaceId, clean, new_id
from cortex.services.reach import Reach
from cortex.store.database import Transaction

_LINES: Final = re.compile(r"(?P<path>.+?):(?P<line>\d+)(?:-(?P<end>\d+))?")
_HASHED: Final = 32 << 20
_OURS: Final = frozenset({"root", "modified_ns", "unreadable", "ingested"})

LANGUAGES: Final[Mapping[str, str]] = {
    ".py": "python", ".pyi": "python", ".md": "markdown", ".markdown": "markdown",
    ".txt": "text", ".rst": "restructuredtext", ".js": "javascript", ".ts": "typescript",
    ".tsx": "typescript", ".jsx": "javascript", ".go": "go", ".rs": "rust", ".java": "java",
    ".c": "c", ".h": "c", ".cpp": "c++", ".cs": "c#", ".rb": "ruby", ".php": "php",
    ".sh": "shell", ".sql": "sql", ".json": "json", ".toml": "toml", ".yaml": "yaml",
    ".yml": "yaml", ".html": "html", ".css": "css",
}  # fmt: skip


class Freshness(StrEnum):
    """How a file stands against what was noted of it."""

    UNCHANGED = "unchanged"
    CHANGED = "changed"
    MISSING = "missing"
    UNREADABLE = "unreadable"
    OUTSIDE = "outside"
    """Neither in the project nor in a folder that a person had ingested: never looked at."""


@dataclass(frozen=True, slots=True)
class FilePlace:
    """A path with the lines that matter in it; 1-based, None for the whole file."""

    path: str
    line: int | None
    end_line: int | None


def parse_place(text: str) -> FilePlace:
    """Read "path", "path:line" or "path:line-line"."""
    value = clean(text).strip()
    match = _LINES.fullmatch(value)
    if match is None:
        if not value:
            raise InvalidError("a file is empty", 'Valid: "src/auth/jwt.py:12"', "Name the file")
        return FilePlace(value, None, None)
    end = match["end"]
    return FilePlace(match["path"], int(match["line"]), int(end) if end else None)


def canonical(path: str, root: Path) -> tuple[str, Path]:
    """The path as it is stored, and the absolute one: relative to `root` when inside it."""
    absolute = Path(os.path.normpath(root / path.removeprefix("file://")))
    if absolute.is_relative_to(root):
        return absolute.relative_to(root).as_posix(), absolute
    return absolute.as_posix(), absolute


def file_facts(path: str, root: Path) -> dict[str, Any]:
    """What a fileref keeps: path, root, type, and size, hash and time where readable.

    A file outside `root`, also through a link, is named but never read; neither is any where
    `root` is a home folder or `/`, in which no project lies.
    """
    stored, absolute = canonical(path, root)
    facts: dict[str, Any] = {
        "path": stored,
        "root": str(root),
        "file_type": LANGUAGES.get(absolute.suffix.lower(), absolute.suffix.lstrip(".") or "file"),
    }
    try:
        if Reach((root,)).allows(absolute) and absolute.is_file():
            state = absolute.stat()
            facts |= {"size": state.st_size, "modified_ns": state.st_mtime_ns}
            if state.st_size <= _HASHED:
                facts["hash"] = _sha256(absolute)
    except OSError:
        # Named all the same: the file may be readable to someone else, or later.
        facts["unreadable"] = True
    return facts


def with_facts(fields: dict[str, Any], root: Path) -> dict[str, Any]:
    """A fileref's fields with the facts of the file that their path names.

    What the disk says wins; what only an ingest may say is dropped.
    """
    path = fields.get("path")
    said = {name: value for name, value in fields.items() if name not in _OURS}
    if not isinstance(path, str):
        return said
    return {**said, **file_facts(path, root)}


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@lru_cache(maxsize=4096)
def _remembered_sha256(path: Path, size: int, modified_ns: int) -> str:
    """The hash of a file as it was at this size and time: read once in a process."""
    return _sha256(path)


def path_of(file: Node) -> Path | None:
    """Where a fileref's file lies; None for one that names no path."""
    root, path = file.data.get("root"), file.data.get("path")
    if not isinstance(path, str) or not path:
        return None
    return Path(root if isinstance(root, str) else "/", path)


def freshness(node: Node, reach: Reach) -> Freshness:
    """Compare a fileref with the disk: by size and time; by hash where only the time differs.

    Cost: two stats; reads the file once per size and time in a process. Beyond `reach`
    nothing is asked: even whether a file is there would be told to whoever wrote the path.
    """
    path = path_of(node)
    if path is None:
        return Freshness.UNREADABLE
    try:
        if not reach.allows(path):
            return Freshness.OUTSIDE
        state = os.stat(path)
        size, modified, noted = (node.data.get(name) for name in ("size", "modified_ns", "hash"))
        if state.st_size == size and state.st_mtime_ns == modified:
            return Freshness.UNCHANGED
        if state.st_size != size or not isinstance(noted, str) or state.st_size > _HASHED:
            return Freshness.CHANGED
        present = _remembered_sha256(path, state.st_size, state.st_mtime_ns)
        return Freshness.UNCHANGED if present == noted else Freshness.CHANGED
    except (FileNotFoundError, NotADirectoryError):
        return _absence(path)
    except OSError:
        return Freshness.UNREADABLE


def is_gone(file: Node) -> bool:
    """Whether nothing lies at a fileref's path any more, as a readable folder says."""
    path = path_of(file)
    if path is None:
        return False
    try:
        os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        return _absence(path) is Freshness.MISSING
    except OSError:
        return False
    return False


def _absence(path: Path) -> Freshness:
    """Missing only when its nearest folder can be read: unreadable is not gone."""
    effective = os.access in os.supports_effective_ids
    for folder in path.parents:
        if os.path.isdir(folder):
            readable = os.access(folder, os.R_OK | os.X_OK, effective_ids=effective)
            return Freshness.MISSING if readable else Freshness.UNREADABLE
    return Freshness.UNREADABLE


def ensure_fileref(
    transaction: Transaction, workspace: WorkspaceId, path: str, root: Path, parent: NodeId
) -> Node:
    """The fileref of this path, made under `parent` when there is none."""
    stored, _ = canonical(path, root)
    found = transaction.nodes.by_path(workspace, stored)
    if found:
        return found[0]
    node = transaction.nodes.insert(
        NodeId(new_id()),
        NodeType.FILEREF,
        workspace,
        parent,
        file_facts(path, root),
        transaction.at,
    )
    transaction.relations.insert(workspace, parent, node.id, RelationType.CONTAINS, transaction.at)
    return node
