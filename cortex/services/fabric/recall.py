"""recall: parse → query → normalise → merge → boost → rank, each step to be looked at.

1. The question is parsed to words, entity hints and an intent.
2. The default search ranks candidates; where hints name nodes of the graph, what lies
   within two hops of them comes beside.
3. Candidates take one form, `Recollection`: the text, a relevance in [0, 1], entities.
4. Texts more than 85 % alike become one, the more relevant; it is cross-validated.
5. What mentions an entity that exists elsewhere in the graph is 1.2 times as relevant.
6. recency^0.3 · relevance^0.5 · authority^0.2 (`scoring.py`) orders them; ties by id.

Cost: one search, the hops, about 0.3 ms a candidate and 1 ms a result.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from rapidfuzz import fuzz

from cortex.domain.errors import InvalidError
from cortex.domain.instants import Instant
from cortex.domain.taxonomy import NodeType, Status
from cortex.domain.values import Node, NodeId, WorkspaceId
from cortex.services.engine import Engine
from cortex.services.fabric.hops import reached
from cortex.services.fabric.mentions import graph_names, mentions_of
from cortex.services.fabric.neighbors import Named, relations_of
from cortex.services.fabric.parsing import NODE_TYPES, Intent, Parsed, parse
from cortex.services.fabric.scoring import authority, recency, relevance, score
from cortex.services.fabric.shapes import file_shape
from cortex.services.fabric.vocabulary import GraphNames, Names
from cortex.services.fabric.words import fold_name, iter_sentences
from cortex.services.history import History
from cortex.services.resolving import head_of
from cortex.services.retrieval.found import Found, Hit, Withheld
from cortex.services.retrieval.search import Search
from cortex.store.database import Snapshot

MOST: Final = 100
_POOL: Final = 30
_ALIKE: Final = 85.0
_COMPARED: Final = 2_000
_READ: Final = 1_000
_SHOWN_ENTITIES: Final = 8
_BEARERS: Final = 4
_NAME: Final = 80


@dataclass(frozen=True, slots=True)
class Recollection:
    """One result. `share` is its search score over the best one's, `nearness` its place in the
    graph, both in [0, 1]; `factors` are recency, relevance and authority; `entities` names, its
    own first; `elsewhere` those of them that the graph has beyond this memory; `merged` memories
    that say the same."""

    hit: Hit
    share: float
    nearness: float = 0.0
    entities: tuple[str, ...] = ()
    elsewhere: tuple[str, ...] = ()
    relations: tuple[Named, ...] = ()
    merged: tuple[Node, ...] = ()
    factors: Mapping[str, float] = field(default_factory=dict)
    score: float = 0.0

    @property
    def node(self) -> Node:
        return self.hit.node

    @property
    def text(self) -> str:
        """The whole text; of a node without one its title."""
        return self.node.text or self.node.title


@dataclass(frozen=True, slots=True)
class Recalled:
    """Results best first, the caller's own workspace before others; `candidates` before the
    cut, and what the search said of itself."""

    query: str
    parsed: Parsed
    results: tuple[Recollection, ...]
    candidates: int
    linked: Mapping[str, tuple[NodeId, ...]]
    weights: Mapping[str, float]
    degraded: str | None
    pending: int
    empty: bool
    withheld: Mapping[str, Withheld]
    notes: tuple[str, ...]
    generation: int


class Recall:
    """Answers questions by the fabric's pipeline."""

    def __init__(self, engine: Engine, search: Search, history: History, names: GraphNames) -> None:
        self._engine = engine
        self._search = search
        self._history = history
        self._names = names

    def recall(self, query: str, limit: int = 10, *, workspace: str | None = None) -> Recalled:
        """The memories that answer, best first. Raises InvalidError for a limit below 1."""
        if not 1 <= limit <= MOST:
            raise InvalidError(
                f"limit {limit} is out of range", f"Valid: 1 to {MOST}", "Correct it"
            )
        settings = self._engine.settings
        scope = self._engine.scope(workspace)
        home = scope or settings.workspace
        found = self._search.rank(query, top_k=max(_POOL, 2 * limit), workspace=workspace)
        with self._engine.database.read() as snapshot:
            names = self._names.of(snapshot, home)
            parsed = parse(query, names)
            linked = _linked(snapshot, home, parsed, names)
            near = reached(snapshot, linked)
            candidates = _normalised(found, near, _hits(snapshot, found, near))
            candidates = _merged(candidates)
            candidates = self._mentioning(snapshot, candidates)
            newest = snapshot.changes.last()
            weights = settings.recall_weights
            ranked = sorted(
                (
                    _scored(
                        each,
                        parsed.intent,
                        newest[1] if newest else each.node.created_at,
                        settings.recall_half_life,
                        weights,
                    )
                    for each in candidates
                ),
                key=lambda each: (-each.score, each.node.id),
            )
            chosen = [
                _shown(snapshot, each, self._names.of(snapshot, each.node.workspace_id))
                for each in ranked[:limit]
            ]
        if scope is None:
            chosen.sort(key=lambda each: each.node.workspace_id != home)
        self._history.searched(home, query, chosen[0].node.id if chosen else None)
        return Recalled(
            query,
            parsed,
            tuple(chosen),
            len(ranked),
            linked,
            weights,
            found.degraded,
            found.pending,
            found.empty and not chosen,
            found.withheld,
            found.notes,
            found.generation,
        )

    def _mentioning(
        self, snapshot: Snapshot, candidates: Sequence[Recollection]
    ) -> list[Recollection]:
        """Each with the entities it mentions that exist elsewhere in the graph: as a node of
        that name, beside itself."""
        known: dict[WorkspaceId, Names] = {}
        mentioning = []
        for each in candidates:
            place = each.node.workspace_id
            if place not in known:
                known[place] = self._names.of(snapshot, place)
            mentioning.append(replace(each, elsewhere=_elsewhere(each, known[place])))
        return mentioning


