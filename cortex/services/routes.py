"""How two memories hang together: the shortest paths between them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from cortex.domain.errors import InvalidError
from cortex.domain.values import Node, Relation
from cortex.graph.paths import shortest_paths
from cortex.services.engine import Engine
from cortex.services.resolving import resolve_node

MAX_PATHS: Final = 20


@dataclass(frozen=True, slots=True)
class Route:
    """Nodes from one end to the other, the relations between them, Σ (2 − weight)."""

    nodes: tuple[Node, ...]
    relations: tuple[Relation, ...]
    length: float


@dataclass(frozen=True, slots=True)
class Routes:
    """Paths, the shortest first; `truncated` where the search met its bound."""

    paths: tuple[Route, ...]
    truncated: bool
    generation: int


class Routing:
    """Finds paths in one workspace's graph."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def paths(
        self,
        from_id: str,
        to_id: str,
        k: int = 3,
        *,
        derived: bool = False,
        workspace: str | None = None,
    ) -> Routes:
        """Up to `k` (at most 20) shortest paths, relations walked both ways.

        No path leads through a session. Raises InvalidError for a k out of range, and
        NotFoundError where the second node is not in the first one's workspace.
        """
        if not 1 <= k <= MAX_PATHS:
            raise InvalidError(f"k is {k}", f"Valid: 1 to {MAX_PATHS}", "Correct it")
        engine = self._engine
        place = engine.workspace(workspace)
        if workspace is None:
            with engine.database.read() as snapshot:
                place = resolve_node(snapshot, from_id, place, strict=False).workspace_id
        with engine.graphs.view(engine.database, place) as (snapshot, graph):
            start = resolve_node(snapshot, from_id, place, strict=True)
            target = resolve_node(snapshot, to_id, place, strict=True)
            found, bounded = shortest_paths(
                graph, start.key, target.key, k, include_derived=derived
            )
            paths = tuple(
                Route(
                    tuple(snapshot.nodes.by_keys(path.nodes)),
                    tuple(snapshot.relations.by_keys(path.relations)),
                    path.length,
                )
                for path in found
            )
            return Routes(paths, bounded, snapshot.generation().seq)
