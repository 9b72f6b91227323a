"""Diameter of the largest component: from two sweeps, then exact within a budget.

Idea: the node farthest from the farthest node gives a lower bound (double sweep). Take the
middle of that path as root. All that lies within i hops of it is at most 2i apart, so
looking at the nodes from the outermost level inwards, one search each, the answer is proved
as soon as the longest distance seen is at least 2(i - 1): usually after a few searches (iFUB).
Cost: O(m) a search; at most `budget` of them after the sweeps.
Corners: undirected, hops; when the budget ends first, the two bounds that hold are returned.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from analytics.measures.components import weakly_connected_components
from analytics.measures.gathering import hops
from analytics.snapshot import GraphSnapshot


@dataclass(frozen=True, slots=True)
class Diameter:
    """The diameter lies in [lower, upper]; exact where they are equal."""

    lower: int
    upper: int

    @property
    def exact(self) -> bool:
        return self.lower == self.upper


def diameter(snapshot: GraphSnapshot, *, budget: int = 1000) -> Diameter:
    """The longest shortest path, in hops, within the largest weak component.

    Source: Magnien, Latapy, Habib, JEA 13 (2009); Crescenzi, Grossi, Habib, Lanzi, Marino,
    Theor. Comput. Sci. 514 (2013).
    """
    if not len(snapshot):
        return Diameter(0, 0)
    matrix = snapshot.simple(False)
    members = weakly_connected_components(snapshot).members(0)
    degree = np.diff(matrix.indptr)[members]
    start = int(members[np.argmax(degree)])
    one = int(np.argmax(hops(matrix, start)))
    from_one = hops(matrix, one)
    lower = int(from_one.max())
    from_two = hops(matrix, int(np.argmax(from_one)))
    on_path = (from_one + from_two == lower) & (from_one == lower // 2)
    level = hops(matrix, int(np.argmax(on_path)))
    deepest = int(level.max())
    lower = max(lower, deepest)
    for depth in range(deepest, 0, -1):
        if lower >= 2 * depth:
            break
        for node in np.flatnonzero(level == depth).tolist():
            if budget == 0:
                return Diameter(lower, 2 * depth)
            budget -= 1
            lower = max(lower, int(hops(matrix, node).max()))
            if lower == 2 * depth:
                return Diameter(lower, lower)
    return Diameter(lower, lower)
