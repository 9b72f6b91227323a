"""Search: by meaning, and the regression pattern — meaning, then context, then specifics.

Two rankers, the vectors and the keyword index, each with honest scores. A stale wording
that matches leads to the active head of its chain; an outage of the vectors is said and
answered by keywords, never by silence.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from cortex.domain.errors import InvalidError, UnavailableError
from cortex.domain.instants import Instant, parse_window
from cortex.domain.taxonomy import (
    VECTORISED,
    Layer,
    NodeType,
    Status,
    layer_of,
    parse_kind,
)
from cortex.domain.values import Node, NodeId, WorkspaceId
from cortex.services.context import FILES, Context, Place, Spot, context_of, placed, spots_of
from cortex.services.engine import Engine
from cortex.services.history import History
from cortex.services.indexing import Indexing
from cortex.services.mentions import knowledge_of, mentioned
from cortex.services.ranking import convex, scaled
from cortex.services.resolving import head_of
from cortex.services.semantic import Semantic
from cortex.store.database import Snapshot
from cortex.vectors.index import VectorFilter

_POOL: Final = 100
_LEAST_COSINE: Final = 0.15
_WEIGHTS: Final = {"semantic": 0.5, "keyword": 0.5}
# Where the question names a file, what is known of it comes before all else: the greatest
# sum of the two rankers is a quarter of the file's share. Scores stay within [0, 1].
_WEIGHTS_OF_FILE: Final = {"semantic": 0.1, "keyword": 0.1, "file": 0.8}
_LONGEST: Final = 10_000


@dataclass(frozen=True, slots=True)
class Where:
    """Filters of a search; empty admits all."""

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


@dataclass(frozen=True, slots=True)
class Hit:
    """A memory that answers. `chunk` is the passage that matched by meaning; `via` the stale
    node whose wording matched, where the hit is the head that replaced it."""

    node: Node
    score: float
    scores: Mapping[str, float]
    chunk: int
    via: Node | None = None


@dataclass(frozen=True, slots=True)
class Found:
    """Hits best first. `degraded` says what could not be asked, and why; `pending` how many
    texts are not in the vector index yet; `withheld` what was left out, by reason; `empty` that
    there are no hits because nothing is indexed where it looked."""

    hits: tuple[Hit, ...]
    total: int
    degraded: str | None
    pending: int
    withheld: Mapping[str, int]
    generation: int
    contexts: tuple[Context, ...] = ()
    files: tuple[Place, ...] = ()
    empty: bool = False
    notes: tuple[str, ...] = ()
    ranks: Mapping[str, Mapping[str, int]] = field(default_factory=dict)


@dataclass(slots=True)
class _Candidates:
    """What the rankers returned, by node id."""

    semantic: dict[NodeId, float] = field(default_factory=dict)
    chunks: dict[NodeId, int] = field(default_factory=dict)
    keyword: dict[NodeId, float] = field(default_factory=dict)
    file: dict[NodeId, float] = field(default_factory=dict)
    degraded: str | None = None
    pending: int = 0
    notes: list[str] = field(default_factory=list)


class Search:
    """Answers questions from the vectors, the keyword index and the graph."""

    def __init__(
        self, engine: Engine, semantic: Semantic, indexing: Indexing, history: History
    ) -> None:
        self._engine = engine
        self._semantic = semantic
        self._indexing = indexing
        self._history = history

    def require_model(self) -> None:
        """Raise UnavailableError, with the repair, where vectors of another model stand."""
        self._semantic.require()

    def vector_search(
        self,
        query: str,
        *,
        top_k: int = 10,
        workspace: str | None = None,
        time_from: str | None = None,
        time_to: str | None = None,
        types: Sequence[str] = (),
        layer: str | None = None,
        tags: Sequence[str] = (),
        include_stale: bool = False,
    ) -> Found:
        """Nearest by meaning alone; while the vectors are out, by keyword, and it says so."""
        scope = self._engine.scope(workspace)
        start, stop = parse_window(time_from, time_to, ("time_from", "time_to"))
        where = Where(
            frozenset(parse_kind(NodeType, name, "types") for name in types),
            parse_kind(Layer, layer, "layer") if layer else None,
            frozenset(tags),
            start,
            stop,
        )
        found = _Candidates()
        self._ask_vectors(query, scope, where, max(_POOL, top_k), found)
        if found.degraded:
            self._ask_keywords(query, scope, where, max(_POOL, top_k), found)
            scores = scaled(found.keyword, 0.0)
        else:
            scores = dict(found.semantic)
        order = sorted(scores.items(), key=lambda item: (-item[1], item[0]))
        answer = self._answer(order, found, scope, where, top_k, include_stale)
        self._note(query, scope, answer)
        return answer

    def graph_search(self, query: str, *, top_k: int = 10, workspace: str | None = None) -> Found:
        """Meaning and keywords fused, then each hit's context, then the files to read.

        A path in the query, whole or its unique end, leads first to what is known of that file.
        """
        scope = self._engine.scope(workspace)
        found = _Candidates()
        where = Where()
        self._ask_vectors(query, scope, where, max(_POOL, top_k), found)
        self._ask_keywords(query, scope, where, max(_POOL, top_k), found)
        self._ask_files(query, scope, found)
        order = convex(
            {
                "semantic": scaled(found.semantic),
                "keyword": scaled(found.keyword, 0.0),
                **({"file": found.file} if found.file else {}),
            },
            _WEIGHTS_OF_FILE if found.file else _WEIGHTS,
        )
        answer = self._answer(order, found, scope, where, top_k, False, full=True)
        self._note(query, scope, answer)
        return answer

    def keyword_search(self, query: str, *, top_k: int = 10, workspace: str | None = None) -> Found:
        """BM25 alone."""
        scope = self._engine.scope(workspace)
        found = _Candidates()
        self._ask_keywords(query, scope, Where(), max(_POOL, top_k), found)
        order = sorted(found.keyword.items(), key=lambda item: (-item[1], item[0]))
        return self._answer(order, found, scope, Where(), top_k, False)

    def _ask_vectors(
        self,
        query: str,
        scope: WorkspaceId | None,
        where: Where,
        pool: int,
        found: _Candidates,
    ) -> None:
        """Fill in the semantic ranking, or say why there is none."""
        if not query.strip():
            return
        if where.types and not where.types & VECTORISED:
            names = ", ".join(sorted(where.types))
            found.notes.append(f"{names}: found by graph_search, by keyword; they have no vectors")
            return
        try:
            meaning = self._semantic.meaning()
            vector = meaning.embedder.embed_query(query[:_LONGEST])
            # The model is loaded now: what the caller wrote a moment ago takes milliseconds.
            own = scope or self._engine.settings.workspace
            self._indexing.wait(own, self._engine.settings.search_wait)
            # Counted before the search: an answer that says 0 has seen everything.
            found.pending = self._owing(scope)
            points = self._semantic.search(
                vector,
                meaning,
                scope,
                pool,
                VectorFilter(
                    types=where.types,
                    layer=where.layer,
                    tags=where.tags,
                    created_from=where.start,
                    created_to=where.stop,
                ),
            )
        except UnavailableError as error:
            found.degraded = f"semantic search is out: {error.message}"
            found.pending = self._owing(scope)
            return
        self._indexing.heal()
        for point in points:
            if point.score >= _LEAST_COSINE:
                found.semantic[point.node_id] = point.score
                found.chunks[point.node_id] = point.chunk

    def _owing(self, scope: WorkspaceId | None) -> int:
        """How many texts are not in the vector index, pending and failed."""
        with self._engine.database.read() as snapshot:
            return snapshot.outbox.owing(scope)

    def _ask_keywords(
        self,
        query: str,
        scope: WorkspaceId | None,
        where: Where,
        pool: int,
        found: _Candidates,
    ) -> None:
        with self._engine.database.read() as snapshot:
            hits = snapshot.keywords.search(
                query[:_LONGEST],
                [scope] if scope else None,
                pool,
                types=sorted(where.types),
                start=where.start,
                stop=where.stop,
            )
        found.keyword = {hit.node_id: hit.score for hit in hits}

    def _ask_files(self, query: str, scope: WorkspaceId | None, found: _Candidates) -> None:
        """Fill in what is known of the files that the query names, at home."""
        settings = self._engine.settings
        with self._engine.database.read() as snapshot:
            files = mentioned(snapshot, query, scope or settings.workspace, settings.project)
            found.file = knowledge_of(snapshot, files)

    def _answer(
        self,
        order: Sequence[tuple[NodeId, float]],
        found: _Candidates,
        scope: WorkspaceId | None,
        where: Where,
        top_k: int,
        include_stale: bool,
        *,
        full: bool = False,
    ) -> Found:
        """Turn an order of ids into hits, as the store stands now."""
        if top_k < 1:
            raise InvalidError(f"top_k {top_k} is too small", "Valid: 1 or more", "Raise it")
        withheld: dict[str, int] = {}
        with self._engine.database.read() as snapshot:
            nodes = {node.id: node for node in snapshot.nodes.by_ids([id_ for id_, _ in order])}
            hits: dict[NodeId, Hit] = {}
            for node_id, score in order:
                node = nodes.get(node_id)
                if node is None or not where.admits(node) or (scope and node.workspace_id != scope):
                    continue
                if node.type is NodeType.SESSION and NodeType.SESSION not in where.types:
                    continue  # a workspace's root says no more than its name
                hit = self._hit(snapshot, node, score, found, include_stale)
                if hit is None:
                    withheld["stale"] = withheld.get("stale", 0) + 1
                elif hit.node.id not in hits:
                    hits[hit.node.id] = hit
            chosen = self._own_first(list(hits.values())[:top_k], scope)
            contexts: tuple[Context, ...] = ()
            spots: list[list[Spot]] = []
            if full:
                contexts = tuple(context_of(snapshot, hit.node) for hit in chosen)
                spots = [spots_of(snapshot, [hit.node], FILES) for hit in chosen]
                spots.append(spots_of(snapshot, [hit.node for hit in chosen]))
            empty = not hits and not snapshot.outbox.any_ready(scope)
            generation = snapshot.generation().seq
        *beside, files = placed(spots) if spots else [()]
        if len(hits) > top_k:
            withheld["below the cut"] = len(hits) - top_k
        return Found(
            tuple(chosen),
            len(hits),
            found.degraded,
            found.pending,
            withheld,
            generation,
            tuple(replace(each, files=near) for each, near in zip(contexts, beside, strict=True)),
            files,
            empty,
            tuple(found.notes),
            _ranks(found),
        )

    def _hit(
        self,
        snapshot: Snapshot,
        node: Node,
        score: float,
        found: _Candidates,
        include_stale: bool,
    ) -> Hit | None:
        """The hit of a node; for a stale one its head, or None when it has none."""
        scores = {
            name: round(ranking[node.id], 4)
            for name, ranking in _rankings(found)
            if node.id in ranking
        }
        chunk = found.chunks.get(node.id, 0)
        if node.status is not Status.STALE or include_stale:
            return Hit(node, score, scores, chunk)
        head = head_of(snapshot, node)
        if head.id == node.id or head.status is Status.STALE:
            return None
        return Hit(head, score, scores, 0, via=node)

    def _own_first(self, hits: list[Hit], scope: WorkspaceId | None) -> list[Hit]:
        """The caller's own workspace before others, each in its order."""
        if scope is not None:
            return hits
        own = self._engine.settings.workspace
        return sorted(hits, key=lambda hit: hit.node.workspace_id != own)

    def _note(self, query: str, scope: WorkspaceId | None, answer: Found) -> None:
        place = scope or self._engine.settings.workspace
        best = answer.hits[0].node.id if answer.hits else None
        self._history.searched(place, query, best)


def _ranks(found: _Candidates) -> dict[str, dict[str, int]]:
    """Each ranker's position of each candidate, from 1."""
    return {
        name: {
            node: rank
            for rank, (node, _) in enumerate(
                sorted(scores.items(), key=lambda item: (-item[1], item[0])), 1
            )
        }
        for name, scores in _rankings(found)
    }


def _rankings(found: _Candidates) -> list[tuple[str, dict[NodeId, float]]]:
    """The rankers that were asked; `file` only where the query names one."""
    rankings = [("semantic", found.semantic), ("keyword", found.keyword)]
    return [*rankings, ("file", found.file)] if found.file else rankings
