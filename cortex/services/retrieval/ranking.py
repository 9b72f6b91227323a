"""Fusing rankings: scores of different kinds become one order.

Convex: each perspective's scores are scaled to [0, 1] over its own candidates and added by
weight. Where two measure different things, the sum keeps how much better the best one was,
which ranks alone lose. The chance to answer falls faster than the score, so the scaled ones
are raised to a power. RRF: the reciprocals of the ranks are added by weight. A candidate
that a perspective did not return gets 0 from it in both.
Cost: linear in the candidates, plus a sort. Empty input gives an empty order.
Sources: Bruch, Gai, Ingber, "An Analysis of Fusion Functions for Hybrid Retrieval", ACM TOIS
2023; Cormack, Clarke, Büttcher, "Reciprocal Rank Fusion", SIGIR 2009 (k = 60 there).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeVar

from cortex.config import SEARCH_WEIGHTS, FusionKind, Settings
from cortex.services.retrieval.certainty import TENTH, parts

Id = TypeVar("Id", bound=str)

_FALL: Final = 1.5


@dataclass(frozen=True, slots=True)
class Fusion:
    """How perspectives are joined; one that `weights` does not name weighs nothing.

    `k` is of rrf alone. A convex sum also weighs each perspective by how certain it is of
    this question (`certainty.py`), unless it is `plain`, for comparison.
    """

    kind: FusionKind = "convex"
    k: float = 60.0
    weights: Mapping[str, float] = field(default_factory=lambda: SEARCH_WEIGHTS)
    plain: bool = False

    @classmethod
    def of(cls, settings: Settings) -> Fusion:
        """The one that is configured."""
        return cls(settings.search_fusion, settings.search_rrf_k, settings.search_weights)

    def fused(
        self, rankings: Mapping[str, Mapping[Id, float]], shares: Mapping[str, float]
    ) -> dict[Id, float]:
        """One score in [0, 1] for each candidate of any ranking, by `shares`; unordered.

        Convex takes the scores as their perspective scaled them, to [0, 1]. A reciprocal rank
        is divided by its greatest value, 1 / (k + 1).
        """
        total: dict[Id, float] = {}
        for name, share in shares.items():
            scores = rankings[name] if self.kind == "convex" else self._ranked(rankings[name])
            for key, score in scores.items():
                total[key] = total.get(key, 0.0) + share * score
        return total

    def shares(self, names: Sequence[str], certainty: Mapping[str, float]) -> dict[str, float]:
        """What each of these perspectives has of the sum, which is 1; those of weight 0 not.

        Those with a certainty divide by it what their weights are together.
        """
        weights = {name: self.weights.get(name, 0.0) for name in sorted(names)}
        if self.kind == "convex" and not self.plain:
            sure = parts({name: certainty[name] for name in weights if name in certainty})
            told = {name: weights[name] * part for name, part in sure.items()}
            whole = sum(told.values())
            if whole > 0:
                together = sum(weights[name] for name in told)
                weights |= {name: each / whole * together for name, each in told.items()}
        whole = sum(weights.values())
        return {name: weight / whole for name, weight in weights.items() if weight > 0}

    def _ranked(self, scores: Mapping[Id, float]) -> dict[Id, float]:
        return {key: (self.k + 1) / (self.k + rank) for key, rank in ranks_of(scores).items()}


def ordered(scores: Mapping[Id, float]) -> list[tuple[Id, float]]:
    """Best first; ties go by id (invariant 9)."""
    return sorted(scores.items(), key=lambda item: (-item[1], item[0]))


def ranks_of(scores: Mapping[Id, float]) -> dict[Id, int]:
    """Each candidate's position, from 1."""
    return {key: rank for rank, (key, _) in enumerate(ordered(scores), 1)}


def chances(scores: Mapping[Id, float]) -> dict[Id, float]:
    """Scores as chances to answer: scaled to [0, 1], to the power of 1.5.

    The least of fewer than ten is not what is typical: they are told from 0.
    """
    scale = scaled if len(scores) < TENTH else between
    return {key: each**_FALL for key, each in scale(scores).items()}


def scaled(scores: Mapping[Id, float]) -> dict[Id, float]:
    """Scores from 0 as shares of the greatest; of none above 0, all 0."""
    high = max(scores.values(), default=0.0)
    return {key: max(value, 0.0) / high if high > 0 else 0.0 for key, value in scores.items()}


def between(scores: Mapping[Id, float]) -> dict[Id, float]:
    """Scores in [0, 1] between the least and the greatest; all 1 where all are equal."""
    low, high = min(scores.values(), default=0.0), max(scores.values(), default=0.0)
    return {
        key: (value - low) / (high - low) if high > low else 1.0 for key, value in scores.items()
    }
