"""What a search is asked and what it answers: the values between search and its faces."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from cortex.domain.instants import Instant
from cortex.domain.taxonomy import Layer, NodeType, layer_of
from cortex.domain.values import Node, NodeId
from cortex.services.retrieval.context import Context, Place

MOST_WITHHELD: Final = 20


@dataclass(frozen=True, slots=True)
class Where:
    """Filters of a search; empty admits all. Instants are inclusive."""

    types: frozenset[NodeType] = frozenset()
    layer: Layer | None = None
    tags: frozenset[str] = frozenset()
    start: Instant | None = None
    stop: Instant | None = None

    def admits(self, node: Node) -> bool:
        """Whether the node passes every filter."""
        return (
            (not self.types or node.type in self.types)
            and (self.layer is None or layer_of(node.type) is self.layer)
            and self.tags <= set(node.tags)
            and (self.start is None or node.created_at >= self.start)
            and (self.stop is None or node.created_at <= self.stop)
        )


EVERYTHING: Final = Where()


class Window(NamedTuple):
    """The time that a question asks for: `words` of it, and the span, inclusive, that they
    mean; `newest` where it asks for the latest of what fits."""

    start: Instant | None
    stop: Instant | None
    words: str
    newest: bool = False


@dataclass(frozen=True, slots=True)
class Withheld:
    """How many were left out for one reason, and the first of them."""

    count: int
    ids: tuple[NodeId, ...]


@dataclass(frozen=True, slots=True)
class Hit:
    """A memory that answers.

    `score` orders the hits of one answer; `scores` and `ranks` are what each perspective
    gave, ranks from 1; `boosts` what each further signal added to the score. `chunk` is the
    passage that matched; `via` the stale node whose wording matched, where the hit is the
    head that replaced it. `merged` say nearly the same and stand behind this one, which is
    `cross_validated` by them.
    """

    node: Node
    score: float
    scores: Mapping[str, float]
    chunk: int
    via: Node | None = None
    ranks: Mapping[str, int] = field(default_factory=dict)
    boosts: Mapping[str, float] = field(default_factory=dict)
    merged: tuple[Node, ...] = ()

    @property
    def cross_validated(self) -> bool:
        """Whether another memory says nearly the same."""
        return bool(self.merged)


@dataclass(frozen=True, slots=True)
class Found:
    """Hits best first, ties by id.

    `total` counts hits before the cut at top_k; `degraded` says which perspective could not
    be asked, and why; `pending` how many texts are not in the vector index yet; `withheld`
    what was left out, by reason; `empty` that there are no hits because nothing is indexed
    where it looked; `ranks` each perspective's position of each candidate, from 1; `window`
    the time that the question asks for; `shares` what each perspective had of a fused score.
    """

    hits: tuple[Hit, ...]
    total: int
    degraded: str | None
    pending: int
    withheld: Mapping[str, Withheld]
    generation: int
    contexts: tuple[Context, ...] = ()
    files: tuple[Place, ...] = ()
    empty: bool = False
    notes: tuple[str, ...] = ()
    ranks: Mapping[str, Mapping[NodeId, int]] = field(default_factory=dict)
    window: Window | None = None
    shares: Mapping[str, float] = field(default_factory=dict)
