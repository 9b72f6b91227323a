"""Degree: how many relations, or how much weight, meet at a node.

Cost: O(m), one pass of `bincount`. Corners: parallel relations each count; a symmetric
relation counts as incoming and as outgoing at both ends, and once at each end in `total`, so
total = in + out only without symmetric relations; a self-loop counts once in `in`, once in
`out`, twice in `total`.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from analytics.measures.scores import Scores
from analytics.snapshot import GraphSnapshot

Direction = Literal["in", "out", "total"]


def degree(
    snapshot: GraphSnapshot, direction: Direction = "total", *, weighted: bool = False
) -> Scores:
    """Relations at each node (or the sum of their weights), 0 and above. Exact.

    Source: Freeman, Social Networks 1 (1979).
    """
    n = len(snapshot)
    weight = snapshot.weight if weighted else np.ones(len(snapshot.weight))
    values = np.zeros(n)
    loop = snapshot.source == snapshot.target
    for name, near, far in (
        ("out", snapshot.source, snapshot.target),
        ("in", snapshot.target, snapshot.source),
    ):
        if direction in (name, "total"):
            values += np.bincount(near, weight, minlength=n)
        if direction == name:
            back = snapshot.symmetric & ~loop
            values += np.bincount(far[back], weight[back], minlength=n)
    return Scores(values, True, "Freeman 1979")
