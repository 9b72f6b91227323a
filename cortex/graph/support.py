"""What rests on a node alone: who would lose all support if it fell.

Idea: a fact that supports or answers gives, a node that derives takes. Breadth first from
what falls: whoever takes from it falls with it where no giver that is active still stands.
Cost: the relations of what falls and of what takes from it. Corners: nodes that support
each other in a circle stand; a giver that is not active gives nothing, so nothing falls by
it; derived relations support nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from cortex.domain.taxonomy import RelationType, Status
from cortex.graph.codes import MASK, STATUS, flags
from cortex.graph.workspace import WorkspaceGraph

GIVING: Final = (RelationType.SUPPORTS, RelationType.ANSWERS)
TAKING: Final = (RelationType.DERIVES_FROM,)
MAX_FALLING: Final = 10_000

_GIVING: Final = flags(GIVING, include_derived=False)
_TAKING: Final = flags(TAKING, include_derived=False)
_ACTIVE: Final = STATUS[Status.ACTIVE.value]


def unsupported(
    graph: WorkspaceGraph, falling: Mapping[int, int], limit: int = MAX_FALLING
) -> tuple[list[tuple[int, int]], bool]:
    """(key, depth) of what loses all support, by (depth, created_at, id).

    `falling` are keys of what falls first, with their depths; one that loses support
    through them lies one deeper. True, besides, where the search ended at `limit`.
    """
    fallen = {graph.index(key): depth for key, depth in falling.items()}
    first = set(fallen)
    waiting: dict[int, list[int]] = {}
    for index, depth in fallen.items():
        waiting.setdefault(depth, []).append(index)
    found: list[tuple[int, int]] = []
    while waiting:
        depth = min(waiting)
        for giver in waiting.pop(depth):
            if graph.status[giver] != _ACTIVE:
                continue
            for taker in _takers(graph, giver):
                if taker in fallen or graph.status[taker] != _ACTIVE:
                    continue
                if all(other in fallen for other in _active_givers(graph, taker)):
                    fallen[taker] = depth + 1
                    waiting.setdefault(depth + 1, []).append(taker)
        if len(fallen) - len(first) > limit:
            break
    rank = graph.rank
    for index in sorted(fallen.keys() - first, key=lambda at: (fallen[at], rank[at])):
        found.append((graph.key[index], fallen[index]))
    return found[:limit], len(found) > limit


def is_active(graph: WorkspaceGraph, key: int) -> bool:
    """Whether the node of this key is active. Raises NotFoundError."""
    return graph.status[graph.index(key)] == _ACTIVE


def _takers(graph: WorkspaceGraph, index: int) -> Iterator[int]:
    for _, far, payload in graph.graph.out_edges(index):
        if _GIVING[payload & MASK]:
            yield far
    for near, _, payload in graph.graph.in_edges(index):
        if _TAKING[payload & MASK]:
            yield near


def _active_givers(graph: WorkspaceGraph, index: int) -> Iterator[int]:
    for near, _, payload in graph.graph.in_edges(index):
        if _GIVING[payload & MASK] and graph.status[near] == _ACTIVE:
            yield near
    for _, far, payload in graph.graph.out_edges(index):
        if _TAKING[payload & MASK] and graph.status[far] == _ACTIVE:
            yield far
