"""Finds the graph index of a key in 12 bytes per key.

Keys rise with insertion, so those known at the build are one sorted array, searched by
bisection (0.5 µs); later ones wait in a dict and are merged into the array when they become
many. A dict of all would cost about 110 bytes a key: 330 MB for the relations of a million
memories. Without any map, a deleted relation would have to be found through the log and a
scan of its source's edges.

Corner: rustworkx gives the index of a removed node or edge to the next one. So a removed
key is forgotten at once, and a key that comes back (a raw INSERT may name it) is looked for
among the recent ones first.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Iterable, Sequence, Set
from typing import Final

import numpy as np
from numpy.typing import NDArray

_RECENT: Final = 4096


class Locator:
    """Keys and their graph indices; `keys` rise, their indices are 0, 1, 2, … unless given."""

    def __init__(
        self,
        keys: Sequence[int] | NDArray[np.int64] = (),
        indices: NDArray[np.int32] | None = None,
    ) -> None:
        if indices is None:
            indices = np.arange(len(keys), dtype=np.int32)
        self._keys = array("q", np.asarray(keys, np.int64).tobytes())
        self._indices = array("i", indices.tobytes())
        self._recent: dict[int, int] = {}
        self._gone: set[int] = set()

    def __len__(self) -> int:
        return len(self._keys) - len(self._gone) + len(self._recent)

    def find(self, key: int) -> int | None:
        index = self._recent.get(key)
        if index is not None:
            return index
        place = bisect_left(self._keys, key)
        if place < len(self._keys) and self._keys[place] == key and key not in self._gone:
            return self._indices[place]
        return None

    def among(self, keys: Iterable[int], besides: Set[int]) -> list[int]:
        """Those of `keys` that are there, in their order, but for some."""
        return [key for key in keys if key not in besides and self.find(key) is not None]

    def add(self, key: int, index: int) -> None:
        """Note a key that is not there yet."""
        self._recent[key] = index
        if len(self._recent) + len(self._gone) > max(_RECENT, len(self._keys) // 4):
            self._settle()

    def remove(self, key: int) -> None:
        """Forget a key that is there."""
        if self._recent.pop(key, None) is None:
            self._gone.add(key)

    def _settle(self) -> None:
        keys = np.array(self._keys, dtype=np.int64)
        kept = ~np.isin(keys, np.fromiter(self._gone, np.int64, len(self._gone)))
        late = np.fromiter(self._recent.keys(), np.int64, len(self._recent))
        places = np.fromiter(self._recent.values(), np.int32, len(self._recent))
        keys = np.concatenate([keys[kept], late])
        indices = np.concatenate([np.array(self._indices, dtype=np.int32)[kept], places])
        order = np.argsort(keys, kind="stable")
        self._keys = array("q", keys[order].tobytes())
        self._indices = array("i", indices[order].tobytes())
        self._recent = {}
        self._gone = set()

    def memory_bytes(self) -> int:
        return 12 * len(self._keys) + 120 * len(self._recent) + 60 * len(self._gone)
