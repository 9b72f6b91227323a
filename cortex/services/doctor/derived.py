"""Checks of what is derived: keyword index, outbox and vectors beside the nodes.

One walk over the nodes, a span of keys in a transaction of its own, so that no reader holds
the write-ahead log for long. What a foreign shell changed since the last write of cortex is
not yet derived, and not expected to be.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Final

import numpy as np

from cortex.domain.chunking import chunk
from cortex.domain.errors import CortexError
from cortex.domain.values import Node, text_hash
from cortex.services.doctor.findings import BY_FIX, Case, Finding, State, fine, found, skipped
from cortex.services.meaning.semantic import model_key, refuse_other_model
from cortex.store.database import Snapshot
from cortex.store.derive import has_vector
from cortex.store.integrity_derived import (
    OwedRow,
    Span,
    VectorRow,
    keyword_problem,
    keyword_rows_of,
)
from cortex.store.meta import DERIVED_SEQ, FINGERPRINT
from cortex.vectors.models import Fingerprint

_SPAN: Final = 500
_REINDEX: Final = "cortex reindex"
_NONE_YET: Final = "no text is embedded yet"


class Walk:
    """What one walk over all nodes finds, by node key."""

    def __init__(self, case: Case) -> None:
        self._case = case
        self.keywords: dict[int, str] = {}
        self.outbox: dict[int, str] = {}
        self.vectors: dict[int, str] = {}
        self.states: Counter[str] = Counter()
        self.other_models: Counter[str] = Counter()
        self.nodes = self.rows = self.stored = self.late = 0
        self.why = ""
        fingerprint = stored_fingerprint(case)
        self._model = None if fingerprint is None else model_key(fingerprint)
        self._bytes = 0 if fingerprint is None else 2 * fingerprint.dimension

    def run(self) -> Walk:
        first = 0
        with self._case.engine.database.read() as snapshot:
            total = snapshot.integrity.counts()[0]
        while True:
            with self._case.engine.database.read() as snapshot:
                span = snapshot.derived_audit.span(first, _SPAN)
                late = _late(snapshot, span)
            self._look(span, late)
            self._case.step(self.nodes, total)
            if not span.nodes:
                return self
            first = span.stop

    def _look(self, span: Span, late: set[int]) -> None:
        self.late += len(late)
        nodes = {node.key: node for node in span.nodes}
        self.nodes += len(nodes)
        keys = {*nodes, *span.keywords, *span.owed, *span.vectors} - late
        for key in sorted(keys):
            node = nodes.get(key)
            self._look_at_keywords(key, node, span.keywords.get(key, []))
            owed, vectors = span.owed.get(key), span.vectors.get(key, [])
            self._look_at_outbox(key, node, owed)
            self._look_at_vectors(key, node, owed, vectors)

    def _look_at_keywords(
        self, key: int, node: Node | None, rows: Sequence[tuple[str, str]]
    ) -> None:
        self.rows += len(rows)
        wanted = [] if node is None else keyword_rows_of(node)
        if rows != wanted:
            self.keywords[key] = f"{_name(key, node)}: {_differ(rows, wanted)}"

    def _look_at_outbox(self, key: int, node: Node | None, owed: OwedRow | None) -> None:
        if owed is not None:
            self.states[owed.state] += 1
            if owed.state == "failed":
                self.why = owed.problem or self.why
        if node is None or not has_vector(node):
            if owed is not None and node is not None:
                self.outbox[key] = f"{_name(key, node)}: owes a vector that it is not to have"
            return
        wanted = (node.workspace_id, text_hash(_title(node), node.text))
        if owed is None:
            self.outbox[key] = f"{_name(key, node)}: its text is not in the outbox"
        elif (owed.workspace, owed.text_hash) != wanted:
            self.outbox[key] = f"{_name(key, node)}: the outbox has another text of it"

    def _look_at_vectors(
        self, key: int, node: Node | None, owed: OwedRow | None, rows: Sequence[VectorRow]
    ) -> None:
        own = [row for row in rows if row.model == self._model]
        self.stored += len(own)
        if node is None:
            return  # told by the foreign keys
        self.other_models.update(row.model for row in rows if row.model != self._model)
        if self._model is None:
            return
        if not has_vector(node):
            if rows:
                self.vectors[key] = f"{_name(key, node)}: has vectors, and nothing to embed"
            return
        if owed is None or owed.state != "ready" or key in self.outbox:
            return  # what is still owed may have none, or those of an older text
        wrong = self._wrong(node, owed, own)
        if wrong:
            self.vectors[key] = f"{_name(key, node)}: {wrong}"

    def _wrong(self, node: Node, owed: OwedRow, rows: Sequence[VectorRow]) -> str:
        wanted = len(chunk(node.text, _title(node)))
        if not rows:
            return "is ready, and has no vector"
        if any(row.text_hash != owed.text_hash for row in rows):
            return "its vectors are of another text"
        if [row.chunk for row in rows] != list(range(wanted)):
            return f"has {len(rows)} vectors for {wanted} chunks"
        if any(len(row.vector) != self._bytes for row in rows):
            return "a vector is of another dimension"
        values = np.frombuffer(b"".join(row.vector for row in rows), np.float16)
        lengths = np.abs(values.reshape(wanted, -1)).max(axis=1)
        return "" if np.isfinite(lengths).all() and lengths.all() else "a vector is no direction"

    # ── what it comes to ──────────────────────────────────────────────────────────────────

    def findings(self) -> list[Finding]:
        return [self._keywords(), self._outbox(), self._vectors()]

    def _keywords(self) -> Finding:
        problem = keyword_problem(self._case.engine.database.path)
        wrong = [*([f"FTS5: {problem}"] if problem else []), *self.keywords.values()]
        if wrong:
            said = "the keyword index is not of the present texts"
            rows = [(problem is not None, list(self.keywords))]
            return found("keywords", wrong, said, BY_FIX, rows=rows)
        return fine("keywords", self.rows, f"FTS5 = store, {self._later()}")

    def _outbox(self) -> Finding:
        if self.outbox:
            said = "the outbox is not of the present texts"
            return found("outbox", self.outbox.values(), said, BY_FIX, rows=list(self.outbox))
        if self.states["failed"]:
            failed = [f"{self.states['failed']} texts, the last for: {self.why}"]
            said = "a text could not be embedded; it is tried again by itself"
            return found("outbox", failed, said, _REINDEX, state=State.WARNING)
        states = ", ".join(f"{self.states[state]} {state}" for state in ("ready", "pending"))
        return fine("outbox", sum(self.states.values()), f"{states}, {self._later()}")

    def _vectors(self) -> Finding:
        if self._model is None:
            why = "it is not known of which model they are" if self.other_models else _NONE_YET
            return skipped("vectors", why)
        if self.vectors:
            said = "vectors are not of the present texts"
            return found("vectors", self.vectors.values(), said, BY_FIX, rows=list(self.vectors))
        if self.other_models:
            others = [f"{count} of {model}" for model, count in sorted(self.other_models.items())]
            said = "vectors of another model; a migration was interrupted"
            return found("vectors", others, said, _REINDEX, state=State.WARNING)
        return fine("vectors", self.stored, "model, text and chunks of every ready node")

    def _later(self) -> str:
        if not self.late:
            return "up to date"
        return f"{self.late} changed by a shell, followed at the next write"


def _late(snapshot: Snapshot, span: Span) -> set[int]:
    """Keys of the span that the log names and nothing has followed yet."""
    since = int(snapshot.meta.find(DERIVED_SEQ) or 0)
    touched = set(snapshot.changes.touched_nodes(since))
    return touched.intersection(
        (*(node.key for node in span.nodes), *span.keywords, *span.owed, *span.vectors)
    )


def _name(key: int, node: Node | None) -> str:
    return f"key {key}, which is no node" if node is None else f"node {node.id}"


def _title(node: Node) -> str:
    title = node.data.get("title")
    return title if isinstance(title, str) else ""


def _differ(rows: Sequence[tuple[str, str]], wanted: Sequence[tuple[str, str]]) -> str:
    if len(rows) != len(wanted):
        return f"{len(rows)} rows in place of {len(wanted)}"
    nth = next(n for n, (row, want) in enumerate(zip(rows, wanted, strict=True)) if row != want)
    return f"row {nth} has other words"


def stored_fingerprint(case: Case) -> Fingerprint | None:
    """Of which model the file's vectors are; None where it says none that can be read."""
    with case.engine.database.read() as snapshot:
        text = snapshot.meta.find(FINGERPRINT)
    try:
        return None if text is None else Fingerprint.parse(text)
    except CortexError:
        return None


def check_fingerprint(case: Case) -> Finding:
    """The file says of which model its vectors are, and this process has that very model."""
    with case.engine.database.read() as snapshot:
        text = snapshot.meta.find(FINGERPRINT)
        stored = snapshot.embeddings.models()
        source = case.semantic.source(snapshot)
    if text is None:
        if stored:
            wrong = [f"vectors of {count} nodes, and no model" for count in stored.values()]
            return found("fingerprint", wrong, "the vectors' model is unknown", _REINDEX)
        return skipped("fingerprint", _NONE_YET)
    try:
        ours = Fingerprint.parse(text)
    except CortexError as error:
        return found("fingerprint", [error.message], "the model's name is unreadable", _REINDEX)
    try:
        refuse_other_model(source, text, case.semantic.embedder(source))
    except CortexError as error:
        said = "meaning is not searched until this is settled"
        mend = f"{_REINDEX} --model {source}"
        return found("fingerprint", [error.message], said, mend, state=State.WARNING)
    return fine("fingerprint", 1, str(ours))
