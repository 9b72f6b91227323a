"""Distances to one node, learnt as far as a search that comes from elsewhere needs them.

Idea: Dijkstra's algorithm back from the target, a node at a time. A node is labelled when a
neighbour of it is scanned, and every step costs LEAST; so all that has no label yet is at least
so much farther than the nearest node that is not scanned: `beyond`. A hub is scanned in two
turns: where its own distance comes up it is asked who its neighbours are, and for their steps
a distance of LEAST later, where they might come up themselves. Most searches end in between.

Cost: the relations of the scanned nodes. Corners: the start is not passed, since no path meets
it twice; nor is a session. Where all is scanned, `beyond` is infinite.
Source: Dijkstra, Numerische Mathematik 1 (1959); what a step adds at least, for
searches from both ends: Pohl, Machine Intelligence 6 (1971).
"""

from __future__ import annotations

import heapq
import sys
from collections.abc import Iterator, Sequence, Set
from itertools import islice
from typing import Final, NamedTuple

from cortex.graph.steps import HUB, LEAST, Neighbourhood, Step, Steps

INFINITE: Final = sys.maxsize
AROUND_COST: Final = 1 / 32  # of reading a relation: to learn of a neighbour
_CLOSE: Final = 32


class Heard(NamedTuple):
    """How much of what is told of a node has been heard."""

    steps: int = 0
    hubs: int = 0


class Reverse:
    """What is known of the way that is left to `target`.

    `label` has the cost of a way for the neighbours of scanned nodes, hubs in their first
    turn apart; `beyond` is what all that is no neighbour of theirs is away at least. `spent`
    is what it has cost, in relations read.
    """

    def __init__(self, steps: Steps, start: int, target: int) -> None:
        self._steps = steps
        self._start = start
        self._target = target
        self._scanned: set[int] = set()
        self._told: dict[int, list[Step]] = {}
        # Hubs that had their first turn: what their neighbours are away at least; infinite
        # after the second turn, since these have labels then.
        self._hubs: list[tuple[int, Neighbourhood]] = []
        self._queue = [(0, target, -1)]  # distance, node, and its place in _hubs
        self.label = {target: 0}
        self._over: dict[int, int] = {}  # the next node on the way that a label measures
        self.beyond = LEAST
        self.spent = 0.0

    @property
    def scanned(self) -> int:
        """How many nodes."""
        return len(self._scanned)

    def at_least(self, index: int, passed: Set[int]) -> int:
        """A bound from below of what is left to go from here without meeting what was `passed`.

        Never above the cost of a step that may be taken and its far end's bound.
        """
        if index == self._target:
            return 0
        least = self.label.get(index, INFINITE)
        if least < self.beyond and self._over[index] in passed:
            label = self.label
            ways = [label[far] + on for far, on, _ in self._told[index] if far not in passed]
            least = min(ways, default=INFINITE)
        for distance, hub in self._hubs:
            if distance < least and hub.holds[index] and hub.node not in passed:
                least = distance
        return min(least, self.beyond)

    def told(self, index: int, heard: Heard) -> tuple[list[Step], Heard]:
        """The steps from a node to scanned ones, beyond those `heard` of; and all heard now."""
        told = self._told.get(index, [])
        new = told[heard.steps :]
        for distance, hub in islice(self._hubs, heard.hubs, None):
            if distance != INFINITE and hub.holds[index]:
                step = self._steps.between(index, hub.node)
                new += [] if step is None else [step]
        return new, Heard(len(told), len(self._hubs))

    def unread(self, index: int) -> list[Step]:
        """The steps from a node to those that are not scanned."""
        return [step for step in self._steps.of(index) if step[0] not in self._scanned]

    def iter_shared(self, hub: Neighbourhood) -> Iterator[int]:
        """The hub's neighbours, not scanned, of which more may be known than `beyond`."""
        beyond, scanned, holds = self.beyond, self._scanned, hub.holds
        for index, distance in self.label.items():
            if holds[index] and distance < beyond and index not in scanned:
                yield index
        for distance, other in self._hubs:
            if distance < beyond and other.node != hub.node:
                yield from (index for index in hub.shared(other) if index not in scanned)

    def is_cut_off(self, nodes: Sequence[int], closed: Set[int]) -> bool:
        """Whether no path begins with these nodes, the next not in `closed`.

        It is looked for in the target's close surroundings alone.
        """
        seen = {self._target, *nodes[:-1]}
        waiting = [self._target]
        while waiting:
            index = waiting.pop()
            if self._steps.degree(index) > _CLOSE or len(waiting) > _CLOSE:
                return False
            for far, _, _ in self._steps.of(index):
                if far == nodes[-1]:
                    if index not in closed:
                        return False
                elif far not in seen:
                    seen.add(far)
                    waiting.append(far)
        return True

    def next_cost(self) -> float:
        """What `widen` would cost, in relations read; `beyond` must be finite."""
        _, index, turn = self._queue[0]
        degree = self._steps.degree(index)
        return degree * AROUND_COST if degree >= HUB and turn < 0 else degree

    def widen(self) -> None:
        """Scan the nearest node that is not scanned yet; `beyond` must be finite."""
        self.spent += self.next_cost()
        distance, index, turn = heapq.heappop(self._queue)
        self._scanned.add(index)
        if self._steps.degree(index) >= HUB and turn < 0:
            heapq.heappush(self._queue, (distance + LEAST, index, len(self._hubs)))
            self._hubs.append((distance + LEAST, self._steps.around(index)))
        else:
            if turn >= 0:
                distance -= LEAST
                self._hubs[turn] = (INFINITE, self._hubs[turn][1])
            self._tell(index, distance)
        while self._queue and self._queue[0][2] < 0 and self._queue[0][1] in self._scanned:
            heapq.heappop(self._queue)
        self.beyond = self._queue[0][0] + LEAST if self._queue else INFINITE

    def _tell(self, index: int, distance: int) -> None:
        """Label the neighbours of a node."""
        label, told = self.label, self._told
        for far, cost, relation in self._steps.of(index):
            if far in told:
                told[far].append((index, cost, relation))
            else:
                told[far] = [(index, cost, relation)]
            further = distance + cost
            if further < label.get(far, INFINITE):
                label[far] = further
                self._over[far] = index
                if far != self._start:
                    heapq.heappush(self._queue, (further, far, -1))
