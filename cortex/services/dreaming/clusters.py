"""The communities of linked memories, with centres: what bundle and wire work on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cortex.domain.dreams import PATTERN_CORE, PATTERN_LEAST, PATTERNS
from cortex.graph.similarity import Integers, SimilarityGraph
from cortex.services.dreaming.material import Vectors


@dataclass(frozen=True, slots=True)
class Cluster:
    """A community: its number, its size, the keys of its `core` (the 24 memories nearest the
    centre, nearest first, ties by key), its unit centre (d,)."""

    group: int
    size: int
    core: tuple[int, ...]
    centre: NDArray[np.float32]


def clusters_of(graph: SimilarityGraph, group: Integers, vectors: Vectors) -> list[Cluster]:
    """The 1,000 largest communities of 3 members and more that have vectors, largest first."""
    if not len(graph) or not len(vectors):
        return []
    order = np.argsort(group, kind="stable")
    members = np.split(graph.keys[order], np.flatnonzero(np.diff(group[order])) + 1)
    found = [_cluster(number, keys, vectors) for number, keys in enumerate(members[:PATTERNS])]
    return [each for each in found if each is not None]


def _cluster(number: int, keys: Integers, vectors: Vectors) -> Cluster | None:
    at = vectors.of(keys)
    if len(at) < PATTERN_LEAST:
        return None
    rows = vectors.rows[at]
    total = rows.sum(axis=0)
    length = float(np.linalg.norm(total))
    if length <= 0.0:
        return None  # they cancel out: there is no centre
    centre = total / np.float32(length)
    own = vectors.keys[at]
    nearest = np.lexsort((own, -np.round(rows @ centre, 5)))[:PATTERN_CORE]
    return Cluster(number, len(keys), tuple(own[nearest].tolist()), centre)


def joined_groups(graph: SimilarityGraph, group: Integers) -> set[tuple[int, int]]:
    """The pairs of communities (lower number first) that some link joins."""
    tail = np.repeat(group, np.diff(graph.indptr))
    head = group[graph.neighbor]
    across = tail < head
    pairs = np.unique(np.stack([tail[across], head[across]], axis=1), axis=0)
    return {(int(one), int(other)) for one, other in pairs}


def hubs_to_wire(
    clusters: Sequence[Cluster], joined: set[tuple[int, int]], least: float
) -> list[tuple[Cluster, Cluster, float]]:
    """Each cluster with the nearest one that nothing joins it to, each pair once, by number.

    The third is the cosine of their centres, `least` or more, to 4 digits.
    """
    if len(clusters) < 2:
        return []
    centres = np.stack([each.centre for each in clusters])
    likeness = np.round((centres @ centres.T).astype(np.float64), 4)
    np.fill_diagonal(likeness, -1.0)
    place = {each.group: at for at, each in enumerate(clusters)}
    for one, other in joined:
        if one in place and other in place:
            likeness[place[one], place[other]] = likeness[place[other], place[one]] = -1.0
    pairs: dict[tuple[int, int], float] = {}
    for at, other in enumerate(likeness.argmax(axis=1).tolist()):
        best = float(likeness[at, other])
        if best >= least:
            pairs[min(at, other), max(at, other)] = min(best, 1.0)
    return [(clusters[one], clusters[two], pairs[one, two]) for one, two in sorted(pairs)]
