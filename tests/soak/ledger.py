"""What one client was told is done, in a file of its own that outlives everybody.

A line is written before a request is sent, and another, synced to the disk, when its answer
has come. What was asked and never answered may have happened or not.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


@dataclass
class Expected:
    """What must be there. By node: its text, of which any of several may stand where an edit
    was not answered; None among them: it may be gone. `texts` is how often at most, and at
    least, a text may occur that a node was made with."""

    nodes: dict[str, set[str | None]] = field(default_factory=dict)
    links: set[tuple[str, str]] = field(default_factory=set)
    made: dict[str, tuple[int, int]] = field(default_factory=dict)
    acknowledged: int = 0


class Ledger:
    """One client's file."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("a+", encoding="utf-8")
        self._number = 0

    def ask(self, op: str, **what: Any) -> int:
        """Note what is about to be asked; its number."""
        self._number += 1
        self._write({"ask": self._number, "op": op, **what})
        return self._number

    def acknowledge(self, number: int, **told: Any) -> None:
        """Note the answer, durably."""
        self._write({"ack": number, **told})
        os.fsync(self._file.fileno())

    def _write(self, line: dict[str, Any]) -> None:
        self._file.write(json.dumps(line) + "\n")
        self._file.flush()

    def close(self) -> None:
        self._file.close()


def expected(path: Path) -> Expected:
    """What the client of this file is owed."""
    found = Expected()
    asked: dict[int, dict[str, Any]] = {}
    for line in _lines(path):
        if "ask" in line:
            asked[line["ask"]] = line
            _maybe(found, line)
        else:
            found.acknowledged += 1
            _surely(found, asked[line["ack"]], line)
    return found


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    with path.open(encoding="utf-8") as file:
        for line in file:
            yield json.loads(line)


def _maybe(found: Expected, asked: dict[str, Any]) -> None:
    match asked["op"]:
        case "add":
            found.made[asked["text"]] = (0, 1)
        case "edit":
            found.nodes[asked["id"]].add(asked["text"])
        case "delete":
            found.nodes[asked["id"]].add(None)


def _surely(found: Expected, asked: dict[str, Any], told: dict[str, Any]) -> None:
    match asked["op"]:
        case "add":
            found.nodes[told["id"]] = {asked["text"]}
            found.made[asked["text"]] = (1, 1)
        case "edit":
            found.nodes[asked["id"]] = {asked["text"]}
        case "delete":
            found.nodes[asked["id"]] = {None}
        case "link":
            found.links.add((asked["source"], asked["target"]))
        case "supersede":
            found.nodes[told["id"]] = {asked["text"]}
