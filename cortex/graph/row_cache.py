"""When compressed rows are built, and how they outlive the changes of the graph.

Idea: a large graph gets its rows as it is filled, when the columns are at hand. They stay: a
relation that is removed is marked in its place, one that is added is noted beside its near
end, and a search reads both. When the notes are a thirty-second of the relations, they are
merged into the rows. Where there are no rows: rent or buy. Searches pay for plain loops until
these have cost as much as building rows.

Cost: a change 2 µs; 150 bytes for each relation noted, in each direction that has rows; a
merge a sixth of a build.
Corner: an index that is taken again has a row whose relations are all marked. A node that
became a hub after its rows were built is taken for any other until they are built anew.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import rustworkx as rx
from numpy.typing import NDArray

from cortex.graph.adjacency import (
    GONE,
    Flags,
    Integers,
    Rows,
    gather,
    grouped,
    packed,
    rows_of,
    starts_of,
)
from cortex.graph.codes import MASK, SHIFT
from cortex.graph.columns import Columns

# Measured, in microseconds: one node expanded in a plain loop; one relation put into rows.
_EXPAND_COST: Final = 2.0
_ROWS_COST: Final = 0.12
_HUB: Final = 256  # relations of one node, above which a loop over them loses to numpy
_LEAST_NOTES: Final = 1024
_NOTES_SHARE: Final = 32
_WORTH: Final = 20_000  # relations, above which rows are made in advance


@dataclass(frozen=True, slots=True)
class Crossed:
    """The relations that a frontier crosses in one direction, in no particular order."""

    _rows: Rows
    _positions: Integers
    _noted: list[tuple[int, int]]

    def neighbors(self) -> NDArray[np.int32]:
        """The far ends."""
        found: NDArray[np.int32] = self._rows.neighbor[self._positions]
        if self._noted:
            found = np.concatenate([found, np.array([far for far, _ in self._noted], np.int32)])
        return found

    def relations(self) -> Integers:
        """The relations' keys, in the same order."""
        found: Integers = self._rows.relation[self._positions]
        if self._noted:
            keys = np.array([payload >> SHIFT for _, payload in self._noted], np.int64)
            found = np.concatenate([found, keys])
        return found


@dataclass(slots=True)
class _Kept:
    """The rows of one direction, and what was added since: (far, payload) by near end."""

    rows: Rows
    hubs: frozenset[int]
    notes: dict[int, list[tuple[int, int]]] = field(default_factory=dict)
    noted: Flags = field(default_factory=lambda: np.zeros(0, np.bool_))
    count: int = 0

    def add(self, near: int, far: int, payload: int) -> None:
        if near >= len(self.noted):
            grown = np.zeros(max(near + 1, 2 * len(self.noted), len(self.rows.indptr)), np.bool_)
            grown[: len(self.noted)] = self.noted
            self.noted = grown
        self.noted[near] = True
        self.notes.setdefault(near, []).append((far, payload))
        self.count += 1

    def remove(self, near: int, far: int, payload: int) -> None:
        late = self.notes.get(near)
        if late is not None and (far, payload) in late:
            late.remove((far, payload))
            return
        place = self._place(near, payload >> SHIFT)
        assert self.rows.relation[place] == payload >> SHIFT
        self.rows.code[place] = GONE
        self.count += 1

    def merged(self, slots: int) -> Rows:
        """Rows without marks and notes, over at least so many graph indices."""
        rows = self.rows
        old = len(rows.indptr) - 1
        noted = sorted(
            (near, payload, far) for near, late in self.notes.items() for far, payload in late
        )
        added = np.array(noted, np.int64).reshape(-1, 3)
        keys = added[:, 1] >> SHIFT
        place = [self._place(near, key) for near, key in zip(added[:, 0], keys, strict=True)]
        near = np.repeat(np.arange(old, dtype=np.int32), np.diff(rows.indptr))
        near = np.insert(near, place, added[:, 0])
        code = np.insert(rows.code, place, added[:, 1] & MASK)
        alive = code != GONE
        return Rows(
            indptr=starts_of(near[alive], max(slots, old, int(added[:, 0].max(initial=-1)) + 1)),
            neighbor=np.insert(rows.neighbor, place, added[:, 2])[alive],
            code=code[alive],
            relation=np.insert(rows.relation, place, keys)[alive],
        )

    def _place(self, near: int, key: int) -> int:
        """Where in the flat arrays a relation of this key belongs."""
        if near >= len(self.rows.indptr) - 1:
            return len(self.rows.code)
        first, end = self.rows.indptr[near : near + 2]
        return int(first + np.searchsorted(self.rows.relation[first:end], key))

    def crossed(self, frontier: NDArray[Any], allowed: Flags) -> Crossed:
        old = frontier[frontier < len(self.rows.indptr) - 1]
        positions = gather(self.rows, old)
        positions = positions[allowed[self.rows.code[positions]]]
        noted: list[tuple[int, int]] = []
        if self.notes:
            known = frontier[frontier < len(self.noted)]
            for near in known[self.noted[known]].tolist():
                noted += [edge for edge in self.notes[near] if allowed[edge[1] & MASK]]
        return Crossed(self.rows, positions, noted)


