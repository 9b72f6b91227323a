"""Queries composed of triples by hypervectors: roles, relations, analogies.

Idea: the triples around a node are one vector of 10,000 ±1 (100 a bundle). Two known places
unbind the third: "what does X use", "what uses X", "how are X and Y related". An analogy is two
such questions: which steps lead from a to b, then where the same steps lead from c. Where no
relation joins a and b, steps over one node between them are tried.

Cost: only the nodes in question are encoded, never the workspace; 1,000 triples a node, 32 nodes
between. Corners: what is below 5 deviations of noise is no answer; several right answers have
equal expected similarity, so their order among each other means nothing; nothing is found that
the graph does not say, and what chance recalls is told by `confirmed`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from cortex.domain.errors import AmbiguousError, InvalidError, NotFoundError
from cortex.domain.taxonomy import Status
from cortex.domain.values import Node, WorkspaceId, is_id, shorten
from cortex.services.composition.patterns import Pattern, Recalled, follow, patterns_between
from cortex.services.composition.triples import Around, around, verb_name
from cortex.services.composition.unbinding import Step, Unbinding
from cortex.services.engine import Engine
from cortex.services.resolving import describe, resolve_node
from cortex.store.database import Snapshot
from cortex.store.folding import fold
from cortex.vectors.hypervectors import THRESHOLD, Codebook

MOST_ANSWERS: Final = 50
_MOST_STEPS: Final = 3
_TITLED: Final = 50
_FORMS: Final = (
    "Valid: a and relation (what?); relation and b (who?); a and b (how related?); "
    "a, b and c (what is to c as b is to a?)"
)


@dataclass(frozen=True, slots=True)
class Composition:
    """Answers: confirmed first, stale last, then by similarity, then id.

    `asked` are the nodes that a, b and c name; `patterns` the steps that were found from a to b;
    `why` says in a sentence why there is no answer. `truncated` where a node had more triples
    than are encoded, or there are more answers than were asked for.
    """

    asked: tuple[Node | None, Node | None, Node | None]
    patterns: tuple[Pattern, ...]
    answers: tuple[Recalled, ...]
    total: int
    threshold: float
    why: str
    truncated: bool
    workspace_id: WorkspaceId
    generation: int


class Composing:
    """Encodes triples as hypervectors and answers from them."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self.book = Codebook()

    def compose(
        self,
        a: str = "",
        b: str = "",
        c: str = "",
        relation: str = "",
        *,
        limit: int = 10,
        workspace: str | None = None,
    ) -> Composition:
        """Complete a triple or an analogy; references are ids, prefixes, paths or titles.

        a and relation ask for objects, relation and b for subjects, a and b for what joins
        them, a, b and c for what is to c as b is to a (of that relation alone, if given). A
        relation is a type or the label of a `related_to`; "uses, <uses" are two steps, the
        second one walked back. Similarities lie in [0.05, 1]. Raises InvalidError for another
        combination, NotFoundError and AmbiguousError for a reference.
        """
        if not 1 <= limit <= MOST_ANSWERS:
            raise InvalidError(f"limit is {limit}", f"Valid: 1 to {MOST_ANSWERS}", "Correct it")
        asked = _steps(relation)
        with self._engine.database.read() as snapshot:
            place, nodes = self._resolve(snapshot, (a, b, c), workspace)
            unbinding = Unbinding(snapshot, self.book)
            patterns: list[Pattern] = []
            answers: list[Recalled] = []
            match nodes:
                case (Node() as start, None, None) if asked:
                    answers = follow(snapshot, unbinding, start, [asked])
                case (None, Node() as start, None) if asked:
                    turned = tuple(Step(step.verb, not step.back) for step in reversed(asked))
                    answers = follow(snapshot, unbinding, start, [turned])
                case (Node() as first, Node() as last, third):
                    patterns = patterns_between(snapshot, unbinding, first, last, asked)
                    if third is not None:
                        steps = [pattern.steps for pattern in patterns]
                        answers = follow(snapshot, unbinding, third, steps)
                case _:
                    raise InvalidError("compose cannot tell what is asked", _FORMS, "Name these")
            truncated = unbinding.truncated or len(answers) > limit
            found = bool(answers) or (bool(patterns) and nodes[2] is None)
            return Composition(
                nodes,
                tuple(patterns),
                tuple(answers[:limit]),
                len(answers),
                THRESHOLD,
                "" if found else _why_none(unbinding, nodes, patterns),
                truncated,
                place,
                snapshot.generation().seq,
            )

    def record(self, reference: str, *, workspace: str | None = None) -> Around:
        """The triples around one node, and their bundles: (bundles, 10,000) of ±1."""
        with self._engine.database.read() as snapshot:
            _, (node, *_) = self._resolve(snapshot, (reference, "", ""), workspace)
            if node is None:
                raise InvalidError("no node is named", "Valid: an id, a prefix, a title")
            return around(snapshot, self.book, node.id)

    def iter_records(self, workspace: str | None = None, *, batch: int = 200) -> Iterator[Around]:
        """A whole workspace, encoded node by node, by rising key; a transaction a batch."""
        place = self._engine.workspace(workspace)
        after = 0
        while True:
            with self._engine.database.read() as snapshot:
                page = snapshot.nodes.page(place, after, batch)
                records = [around(snapshot, self.book, node.id) for node in page]
            yield from records
            if len(page) < batch:
                return
            after = page[-1].key

    def _resolve(
        self, snapshot: Snapshot, references: tuple[str, str, str], workspace: str | None
    ) -> tuple[WorkspaceId, tuple[Node | None, Node | None, Node | None]]:
        """The nodes, all of the first one's workspace."""
        place, strict = self._engine.workspace(workspace), workspace is not None
        nodes: list[Node | None] = []
        for reference in references:
            if not reference.strip():
                nodes.append(None)
                continue
            node = _named(snapshot, reference, place, strict)
            nodes.append(node)
            place, strict = node.workspace_id, True
        return place, (nodes[0], nodes[1], nodes[2])


