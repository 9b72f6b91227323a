"""The k shortest paths between two nodes, over relations in both directions.

Idea: the paths are parted into branches: those that begin so and do not go on there (Yen,
Lawler). One queue holds the ways of all branches by what they cost at least to the target
(A*); whichever arrives is the next path, and its branch is parted further. What is left to go
is known from a search back from the target (`reverse.py`) that is as wide as it had to be:
where a node leads on to what that search has not seen, either the node is expanded or that
search widened, whichever has cost less. So a hub is seldom expanded, and neither search leaves
the surroundings of its end.

Cost: the relations within about half the longest path's length of both ends, and who the
neighbours of a few hubs are. Between two random nodes (k = 3) 3 ms of 100,000 nodes and
300,000 relations, 8 ms of ten times as many; 19 in 20 below 10 and 25 ms.

Corners: the length of a relation is 2 − weight, so that a path is short where it has few and
strong relations; of several between two nodes the strongest counts, then the earliest. Ties
go by fewer hops, then by (created_at, id) of the nodes on the way, whatever the graph's
history; lengths are whole billionths, so that sums do not depend on their order. No node is
met twice. A session is no way through, for it contains nearly everything. To know that there
are fewer than k paths, all that hangs together with an end is read, up to the bound.

Source: Yen, Management Science 17 (1971); Lawler, Management Science 18 (1972); Hart,
Nilsson, Raphael, IEEE TSSC 4 (1968); a reverse search that is resumed: Silver, AIIDE 2005;
a node's neighbours as they are needed: Yoshizumi, Miura, Ishida, AAAI 2000.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Set
from dataclasses import dataclass, field
from itertools import count
from typing import Final, NamedTuple

from cortex.graph.reverse import AROUND_COST, INFINITE, Heard, Reverse
from cortex.graph.steps import HOPS, HUB, LEAST, UNIT, Neighbourhood, Step, Steps
from cortex.graph.workspace import WorkspaceGraph

__all__ = ["MAX_EXPANDED", "UNIT", "Path", "shortest_paths"]

MAX_EXPANDED: Final = 200_000
_TAKE_COST: Final = 2  # of reading a relation: to put a way into the queue and take it out


class _Way(NamedTuple):
    """A path so far; of those that cost the same the ranks behind the start tell the order."""

    cost: int
    ranks: tuple[int, ...]
    nodes: tuple[int, ...]
    relations: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Path:
    """Keys of the nodes from start to target, of the relations between them, and its length."""

    nodes: tuple[int, ...]
    relations: tuple[int, ...]
    length: float


def shortest_paths(
    graph: WorkspaceGraph,
    start: int,
    target: int,
    k: int,
    *,
    include_derived: bool = False,
    max_expanded: int = MAX_EXPANDED,
) -> tuple[list[Path], bool]:
    """Up to `k` paths without a circle, the shortest first; none where there is none.

    True, besides, where the search ended at `max_expanded` nodes, those that both searches
    took, each as often as it was taken; the paths until then are the shortest all the same.
    Raises NotFoundError where an end is not in this workspace.
    """
    ends = graph.index(start), graph.index(target)
    search = _Search(graph, *ends, include_derived, max_expanded)
    paths = [
        Path(tuple(graph.key[at] for at in way.nodes), way.relations, (way.cost >> HOPS) / UNIT)
        for way in search.run(k)
    ]
    return paths, search.left <= 0


@dataclass(slots=True)
class _Branch:
    """The paths that begin with `root` and whose next node is not in `closed`."""

    root: _Way
    closed: Set[int]
    passed: Set[int]
    """Nodes of the root."""
    settled: set[int]
    """Those before its end, and those whose best way on from there is known."""


@dataclass(slots=True)
class _Rest:
    """What a settled way leads on to that is not in the queue yet.

    At first that is all but the steps which the reverse search has told; once the node is
    expanded it is `steps`. Of a hub is asked before that who its neighbours are: then it is
    all of them but `given`.
    """

    heard: Heard = field(default_factory=Heard)
    steps: list[Step] | None = None
    hub: Neighbourhood | None = None
    given: set[int] = field(default_factory=set)


# By what it costs at least, then by the ranks: of equal paths the first in order is followed to
# its end, and those behind it are not looked for.
_Entry = tuple[int, tuple[int, ...], int, _Way, _Branch, _Rest | None]


class _Search:
    def __init__(
        self, graph: WorkspaceGraph, start: int, target: int, derived: bool, most: int
    ) -> None:
        self._steps = Steps(graph, start, target, derived)
        self._target = target
        self._reverse = Reverse(self._steps, start, target)
        self._rank = graph.rank
        self._queue: list[_Entry] = []
        self._ticks = count()
        self._spent = 0.0
        self._most = most
        self._taken = 0
        self._open(_Way(0, (), (start,), ()), frozenset())

    @property
    def left(self) -> int:
        return self._most - self._taken - self._reverse.scanned

    def run(self, k: int) -> list[_Way]:
        found: list[_Way] = []
        while self._queue and self.left > 0:
            estimate, _, _, way, branch, rest = heapq.heappop(self._queue)
            here = way.nodes[-1]
            if rest is not None:
                self._resume(way, branch, rest, estimate)
            elif here in branch.settled:
                continue
            elif (at_least := self._estimate(way, branch)) > estimate:
                self._push(at_least, way, branch)  # more is known by now
            else:
                branch.settled.add(here)
                self._taken += 1
                if here != self._target:
                    self._go_on(way, branch, _Rest())
                    continue
                found.append(way)
                if len(found) == k:
                    break
                self._part(branch, way)
        return found

    def _part(self, branch: _Branch, way: _Way) -> None:
        """For each node of a branch's best path from its root on: what leaves it there."""
        cost, first = branch.root.cost, len(branch.root.ranks)
        for place in range(first, len(way.ranks)):
            root = _Way(cost, way.ranks[:place], way.nodes[: place + 1], way.relations[:place])
            taken = frozenset(way.nodes[place + 1 : place + 2])
            self._open(root, branch.closed | taken if place == first else taken)
            cost += self._steps.cost(way.relations[place])

    def _open(self, root: _Way, closed: Set[int]) -> None:
        if root.ranks and self._reverse.is_cut_off(root.nodes, closed):
            return  # it would be looked for everywhere
        branch = _Branch(root, closed, frozenset(root.nodes), set(root.nodes[:-1]))
        self._push(self._estimate(root, branch), root, branch)

    def _estimate(self, way: _Way, branch: _Branch) -> int:
        return way.cost + self._reverse.at_least(way.nodes[-1], branch.passed)

    def _push(self, estimate: int, way: _Way, branch: _Branch, rest: _Rest | None = None) -> None:
        heapq.heappush(self._queue, (estimate, way.ranks, next(self._ticks), way, branch, rest))

    def _go_on(self, way: _Way, branch: _Branch, rest: _Rest) -> None:
        """Put into the queue the steps of which something is known, and all others as one."""
        reverse, here = self._reverse, way.nodes[-1]

        def is_known(index: int) -> bool:
            return reverse.at_least(index, branch.passed) < reverse.beyond

        if rest.steps is None:
            new, rest.heard = reverse.told(here, rest.heard)
            if rest.hub is not None:
                shared = set(filter(is_known, set(reverse.iter_shared(rest.hub)) - rest.given))
                rest.given |= shared
                new += filter(None, (self._steps.between(here, far) for far in shared))
        else:
            new = [step for step in rest.steps if is_known(step[0])]
            rest.steps = [step for step in rest.steps if not is_known(step[0])]
        self._extend(way, branch, new)
        if reverse.beyond != INFINITE and rest.steps != []:
            self._push(self._least(way, rest), way, branch, rest)

    def _least(self, way: _Way, rest: _Rest) -> int:
        """What a path over the rest comes to at least."""
        # Its next node is not scanned; or, once it is known who that may be, has no label.
        told_only = rest.steps is None and rest.hub is None
        return way.cost + self._reverse.beyond + (0 if told_only else LEAST)

    def _resume(self, way: _Way, branch: _Branch, rest: _Rest, estimate: int) -> None:
        """The rest may have the shortest: widen the reverse search, or look closer."""
        reverse, here = self._reverse, way.nodes[-1]
        while self._least(way, rest) == estimate and self.left > 0:
            cost = float(_TAKE_COST * len(rest.steps) if rest.steps else self._steps.degree(here))
            at_first = rest.steps is None and rest.hub is None and cost >= HUB
            cost *= AROUND_COST if at_first else 1
            if reverse.spent + reverse.next_cost() < self._spent + cost:
                reverse.widen()
                continue
            self._spent += cost
            if rest.steps is not None:
                self._extend(way, branch, rest.steps)
                return
            if at_first:
                rest.hub = self._steps.around(here)
            else:
                rest.steps = [step for step in reverse.unread(here) if step[0] not in rest.given]
                new, rest.heard = reverse.told(here, rest.heard)
                self._extend(way, branch, new)
        self._go_on(way, branch, rest)

    def _extend(self, way: _Way, branch: _Branch, steps: Iterable[Step]) -> None:
        for far, cost, relation in steps:
            if far in branch.settled or (way is branch.root and far in branch.closed):
                continue
            further = _Way(
                way.cost + cost,
                (*way.ranks, self._rank[far]),
                (*way.nodes, far),
                (*way.relations, relation),
            )
            self._push(self._estimate(further, branch), further, branch)
