"""Sync: phases drawn together along the links, by Kuramoto's flow.

dφᵢ/dt = K·Σⱼ ŵᵢⱼ·sin(φⱼ − φᵢ), with ŵ the weights of i's links divided by their sum, a link
between two communities counted `BETWEEN` times. The oscillators are alike (no frequencies of
their own: what is opened often would else never rest), so on a connected graph whose phases
lie within half a turn the order parameter R rises to 1, the faster the greater K is. A dream
lasts `STEPS` steps of `DT`, always from the phases of creation, never from the last dream's:
so its end is a function of memories and links.

Cost: sin(φⱼ − φᵢ) = cos φᵢ·sin φⱼ − sin φᵢ·cos φⱼ, so a step is two products with the matrix
of links and no sine a link: 30 ms at 1.6 million. Corners: K = 0 leaves all phases; phases a
whole turn apart along a ring may stay so (twisted states), as the equations have it.
Sources: Kuramoto 1975; Strogatz, Physica D 143, 2000; coupling divided by degree and
communities: Rodrigues, Peron, Ji, Kurths, Physics Reports 610, 2016.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from cortex.domain.dreams import PHASE_STEPS
from cortex.graph.similarity import Floats, Integers, SimilarityGraph

COUPLING: Final = 1.0
BETWEEN: Final = 0.25
STEPS: Final = 32
DT: Final = 0.5


def synchronised(
    graph: SimilarityGraph, phase: Floats, group: Integers, coupling: float = COUPLING
) -> Floats:
    """The phases (n,) of the vertices at the end of a dream, in [−π, π].

    `phase` (n,) are those at its beginning, `group` (n,) the communities; `coupling` K in
    [0, 2], where the steps are stable.
    """
    if not len(graph):
        return phase
    tail = np.repeat(np.arange(len(graph)), np.diff(graph.indptr))
    starts = graph.indptr[:-1]
    weight = graph.weight * np.where(group[tail] == group[graph.neighbor], 1.0, BETWEEN)
    weight = weight / np.add.reduceat(weight, starts)[tail]
    moving = phase.copy()
    for _ in range(STEPS):
        sine, cosine = np.sin(moving), np.cos(moving)
        pull = cosine * np.add.reduceat(weight * sine[graph.neighbor], starts)
        pull -= sine * np.add.reduceat(weight * cosine[graph.neighbor], starts)
        moving += DT * coupling * pull
    return np.asarray(np.arctan2(np.sin(moving), np.cos(moving)))


def in_steps(phase: Floats) -> Floats:
    """The nearest of the 256 phases that are kept, in [−π, π)."""
    step = np.round(phase * PHASE_STEPS / (2.0 * np.pi)).astype(np.int64)
    half = PHASE_STEPS // 2
    return np.asarray(((step + half) % PHASE_STEPS - half) * (2.0 * np.pi / PHASE_STEPS))
