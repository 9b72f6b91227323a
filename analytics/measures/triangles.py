"""Triangles, and the clustering that follows from them.

Idea: turn every edge from the end with fewer neighbours to the one with more; then each
triangle is found once, as u → v → w closed by u → w, and no node has more than √(2m) ways out.
Cost: O(m^1.5) at worst, by chunks of two million candidates.
Corners: undirected, parallel relations and self-loops left out; a node with fewer than two
neighbours has clustering 0.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from analytics.measures.gathering import gather
from analytics.measures.scores import Scores
from analytics.snapshot import Floats, GraphSnapshot, Integers

if TYPE_CHECKING:
    from scipy.sparse import csr_array

_CHUNK: Final = 2_000_000


@dataclass(frozen=True, slots=True, eq=False)
class Corners:
    """Some triangles: three nodes each, and the value of the edge opposite to each of them."""

    nodes: tuple[Integers, Integers, Integers]
    opposite: tuple[Floats, Floats, Floats]


def iter_triangles(matrix: csr_array) -> Iterator[Corners]:
    """Every triangle of a symmetric matrix with an empty diagonal, once, in chunks."""
    n = matrix.shape[0]
    degree = np.diff(matrix.indptr).astype(np.int64)
    rank = np.empty(n, np.int64)
    rank[np.argsort(degree, kind="stable")] = np.arange(n)
    row = np.repeat(np.arange(n), degree)
    up = rank[row] < rank[matrix.indices]
    near, far, value = row[up], matrix.indices[up].astype(np.int64), matrix.data[up]
    indptr = np.concatenate([[0], np.cumsum(np.bincount(near, minlength=n))])
    edge = near * n + far  # sorted, since rows and their columns are
    cumulated = np.cumsum(indptr[far + 1] - indptr[far])
    first = 0
    while first < len(edge):
        done = cumulated[first - 1] if first else 0
        last = max(first + 1, int(np.searchsorted(cumulated, done + _CHUNK, "right")))
        second, counts = gather(indptr, far[first:last])
        base = np.repeat(np.arange(first, last), counts)
        wanted = near[base] * n + far[second]
        third = np.minimum(np.searchsorted(edge, wanted), len(edge) - 1)
        closed = edge[third] == wanted
        base, second, third = base[closed], second[closed], third[closed]
        yield Corners(
            (near[base], far[base], far[second]), (value[second], value[third], value[base])
        )
        first = last


def triangles(snapshot: GraphSnapshot) -> Scores:
    """Triangles that each node is a corner of; their sum is three times the graph's. Exact.

    Source: Latapy, Theor. Comput. Sci. 407 (2008).
    """
    counted = np.zeros(len(snapshot))
    for found in iter_triangles(snapshot.simple(False)):
        for corner in found.nodes:
            counted += np.bincount(corner, minlength=len(snapshot))
    return Scores(counted, True, "Latapy 2008")


def local_clustering(snapshot: GraphSnapshot) -> Scores:
    """The share of a node's pairs of neighbours that are joined, in [0, 1]. Exact.

    Its mean is the average clustering. Source: Watts, Strogatz, Nature 393 (1998).
    """
    pairs = _pairs(snapshot)
    closed = triangles(snapshot).values
    values = np.divide(closed, pairs, out=np.zeros(len(pairs)), where=pairs > 0)
    return Scores(values, True, "Watts, Strogatz 1998")


def transitivity(snapshot: GraphSnapshot) -> float:
    """The share of paths of two edges that are closed, in [0, 1]; 0 without any. Exact.

    Source: Newman, Watts, Strogatz, PNAS 99 (2002).
    """
    pairs = float(_pairs(snapshot).sum())
    return float(triangles(snapshot).values.sum()) / pairs if pairs else 0.0


def _pairs(snapshot: GraphSnapshot) -> Floats:
    degree = np.diff(snapshot.simple(False).indptr).astype(np.float64)
    return np.asarray(degree * (degree - 1) / 2)
