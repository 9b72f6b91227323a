"""What a measure of nodes answers with."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from analytics.snapshot import Floats, Integers


@dataclass(frozen=True, slots=True, eq=False)
class Scores:
    """One value a node, aligned with the snapshot's nodes.

    `exact` is true where the values are those of the definition up to rounding (about 1e-12
    relative). Otherwise `error_bound` says how far they may be, in the sense that the measure
    states; None where no bound is proved. `source` is the paper.
    """

    values: Floats
    exact: bool
    source: str
    error_bound: float | None = None

    def ranking(self, limit: int | None = None) -> Integers:
        """Positions of nodes, largest value first; ties go by id."""
        return np.argsort(-self.values, kind="stable")[:limit]
