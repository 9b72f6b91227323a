"""Where a graph falls apart: bridges, articulation points, dominators.

Cost: O(n + m), in rustworkx; dominators O(n²) at worst, near-linear on real graphs.
Corners: bridges and articulation points are of the undirected graph without parallel
relations, so two relations between the same nodes can be a bridge together.
"""

from __future__ import annotations

import numpy as np

from analytics.measures.rustworkx_graph import directed_graph, undirected_graph
from analytics.snapshot import GraphSnapshot, Integers

UNREACHED = -1


def bridges(snapshot: GraphSnapshot) -> list[tuple[int, int]]:
    """Pairs of positions whose relation, taken away, parts its component; sorted. Exact.

    Source: Hopcroft, Tarjan, CACM 16 (1973).
    """
    import rustworkx as rx

    found = rx.bridges(undirected_graph(snapshot))
    return sorted((min(pair), max(pair)) for pair in found)


def articulation_points(snapshot: GraphSnapshot) -> list[int]:
    """Positions of nodes that, taken away, part their component; sorted. Exact.

    Source: Hopcroft, Tarjan, CACM 16 (1973).
    """
    import rustworkx as rx

    return sorted(rx.articulation_points(undirected_graph(snapshot)))


def immediate_dominators(snapshot: GraphSnapshot, root: int) -> Integers:
    """For each node the last node before it on every path from the root. Exact.

    The root is its own; UNREACHED for nodes that it does not reach. Source: Cooper, Harvey,
    Kennedy, Rice TR-06-33870 (2001).
    """
    import rustworkx as rx

    found = np.full(len(snapshot), UNREACHED)
    for node, dominator in rx.immediate_dominators(directed_graph(snapshot), root).items():
        found[node] = dominator
    found[root] = root
    return found
