"""What can be asked of the analytics worker, and the rows that it answers with.

A query is a frozen value; its `row` says what it answers. Windows hold both of their ends,
None is an open end. A workspace is named always. Instants are the 27-character text.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Final, Generic, NamedTuple

from cortex.domain.activity import (
    BucketRow,
    ChurnRow,
    EventRow,
    IdleRow,
    LineageRow,
    Row,
    StepRow,
    TypeRow,
)


class Mirrored(NamedTuple):
    """What an answer reflects: epoch and floor of the log, its newest seq, the newest
    entry of the navigation history."""

    epoch: str
    floor: int
    seq: int
    navigation: int


class CountRow(NamedTuple):
    """`entity` is node or relation; a relation has no status."""

    entity: str
    type: str
    status: str | None
    total: int


class RankRow(NamedTuple):
    """One node by a measure; of `total` nodes measured. `error_bound` as the measure states it."""

    id: str
    score: float
    exact: bool
    error_bound: float | None
    source: str
    total: int


class CommunityRow(NamedTuple):
    """One community of `total`, with its best joined members; `modularity` of the whole parting."""

    number: int
    size: int
    members: list[str]
    modularity: float
    total: int
    source: str


class WorkspaceRow(NamedTuple):
    """A workspace of the file, with what it holds."""

    workspace: str
    nodes: int
    relations: int


class NameRow(NamedTuple):
    """A node's type, and the first 80 characters of its title, text or path."""

    id: str
    type: str
    title: str


class DistributionRow(NamedTuple):
    """How many active nodes have this value."""

    value: int
    nodes: int


class Query(Generic[Row]):
    """The root of all queries."""

    row: ClassVar[type[tuple[Any, ...]]]


@dataclass(frozen=True, slots=True)
class Events(Query[EventRow]):
    """All events of a window, newest first; at one instant by kind, then the row's id or seq.

    The same rows, in the same order, as `cortex.store.timeline.Timeline.events`.
    """

    row = EventRow
    workspace: str
    start: str | None = None
    stop: str | None = None
    actor: str | None = None
    take: int = 50
    skip: int = 0


@dataclass(frozen=True, slots=True)
class Chronological(Query[StepRow]):
    """Nodes of a window by (created_at, id), oldest first, after (`after_at`, `after_id`).

    `types` empty means all; with `relation` those alone that take part in such a relation.
    """

    row = StepRow
    workspace: str
    start: str | None = None
    stop: str | None = None
    types: tuple[str, ...] = ()
    relation: str | None = None
    after_at: str | None = None
    after_id: str = ""
    take: int = 50


@dataclass(frozen=True, slots=True)
class Buckets(Query[BucketRow]):
    """Events counted by UTC hour, day or week (from Monday) and kind, oldest first.

    `kind` None means every kind; units in which nothing happened are left out.
    """

    row = BucketRow
    workspace: str
    unit: str = "day"
    kind: str | None = None
    start: str | None = None
    stop: str | None = None


@dataclass(frozen=True, slots=True)
class ActivityByType(Query[TypeRow]):
    """Events of a window counted by the type of their node and kind; most first."""

    row = TypeRow
    workspace: str
    start: str | None = None
    stop: str | None = None


@dataclass(frozen=True, slots=True)
class Churn(Query[ChurnRow]):
    """Per week, oldest first, as the log tells it (so from its floor on).

    `superseded` counts the supersedes relations that stand, by their creation; `archived`
    changes of status to archived, the undone ones too.
    """

    row = ChurnRow
    workspace: str
    start: str | None = None
    stop: str | None = None


@dataclass(frozen=True, slots=True)
class Lineage(Query[LineageRow]):
    """What a node superseded, itself, and what superseded it, through all generations.

    Oldest first, by (created_at, id); a node that several superseded has a row for each.
    """

    row = LineageRow
    node: str


@dataclass(frozen=True, slots=True)
class Idle(Query[IdleRow]):
    """Active nodes without a sign of life since `cutoff`, in or below them, longest idle first.

    The same nodes as `cortex.store.archiving.Archiving.idle`: the newest `keep`, those of
    `hot` (ids), session roots, goals, constraints and pinned nodes stay. `take` None means all.
    """

    row = IdleRow
    workspace: str
    cutoff: str
    keep: int
    hot: tuple[str, ...] = ()
    take: int | None = None


@dataclass(frozen=True, slots=True)
class IdleTimes(Query[IdleRow]):
    """Active nodes by the age of their last sign of life, the longest idle first."""

    row = IdleRow
    workspace: str
    take: int = 50


@dataclass(frozen=True, slots=True)
class Counts(Query[CountRow]):
    """Nodes by type and status, then relations by type; by name."""

    row = CountRow
    workspace: str


@dataclass(frozen=True, slots=True)
class Workspaces(Query[WorkspaceRow]):
    """The workspaces of the file, those with most nodes first."""

    row = WorkspaceRow


@dataclass(frozen=True, slots=True)
class Names(Query[NameRow]):
    """What nodes are called, in the order of `ids`; those that do not exist are left out."""

    row = NameRow
    ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Distribution(Query[DistributionRow]):
    """Active nodes by a whole number, its least value first.

    `of` is degree, in_degree, out_degree, core, or component: the size of the weakly
    connected component that a node lies in. Session roots are left out, derived relations too.
    """

    row = DistributionRow
    workspace: str
    of: str = "degree"


@dataclass(frozen=True, slots=True)
class Centrality(Query[RankRow]):
    """The best active nodes by a measure, best first; empty filters admit all.

    Derived relations are left out. `from_time` and `to_time` as a user writes them.
    """

    row = RankRow
    workspace: str
    measure: str = "pagerank"
    relations: tuple[str, ...] = ()
    node_types: tuple[str, ...] = ()
    from_time: str | None = None
    to_time: str | None = None
    take: int = 20


@dataclass(frozen=True, slots=True)
class Communities(Query[CommunityRow]):
    """The largest communities of active nodes (Leiden, seeded), with `members` of each."""

    row = CommunityRow
    workspace: str
    relations: tuple[str, ...] = ()
    node_types: tuple[str, ...] = ()
    from_time: str | None = None
    to_time: str | None = None
    take: int = 20
    members: int = 8


QUERIES: Final[dict[str, type[Query[Any]]]] = {
    kind.__name__: kind
    for kind in (
        Events,
        Chronological,
        Buckets,
        ActivityByType,
        Churn,
        Lineage,
        Idle,
        IdleTimes,
        Counts,
        Workspaces,
        Names,
        Distribution,
        Centrality,
        Communities,
    )
}