class RowCache:
    """The rows of both directions of one graph."""

    def __init__(self, graph: rx.PyDiGraph[int, int]) -> None:
        self._graph = graph
        self._kept: dict[bool, _Kept] = {}
        self._spent = 0.0

    def fill(self, columns: Columns, order: NDArray[np.intp]) -> None:
        """Make the rows of a graph that was filled with these columns, where it is large.

        `order` groups the relations by their near end.
        """
        if len(order) < _WORTH:
            return
        near, far, payload, slots = columns.near, columns.far, columns.payload, len(columns.key)
        self._keep(False, packed(near, far, payload, order, slots))
        self._keep(True, packed(far, near, payload, grouped(far, slots), slots))

    # ── what the graph tells ──────────────────────────────────────────────────────────────

    def added(self, near: int, far: int, payload: int) -> None:
        """A relation is in the graph."""
        for incoming, kept in self._kept.items():
            kept.add(*((far, near) if incoming else (near, far)), payload)
        self._bound()

    def removed(self, near: int, far: int, payload: int) -> None:
        """A relation is not in the graph any more."""
        for incoming, kept in self._kept.items():
            kept.remove(*((far, near) if incoming else (near, far)), payload)
        self._bound()

    def _bound(self) -> None:
        most = max(_LEAST_NOTES, self._graph.num_edges() // _NOTES_SHARE)
        for incoming, kept in list(self._kept.items()):
            if kept.count > most:
                self._keep(incoming, kept.merged(0))

    # ── what searches ask ─────────────────────────────────────────────────────────────────

    def crossed(
        self, slots: int, frontier: NDArray[Any], allowed: Flags, *, incoming: bool
    ) -> Crossed:
        """What of the allowed codes leads from the frontier; `slots` as in `rows_of`."""
        return self._get(slots, incoming).crossed(frontier, allowed)

    def exact(self, slots: int, *, incoming: bool) -> Rows:
        """Rows without marks and notes, for whoever reads them whole."""
        kept = self._get(slots, incoming)
        if kept.count or len(kept.rows.indptr) <= slots:
            kept = self._keep(incoming, kept.merged(slots))
        return kept.rows

    def _get(self, slots: int, incoming: bool) -> _Kept:
        kept = self._kept.get(incoming)
        if kept is None:
            kept = self._keep(incoming, rows_of(self._graph, slots, incoming=incoming))
            self._spent = 0.0
        return kept

    def _keep(self, incoming: bool, rows: Rows) -> _Kept:
        hubs = frozenset(np.flatnonzero(np.diff(rows.indptr) > _HUB).tolist())
        kept = self._kept[incoming] = _Kept(rows, hubs)
        return kept

    def is_wide(self, frontier: Collection[int], *, out: bool, back: bool) -> bool:
        """Whether the frontier has a node of so many relations that rows are better."""
        return any(
            not kept.hubs.isdisjoint(frontier)
            for incoming, kept in self._kept.items()
            if (back if incoming else out)
        )

    def prefers(self, frontier: int, *, out: bool, back: bool) -> bool:
        """Whether to expand a frontier of this size on rows rather than in a plain loop.

        Rows that are there are used; those that are not are built once the plain loops, this
        one included, cost as much as building.
        """
        asked = [incoming for incoming, wanted in ((False, out), (True, back)) if wanted]
        missing = sum(1 for incoming in asked if incoming not in self._kept)
        if not missing:
            return True
        self._spent += frontier * _EXPAND_COST * len(asked)
        return self._spent > missing * self._graph.num_edges() * _ROWS_COST

    def memory_bytes(self) -> int:
        return sum(
            kept.rows.memory_bytes() + len(kept.noted) + 150 * kept.count
            for kept in self._kept.values()
        )