def _steps(relation: str) -> tuple[Step, ...]:
    """The relation as it was asked for: verbs with commas between, each `<` one walked back."""
    parts = [part.strip() for part in relation.split(",") if part.strip()]
    steps = tuple(Step(verb_name(part.lstrip("<")), part.startswith("<")) for part in parts)
    if len(steps) > _MOST_STEPS or not all(step.verb for step in steps):
        raise InvalidError(
            f"relation {relation!r} is no chain of verbs",
            f"Valid: up to {_MOST_STEPS}, as in 'uses, <depends_on'",
            "Correct it",
        )
    return steps


def _why_none(
    unbinding: Unbinding, nodes: Sequence[Node | None], patterns: Sequence[Pattern]
) -> str:
    """Why there is no answer, with what is known instead."""
    first, last, third = nodes
    if first is not None and last is not None and not patterns:
        return "No relation joins a and b, nor do two over one node between them"
    asked = third or first or last
    assert asked is not None  # every form names a node
    verbs = sorted({each.verb for each in unbinding.around(asked.id).triples})
    if not verbs:
        return f"Nothing is related to {describe(asked)}"
    return f"Nothing stands there. The relations of {describe(asked)}: {', '.join(verbs[:20])}"


def _named(snapshot: Snapshot, reference: str, place: WorkspaceId, strict: bool) -> Node:
    """By id, prefix or path, else by its title in whatever case."""
    try:
        return resolve_node(snapshot, reference, place, strict=strict)
    except (NotFoundError, InvalidError) as error:
        if is_id(reference.strip().lower()):
            raise
        hits = snapshot.keywords.search(reference, [place], _TITLED)
        nodes = snapshot.nodes.by_ids([hit.node_id for hit in hits])
        named = [node for node in nodes if fold(node.title) == fold(reference.strip())]
        named = [node for node in named if node.status is not Status.STALE] or named
        if not named:
            raise NotFoundError(
                f"no node is called {shorten(reference, 80)!r} in workspace {place!r}",
                "Valid: an id, a prefix of 8 or more characters, a file's path, a whole title",
                "Find it with graph_search",
            ) from error
    if len(named) > 1:
        raise AmbiguousError(
            f"{len(named)} nodes are called {reference.strip()!r}",
            "Candidates: " + "; ".join(f"{node.id} {node.type}" for node in named[:5]),
            "Give the id",
        )
    return named[0]
