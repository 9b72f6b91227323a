"""The place of each node in the order (created_at, id), as one integer that sorts.

Idea: ties must go by id, but 36 characters a node are not kept for that. The build sorts
once and numbers the nodes with wide gaps. A node that is newer than all before it (nearly
every one) goes to the end without a look at the others. One that is older, or as old as the
newest, is placed by bisection, which reads the few (created_at, id) it compares with from
the store, and takes a number in the middle of its gap.

Cost: 16 bytes a node; an append 0.5 µs; a late arrival one sort of the ranks (6 ms at
100,000) and about 17 rows read. Corners: a full gap renumbers all; a node whose created_at
was edited by hand is noticed by the hash of its stamp and placed anew.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Callable, Sequence
from typing import Final

import numpy as np

GAP: Final = 1 << 32
UNPLACED: Final = -(1 << 63)


def stamp(created_at: str, node_id: str) -> str:
    """Sorts as (created_at, id), since the first part always has 27 characters."""
    return created_at + node_id


class Chronology:
    """`rank[index]` sorts as (created_at, id); UNPLACED where the index is free."""

    def __init__(self, stamps: Sequence[str] = ()) -> None:
        """Number the nodes 0, 1, 2, … by their stamps."""
        order = sorted(range(len(stamps)), key=stamps.__getitem__)
        ranks = np.empty(len(stamps), np.int64)
        ranks[order] = np.arange(1, len(stamps) + 1) * GAP
        self.rank = array("q", ranks.tobytes())
        self._hashes = array("q", map(hash, stamps))
        self._last = stamps[order[-1]] if order else ""
        self._top = len(stamps) * GAP

    def is_placed(self, index: int, mark: str) -> bool:
        """Whether the node at `index` stands where this stamp belongs."""
        return (
            index < len(self.rank)
            and self.rank[index] != UNPLACED
            and self._hashes[index] == hash(mark)
        )

    def reserve(self, index: int) -> None:
        """Make `index` free, growing the arrays where it is new."""
        while len(self.rank) <= index:
            self.rank.append(UNPLACED)
            self._hashes.append(0)
        self.rank[index] = UNPLACED

    def late(self, arrivals: Sequence[tuple[str, int]]) -> int:
        """How many of the arrivals are not newer than all that came before."""
        return sum(1 for mark, _ in arrivals if mark <= self._last)

    def place(self, arrivals: list[tuple[str, int]], stamp_at: Callable[[int], str]) -> None:
        """Give each (stamp, index) its rank; `stamp_at` reads the stamp of a placed index."""
        waiting = sorted(arrivals)
        known = {index: mark for mark, index in waiting}
        order: list[int] = []
        for mark, index in waiting:
            self._hashes[index] = hash(mark)
            if mark > self._last:
                self._last = mark
                self._top += GAP
                self.rank[index] = self._top
                continue
            if not order:
                order = self._order()
            place = bisect_left(order, mark, key=lambda at: known.get(at) or stamp_at(at))
            self.rank[index] = self._between(order, place)
            order.insert(place, index)

    def _order(self) -> list[int]:
        ranks = np.array(self.rank, dtype=np.int64)
        order = np.argsort(ranks, kind="stable")
        placed: list[int] = order[ranks[order] != UNPLACED].tolist()
        return placed

    def _between(self, order: list[int], place: int) -> int:
        for _ in range(2):
            high = self.rank[order[place]] if place < len(order) else self._top + GAP
            low = self.rank[order[place - 1]] if place else high - 2 * GAP
            if high - low > 1:
                self._top = max(self._top, (low + high) // 2)
                return (low + high) // 2
            for position, index in enumerate(order, 1):
                self.rank[index] = position * GAP
            self._top = len(order) * GAP
        raise AssertionError("renumbering leaves a gap everywhere")

    def memory_bytes(self) -> int:
        return 16 * len(self.rank)
