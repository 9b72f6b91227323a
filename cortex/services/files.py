"""Files that memories point to: their facts when noted, and whether they changed since."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, Final

from cortex.config import FILE_NAME
from cortex.domain.errors import InvalidError
from cortex.domain.taxonomy import NodeType, RelationType
from cortex.domain.values import Node, NodeId, WorkspaceId, clean, new_id
from cortex.store.database import Transaction

_LINES: Final = re.compile(r"(?P<path>.+?):(?P<line>\d+)(?:-(?P<end>\d+))?")
_HASHED: Final = 32 << 20

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

    A file outside `root`, also through a link, is named but never read.
    """
    stored, absolute = canonical(path, root)
    facts: dict[str, Any] = {
        "path": stored,
        "root": str(root),
        "file_type": LANGUAGES.get(absolute.suffix.lower(), absolute.suffix.lstrip(".") or "file"),
    }
    try:
        if _is_readable(absolute, root) and absolute.is_file():
            state = absolute.stat()
            facts |= {"size": state.st_size, "modified_ns": state.st_mtime_ns}
            if state.st_size <= _HASHED:
                facts["hash"] = _sha256(absolute)
    except OSError:
        # Named all the same: the file may be readable to someone else, or later.
        facts["unreadable"] = True
    return facts


def with_facts(fields: dict[str, Any], root: Path) -> dict[str, Any]:
    """A fileref's fields with the facts of the file that their path names."""
    path = fields.get("path")
    if not isinstance(path, str):
        return fields
    facts = file_facts(path, root)
    return {**facts, **fields, "path": facts["path"]}


def _is_readable(path: Path, root: Path) -> bool:
    """Inside the root, also through links, and not our own file.

    Whoever opens and closes SQLite's file drops the locks that this process holds on it.
    """
    real = path.resolve()
    return real.is_relative_to(root.resolve()) and not real.name.startswith(FILE_NAME)


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def freshness(node: Node) -> Freshness:
    """Compare a fileref with the disk: by size and time first, by hash where they differ."""
    root, path = node.data.get("root"), node.data.get("path")
    if not isinstance(path, str):
        return Freshness.UNREADABLE
    base = Path(root) if isinstance(root, str) else Path("/")
    absolute = base / path
    try:
        if not _is_readable(absolute, base):
            return Freshness.UNREADABLE
        state = absolute.stat()
        noted = node.data.get("hash")
        if (state.st_size, state.st_mtime_ns) == (
            node.data.get("size"),
            node.data.get("modified_ns"),
        ):
            return Freshness.UNCHANGED
        if not isinstance(noted, str) or state.st_size > _HASHED:
            return Freshness.CHANGED
        return Freshness.UNCHANGED if _sha256(absolute) == noted else Freshness.CHANGED
    except FileNotFoundError:
        return _gone(absolute)
    except OSError:
        return Freshness.UNREADABLE


def _gone(path: Path) -> Freshness:
    """Missing only when its folder can be read: an unreadable folder deletes nothing."""
    for folder in path.parents:
        if folder.exists():
            readable = os.access(folder, os.R_OK | os.X_OK)
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
