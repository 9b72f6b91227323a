"""Fusing rankings: scores of different kinds become one order.

Convex: each ranker's scores are scaled to [0, 1] over its own candidates and added by
weight. A candidate that a ranker did not return gets 0 from it. Where two rankers measure
different things, the sum keeps how much better the best one was, which ranks alone lose.
Cost: linear in the candidates. Empty input gives an empty order.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

Id = TypeVar("Id", bound=str)


def scaled(scores: Mapping[Id, float], floor: float | None = None) -> dict[Id, float]:
    """Scores scaled to [0, 1] between `floor` (else their least) and their greatest.

    All equal and above the floor: all 1.
    """
    if not scores:
        return {}
    high = max(scores.values())
    low = min(scores.values()) if floor is None else floor
    if high <= low:
        return dict.fromkeys(scores, 1.0 if high > 0 else 0.0)
    return {key: max(value - low, 0.0) / (high - low) for key, value in scores.items()}


def convex(
    rankings: Mapping[str, Mapping[Id, float]], weights: Mapping[str, float]
) -> list[tuple[Id, float]]:
    """The weighted sum of scaled scores, best first; ties go by id.

    Scores lie in [0, sum of weights]. Source: Bruch, Gai, Ingber, "An Analysis of Fusion
    Functions for Hybrid Retrieval", ACM TOIS 2023.
    """
    total: dict[Id, float] = {}
    for name, scores in rankings.items():
        for key, score in scores.items():
            total[key] = total.get(key, 0.0) + weights[name] * score
    return sorted(total.items(), key=lambda item: (-item[1], item[0]))
