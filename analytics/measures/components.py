"""Weakly and strongly connected components.

Idea: scipy's depth-first search; but in most graphs one weak component holds nearly all, and
where the graph is larger than the caches it is found quicker in whole levels of a breadth-first
search from the node of highest degree. Cost: O(n + m); at a million nodes the levels take a
third of the depth-first search. Corners: a node alone is a component of one; a component of
more levels than are tried, or of less than half of the nodes, is left to scipy.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from analytics.measures.gathering import gather
from analytics.measures.groups import Groups, grouped
from analytics.snapshot import Flags, GraphSnapshot, Integers

if TYPE_CHECKING:
    from scipy.sparse import csr_array

_LARGE: Final = 200_000  # nodes; below, one search is as quick as the other
_LEVELS: Final = 60  # an agent's memory of a million nodes has seven


def weakly_connected_components(snapshot: GraphSnapshot) -> Groups:
    """Nodes that paths join, whatever the direction of their relations. Exact.

    Source: breadth-first levels, then Pearce, Inf. Process. Lett. 116 (2016), as scipy has it.
    """
    matrix = snapshot.simple(True)
    if len(snapshot) < _LARGE:
        return grouped(_labels(matrix, "weak"), "Pearce 2016")
    rest = np.flatnonzero(~_giant(matrix))
    if 2 * len(rest) > len(snapshot):
        return grouped(_labels(matrix, "weak"), "Pearce 2016")
    label = np.zeros(len(snapshot), np.int64)
    if len(rest):
        label[rest] = 1 + _labels(matrix[rest][:, rest], "weak")
    return grouped(label, "Pearce 2016")


def strongly_connected_components(snapshot: GraphSnapshot) -> Groups:
    """Nodes that reach each other along relations; symmetric ones lead both ways. Exact.

    Source: Pearce, Inf. Process. Lett. 116 (2016).
    """
    return grouped(_labels(snapshot.simple(True), "strong"), "Pearce 2016")


def _labels(matrix: csr_array, connection: str) -> Integers:
    from scipy.sparse.csgraph import connected_components

    _, label = connected_components(matrix, directed=True, connection=connection)
    return np.asarray(label, np.int64)


def _giant(matrix: csr_array) -> Flags:
    """The weak component of the node of highest degree; nothing where the levels do not end."""
    ways = (matrix, matrix.T.tocsr())
    seen = np.zeros(matrix.shape[0], np.bool_)
    frontier = np.array([np.argmax(sum(np.diff(way.indptr) for way in ways))])
    seen[frontier] = True
    for _ in range(_LEVELS):
        reached = np.zeros(len(seen), np.bool_)
        for way in ways:
            reached[way.indices[gather(way.indptr, frontier)[0]]] = True
        reached &= ~seen
        frontier = np.flatnonzero(reached)
        if not len(frontier):
            return seen
        seen |= reached
    return np.zeros(len(seen), np.bool_)
