"""How certain a perspective is of its best candidates, for this question.

Chance alone gives a best score: of n draws from a normal distribution the greatest lies
about E(n) standard deviations above the mean. So a text of n passages is held to the best of
n draws, else long texts would win by their length; and the semantic perspective counts by
how far its best cosine stands beyond the best of as many memories. Among turns of one talk it
is no further than chance (1.0), among encyclopedia passages twice as far. BM25 scores fall off
more like an exponential, whose greatest of n lies H(n) − 1 standard deviations above its mean;
the keyword perspective counts by how far its best stands above its tenth.

Both are predictors of how well a query will do, taken per perspective; fusing by them beats
every fixed weight on the development sets (see DESIGN.md). Predictors err, so neither
perspective has less than three tenths. Cost: none beside the rankings.
Corners: with fewer than ten candidates, or an index that cannot tell its spread, a
perspective has no certainty of its own, and the weights stay as set.

Sources: Blom, Statistical Estimates and Transformed Beta-Variables, 1958 (the medians);
Shtok et al., "Predicting Query Performance by Query-Drift Estimation", ACM TOIS 2012.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import lru_cache
from statistics import NormalDist
from typing import Final

from cortex.vectors.index import Spread

TENTH: Final = 10
# Semantic beside keyword where its best is as chance has it, and how much each certainty counts:
# the values that serve the chats, passages and functions of the development sets at once.
_PLAIN: Final = 0.7
_BEYOND: Final = 2.5
_ABOVE: Final = 0.8
_HALF: Final = 0.5
_LEAST: Final = 0.1
_PART: Final = 0.3


@lru_cache(maxsize=4096)
def best_of(count: int) -> float:
    """E(n): how many standard deviations the greatest of n normal draws lies above the mean.

    0 for one; 0.59 for two, 1.5 for ten, 2.5 for a hundred.
    """
    return NormalDist().inv_cdf((count - 0.375) / (count + 0.25)) if count > 1 else 0.0


def corrected(score: float, chunks: int, spread: Spread | None) -> float:
    """The cosine of a node's best chunk, less what as many chunks bring by chance."""
    return score if spread is None or chunks < 2 else score - spread.std * best_of(chunks)


def semantic_certainty(best: float, spread: Spread | None) -> float | None:
    """How far the best cosine stands beyond chance, to the power of 2.5 and times 0.7; None
    where it is not known."""
    if spread is None or spread.nodes < TENTH or spread.std <= 0:
        return None
    beyond = (best - spread.mean) / spread.std / best_of(spread.nodes)
    return float(_PLAIN * max(round(beyond, 3), _LEAST) ** _BEYOND)


def keyword_certainty(scores: Collection[float]) -> float | None:
    """How far the best score stands above the tenth, as a share of the best: 1 at a half, to the
    power of 0.8; None for fewer than ten."""
    if len(scores) < TENTH:
        return None
    ranked = sorted(scores, reverse=True)
    if ranked[0] <= 0:
        return None
    above = (ranked[0] - ranked[TENTH - 1]) / ranked[0]
    return float((max(above, _LEAST) / _HALF) ** _ABOVE)


def parts(certainty: Mapping[str, float]) -> dict[str, float]:
    """What each perspective has of all certainty, which is above 0, from 0.3 to 0.7."""
    whole = sum(certainty.values())
    return {name: min(max(each / whole, _PART), 1 - _PART) for name, each in certainty.items()}
