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
    """Groups of integer labels from 0 on, of which some may be unused.

    O(n + largest label), and a sort of the groups that costs little where most are alike in size.
    """
    counts = np.bincount(raw)
    if len(counts) == 1:
        return Groups(np.zeros(len(raw), np.int64), counts, source)
    first = np.empty(len(counts), np.int64)
    first[raw[::-1]] = np.arange(len(raw) - 1, -1, -1)  # of equal labels the first is written last
    by_id = raw[first[raw] == np.arange(len(raw))]
    order = by_id[np.argsort(-counts[by_id], kind="stable")]
    place = np.empty(len(counts), np.int64)
    place[order] = np.arange(len(order))
    return Groups(place[raw], counts[order], source)
