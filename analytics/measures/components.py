"""Weakly and strongly connected components.

Cost: O(n + m), in scipy's csgraph. Corners: a node alone is a component of one.
"""

from __future__ import annotations

from analytics.measures.groups import Groups, grouped
from analytics.snapshot import GraphSnapshot


def weakly_connected_components(snapshot: GraphSnapshot) -> Groups:
    """Nodes that paths join, whatever the direction of their relations. Exact.

    Source: Pearce, Inf. Process. Lett. 116 (2016), as scipy has it.
    """
    return _components(snapshot, "weak")


def strongly_connected_components(snapshot: GraphSnapshot) -> Groups:
    """Nodes that reach each other along relations; symmetric ones lead both ways. Exact.

    Source: Pearce, Inf. Process. Lett. 116 (2016).
    """
    return _components(snapshot, "strong")


def _components(snapshot: GraphSnapshot, connection: str) -> Groups:
    from scipy.sparse.csgraph import connected_components

    matrix = snapshot.simple(True)
    _, label = connected_components(matrix, directed=True, connection=connection)
    return grouped(label, "Pearce 2016")
