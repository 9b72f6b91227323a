"""A set becomes a memory: what a user would have who kept these talks, pages or functions.

Each corpus is a workspace. A session is a node with its date in the title; each turn is a
note below it, titled by who spoke, made at its time, with `sequel_to` to the turn before.
Documents without a session are notes, titled where they have a title. Everything goes through
the services, with the set's clock.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from bench.retrieval.sets import Document, RetrievalSet
from bench.retrieval.vectors import KeptEmbedder
from cortex.config import load_settings
from cortex.domain import chunking
from cortex.domain.errors import InvalidError
from cortex.domain.instants import Instant, parse_instant
from cortex.memory import Memory, open_memory
from cortex.services.fields import Fields
from cortex.store import folding, keywords, languages, schema, stemming, tokens
from cortex.vectors import loading

_BEGINNING = Instant("1970-01-01T00:00:00.000000Z")
_SHAPES = (chunking, folding, keywords, languages, schema, stemming, tokens, loading)


class SetClock:
    """The time of the set while it is written and asked."""

    def __init__(self) -> None:
        self.at = _BEGINNING

    def __call__(self) -> Instant:
        return self.at


@dataclass(slots=True)
class Built:
    """A set's memory; `ids` tell a node's document, `last` the newest time of a corpus."""

    memory: Memory
    clock: SetClock
    ids: dict[str, str] = field(default_factory=dict)
    last: dict[str, Instant] = field(default_factory=dict)


def build(given: RetrievalSet, folder: Path, embedder: KeptEmbedder) -> Built:
    """The memory of a set: that of an earlier run with the same file and product, or a new one."""
    home = folder / f"{given.name}-{given.digest[:12]}-{_shape()}"
    clock = SetClock()
    memory = open_memory(
        load_settings(home=home, workspace="bench", env={}), clock=clock, embedder=embedder
    )
    record = home / "built.json"
    if record.exists():
        built = Built(memory, clock, **json.loads(record.read_text()))
    else:
        built = Built(memory, clock)
        writers = {corpus: _Writer(built, corpus) for corpus in given.corpora}
        for corpus, document in _by_time(given):
            writers[corpus].write(document)
        _wait(memory)
        record.write_text(json.dumps({"ids": built.ids, "last": built.last}))
    return built


def _shape() -> str:
    """What of the product decides how a memory is stored."""
    sources = "".join(Path(str(module.__file__)).read_text() for module in _SHAPES)
    return hashlib.sha256((sources + Path(__file__).read_text()).encode()).hexdigest()[:12]


def _by_time(given: RetrievalSet) -> Iterator[tuple[str, Document]]:
    """Every document in the order of its time; one without a time follows the one before."""
    placed: list[tuple[str, int, str, Document]] = []
    for corpus, documents in given.corpora.items():
        at = ""
        for nth, document in enumerate(documents):
            at = max(at, _instant(document) or "")
            placed.append((at, nth, corpus, document))
    for _, _, corpus, document in sorted(placed, key=lambda each: each[:3]):
        yield corpus, document


def _instant(document: Document) -> Instant | None:
    try:
        return parse_instant(document.ts, "ts") if document.ts else None
    except InvalidError:
        return None


class _Writer:
    """Writes one corpus."""

    def __init__(self, built: Built, corpus: str) -> None:
        self._built = built
        self._corpus = corpus
        self._sessions: dict[str, str] = {}
        self._before: dict[str, str] = {}

    def write(self, document: Document) -> None:
        built = self._built
        # The log's time never goes back, nor does the set's.
        built.clock.at = max(_instant(document) or _BEGINNING, built.clock.at)
        parent = self._session(document)
        before = self._before.get(document.session) if document.session else None
        made = built.memory.adding.add_node(
            "note",
            Fields(document.title or None, document.text),
            parent=parent,
            relations=[f"sequel_to:{before}"] if before else (),
            workspace=self._corpus,
        )
        if document.session:
            self._before[document.session] = made.id
        built.ids[made.id] = document.id
        built.last[self._corpus] = built.clock.at

    def _session(self, document: Document) -> str | None:
        if not document.session:
            return None
        if document.session not in self._sessions:
            made = self._built.memory.adding.add_node(
                "session",
                Fields(f"Session {document.session}, {document.date or document.ts}".strip(", ")),
                workspace=self._corpus,
            )
            self._sessions[document.session] = made.id
        return self._sessions[document.session]


def _wait(memory: Memory) -> None:
    while memory.indexing.wait(None, 60.0):
        if memory.indexing.problem:
            raise SystemExit(f"embedding failed: {memory.indexing.problem}")
        time.sleep(0.1)
