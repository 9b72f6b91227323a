"""The subgraph around some nodes, and the relations within a set of nodes.

Idea and cost: breadth_first.py, over every type in both directions. A session node is
reached but not gone through unless it is a start: it contains nearly everything, so
everything would be two hops from everything. `relations_within` reads the adjacency of its
members, on rows where they are many. Corner: relations between two nodes of the last depth
are not crossed by `subgraph`; `relations_within` has them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from cortex.domain.taxonomy import NodeType
from cortex.graph.breadth_first import (
    LARGE,
    MAX_VISITED,
    Hop,
    Traversal,
    crossings,
    hop,
    reach,
    select,
)
from cortex.graph.codes import MASK, NOTHING, SHIFT, flags, kind_flags
from cortex.graph.workspace import WorkspaceGraph

_SESSIONS: Final = kind_flags([NodeType.SESSION])


def subgraph(
    graph: WorkspaceGraph,
    starts: Sequence[int],
    depth: int,
    limit: int,
    include_derived: bool = False,
    max_visited: int = MAX_VISITED,
) -> Traversal:
    """Nodes within `depth` hops of any of `starts`, which are not among them.

    Order, relations and bounds as in `traverse`; raises NotFoundError.
    """
    step = hop(None, "both", include_derived=include_derived)
    found = reach(
        graph,
        [graph.index(key) for key in starts],
        step,
        depth,
        closed=_SESSIONS,
        max_visited=max_visited,
    )
    return select(graph, found, step, None, limit)


def relations_within(
    graph: WorkspaceGraph, keys: Sequence[int], include_derived: bool = False
) -> list[int]:
    """Keys of the relations whose both ends are among `keys`, rising; unknown keys are left out."""
    inside = {index for key in keys if (index := graph.find(key)) is not None}
    allowed = flags(None, include_derived=include_derived)
    if len(inside) >= LARGE and graph.row_cache.prefers(len(inside), out=True, back=False):
        near = np.fromiter(inside, np.int64, len(inside))
        with graph.scratch.marking(len(graph.key)) as marks:
            marks.add(near)
            [crossed] = crossings(graph, near, Hop(allowed, NOTHING))
            within = crossed.relations()[marks.seen[crossed.neighbors()]]
        found: list[int] = np.sort(within).tolist()
        return found
    out_edges = graph.graph.out_edges
    return sorted(
        payload >> SHIFT
        for index in inside
        for _, far, payload in out_edges(index)
        if far in inside and allowed[payload & MASK]
    )
