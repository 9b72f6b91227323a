"""Searching a window of time: what fits, weighed by how new it is and how often it is opened.

    score = relevance · 2^(−2·age / hours) · (1 + min(1, log₂(1 + accesses) / 10))

relevance in [0, 1] is the score of `search` over its best within the window (1 without a
question), age counts hours since the memory was made. The decay leaves one quarter at the
window's end, so that an old hit needs four times the relevance of a new one; the frequency
boost lies in [1, 2] and is met at 1,023 accesses. Ties go to the newer, then by id.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Final

from cortex.domain.errors import InvalidError
from cortex.domain.instants import before
from cortex.domain.values import NodeId
from cortex.services.engine import Engine
from cortex.services.history import History
from cortex.services.retrieval.found import Found, Hit, Where
from cortex.services.retrieval.search import Search
from cortex.services.waves import hours

MOST_HOURS: Final = 24.0 * 366 * 10
_POOL: Final = 200


class Recent:
    """Searches the latest hours."""

    def __init__(self, engine: Engine, search: Search, history: History) -> None:
        self._engine = engine
        self._search = search
        self._history = history

    def search(
        self, query: str, span: float = 24.0, limit: int = 10, *, workspace: str | None = None
    ) -> Found:
        """The memories of the last `span` hours that answer, best first; all of them for an
        empty query. `scores` of a hit hold the three factors."""
        if not 0.0 < span <= MOST_HOURS:
            raise InvalidError(
                f"hours {span} is out of range", f"Valid: above 0, to {MOST_HOURS:g}", "Correct it"
            )
        now = self._engine.now()
        where = Where(start=before(now, hours=span))
        if query.strip():
            found = self._search.rank(query, top_k=_POOL, workspace=workspace, where=where)
        else:
            found = self._all(where, workspace)
        best = max((hit.score for hit in found.hits), default=0.0) or 1.0
        with self._engine.database.read() as snapshot:
            states = snapshot.waves.of_keys([hit.node.key for hit in found.hits])
        weighed = []
        for hit in found.hits:
            state = states.get(hit.node.key)
            factors = {
                "relevance": hit.score / best,
                "recency": 2.0 ** (-2.0 * max(hours(hit.node.created_at, now), 0.0) / span),
                "frequency": frequency(state.accesses if state else 0),
            }
            score = math.prod(factors.values())
            rounded = {name: round(value, 4) for name, value in factors.items()}
            weighed.append(replace(hit, score=score, scores=rounded))
        weighed.sort(key=lambda hit: hit.node.id)
        weighed.sort(key=lambda hit: (hit.score, hit.node.created_at), reverse=True)
        answer = replace(found, hits=tuple(weighed[:limit]))
        place = self._engine.scope(workspace) or self._engine.settings.workspace
        self._history.searched(place, query, answer.hits[0].node.id if answer.hits else None)
        return answer

    def _all(self, where: Where, workspace: str | None) -> Found:
        place = self._engine.workspace(workspace)
        with self._engine.database.read() as snapshot:
            nodes = [
                node
                for node in snapshot.nodes.newest(place, _POOL)
                if where.admits(node) and node.parent_id is not None
            ]
            generation = snapshot.generation().seq
        hits = tuple(Hit(node, 1.0, {}, 0) for node in nodes)
        return Found(hits, len(hits), None, 0, {}, generation, empty=not hits)


def frequency(accesses: int) -> float:
    """The boost of a memory that was opened so often, in [1, 2]."""
    return 1.0 + min(math.log2(1 + accesses) / 10.0, 1.0)


def strengthened(found: Found, strengths: dict[NodeId, float], weight: float, limit: int) -> Found:
    """The hits with up to `weight` added for their strength E, as E / (1 + E), best first."""
    lifted = []
    for hit in found.hits:
        strong = strengths.get(hit.node.id, 0.0)
        boost = weight * strong / (1.0 + strong)
        boosts = {**hit.boosts, "strength": round(boost, 4)}
        lifted.append(replace(hit, score=hit.score + boost, boosts=boosts))
    lifted.sort(key=lambda hit: (-hit.score, hit.node.id))
    return replace(found, hits=tuple(lifted[:limit]))
