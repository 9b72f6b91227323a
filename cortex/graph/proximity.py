"""The direct neighbors of a node.

Idea: one look at the adjacency of both directions. Cost: the node's degree; `adjacent` is
one lookup in each direction. Corners: parallel relations give a neighbor once; derived
relations make no neighbors unless asked for.
"""

from __future__ import annotations

from typing import Final

from cortex.domain.taxonomy import RelationType
from cortex.graph.codes import MASK, flags
from cortex.graph.workspace import WorkspaceGraph

MAX_NEIGHBORS: Final = 1000


def neighbours(
    graph: WorkspaceGraph,
    key: int,
    relations: frozenset[RelationType] | None = None,
    *,
    limit: int = MAX_NEIGHBORS,
    include_derived: bool = False,
) -> list[int]:
    """Keys of at most `limit` nodes one hop away, either way, by (created_at, id).

    Raises NotFoundError.
    """
    index = graph.index(key)
    allowed = flags(relations, include_derived=include_derived)
    near = {edge[1] for edge in graph.graph.out_edges(index) if allowed[edge[2] & MASK]}
    near.update(edge[0] for edge in graph.graph.in_edges(index) if allowed[edge[2] & MASK])
    return [graph.key[other] for other in graph.chronological(list(near))[:limit]]


def adjacent(graph: WorkspaceGraph, a: int, b: int, *, include_derived: bool = False) -> bool:
    """Whether a relation joins the two nodes, in whichever direction."""
    first, second = graph.find(a), graph.find(b)
    if first is None or second is None:
        return False
    for source, target in ((first, second), (second, first)):
        if graph.graph.has_edge(source, target):
            payloads = graph.graph.get_all_edge_data(source, target)
            if include_derived or any(not payload & 1 for payload in payloads):
                return True
    return False
