"""Differentiation Ξ: how unlike each other the communities of a memory are.

Ξ = 1 − mean cosine between the amplitude-weighted centroids of the communities, clipped to
[0, 1]; 0 with one community. With unit centroids c₁ … cₘ the mean over all pairs is
(|Σc|² − m) / (m·(m − 1)), so many communities cost no more than their sum.

Communities come from label propagation on the graph of neighbour links: each vertex takes the
label that weighs most among its neighbours, its own one if that is among the heaviest, else
the least; even and odd vertices by turns, so that no two flip for ever. Deterministic, without
a resolution to set. Source: Raghavan, Albert, Kumara, Physical Review E 76, 2007.

Cost: a sort of half of the links a turn, 0.3 s at 1.6 million; it ends after two turns in which
at most one vertex of a thousand moved, or after `TURNS` (where there are no communities to
find). Corners: vertices in separate components never share a label; none gives Ξ = 0.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from cortex.graph.integration import components
from cortex.graph.similarity import Floats, Integers, SimilarityGraph

TURNS: Final = 24


def communities(graph: SimilarityGraph) -> Integers:
    """The community of each vertex, (n,), numbered by size, largest first, then by vertex."""
    count = len(graph)
    label = np.arange(count)
    if not count:
        return label
    tail = np.repeat(label, np.diff(graph.indptr))
    turns = [np.flatnonzero(tail % 2 == parity) for parity in (0, 1)]
    quiet = 0
    for turn in range(TURNS):
        edges = turns[turn % 2]
        vertex, chosen = _heaviest(
            tail[edges], label[graph.neighbor[edges]], graph.weight[edges], label
        )
        moved = np.count_nonzero(label[vertex] != chosen)
        label[vertex] = chosen
        quiet = quiet + 1 if moved <= count // 1000 else 0
        if quiet == 2:
            break
    return _numbered(label, components(graph))


def _heaviest(
    tail: Integers, near: Integers, weight: Floats, own: Integers
) -> tuple[Integers, Integers]:
    """Each vertex of `tail`, and the label of greatest weight among its neighbours."""
    order = np.argsort(tail * len(own) + near, kind="stable")
    tail, near, weight = tail[order], near[order], weight[order]
    start = np.flatnonzero(np.diff(tail, prepend=-1) | np.diff(near, prepend=-1))
    vertex, label = tail[start], near[start]
    total = np.round(np.add.reduceat(weight, start), 9) if len(start) else weight
    best = np.lexsort((label, label != own[vertex], -total, vertex))
    first = best[np.flatnonzero(np.diff(vertex[best], prepend=-1))]
    return vertex[first], label[first]


def _numbered(label: Integers, component: Integers) -> Integers:
    """Labels numbered anew; one that spans components (it cannot stay so) is parted."""
    pairs = label * (int(component.max()) + 1) + component
    _, first, group, sizes = np.unique(
        pairs, return_index=True, return_inverse=True, return_counts=True
    )
    place = np.empty(len(sizes), np.int64)
    place[np.lexsort((first, -sizes))] = np.arange(len(sizes))
    return place[group]


def differentiation(group: Integers, vectors: NDArray[np.float32], amplitude: Floats) -> float:
    """Ξ in [0, 1] of vertices with these communities (n,), unit vectors (n, d), amplitudes (n,).

    A community whose vectors cancel out, or weigh nothing, has no direction and is left out.
    """
    if not len(group):
        return 0.0
    number = int(group.max()) + 1
    centroid = np.zeros((number, vectors.shape[1]))
    np.add.at(centroid, group, vectors * amplitude[:, None])
    length = np.linalg.norm(centroid, axis=1)
    centroid = centroid[length > 1e-9] / length[length > 1e-9, None]
    count = len(centroid)
    if count < 2:
        return 0.0
    total = float(np.square(centroid.sum(axis=0)).sum())
    mean = (total - count) / (count * (count - 1))
    return min(max(1.0 - mean, 0.0), 1.0)
