"""The steps that lead from one node to another, and where steps lead from a third.

Idea: unbind the verb between two nodes, either way; where no relation joins them, the two verbs
over one node between them. Then walk the same verbs from elsewhere, each by unbinding. Cost: at
most 32 nodes between, 8 patterns, 16 nodes carried on from step to step. Corners: a session, and
whatever has over 100 relations, is nothing between: it would join everything with everything.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from cortex.domain.errors import InvalidError
from cortex.domain.taxonomy import NodeType, Status
from cortex.domain.values import Node, NodeId, RelationId
from cortex.services.composition.unbinding import Hop, Step, Unbinding
from cortex.store.database import Snapshot
from cortex.vectors.hypervectors import CAPACITY

_BETWEEN: Final = 32
_PATTERNS: Final = 8
_FRONTIER: Final = 16


@dataclass(frozen=True, slots=True)
class Pattern:
    """Steps from one node to another, and how surely.

    `similarity` in [0.05, 1] and `margin` over what was not recalled are those of the weakest
    step; `evidence` has a relation for each step, None where the graph does not say it.
    """

    steps: tuple[Step, ...]
    similarity: float
    margin: float
    evidence: tuple[RelationId | None, ...]

    @property
    def confirmed(self) -> bool:
        return None not in self.evidence


@dataclass(frozen=True, slots=True)
class Recalled:
    """A node that completes the question, and the steps that led to it."""

    node: Node
    pattern: Pattern


def follow(
    snapshot: Snapshot,
    unbinding: Unbinding,
    start: Node,
    patterns: Sequence[tuple[Step, ...]],
) -> list[Recalled]:
    """Where the steps lead from a node; each node by its best pattern."""
    best: dict[NodeId, Pattern] = {}
    for steps in patterns:
        chains: list[tuple[Hop, ...]] = [()]
        for step in steps:
            if len(chains) > _FRONTIER:
                unbinding.truncated = True
            chains = [
                (*chain, hop)
                for chain in chains[:_FRONTIER]
                for hop in unbinding.nodes(chain[-1].node if chain else start.id, step)
                if hop.node != start.id
            ]
        for chain in chains:
            node, pattern = chain[-1].node, _pattern(chain)
            if node not in best or _rank(pattern) < _rank(best[node]):
                best[node] = pattern
    nodes = snapshot.nodes.by_ids(list(best))
    return sorted(
        (Recalled(node, best[node.id]) for node in nodes),
        key=lambda each: (
            not each.pattern.confirmed,
            each.node.status is Status.STALE,
            -each.pattern.similarity,
            each.node.id,
        ),
    )


def _pattern(chain: Sequence[Hop]) -> Pattern:
    """A chain is as sure as its weakest hop."""
    return Pattern(
        tuple(hop.step for hop in chain),
        min(hop.similarity for hop in chain),
        min(hop.margin for hop in chain),
        tuple(hop.evidence for hop in chain),
    )


def _rank(pattern: Pattern) -> tuple[bool, int, float, tuple[Step, ...]]:
    return (not pattern.confirmed, len(pattern.steps), -pattern.similarity, pattern.steps)


def patterns_between(
    snapshot: Snapshot, unbinding: Unbinding, first: Node, last: Node, asked: tuple[Step, ...]
) -> list[Pattern]:
    """The steps from one node to the other, confirmed ones first, then the nearest."""
    if len(asked) > 1:
        raise InvalidError(
            "several steps cannot be asked for between two nodes",
            "Valid: one relation, or none",
            "Leave relation out",
        )
    verb = asked[0].verb if asked else ""
    direct = [_pattern((hop,)) for hop in unbinding.steps(first.id, last.id, verb)]
    confirmed = [pattern for pattern in direct if pattern.confirmed]
    if confirmed or verb:
        return sorted(confirmed or direct, key=_rank)[:_PATTERNS]
    best: dict[tuple[Step, ...], Pattern] = {}
    for between in _between(snapshot, unbinding, first, last):
        for near in unbinding.steps(first.id, between):
            for far in unbinding.steps(between, last.id):
                pattern = _pattern((near, far))
                known = best.get(pattern.steps)
                if known is None or _rank(pattern) < _rank(known):
                    best[pattern.steps] = pattern
    through = sorted((each for each in best.values() if each.confirmed), key=_rank)
    return (through or direct)[:_PATTERNS]


def _between(snapshot: Snapshot, unbinding: Unbinding, first: Node, last: Node) -> Iterator[NodeId]:
    """Nodes beside whichever end has fewer relations; no session, nor what joins everything."""
    degree = snapshot.relations.degree
    end, far = (first, last) if degree(first.id) <= degree(last.id) else (last, first)
    others = [other for other in unbinding.around(end.id).others() if other != far.id]
    if len(others) > _BETWEEN:
        unbinding.truncated = True
    for node in snapshot.nodes.by_ids(others[:_BETWEEN]):
        if node.type is not NodeType.SESSION and degree(node.id) <= CAPACITY:
            yield node.id
