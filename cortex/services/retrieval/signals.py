"""What lifts a candidate beside the perspectives: its name, its neighbours, its container.

Names: the question says the whole title of a node — a speaker, a module, a person.
Neighbours: what stands one or two relations from a good candidate; in a conversation the
answer is often the turn beside the one that matches. Containers: another good candidate in
the same task, session or document. Each lift is a chance that the node answers after all,
so they add up as chances do, s ← 1 − (1 − s)(1 − lift), and a score stays within [0, 1].

Only the 30 best candidates lift others, so the cost is bounded: two statements over at
most 30 × 16 relations each. A node with many relations says little of each: what it gives is
halved among four, and one with more than 16 gives nothing. Derived relations give nothing,
nor does a session root, in which everything lies.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from cortex.domain.chunking import CHUNK_SIZE
from cortex.domain.taxonomy import NodeType
from cortex.domain.values import Node, NodeId
from cortex.services.retrieval.ranking import ordered
from cortex.store.database import Snapshot
from cortex.store.folding import fold
from cortex.store.tokens import STOP_WORDS

NAMES: Final = "names"
NEIGHBOURS: Final = "neighbours"
CONTAINER: Final = "container"

_NAMED: Final = 0.2
_NEAR: Final = 0.2
_NEXT: Final = 0.1
_WITHIN: Final = 0.4
_SOURCES: Final = 30
_HUB: Final = 16
_PLAIN: Final = 2  # relations of a node in a chain, whose neighbours get the whole lift
_WORD: Final = re.compile(r"\w+")
_LONGEST_NAME: Final = 80
_SPEAKERS: Final = ("speaker", "author", "name")


@dataclass(frozen=True, slots=True)
class Signals:
    """Which signals are used, and whether hits that repeat each other are merged."""

    names: bool = True
    neighbours: bool = True
    containers: bool = True
    repeats: bool = True


NO_SIGNALS: Final = Signals(False, False, False, False)
Boosts = dict[NodeId, dict[str, float]]


def lift(
    snapshot: Snapshot,
    question: str,
    scores: Mapping[NodeId, float],
    nodes: dict[NodeId, Node],
    signals: Signals,
) -> tuple[dict[NodeId, float], Boosts]:
    """The scores after every signal, and what each added to whom.

    `nodes` are the candidates that exist. Of what was no candidate only the turns before and
    after one may come in, into `nodes` as well; other neighbours are shown as the context of
    a hit.
    """
    lifted = {key: score for key, score in scores.items() if key in nodes}
    boosts: Boosts = {}
    if signals.names:
        said = frozenset(_WORD.findall(fold(question)))
        for key, score in lifted.items():
            if _names(nodes[key], said):
                _raise(lifted, boosts, key, NAMES, _NAMED * score)
    sources = [(key, score) for key, score in ordered(lifted)[:_SOURCES] if score > 0]
    if signals.neighbours:
        for key, kept in _from_neighbours(snapshot, sources, nodes).items():
            _raise(lifted, boosts, key, NEIGHBOURS, 1 - kept)
    if signals.containers:
        for key, best in _from_containers(snapshot, sources, lifted, nodes).items():
            _raise(lifted, boosts, key, CONTAINER, _WITHIN * best)
    return lifted, boosts


def _raise(
    scores: dict[NodeId, float], boosts: Boosts, key: NodeId, signal: str, chance: float
) -> None:
    score = scores.get(key, 0.0)
    scores[key] = 1 - (1 - score) * (1 - chance)
    boosts.setdefault(key, {})[signal] = scores[key] - score


def _names(node: Node, said: frozenset[str]) -> bool:
    """Whether the question says the node's whole title, or who it says spoke."""
    for field in ("title", *_SPEAKERS):
        name = node.data.get(field)
        if isinstance(name, str) and 0 < len(name) <= _LONGEST_NAME:
            words = set(_WORD.findall(fold(name))) - STOP_WORDS
            if words and words <= said:
                return True
    return False


def _from_neighbours(
    snapshot: Snapshot, sources: Sequence[tuple[NodeId, float]], nodes: dict[NodeId, Node]
) -> dict[NodeId, float]:
    """For each node near a source, the chance that no lift reaches it; `nodes` gains those
    that come in."""
    near = snapshot.relations.around([key for key, _ in sources], _HUB)
    middle = list(dict.fromkeys(far for each in near.values() for far in each if far not in near))
    beyond = near | snapshot.relations.around(middle, _HUB)
    reached = list(_reached(sources, near, beyond, nodes))
    coming = dict.fromkeys(key for key, _ in reached if key not in nodes)
    nodes.update({node.id: node for node in snapshot.nodes.by_ids(list(coming))})
    kept: dict[NodeId, float] = {}
    for key, chance in reached:
        if key in nodes:
            # A short turn is explained by its neighbours; a long text stands for itself.
            brief = 1 / (1 + len(nodes[key].text) / CHUNK_SIZE)
            kept[key] = kept.get(key, 1.0) * (1 - brief * chance)
    return kept


def _reached(
    sources: Sequence[tuple[NodeId, float]],
    near: Mapping[NodeId, Mapping[NodeId, bool]],
    beyond: Mapping[NodeId, Mapping[NodeId, bool]],
    known: Container[NodeId],
) -> Iterator[tuple[NodeId, float]]:
    """Whom each source lifts, one and two relations away, and by how much."""
    for source, score in sources:
        first = near.get(source, {})
        seen = {source, *first}
        share = _share(first)
        for far, follows in first.items():
            if follows or far in known:
                yield far, _NEAR * share * score
            following = beyond.get(far, {})
            for end, on in following.items():
                if end not in seen and ((follows and on) or end in known):
                    seen.add(end)
                    yield end, _NEXT * share * _share(following) * score


def _share(near: Collection[NodeId]) -> float:
    return min(1.0, _PLAIN / len(near)) if near else 0.0


def _from_containers(
    snapshot: Snapshot,
    sources: Iterable[tuple[NodeId, float]],
    scores: Mapping[NodeId, float],
    nodes: Mapping[NodeId, Node],
) -> dict[NodeId, float]:
    """For each candidate, the best other source of its container, or the container itself."""
    best: dict[NodeId, list[tuple[float, NodeId]]] = {}
    for key, score in sources:
        node = nodes[key]
        for place in (node.parent_id, key):
            if place is not None:
                best.setdefault(place, []).append((score, key))
    parents = {node.parent_id for node in nodes.values()} & best.keys()
    places = {
        place.id
        for place in snapshot.nodes.by_ids([key for key in parents if key is not None])
        if place.type is not NodeType.SESSION or place.parent_id is not None
    }
    found: dict[NodeId, float] = {}
    for key in scores:
        node_at = nodes.get(key)
        if node_at is not None and node_at.parent_id in places:
            others = [score for score, other in best[node_at.parent_id] if other != key]
            if others:
                found[key] = max(others)
    return found
