"""Wire: skip links between communities that nothing joins.

Each community is joined to the nearest one without a link between them, hub to hub, the hub
being the memory nearest the centre. So what belongs to one subject of several is a few steps
away, and integration rises. A skip link that no longer is among these goes. Corner: where
somebody related the two hubs, that relation stands.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from cortex.domain.dreams import WIRE_LEAST, Change
from cortex.domain.taxonomy import RelationType
from cortex.domain.values import NodeId
from cortex.graph.similarity import Integers, SimilarityGraph
from cortex.services.dreaming.clusters import Cluster, hubs_to_wire, joined_groups
from cortex.services.dreaming.material import Material
from cortex.store.database import Snapshot

_RELATED: Final = RelationType.RELATED_TO.value


class NewLink(NamedTuple):
    """A derived related_to that is not there yet; the smaller id is `one`."""

    one: NodeId
    other: NodeId
    weight: float


class Wiring(NamedTuple):
    """Skip links to make, and the keys of those to take away."""

    made: tuple[NewLink, ...]
    gone: tuple[int, ...]
    changes: tuple[Change, ...]


NOTHING_WIRED: Final = Wiring((), (), ())


def wire(
    snapshot: Snapshot,
    material: Material,
    clusters: Sequence[Cluster],
    graph: SimilarityGraph,
    group: Integers,
) -> Wiring:
    """The skip links that these clusters are to have."""
    present = {frozenset((each.one, each.other)): each for each in material.skips}
    made: list[NewLink] = []
    changes: list[Change] = []
    wanted: set[frozenset[int]] = set()
    for one, other, likeness in hubs_to_wire(clusters, joined_groups(graph, group), WIRE_LEAST):
        pair = frozenset((one.core[0], other.core[0]))
        wanted.add(pair)
        first, second = sorted(material.ids[key] for key in pair)
        if pair in present or snapshot.relations.find(first, second, RelationType.RELATED_TO):
            continue
        made.append(NewLink(first, second, likeness))
        why = (
            f"no link joins their communities, of {one.size} and {other.size} memories, whose "
            f"centres have cosine {likeness:.2f}"
        )
        changes.append(Change("wire", 0, (first, _RELATED, second), None, likeness, why))
    gone = [each for pair, each in present.items() if pair not in wanted]
    for each in gone:
        ends = (material.ids[each.one], _RELATED, material.ids[each.other])
        why = "their communities are joined by links now, or others are nearer"
        changes.append(Change("wire", each.relation, ends, each.weight, None, why))
    return Wiring(tuple(made), tuple(each.relation for each in gone), tuple(changes))
