"""Density: how many of the possible relations are there. O(m). Exact."""

from __future__ import annotations

from analytics.snapshot import GraphSnapshot


def density(snapshot: GraphSnapshot, *, directed: bool = True) -> float:
    """Joined pairs by all ordered pairs, in [0, 1]; 0 below two nodes.

    Parallel relations count once; self-loops do not count. Source: Wasserman, Faust 1994.
    """
    n = len(snapshot)
    return float(snapshot.simple(directed).nnz) / (n * (n - 1)) if n > 1 else 0.0
