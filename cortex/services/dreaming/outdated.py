"""Replay: neighbour links whose memories say something else by now.

The follower mends the links of what it follows; those of other memories, which a deep dream
made, a deep dream mends: the weight is the cosine of the vectors as they are, and a link below
`LEAST` goes. Cost: a product a link, 0.4 s at 500,000.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from cortex.domain.taxonomy import RelationType
from cortex.domain.values import Relation
from cortex.services.dreaming.material import Links, Material, Vectors
from cortex.services.neighbours import LEAST
from cortex.store.database import Snapshot

_SAME: Final = 2e-4  # weights have 4 digits, and which is the last depends on the order of a sum
_PAGE: Final = 20_000


class Mended(NamedTuple):
    """A link with the weight that it is to have, None where it is to go."""

    link: Relation
    weight: float | None


def mend(
    snapshot: Snapshot, material: Material, vectors: Vectors
) -> tuple[Links, tuple[Mended, ...]]:
    """The links as they are to be, and what that changes; as they are where a vector is missing."""
    links = material.links
    weight = links.weight.copy()
    known = np.isin(links.one, vectors.keys) & np.isin(links.other, vectors.keys)
    for page in np.array_split(np.flatnonzero(known), max(1, int(known.sum()) // _PAGE)):
        one, other = vectors.of(links.one[page]), vectors.of(links.other[page])
        cosine = np.einsum("ij,ij->i", vectors.rows[one], vectors.rows[other], dtype=np.float64)
        weight[page] = np.round(cosine, 4).clip(-1.0, 1.0)
    changed = np.abs(weight - links.weight) > _SAME
    weight = np.where(changed, weight, links.weight)
    kept = ~changed | (weight >= LEAST)
    mended = []
    for at in np.flatnonzero(changed).tolist():
        first, second = sorted(material.ids[int(end[at])] for end in (links.one, links.other))
        link = snapshot.relations.find(first, second, RelationType.RELATED_TO)
        if link is not None:
            mended.append(Mended(link, float(weight[at]) if kept[at] else None))
    return Links(links.one[kept], links.other[kept], weight[kept]), tuple(mended)
