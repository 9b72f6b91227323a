"""Detect: which memories reinforce each other, and which disturb.

Two neighbours of cosine w, made Δφ apart, interfere by w·cos Δφ: constructive above 0,
destructive below (alike, and a good part of a year between them: one may be outdated). Two
that contradict each other are half a turn apart beside that. The sum over a memory's links is
its support, what leads to another community counted twice; it is what `strengthen` and
`transfer` go by. Nothing is resolved here. Cost: one pass over the links.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from cortex.domain.dreams import BRIDGE, PHASE_PERIOD
from cortex.graph.similarity import Floats, Integers, SimilarityGraph
from cortex.services.dreaming.material import Links, Material

_SHOWN: Final = 20


class Pair(NamedTuple):
    """Two memories by keys; `interference` in [−1, 1]."""

    one: int
    other: int
    similarity: float
    interference: float
    contradicts: bool


class Detected(NamedTuple):
    """`phase` (n,) at creation, `support` (n,), `degree` (n,) and `bridges` (n,) of each memory;
    the pairs counted; the most destructive ones, contradictions among them, worst first."""

    phase: Floats
    support: Floats
    degree: Integers
    bridges: Integers
    constructive: int
    destructive: int
    worst: tuple[Pair, ...]


def creation_phases(made: Floats) -> Floats:
    """`cortex.domain.dreams.creation_phase` of each, in [−π, π]."""
    turn = 2.0 * np.pi * made / PHASE_PERIOD
    return np.asarray(np.arctan2(np.sin(turn), np.cos(turn)))


def detect(material: Material, graph: SimilarityGraph, group: Integers, links: Links) -> Detected:
    """The interference of all links; `group` are the communities of the graph's vertices."""
    field = material.field
    phase = creation_phases(material.made)
    support, degree = np.zeros(len(field)), np.zeros(len(field), np.int64)
    bridges = np.zeros(len(field), np.int64)
    if len(graph):
        at = field.of(graph.keys)
        tail = np.repeat(np.arange(len(graph)), np.diff(graph.indptr))
        across = group[tail] != group[graph.neighbor]
        share = graph.weight * np.cos(phase[at][tail] - phase[at][graph.neighbor])
        share *= np.where(across, BRIDGE, 1.0)
        starts = graph.indptr[:-1]
        support[at] = np.add.reduceat(share, starts)
        degree[at] = np.diff(graph.indptr)
        bridges[at] = np.add.reduceat(across.astype(np.int64), starts)
    near = _interference(phase, field.of(links.one), field.of(links.other), links.weight)
    against = material.contradictions
    one, other = field.of(against.one), field.of(against.other)
    apart = -_interference(phase, one, other, against.weight)
    np.add.at(support, one, apart)
    np.add.at(support, other, apart)
    both = np.concatenate([near, apart])
    return Detected(
        phase,
        support,
        degree,
        bridges,
        int(np.count_nonzero(both > 0.0)),
        int(np.count_nonzero(both < 0.0)),
        _worst(links.joined(against), both, len(near)),
    )


def _interference(phase: Floats, one: Integers, other: Integers, weight: Floats) -> Floats:
    return np.asarray(weight * np.cos(phase[one] - phase[other]))


def _worst(pairs: Links, interference: Floats, links: int) -> tuple[Pair, ...]:
    order = np.lexsort((pairs.other, pairs.one, interference))[:_SHOWN]
    return tuple(
        Pair(
            int(pairs.one[at]),
            int(pairs.other[at]),
            round(float(pairs.weight[at]), 4),
            round(float(interference[at]), 4),
            bool(at >= links),
        )
        for at in order
        if interference[at] < 0.0
    )
