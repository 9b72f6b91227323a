"""Arrays by graph index that one search after another marks what it has seen in.

Kept, and cleared by what was marked: at a million nodes fresh arrays cost more than most
searches, for the system clears each page that is touched. 5 bytes a graph index.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cortex.graph.adjacency import Flags

Indices = NDArray[Any] | list[int]


class Marks:
    """Which graph indices one search has seen, by index in `seen`."""

    def __init__(self, seen: Flags, met: NDArray[np.int32]) -> None:
        self.seen = seen
        self._met = met
        self._added: list[Indices] = []

    def add(self, indices: Indices) -> None:
        """These are seen from now on."""
        self._added.append(indices)
        self.seen[indices] = True

    def fresh(self, indices: NDArray[Any]) -> NDArray[Any]:
        """Those of the indices that were not seen, each once."""
        new = indices[~self.seen[indices]]
        positions = np.arange(len(new), dtype=np.int32)
        self._met[new] = positions  # where one occurs again, the last wins
        found: NDArray[Any] = new[self._met[new] == positions]
        return found

    def clear(self) -> None:
        """Nothing is seen."""
        for indices in self._added:
            self.seen[indices] = False


class Scratch:
    """The arrays of one graph, for one search at a time."""

    def __init__(self) -> None:
        self._seen = np.zeros(0, np.bool_)
        self._met = np.empty(0, np.int32)

    @contextmanager
    def marking(self, slots: int) -> Iterator[Marks]:
        """Marks of which none is set, for graph indices below `slots`."""
        if len(self._seen) < slots:
            self._seen = np.zeros(slots, np.bool_)
            self._met = np.empty(slots, np.int32)
        marks = Marks(self._seen, self._met)
        try:
            yield marks
        finally:
            marks.clear()

    def memory_bytes(self) -> int:
        return 5 * len(self._seen)
