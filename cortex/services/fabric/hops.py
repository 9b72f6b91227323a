"""Several hops: what lies between the entities that a question names.

Idea: breadth first from the nodes of each hint, over relations either way; a node that is
reached from several hints answers them together, whatever words it uses. Session roots are
no way through: by them everything is near everything. Derived neighbour links are left out.

Cost: at most 2 hops, `_WIDTH` relations a node and direction and `_EXPANDED` nodes a hint.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from cortex.domain.taxonomy import NodeType
from cortex.domain.values import NodeId
from cortex.store.database import Snapshot

HOPS: Final = 2
NEAR: Final = (1.0, 0.8, 0.6)
MOST_REACHED: Final = 40
_ALONE: Final = 0.5
_WIDTH: Final = 40
_EXPANDED: Final = 40


def reached(snapshot: Snapshot, hints: Mapping[str, Sequence[NodeId]]) -> dict[NodeId, float]:
    """Nearness of nodes to the hints, in (0, 1], nearest first, ties by id; at most 40.

    With several hints only nodes that two or more reach count, by the mean nearness over
    all hints (1 at the hint itself, 0.8 one hop away, 0.6 two). With one hint its direct
    neighbours count half.
    """
    distances = {hint: _distances(snapshot, starts) for hint, starts in hints.items() if starts}
    scores: dict[NodeId, float] = {}
    for node in {node for each in distances.values() for node in each}:
        near = [each[node] for each in distances.values() if node in each]
        if len(distances) == 1:
            if near[0] <= 1:
                scores[node] = NEAR[near[0]] * _ALONE
        elif len(near) > 1:
            scores[node] = sum(NEAR[hops] for hops in near) / len(distances)
    ranked = sorted(scores.items(), key=lambda item: (-item[1], item[0]))
    return dict(ranked[:MOST_REACHED])


def _distances(snapshot: Snapshot, starts: Sequence[NodeId]) -> dict[NodeId, int]:
    """Hops from the nearest start."""
    hops = dict.fromkeys(starts, 0)
    frontier = list(starts)
    expanded = 0
    for depth in range(1, HOPS + 1):
        found: dict[NodeId, None] = {}
        for node in frontier:
            expanded += 1
            if expanded > _EXPANDED:
                break
            for relation in (
                *snapshot.relations.outgoing(node, limit=_WIDTH),
                *snapshot.relations.incoming(node, limit=_WIDTH),
            ):
                other = relation.to_id if relation.from_id == node else relation.from_id
                if not relation.derived and other not in hops:
                    found[other] = None
        present = snapshot.nodes.by_ids(list(found))
        frontier = [node.id for node in present if node.type is not NodeType.SESSION]
        hops.update(dict.fromkeys(frontier, depth))
    return hops
