"""Retrieval sets: `{name, corpora: {cid: [document]}, queries: [{qid, cid, text, gold}]}`.

A document has id and text; speaker, session, date, ts (ISO 8601) and title where it has them.
"""

from __future__ import annotations

import gzip
import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True)
class Document:
    """One turn, message, passage or function."""

    id: str
    text: str
    title: str
    session: str
    date: str
    ts: str


@dataclass(frozen=True, slots=True)
class Question:
    """A question with the ids that answer it."""

    corpus: str
    text: str
    gold: frozenset[str]
    category: str


@dataclass(frozen=True, slots=True)
class RetrievalSet:
    """One file; `digest` is of its bytes."""

    name: str
    digest: str
    corpora: dict[str, list[Document]]
    questions: list[Question]


def find_sets(folder: Path, names: list[str]) -> list[Path]:
    """The files of the folder, by name; those whose name begins as one that is asked for."""
    files = sorted((*folder.glob("*.json.gz"), *folder.glob("*.json")))
    return [file for file in files if not names or file.name.startswith(tuple(names))]


def read_set(path: Path) -> RetrievalSet:
    """The set of a file, gzipped or not."""
    raw = path.read_bytes()
    content = json.loads(gzip.decompress(raw) if path.suffix == ".gz" else raw)
    corpora = {
        str(corpus): [_document(each) for each in documents]
        for corpus, documents in content["corpora"].items()
    }
    questions = [
        Question(
            str(each["cid"]),
            str(each["text"]),
            frozenset(map(str, each["gold"])),
            str(each.get("category") or ""),
        )
        for each in content["queries"]
        if each.get("gold")
    ]
    name = str(content.get("name") or path.name.split(".")[0])
    return RetrievalSet(name, hashlib.sha256(raw).hexdigest(), corpora, questions)


def _document(each: dict[str, Any]) -> Document:
    def field(name: str) -> str:
        return str(each.get(name) or "")

    return Document(
        field("id"),
        field("text"),
        field("title") or field("speaker"),
        field("session"),
        field("date"),
        field("ts"),
    )
