"""What reading a file gives: its facts, and the pieces of knowledge in it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal

from cortex.domain.taxonomy import NodeType

SourceKind = Literal["markdown", "python", "text"]

JOINT: Final = " › "

_LINE_END: Final = re.compile(r"\r\n?|\n")


@dataclass(frozen=True, slots=True)
class SourceFile:
    """One file as it was read; `relative` is posix, from the ingested root."""

    path: Path
    relative: str
    size: int
    modified_ns: int
    sha256: str
    language: str
    kind: SourceKind


@dataclass(frozen=True, slots=True)
class Piece:
    """One piece of knowledge, which becomes one node.

    `key` is unique within the file and survives edits elsewhere in it, so that a second
    ingest finds the node of the first. `parent_key` is None or the key of a piece that
    comes earlier in the same file. Lines are 1-based and both inclusive.
    """

    key: str
    type: NodeType
    title: str
    text: str
    line: int
    end_line: int
    parent_key: str | None = None
    tags: tuple[str, ...] = ()
    data: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Parsed:
    """The pieces in the order of the file, parents first; or why there are none."""

    pieces: tuple[Piece, ...]
    problem: str | None = None


class Keys:
    """The keys of one file: the second piece that asks for a key gets `key~2`."""

    def __init__(self) -> None:
        self._taken: set[str] = set()
        self._counts: dict[str, int] = {}

    def take(self, key: str) -> str:
        count = self._counts.get(key, 0) + 1
        while (own := key if count == 1 else f"{key}~{count}") in self._taken:
            count += 1
        self._counts[key] = count
        self._taken.add(own)
        return own


def lines_of(text: str) -> list[str]:
    """The lines as an editor numbers them.

    Not `str.splitlines`: that also breaks at form feeds and U+2028, which ast, Markdown
    and editors count as part of a line.
    """
    return _LINE_END.split(text.removeprefix("\ufeff"))


def trimmed(lines: list[str], start: int, stop: int) -> tuple[int, int]:
    """The range `start:stop` without its blank lines at either end; empty when all are."""
    while start < stop and not lines[start].strip():
        start += 1
    while start < stop and not lines[stop - 1].strip():
        stop -= 1
    return start, stop
