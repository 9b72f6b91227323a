"""The perspectives of a search: separate rankers with one interface.

Semantic ranks by the cosine of vectors, keyword by BM25, temporal by the time that the
question asks for, file by what is known of the files that it names. Each returns honest
scores of its own kind, and raises UnavailableError when it cannot be asked: an outage is
never an empty ranking.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, Protocol

from cortex.domain.taxonomy import VECTORISED
from cortex.domain.values import Generation, Node, NodeId, WorkspaceId
from cortex.services.engine import Engine
from cortex.services.meaning.indexing import Indexing
from cortex.services.meaning.semantic import Semantic
from cortex.services.retrieval.certainty import corrected, keyword_certainty, semantic_certainty
from cortex.services.retrieval.found import Where, Window
from cortex.services.retrieval.mentions import knowledge_of, mentioned
from cortex.services.retrieval.ranking import chances
from cortex.vectors.index import VectorFilter

SEMANTIC: Final = "semantic"
KEYWORD: Final = "keyword"
TEMPORAL: Final = "temporal"
FILE: Final = "file"
LONGEST: Final = 10_000
LEAST_COSINE: Final = 0.15


@dataclass(frozen=True, slots=True)
class Request:
    """What every perspective is asked: at most `pool` candidates of `scope` (None: of every
    workspace) that `where` admits. `known` are the candidates of those asked before."""

    text: str
    scope: WorkspaceId | None
    where: Where
    pool: int
    window: Window | None = None
    known: tuple[Node, ...] = ()


@dataclass(slots=True)
class Ranking:
    """A perspective's candidates: scores of its own kind, higher is better, and the passage
    that matched, by node. `scales` are the same scores in [0, 1]; `certainty` is above 0, None
    where the perspective cannot tell it. `nodes` are those of them that it read already, as they
    were at `generation`."""

    scores: dict[NodeId, float] = field(default_factory=dict)
    chunks: dict[NodeId, int] = field(default_factory=dict)
    scales: dict[NodeId, float] = field(default_factory=dict)
    certainty: float | None = None
    pending: int = 0
    notes: list[str] = field(default_factory=list)
    nodes: dict[NodeId, Node] = field(default_factory=dict)
    generation: Generation | None = None


class Perspective(Protocol):
    """One way to look for an answer."""

    name: str

    def rank(self, request: Request) -> Ranking:
        """The candidates, unordered. Raises UnavailableError where it cannot be asked."""


class SemanticPerspective:
    """Nearest by meaning: the cosine of each node's best chunk, from 0.15 on; of a long text
    less what as many chunks bring by chance.

    What was written a moment ago is waited for, up to the setting.
    """

    name = SEMANTIC

    def __init__(self, engine: Engine, semantic: Semantic, indexing: Indexing) -> None:
        self._engine = engine
        self._semantic = semantic
        self._indexing = indexing

    def rank(self, request: Request) -> Ranking:
        found, where = Ranking(), request.where
        if not request.text.strip():
            return found
        if where.types and not where.types & VECTORISED:
            names = ", ".join(sorted(where.types))
            found.notes.append(f"{names}: found by graph_search, by keyword; they have no vectors")
            return found
        meaning = self._semantic.meaning()
        vector = meaning.embedder.embed_query(request.text[:LONGEST])
        # The model is loaded now: what the caller wrote a moment ago takes milliseconds.
        own = request.scope or self._engine.settings.workspace
        self._indexing.wait(own, self._engine.settings.search_wait)
        # Counted before the search: an answer that says 0 has seen everything.
        found.pending = self.owing(request.scope)
        points = self._semantic.search(
            vector,
            meaning,
            request.scope,
            2 * request.pool,  # long texts may fall back
            VectorFilter(
                types=where.types,
                layer=where.layer,
                tags=where.tags,
                created_from=where.start,
                created_to=where.stop,
            ),
        )
        self._indexing.heal()
        near = {
            point.node_id: (corrected(point.score, point.chunks, point.spread), point)
            for point in points
            if point.score >= LEAST_COSINE
        }
        best = sorted(near.items(), key=lambda item: (-item[1][0], item[0]))[: request.pool]
        found.scores = {node_id: score for node_id, (score, _) in best}
        found.chunks = {node_id: point.chunk for node_id, (_, point) in best}
        found.scales = chances(found.scores)
        if best:
            score, point = best[0][1]
            found.certainty = semantic_certainty(score, point.spread)
        return found

    def owing(self, scope: WorkspaceId | None) -> int:
        """How many texts are not in the vector index, pending and failed."""
        with self._engine.database.read() as snapshot:
            owing = snapshot.outbox.owing(scope)
        return owing + self._semantic.lag(scope)  # a server's index lags behind the vectors


class KeywordPerspective:
    """BM25 over the words of the question, above 0.

    It reads its candidates as well, while the semantic one still computes beside it.
    """

    name = KEYWORD

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def rank(self, request: Request) -> Ranking:
        with self._engine.database.read() as snapshot:
            hits = snapshot.keywords.search(
                request.text[:LONGEST],
                [request.scope] if request.scope else None,
                request.pool,
                types=sorted(request.where.types),
                start=request.where.start,
                stop=request.where.stop,
            )
            scores = {hit.node_id: hit.score for hit in hits}
            nodes = {node.id: node for node in snapshot.nodes.by_ids(list(scores))}
            generation = snapshot.generation()
        return Ranking(
            scores,
            {hit.node_id: hit.chunk for hit in hits},
            chances(scores),
            keyword_certainty(scores.values()),
            nodes=nodes,
            generation=generation,
        )


class TemporalPerspective:
    """The time that the question asks for; where it asks for none, nothing.

    A node made within the window has 1. Where the newest is asked for, the candidates stand
    by age, the newest has 1 and the oldest 0. Beside the known candidates it brings the
    newest nodes of the window in the workspace asked, or the caller's own.
    """

    name = TEMPORAL

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def rank(self, request: Request) -> Ranking:
        window = request.window
        if window is None:
            return Ranking()
        nodes = {node.id: node for node in request.known}
        if window.start or window.stop:
            place = request.scope or self._engine.settings.workspace
            with self._engine.database.read() as snapshot:
                newest = snapshot.nodes.newest_within(
                    place, window.start, window.stop, request.pool
                )
            nodes |= {node.id: node for node in newest}
        fitting = [node for node in nodes.values() if _fits(node, window)]
        scores = {node.id: 1.0 for node in fitting}
        if window.newest and len(fitting) > 1:
            fitting.sort(key=lambda node: (node.created_at, node.id))
            scores = {node.id: at / (len(fitting) - 1) for at, node in enumerate(fitting)}
        return Ranking(scores, scales=scores)


def _fits(node: Node, window: Window) -> bool:
    return (window.start is None or node.created_at >= window.start) and (
        window.stop is None or node.created_at <= window.stop
    )


class FilePerspective:
    """What is known of the files that the question names, at home."""

    name = FILE

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def rank(self, request: Request) -> Ranking:
        settings = self._engine.settings
        with self._engine.database.read() as snapshot:
            place = request.scope or settings.workspace
            files = mentioned(snapshot, request.text, place, settings.project)
            known = knowledge_of(snapshot, files)
        return Ranking(known, scales=known)
