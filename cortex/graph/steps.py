"""The steps that a path between two nodes may take, read from the graph as they are asked for.

Idea: of several relations between two nodes the strongest counts, then the earliest; its
length is 2 − weight, so 1 at least. A cost is one whole number: the length in billionths and,
below it, the number of steps, so that of two paths as long the one of fewer steps costs less.
Who the neighbours of a hub are is asked of rustworkx as one array, which is a hundred times
cheaper than its relations.

Cost: 0.5 µs a relation; a byte for each graph index where a hub's neighbours alone are asked
for. Corner: no step leads to a session other than an end.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cortex.domain.taxonomy import NODE_CODE, NodeType
from cortex.graph.codes import MASK, SHIFT, flags
from cortex.graph.workspace import WorkspaceGraph

UNIT: Final = 1_000_000_000
HOPS: Final = 16  # bits of a cost for the steps
LEAST: Final = (UNIT << HOPS) + 1
"""What any step costs at least."""
HUB: Final = 200
"""Relations from which a node is a hub."""
_SESSION: Final = NODE_CODE[NodeType.SESSION]

Step = tuple[int, int, int]
"""Graph index of the far end, cost, key of the relation."""


class Neighbourhood(NamedTuple):
    """Who a hub's neighbours are, over relations of any type, and perhaps some more than once."""

    node: int
    ends: NDArray[Any]
    holds: bytearray
    """By graph index: 1 for a neighbour."""

    def shared(self, other: Neighbourhood) -> list[int]:
        """Who are neighbours of both."""
        own = np.frombuffer(self.holds, np.bool_)
        found: list[int] = other.ends[own[other.ends]].tolist()
        return found


class Steps:
    """Steps in both directions, as one search may take them."""

    def __init__(self, graph: WorkspaceGraph, start: int, target: int, derived: bool) -> None:
        self._graph = graph
        self._ends = (start, target)
        self._allowed = flags(None, include_derived=derived)
        self._read: dict[int, list[Step]] = {}
        self._degrees: dict[int, int] = {}
        self._around: dict[int, Neighbourhood] = {}

    def cost(self, relation: int) -> int:
        """What the step over a relation costs."""
        return (round((2.0 - self._graph.weight(relation)) * UNIT) << HOPS) + 1

    def degree(self, index: int) -> int:
        """How many relations a node has, of any type."""
        found = self._degrees.get(index)
        if found is None:
            graph = self._graph.graph
            found = self._degrees[index] = graph.out_degree(index) + graph.in_degree(index)
        return found

    def of(self, index: int) -> list[Step]:
        """The best step to each neighbour."""
        known = self._read.get(index)
        if known is not None:
            return known
        graph, allowed, weak = self._graph.graph, self._allowed, self._graph.weights
        edges = [(far, edge) for _, far, edge in graph.out_edges(index) if allowed[edge & MASK]]
        edges += [(far, edge) for far, _, edge in graph.in_edges(index) if allowed[edge & MASK]]
        best: dict[int, int] = {}
        for far, edge in edges:
            relation = edge >> SHIFT
            other = best.setdefault(far, relation)
            if other != relation:
                best[far] = min(relation, other, key=lambda each: (self.cost(each), each))
        kind = self._graph.kind
        found = [
            (far, self.cost(relation) if relation in weak else LEAST, relation)
            for far, relation in best.items()
            if kind[far] != _SESSION or far in self._ends
        ]
        self._read[index] = found
        return found

    def between(self, near: int, far: int) -> Step | None:
        """The best step from one node to another, None where there is none."""
        if self.degree(near) <= self.degree(far):
            return next((step for step in self.of(near) if step[0] == far), None)
        if self._graph.kind[far] == _SESSION and far not in self._ends:
            return None
        for end, cost, relation in self.of(far):
            if end == near:
                return far, cost, relation
        return None

    def around(self, index: int) -> Neighbourhood:
        """Who a node's neighbours are."""
        known = self._around.get(index)
        if known is None:
            graph = self._graph.graph
            both = (graph.successor_indices(index), graph.predecessor_indices(index))
            ends = np.concatenate([np.asarray(each, np.int64) for each in both])
            holds = bytearray(len(self._graph.key))
            np.frombuffer(holds, np.uint8)[ends] = 1
            known = self._around[index] = Neighbourhood(index, ends, holds)
        return known
