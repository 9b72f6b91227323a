"""Up and down the hierarchy.

Idea: what is below a node is a breadth-first search along the hierarchical types, on rows
where it is large (1.3 ms for 10,000 nodes against 15 in a plain loop); what is above it is a
chain, since `contains` is a forest (invariant 6). Corners: a cycle that a foreign shell made
ends both; the start is in neither.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from cortex.domain.taxonomy import HIERARCHY, RelationType
from cortex.graph.breadth_first import NO_LIMIT, first_of, hop, keys_of, reach
from cortex.graph.codes import MASK, flags
from cortex.graph.workspace import WorkspaceGraph

_CONTAINS: Final = flags([RelationType.CONTAINS], include_derived=False)


def descendants(
    graph: WorkspaceGraph, start: int, types: Iterable[RelationType] = HIERARCHY
) -> list[int]:
    """Keys of all nodes below `start`, by (depth, created_at, id).

    Every one, whatever their number: a cascade must not stop half-way. Raises NotFoundError.
    """
    step = hop(frozenset(types), "out", include_derived=False)
    found = reach(graph, [graph.index(start)], step, NO_LIMIT, max_visited=NO_LIMIT)
    below: list[int] = []
    for level in found.levels[1:]:
        if len(level):
            below.extend(keys_of(graph, first_of(graph, level, len(level))))
    return below


def ancestors(graph: WorkspaceGraph, key: int) -> list[int]:
    """Keys of the nodes that contain it, the nearest first, up to the root."""
    here = graph.index(key)
    chain = {here: key}
    while True:
        above = [
            source
            for source, _, payload in graph.graph.in_edges(here)
            if _CONTAINS[payload & MASK] and source not in chain
        ]
        if not above:
            return list(chain.values())[1:]
        here = min(above, key=graph.rank.__getitem__)
        chain[here] = graph.key[here]
