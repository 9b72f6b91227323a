"""Nodes parted into groups, numbered so that the same parting has the same numbers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analytics.snapshot import Integers


@dataclass(frozen=True, slots=True, eq=False)
class Groups:
    """`label[i]` is the group of node i; group 0 is the largest, ties go by smallest id."""

    label: Integers
    size: Integers
    source: str

    def __len__(self) -> int:
        return len(self.size)

    def members(self, group: int) -> Integers:
        """Positions of a group's nodes, in order of id."""
        return np.flatnonzero(self.label == group)


def grouped(raw: NDArray[Any], source: str) -> Groups:
    """Groups of any labels."""
    _, first, inverse, counts = np.unique(
        raw, return_index=True, return_inverse=True, return_counts=True
    )
    order = np.lexsort((first, -counts))
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    return Groups(place[inverse], counts[order], source)
