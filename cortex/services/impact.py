"""Before something is superseded: what would go stale with it, and what would lose support.

Going stale is what `graph_supersede(cascade=true)` does to all below; losing support is what
it does to nodes whose every active giver falls: the node itself, what goes stale below it,
and what lost support before them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from cortex.domain.taxonomy import HIERARCHY
from cortex.domain.values import Node
from cortex.graph.breadth_first import MAX_VISITED, NO_LIMIT
from cortex.graph.support import is_active, unsupported
from cortex.graph.traversal import traverse
from cortex.services.engine import Engine
from cortex.services.resolving import resolve_node
from cortex.store.database import Snapshot

LIMIT: Final = 200
Reached = tuple[tuple[Node, int], ...]


@dataclass(frozen=True, slots=True)
class Impact:
    """Active nodes with their depth, by depth, then creation, then id; totals beside them."""

    node: Node
    stale: Reached
    unsupported: Reached
    stale_total: int
    unsupported_total: int
    truncated: bool
    generation: int


class Impacts:
    """Looks ahead."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def impact(self, reference: str, *, limit: int = LIMIT, workspace: str | None = None) -> Impact:
        """What hangs on a node; nothing is changed.

        At most `limit` of each list. Beyond 200,000 nodes below it, or 10,000 that lose
        support, the totals are bounds and `truncated` says so.
        """
        engine = self._engine
        place = engine.workspace(workspace)
        if workspace is None:
            with engine.database.read() as snapshot:
                place = resolve_node(snapshot, reference, place, strict=False).workspace_id
        with engine.graphs.view(engine.database, place) as (snapshot, graph):
            node = resolve_node(snapshot, reference, place, strict=True)
            below = traverse(
                graph,
                node.key,
                relations=frozenset(HIERARCHY),
                depth=NO_LIMIT,
                direction="out",
                node_types=None,
                limit=MAX_VISITED,
            )
            stale = [(key, depth) for key, depth in below.nodes if is_active(graph, key)]
            losing, bounded = unsupported(graph, {node.key: 0, **dict(stale)})
            return Impact(
                node,
                _shown(snapshot, stale[:limit]),
                _shown(snapshot, losing[:limit]),
                len(stale),
                len(losing),
                below.truncated or bounded or max(len(stale), len(losing)) > limit,
                snapshot.generation().seq,
            )


def _shown(snapshot: Snapshot, found: Sequence[tuple[int, int]]) -> Reached:
    depths = dict(found)
    return tuple((node, depths[node.key]) for node in snapshot.nodes.by_keys(list(depths)))
