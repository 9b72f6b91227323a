"""The six algorithms of LDBC Graphalytics, with the semantics of its specification.

They let results be compared with other engines; the measures for agents are in the other
files and differ where said. Directed relations go from source to target; symmetric ones both
ways, which is LDBC's undirected graph. Parallel relations count once, self-loops do not count.
Source: Iosup et al., The LDBC Graphalytics Benchmark, arXiv:2011.15028.
Cost: O(n + m) an iteration or search; `cdlp` sorts all votes in each round; `lcc` as triangles.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from analytics.measures.gathering import UNREACHED, hops
from analytics.measures.scores import Scores
from analytics.measures.triangles import iter_triangles
from analytics.snapshot import Floats, GraphSnapshot, Integers

UNREACHABLE: Final = (1 << 63) - 1
_SOURCE: Final = "LDBC Graphalytics 1.0"


def bfs(snapshot: GraphSnapshot, source: int) -> Integers:
    """Hops along relations from a position; UNREACHABLE where there is no path. Exact."""
    distance = hops(snapshot.simple(True), source)
    distance[distance == UNREACHED] = UNREACHABLE
    return distance


def sssp(snapshot: GraphSnapshot, source: int) -> Floats:
    """The least sum of weights from a position, weights read as lengths; inf without a path.

    Exact. Of parallel relations the shortest counts. (`paths.py` reads weights as strength.)
    """
    from scipy.sparse.csgraph import dijkstra

    return np.asarray(dijkstra(snapshot.simple(True, "min"), directed=True, indices=source))


def wcc(snapshot: GraphSnapshot) -> Integers:
    """For each node the smallest position in its weak component. Exact."""
    from scipy.sparse.csgraph import connected_components

    _, label = connected_components(snapshot.simple(True), directed=True, connection="weak")
    _, first, inverse = np.unique(label, return_index=True, return_inverse=True)
    return np.asarray(first[inverse], np.int64)


def pr(snapshot: GraphSnapshot, *, iterations: int, damping: float = 0.85) -> Scores:
    """Exactly so many synchronous iterations from 1/n; unweighted; sums to 1.

    What stands on nodes without a way out is spread over all nodes. The result is exact for
    that number of iterations, not a limit.
    """
    n = len(snapshot)
    matrix = snapshot.simple(True)
    out = np.diff(matrix.indptr)
    dangling = out == 0
    inverse = np.divide(1.0, out, out=np.zeros(n), where=~dangling)
    incoming = matrix.T.tocsr()
    share = 1 / max(n, 1)
    rank = np.full(n, share)
    for _ in range(iterations):
        spread = incoming @ (rank * inverse)
        rank = (1 - damping) * share + damping * (spread + rank[dangling].sum() * share)
    return Scores(rank, True, _SOURCE)


def cdlp(snapshot: GraphSnapshot, *, iterations: int) -> Integers:
    """Label propagation, deterministic: the label of each node after so many rounds.

    Labels are positions, at first each node's own. In a round every node takes the label most
    frequent among its in- and out-neighbours, of equally frequent ones the smallest; one that
    is both votes twice. A node without neighbours keeps its own. Exact.
    """
    n = len(snapshot)
    edges = snapshot.simple(True).tocoo()
    voter = np.concatenate([edges.row, edges.col]).astype(np.int64)
    voted = np.concatenate([edges.col, edges.row]).astype(np.int64)
    label = np.arange(n)
    for _ in range(iterations):
        ballots = np.sort(voter * n + label[voted])
        first = np.flatnonzero(np.diff(ballots, prepend=-1))
        count = np.diff(first, append=len(ballots))
        node, choice = np.divmod(ballots[first], max(n, 1))
        # By node, then most votes, then smallest label: the first of each node wins.
        order = np.lexsort((choice, -count, node))
        winner = order[np.flatnonzero(np.diff(node[order], prepend=-1))]
        following = label.copy()
        following[node[winner]] = choice[winner]
        if (following == label).all():
            break
        label = following
    return label


def lcc(snapshot: GraphSnapshot) -> Scores:
    """Directed edges among a node's neighbours by those possible, in [0, 1]. Exact.

    The neighbourhood is that of both directions; 0 below two neighbours.
    """
    n = len(snapshot)
    directed = snapshot.simple(True)
    both = (directed + directed.T).tocsr()  # 2 where relations lead both ways
    both.sort_indices()
    degree = np.diff(both.indptr).astype(np.float64)
    found = np.zeros(n)
    for corners in iter_triangles(both):
        for node, edges in zip(corners.nodes, corners.opposite, strict=True):
            found += np.bincount(node, edges, minlength=n)
    pairs = degree * (degree - 1)
    return Scores(np.divide(found, pairs, out=np.zeros(n), where=pairs > 0), True, _SOURCE)
