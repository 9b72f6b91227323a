"""The place of each node in the order (created_at, id), as one integer that sorts.

Idea: ties must go by id, but 36 characters a node are not kept for that. The build sorts
once and numbers the nodes with wide gaps. A node that is newer than all before it (nearly
every one) goes to the end without a look at the others. One that is older, or as old as the
newest, is placed by bisection, which reads the few (created_at, id) it compares with from
the store, and takes a number in the middle of its gap.

Cost: 12 bytes a node; an append 0.5 µs; a late arrival one sort of the ranks (6 ms at
100,000) and about 17 rows read. Corners: a full gap renumbers all; a node whose created_at
was edited by hand is noticed by the checksum of its stamp and placed anew (a digit, or any
four neighbouring characters, always; more with a chance of 2^-32 of staying unnoticed).
"""

from __future__ import annotations

import zlib
from array import array
from bisect import bisect_left
from collections.abc import Callable, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

GAP: Final = 1 << 32
UNPLACED: Final = -(1 << 63)


def stamp(created_at: str, node_id: str) -> str:
    """Sorts as (created_at, id), since the first part always has 27 characters."""
    return created_at + node_id


def mark(text: str) -> int:
    """The checksum of a stamp; the same in every process, as `hash` is not."""
    return zlib.crc32(text.encode("utf-8", "surrogatepass"))


def ranked(stamps: Sequence[str]) -> tuple[NDArray[np.int64], str, int]:
    """The rank of each stamp, with a gap after each; the newest stamp, "" of none; its rank."""
    order = sorted(range(len(stamps)), key=stamps.__getitem__)
    rank = np.empty(len(stamps), np.int64)
    rank[order] = np.arange(1, len(stamps) + 1) * GAP
    return rank, stamps[order[-1]] if order else "", len(stamps) * GAP


class Chronology:
    """`rank[index]` sorts as (created_at, id); UNPLACED where the index is free."""

    def __init__(
        self,
        rank: NDArray[np.int64] | Sequence[int] = (),
        marks: NDArray[np.uint32] | Sequence[int] = (),
        newest: str = "",
        top: int = 0,
    ) -> None:
        """Ranks and marks of the nodes by index; the stamp and the rank of the newest."""
        self.rank = array("q", np.asarray(rank, np.int64).tobytes())
        self._marks = array("I", np.asarray(marks, np.uint32).tobytes())
        self.newest = newest
        self.top = top

    def columns(self) -> tuple[NDArray[np.int64], NDArray[np.uint32]]:
        """Copies of ranks and marks, by index."""
        return np.array(self.rank, np.int64), np.array(self._marks, np.uint32)

    def is_placed(self, index: int, text: str) -> bool:
        """Whether the node at `index` stands where this stamp belongs."""
        return (
            index < len(self.rank)
            and self.rank[index] != UNPLACED
            and self._marks[index] == mark(text)
        )

    def reserve(self, index: int) -> None:
        """Make `index` free, growing the arrays where it is new."""
        while len(self.rank) <= index:
            self.rank.append(UNPLACED)
            self._marks.append(0)
        self.rank[index] = UNPLACED

    def late(self, arrivals: Sequence[tuple[str, int]]) -> int:
        """How many of the arrivals are not newer than all that came before."""
        return sum(1 for text, _ in arrivals if text <= self.newest)

    def place(self, arrivals: list[tuple[str, int]], stamp_at: Callable[[int], str]) -> None:
        """Give each (stamp, index) its rank; `stamp_at` reads the stamp of a placed index."""
        waiting = sorted(arrivals)
        known = {index: text for text, index in waiting}
        order: list[int] = []
        for text, index in waiting:
            self._marks[index] = mark(text)
            if text > self.newest:
                self.newest = text
                self.top += GAP
                self.rank[index] = self.top
                continue
            if not order:
                order = self._order()
            place = bisect_left(order, text, key=lambda at: known.get(at) or stamp_at(at))
            self.rank[index] = self._between(order, place)
            order.insert(place, index)

    def _order(self) -> list[int]:
        ranks = np.array(self.rank, dtype=np.int64)
        order = np.argsort(ranks, kind="stable")
        placed: list[int] = order[ranks[order] != UNPLACED].tolist()
        return placed

    def _between(self, order: list[int], place: int) -> int:
        for _ in range(2):
            high = self.rank[order[place]] if place < len(order) else self.top + GAP
            low = self.rank[order[place - 1]] if place else high - 2 * GAP
            if high - low > 1:
                self.top = max(self.top, (low + high) // 2)
                return (low + high) // 2
            for position, index in enumerate(order, 1):
                self.rank[index] = position * GAP
            self.top = len(order) * GAP
        raise AssertionError("renumbering leaves a gap everywhere")

    def memory_bytes(self) -> int:
        return 12 * len(self.rank)
