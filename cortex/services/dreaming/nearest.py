"""Replay: neighbour links for memories that have none yet.

The follower (`cortex.services.neighbours`) links what store_memory wrote; a deep dream links
the other memories too, by the same rules: the `K` nearest of cosine `LEAST` and more, at most
`MOST` links a memory, weight the cosine to 4 digits. Idea: exact, by products of blocks with
the matrix of all vectors. Cost: 10 ms a memory at 100,000, nothing where all are linked.
Corner: memories near nothing are looked at in every deep dream.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Final

import numpy as np

from cortex.domain.taxonomy import RelationType
from cortex.graph.similarity import Integers
from cortex.services.dreaming.material import NO_LINKS, Links, Material, Vectors
from cortex.services.neighbours import LEAST, LINKED, MOST, K
from cortex.store.database import Snapshot

_BLOCK: Final = 128
_POOL: Final = 40  # candidates: the nearest, and some in place of full ones
_KINDS: Final = frozenset(kind.value for kind in LINKED)


def missing_links(
    snapshot: Snapshot,
    material: Material,
    vectors: Vectors,
    told: Callable[[int, int], None],
) -> Links:
    """The links that memories without any are to have; `told` hears how many are done, of how
    many."""
    able = np.array([material.kinds[key] in _KINDS for key in vectors.keys.tolist()], np.bool_)
    linked = np.union1d(material.links.one, material.links.other)
    lone = np.flatnonzero(able & ~np.isin(vectors.keys, linked))
    if not len(lone):
        return NO_LINKS
    degrees: Counter[int] = Counter()
    degrees.update(material.links.one.tolist())
    degrees.update(material.links.other.tolist())
    made: dict[tuple[int, int], float] = {}
    for start in range(0, len(lone), _BLOCK):
        told(start, len(lone))
        block = lone[start : start + _BLOCK]
        rough = vectors.rows[block] @ vectors.rows.T
        rough[:, ~able] = -1.0
        for row, at in enumerate(block.tolist()):
            rough[row, at] = -1.0
            _choose(snapshot, material, vectors, at, _nearest(rough[row]), degrees, made)
    ends = np.array(list(made), np.int64).reshape(-1, 2)
    return Links(ends[:, 0], ends[:, 1], np.array(list(made.values()), np.float64))


def _nearest(scores: np.ndarray[tuple[int], np.dtype[np.float32]]) -> Integers:
    likely = np.flatnonzero(scores >= LEAST - 1e-3)  # float32 is settled exactly afterwards
    if len(likely) > _POOL:
        likely = likely[np.argpartition(scores[likely], -_POOL)[-_POOL:]]
    return likely


def _choose(
    snapshot: Snapshot,
    material: Material,
    vectors: Vectors,
    at: int,
    likely: Integers,
    degrees: Counter[int],
    made: dict[tuple[int, int], float],
) -> None:
    """Link one memory to the nearest that are not full, in order of cosine, then id."""
    key, own = int(vectors.keys[at]), vectors.rows[at].astype(np.float64)
    ids = material.ids
    cosines = {
        int(vectors.keys[other]): round(min(float(own @ vectors.rows[other]), 1.0), 4)
        for other in likely.tolist()
    }
    for other in sorted(cosines, key=lambda each: (-cosines[each], ids[each])):
        pair = (key, other) if ids[key] < ids[other] else (other, key)
        if degrees[key] >= K or cosines[other] < LEAST:  # it began with none
            return
        if pair in made or degrees[other] >= MOST:
            continue
        first, second = ids[pair[0]], ids[pair[1]]
        if snapshot.relations.find(first, second, RelationType.RELATED_TO) is not None:
            continue  # somebody stated it
        made[pair] = cosines[other]
        degrees[key] += 1
        degrees[other] += 1
