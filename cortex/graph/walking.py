"""A walk along a chain of reasoning.

Idea: from node to node over the types that tell what came of what; at each step the
strongest relation, then the earliest (relation keys rise with creation). Cost: the degree of
each node on the way. Corners: a node is not visited twice, so a cycle ends the walk; a
derived relation is no reasoning and is not followed.
"""

from __future__ import annotations

from typing import Final, Literal

from cortex.domain.taxonomy import REASONING
from cortex.graph.codes import MASK, SHIFT, flags
from cortex.graph.workspace import WorkspaceGraph

_REASONING: Final = flags(REASONING, include_derived=False)


def walk(
    graph: WorkspaceGraph,
    start: int,
    steps: int,
    direction: Literal["forward", "backward"] = "forward",
) -> list[tuple[int | None, int]]:
    """The path as (relation key, node key), the start first, with no relation.

    Raises NotFoundError where the start is not in this workspace.
    """
    here = graph.index(start)
    visited = {here}
    path: list[tuple[int | None, int]] = [(None, start)]
    forward = direction == "forward"
    edges_of = graph.graph.out_edges if forward else graph.graph.in_edges
    end = 1 if forward else 0
    for _ in range(steps):
        choices = [
            (-graph.weight(edge[2] >> SHIFT), edge[2] >> SHIFT, edge[end])
            for edge in edges_of(here)
            if _REASONING[edge[2] & MASK] and edge[end] not in visited
        ]
        if not choices:
            break
        _, relation, here = min(choices)
        visited.add(here)
        path.append((relation, graph.key[here]))
    return path
