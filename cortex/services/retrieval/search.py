"""Search: by meaning, and the regression pattern — meaning, then context, then specifics.

The perspectives rank, a fusion joins them, signals from the graph lift what belongs to what
was found. A stale wording that matches leads to the active head of its chain; an outage of a
perspective is said and answered by the others, never by silence.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Final

from cortex.domain.errors import InvalidError, UnavailableError
from cortex.domain.instants import parse_window
from cortex.domain.taxonomy import Layer, NodeType, parse_kind
from cortex.domain.values import NodeId, WorkspaceId
from cortex.services.engine import Engine
from cortex.services.history import History
from cortex.services.meaning.indexing import Indexing
from cortex.services.meaning.semantic import Semantic
from cortex.services.reach import reach_of
from cortex.services.retrieval.answering import Gathered, answered, bounded, fused
from cortex.services.retrieval.asked_time import window_of
from cortex.services.retrieval.context import (
    FILES,
    Context,
    Spot,
    contexts_of,
    placed,
    spots_of,
    together,
)
from cortex.services.retrieval.found import EVERYTHING, Found, Hit, Where, Window, Withheld
from cortex.services.retrieval.perspectives import (
    FILE,
    KEYWORD,
    SEMANTIC,
    TEMPORAL,
    FilePerspective,
    KeywordPerspective,
    Perspective,
    Ranking,
    Request,
    SemanticPerspective,
    TemporalPerspective,
)
from cortex.services.retrieval.ranking import Fusion
from cortex.services.retrieval.signals import NO_SIGNALS, Signals

__all__ = ["Found", "Fusion", "Hit", "Search", "Signals", "Where", "Window", "Withheld"]

ALL: Final = (SEMANTIC, KEYWORD, TEMPORAL)
_POOL: Final = 200
_ELSEWHERE: Final = 20


class Search:
    """Answers questions from the vectors, the keyword index and the graph."""

    def __init__(
        self, engine: Engine, semantic: Semantic, indexing: Indexing, history: History
    ) -> None:
        self._engine = engine
        self._semantic = semantic
        self._history = history
        self._meaning = SemanticPerspective(engine, semantic, indexing)
        asked: tuple[Perspective, ...] = (
            self._meaning,
            KeywordPerspective(engine),
            TemporalPerspective(engine),
            FilePerspective(engine),
        )
        self._perspectives = {each.name: each for each in asked}

    def require_model(self) -> None:
        """Raise UnavailableError, with the repair, where vectors of another model stand."""
        self._semantic.require()

    def rank(
        self,
        query: str,
        *,
        top_k: int = 10,
        workspace: str | None = None,
        where: Where = EVERYTHING,
        perspectives: Sequence[str] = ALL,
        fusion: Fusion | None = None,
        signals: Signals | None = None,
        include_stale: bool = False,
    ) -> Found:
        """Hits alone, without context or files, and without a trace in the history.

        `perspectives` are any of semantic, keyword and temporal; `fusion` is the configured
        one unless given. `signals` are all of them, but none for a single perspective, which
        is asked for what it alone says. Raises InvalidError for a perspective that there is
        not.
        """
        names = self._named(perspectives)
        request = self._request(query, top_k, workspace, where, names)
        found = self._gather(request, names)
        scores, shares = fused(found, fusion or Fusion.of(self._engine.settings))
        if signals is None:
            signals = Signals() if len(names) > 1 else NO_SIGNALS
        answer = self._answer(scores, found, request, top_k, signals, include_stale=include_stale)
        return replace(answer, shares=shares)

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
        """Nearest by meaning alone, scored by cosine; while the vectors are out, by keyword,
        and it says so."""
        start, stop = parse_window(time_from, time_to, ("time_from", "time_to"))
        where = Where(
            frozenset(parse_kind(NodeType, name, "types") for name in types),
            parse_kind(Layer, layer, "layer") if layer else None,
            frozenset(tags),
            start,
            stop,
        )
        request = self._request(query, top_k, workspace, where)
        found = self._gather(request, [SEMANTIC])
        if found.degraded:
            beside = self._gather(request, [KEYWORD])
            beside.out[:0], beside.pending = found.out, found.pending
            found = beside
            scores, _ = fused(found, Fusion())
        else:
            scores = found.rankings[SEMANTIC].scores
        answer = self._answer(
            scores, found, request, top_k, NO_SIGNALS, include_stale=include_stale
        )
        self._note(query, request.scope, answer)
        return answer

    def graph_search(
        self, query: str, *, top_k: int = 10, workspace: str | None = None, explain: bool = False
    ) -> Found:
        """All perspectives fused, then each hit's context, then the files to read.

        A path in the query, whole or its unique end, leads first to what is known of that
        file. `explain` also looks for what another workspace says, in `withheld`.
        """
        request = self._request(query, top_k, workspace, EVERYTHING, ALL)
        found = self._gather(request, [*ALL, FILE])
        scores, shares = fused(found, Fusion.of(self._engine.settings))
        answer = self._answer(scores, found, request, top_k, Signals(), full=True)
        answer = replace(answer, shares=shares)
        if explain and request.scope is not None:
            answer = replace(answer, withheld={**answer.withheld, **self._elsewhere(request)})
        self._note(query, request.scope, answer)
        return answer

    def keyword_search(self, query: str, *, top_k: int = 10, workspace: str | None = None) -> Found:
        """BM25 alone, scored by it."""
        request = self._request(query, top_k, workspace, EVERYTHING)
        found = self._gather(request, [KEYWORD])
        ranking = found.rankings.get(KEYWORD, Ranking())
        return self._answer(ranking.scores, found, request, top_k, NO_SIGNALS)

    def _request(
        self,
        query: str,
        top_k: int,
        workspace: str | None,
        where: Where,
        names: Sequence[str] = (),
    ) -> Request:
        if top_k < 1:
            raise InvalidError(f"top_k {top_k} is too small", "Valid: 1 or more", "Raise it")
        window = window_of(query, self._engine.now()) if TEMPORAL in names else None
        return Request(query, self._engine.scope(workspace), where, max(_POOL, top_k), window)

    def _named(self, perspectives: Sequence[str]) -> list[str]:
        unknown = [name for name in perspectives if name not in ALL]
        if unknown or not perspectives:
            raise InvalidError(
                f"perspective {unknown[0]!r} is unknown" if unknown else "no perspective named",
                f"Valid: one or more of {', '.join(ALL)}",
                "Name some of these",
            )
        return [name for name in ALL if name in perspectives]

    def _gather(self, request: Request, names: Sequence[str]) -> Gathered:
        """Ask the perspectives; one that is out is named with its reason."""
        found = Gathered()
        both = self._side_by_side(request) if {SEMANTIC, KEYWORD} <= set(names) else {}
        for name in names:
            if name == TEMPORAL and request.window is not None:
                with self._engine.database.read() as snapshot:
                    found.load(snapshot)
                request = replace(request, known=tuple(found.nodes.values()))
            ranking = both[name] if name in both else self._asked(name, request)
            if isinstance(ranking, UnavailableError):
                found.out.append(f"{name} search is out: {ranking.message}")
                if name == SEMANTIC:
                    found.pending = self._meaning.owing(request.scope)
                continue
            found.notes += ranking.notes
            found.pending = max(found.pending, ranking.pending)
            if ranking.scores or name in (SEMANTIC, KEYWORD):
                found.rankings[name] = ranking
        return found

    def _side_by_side(self, request: Request) -> dict[str, Ranking | UnavailableError]:
        """The two that take long, at once: SQLite, the model and the product of the matrix all
        let go of the interpreter."""
        with ThreadPoolExecutor(1, "keyword") as beside:
            words = beside.submit(self._asked, KEYWORD, request)
            return {SEMANTIC: self._asked(SEMANTIC, request), KEYWORD: words.result()}

    def _asked(self, name: str, request: Request) -> Ranking | UnavailableError:
        try:
            return self._perspectives[name].rank(request)
        except UnavailableError as error:
            return error

    def _answer(
        self,
        scores: Mapping[NodeId, float],
        found: Gathered,
        request: Request,
        top_k: int,
        signals: Signals,
        *,
        include_stale: bool = False,
        full: bool = False,
    ) -> Found:
        """The answer of these scores, as the store stands now."""
        scope = request.scope
        with self._engine.database.read() as snapshot:
            made = answered(
                snapshot, found, scores, request, signals, top_k, include_stale=include_stale
            )
            chosen = self._own_first(made.hits, scope)
            contexts: tuple[Context, ...] = ()
            spots: list[list[Spot]] = []
            if full:
                shown = [hit.node for hit in chosen]
                contexts = contexts_of(snapshot, shown)
                each = spots_of(snapshot, shown)
                spots = [*(few[:FILES] for few in each), together(each)]
            empty = not (chosen or found.out) and not snapshot.outbox.any_ready(scope)
            generation = snapshot.generation().seq
            reach = reach_of(snapshot, self._engine.settings)
        *beside, files = placed(spots, reach) if spots else [()]
        return Found(
            tuple(chosen),
            made.total,
            found.degraded,
            found.pending,
            bounded(made.withheld),
            generation,
            tuple(replace(one, files=near) for one, near in zip(contexts, beside, strict=True)),
            files,
            empty,
            tuple(found.notes),
            made.ranks,
            request.window,
        )

    def _elsewhere(self, request: Request) -> dict[str, Withheld]:
        """What other workspaces say to the same words."""
        anywhere = replace(request, scope=None, pool=request.pool + _ELSEWHERE)
        found = self._gather(anywhere, [KEYWORD])
        with self._engine.database.read() as snapshot:
            found.load(snapshot)
        ids = [key for key, node in found.nodes.items() if node.workspace_id != request.scope]
        return bounded({"other workspace": ids} if ids else {})

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
