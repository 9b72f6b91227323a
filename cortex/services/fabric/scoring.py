"""The final ranking: recency^a · relevance^b · authority^c, a weighted geometric mean.

The weights are exponents of the product (0.3, 0.5, 0.2 by default). Every factor lies in
(0, 1], and none can erase another: recency never falls below 0.5, so an old truth stays.

- recency: 0.5 + 0.5 · 2^(−age / half-life), age from the memory's creation to the newest
  change of the whole store, not to the clock: the same store gives the same order.
- relevance: the search's fused score as a share of the best candidate's, over 1.2, so that
  the boost of 1.2 stays within 1; what lies near the named entities is lifted to
  1 − (1 − relevance)(1 − 0.8 · nearness).
- authority: 0.7, and 0.1 each for an entity or pattern of the graph, for the kind of memory
  that the question is after, and for one that another memory confirms.

Source: the Memory Fabric's factors; the product of powers is the weighted product model
(Bridgman, "Dimensional Analysis", 1922).
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Final

from cortex.domain.instants import Instant
from cortex.domain.taxonomy import NodeType

BOOST: Final = 1.2
_LEAST_RECENCY: Final = 0.5
_AUTHORITY: Final = 0.7
_STEP: Final = 0.1
_NEARNESS: Final = 0.8
_GRAPH: Final = frozenset({NodeType.ENTITY, NodeType.PATTERN})


def recency(created: Instant, newest: Instant, half_life_hours: float) -> float:
    """In [0.5, 1]: 1 for what was made with the newest change, 0.75 after one half-life.

    A half-life of 0 leaves 0.5 to all that is older.
    """
    age = datetime.fromisoformat(newest) - datetime.fromisoformat(created)
    hours = max(age.total_seconds() / 3600, 0.0)
    fresh = 2.0 ** (-hours / half_life_hours) if half_life_hours else float(hours == 0)
    return _LEAST_RECENCY + (1 - _LEAST_RECENCY) * fresh


def relevance(share: float, *, boosted: bool, nearness: float) -> float:
    """In [0, 1], from a share of the best score in [0, 1]."""
    found = share / BOOST
    if boosted:
        found *= BOOST
    return 1 - (1 - found) * (1 - _NEARNESS * nearness)


def authority(kind: NodeType, *, wanted: bool, confirmed: bool) -> float:
    """In [0.7, 1]."""
    return _AUTHORITY + _STEP * ((kind in _GRAPH) + wanted + confirmed)


def score(factors: Mapping[str, float], weights: Mapping[str, float]) -> float:
    """The product of the factors, each to the power of its weight."""
    product = 1.0
    for name, factor in factors.items():
        product *= factor ** weights[name]
    return product
