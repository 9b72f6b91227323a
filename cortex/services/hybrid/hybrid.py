"""The hybrid memory as one: its parts, wired."""

from __future__ import annotations

from typing import Final

from cortex.domain.errors import InvalidError
from cortex.services.engine import Engine
from cortex.services.fabric.fabric import Fabric
from cortex.services.history import History
from cortex.services.hybrid.following import Following
from cortex.services.hybrid.forgetting import Forgetting
from cortex.services.hybrid.mentions import Mentions
from cortex.services.hybrid.observing import Observing
from cortex.services.hybrid.recent import Recent, strengthened
from cortex.services.hybrid.relating import Relating
from cortex.services.hybrid.remembering import Remembering
from cortex.services.hybrid.sessions import Sessions
from cortex.services.meaning.semantic import Semantic
from cortex.services.mutation import Mutation
from cortex.services.neighbours import Neighbours
from cortex.services.retrieval.found import Found
from cortex.services.retrieval.search import Search
from cortex.services.viewport import Viewport
from cortex.services.waves import Waves, strengths

_POOL: Final = 50


class Hybrid:
    """What the tools of ADR-0004 ask for; each part is documented where it is."""

    def __init__(
        self,
        engine: Engine,
        semantic: Semantic,
        search: Search,
        history: History,
        viewport: Viewport,
        mutation: Mutation,
        fabric: Fabric,
    ) -> None:
        self._engine = engine
        self._search = search
        self._history = history
        self.waves = Waves(engine)
        self.sessions = Sessions(engine, viewport, search)
        self.remembering = Remembering(engine, self.sessions)
        self.relating = Relating(engine, history)
        self.recent = Recent(engine, search, history)
        self.forgetting = Forgetting(engine, mutation, self.waves)
        self.neighbours = Neighbours(engine, semantic)
        self.following = Following(engine, Mentions(engine, fabric), self.neighbours)
        self.observing = Observing(engine, semantic, self.neighbours, self.following)

    def search(self, query: str, limit: int = 10, *, workspace: str | None = None) -> Found:
        """All perspectives fused as configured; a memory's strength lifts it by up to
        `search_strength`, which is 0 unless set. Raises InvalidError for a limit below 1."""
        if limit < 1:
            raise InvalidError(f"limit {limit} is too small", "Valid: 1 or more", "Raise it")
        weight = self._engine.settings.waves.search_strength
        pool = max(limit, _POOL) if weight else limit
        found = self._search.rank(query, top_k=pool, workspace=workspace)
        if weight:
            with self._engine.database.read() as snapshot:
                keys = {hit.node.key: hit.node.id for hit in found.hits}
                now = strengths(snapshot, list(keys), self._engine.now())
            found = strengthened(found, {keys[key]: e for key, e in now.items()}, weight, limit)
        place = self._engine.scope(workspace) or self._engine.settings.workspace
        self._history.searched(place, query, found.hits[0].node.id if found.hits else None)
        return found

    def close(self) -> None:
        """Stop following."""
        self.following.close()
