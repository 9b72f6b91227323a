"""Typed traversal: what is reached from a node over some types of relation.

Idea and cost: breadth_first.py. The relation filter holds on every hop; `contradicts` and
`related_to` have no direction and are walked both ways; derived relations are left out
unless asked for. Corners: the start is not among the nodes, even where a cycle comes back
to it; the type filter chooses what is returned, not what is walked through.
"""

from __future__ import annotations

from cortex.domain.taxonomy import NodeType, RelationType
from cortex.graph.breadth_first import MAX_VISITED, Direction, Traversal, hop, reach, select
from cortex.graph.codes import kind_flags
from cortex.graph.workspace import WorkspaceGraph


def traverse(
    graph: WorkspaceGraph,
    start: int,
    *,
    relations: frozenset[RelationType] | None,
    depth: int,
    direction: Direction,
    node_types: frozenset[NodeType] | None,
    limit: int,
    include_derived: bool = False,
    max_visited: int = MAX_VISITED,
) -> Traversal:
    """Nodes within `depth` hops of `start`, by (depth, created_at, id).

    `relations` of the result are those crossed between returned nodes and the start, by key.
    The search ends after the level in which it has visited more than `max_visited` nodes.
    Raises NotFoundError where the start is not in this workspace.
    """
    step = hop(relations, direction, include_derived=include_derived)
    found = reach(graph, [graph.index(start)], step, depth, max_visited=max_visited)
    kinds = None if node_types is None else kind_flags(node_types)
    return select(graph, found, step, kinds, limit)