def _linked(
    snapshot: Snapshot, home: WorkspaceId, parsed: Parsed, names: Names
) -> dict[str, tuple[NodeId, ...]]:
    """The nodes that bear each hint's name; else those whose name ends with it; else the file
    of that path."""
    linked: dict[str, tuple[NodeId, ...]] = {}
    for hint in parsed.entity_hints:
        folded = fold_name(hint)
        bearers = names.all(folded) or names.kinds_of(folded)
        nodes = [bearer.node_id for bearer in bearers[:_BEARERS]]
        if not nodes and file_shape(hint):
            nodes = [file.id for file in snapshot.nodes.by_path(home, hint)]
        if nodes:
            linked[hint] = tuple(nodes)
    return linked


def _hits(snapshot: Snapshot, found: Found, near: Mapping[NodeId, float]) -> list[Hit]:
    """The search's hits, then those that only the graph led to; a stale one by its head."""
    hits = {hit.node.id: hit for hit in found.hits}
    reached_only = [node for node in near if node not in hits]
    for node in snapshot.nodes.by_ids(reached_only):
        via = node if node.status is Status.STALE else None
        head = head_of(snapshot, node) if via else node
        if head.status is Status.STALE or head.type is NodeType.SESSION:
            continue
        if via and head.id == node.id:
            continue
        hits.setdefault(head.id, Hit(head, 0.0, {}, 0, via=via))
    return list(hits.values())


def _normalised(
    found: Found, near: Mapping[NodeId, float], hits: Sequence[Hit]
) -> list[Recollection]:
    best = max((hit.score for hit in found.hits), default=0.0)
    return [
        Recollection(
            hit,
            hit.score / best if best > 0 else 0.0,
            max(near.get(hit.node.id, 0.0), near.get(hit.via.id, 0.0) if hit.via else 0.0),
            merged=hit.merged,
        )
        for hit in hits
    ]


def _merged(candidates: Sequence[Recollection]) -> list[Recollection]:
    """One for those whose texts are more than 85 % alike: the more relevant, else the first."""
    kept: list[Recollection] = []
    for each in sorted(candidates, key=lambda c: (-c.share, -c.nearness, c.node.id)):
        text = each.text[:_COMPARED]
        for place, other in enumerate(kept):
            if each.node.workspace_id == other.node.workspace_id and fuzz.ratio(
                text, other.text[:_COMPARED], score_cutoff=_ALIKE
            ):
                kept[place] = replace(
                    other,
                    merged=(*other.merged, each.node, *each.merged),
                    nearness=max(other.nearness, each.nearness),
                )
                break
        else:
            kept.append(each)
    return kept


def _elsewhere(each: Recollection, names: Names) -> tuple[str, ...]:
    if not names.bearers:
        return ()
    found: dict[str, str] = {}
    for sentence in iter_sentences(_said(each)):
        for mention in graph_names(sentence.words, names):
            folded = fold_name(mention.entity.name)
            if mention.sure and any(bearer.node_id != each.node.id for bearer in names.all(folded)):
                found.setdefault(folded, mention.entity.name)
    return tuple(found.values())


def _said(each: Recollection) -> str:
    """Title and beginning of the text: what is looked through for names."""
    return f"{each.node.title}\n{each.text[:_READ]}"


def _entities(each: Recollection, names: Names) -> dict[str, str]:
    """Names by folded name: the node's own where it is an entity, then those it mentions."""
    found: dict[str, str] = {}
    node = each.node
    if node.type in (NodeType.ENTITY, NodeType.PATTERN) and len(node.title) <= _NAME:
        found[fold_name(node.title)] = node.title
    for sentence in iter_sentences(_said(each)):
        for mention in mentions_of(sentence.words, names):
            if mention.sure:
                found.setdefault(fold_name(mention.entity.name), mention.entity.name)
    return found


def _scored(
    each: Recollection,
    intent: Intent,
    newest: Instant,
    half_life: float,
    weights: Mapping[str, float],
) -> Recollection:
    node = each.node
    factors = {
        "recency": recency(node.created_at, newest, half_life),
        "relevance": relevance(each.share, boosted=bool(each.elsewhere), nearness=each.nearness),
        "authority": authority(
            node.type, wanted=node.type in NODE_TYPES[intent], confirmed=bool(each.merged)
        ),
    }
    return replace(each, factors=factors, score=score(factors, weights))


def _shown(snapshot: Snapshot, each: Recollection, names: Names) -> Recollection:
    """With its entities and the relations of its node."""
    relations, beside = relations_of(snapshot, each.node)
    entities = _entities(each, names)
    for name in beside:
        entities.setdefault(fold_name(name), name)
    shown = tuple(entities.values())[:_SHOWN_ENTITIES]
    return replace(each, relations=relations, entities=shown)
