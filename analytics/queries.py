"""What can be asked of the analytics worker, and the rows that it answers with.

A query is a frozen value; its `row` says what it answers. Windows hold both of their ends,
None is an open end. A workspace is named always. Instants are the 27-character text.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Final, Generic, NamedTuple, TypeVar

Row = TypeVar("Row", bound=tuple[Any, ...])


class Mirrored(NamedTuple):
    """What an answer reflects: epoch and floor of the log, its newest seq, the newest
    entry of the navigation history."""

    epoch: str
    floor: int
    seq: int
    navigation: int


class EventRow(NamedTuple):
    """One event; `title` is the node's data text, or None when it is gone."""

    at: str
    kind: str
    id: str
    title: str | None
    status: str | None
    actor: str | None
    detail: str | None


class StepRow(NamedTuple):
    """A node in the order of creation."""

    key: int
    id: str
    created_at: str


class BucketRow(NamedTuple):
    """How many events of a kind happened from `start` on, for one unit."""

    start: str
    kind: str
    total: int


class TypeRow(NamedTuple):
    """How many events of a kind befell nodes of a type; the type is None where it is gone."""

    type: str | None
    kind: str
    total: int


class ChurnRow(NamedTuple):
    """One week, from its Monday: what came, what was replaced, archived, deleted."""

    week: str
    created: int
    superseded: int
    archived: int
    deleted: int


class LineageRow(NamedTuple):
    """One link of a chain of supersedes; `superseded_by` is None at its head."""

    id: str
    type: str
    status: str
    created_at: str
    superseded_by: str | None
    superseded_at: str | None


class IdleRow(NamedTuple):
    """An active node, and its last sign of life: `what` is created, changed, focused or
    opened, of the node itself or, where `below` is 1, of one that it contains."""

    key: int
    id: str
    last_at: str
    what: str
    below: int
    idle_seconds: float


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
    """Active nodes without a sign of life since `cutoff`, in or below them, by rising key.

    The same keys as `cortex.store.archiving.Archiving.idle`: the newest `keep`, those of
    `hot` (ids), session roots, goals, constraints and pinned nodes stay. `idle_seconds` is
    counted up to the workspace's last activity.
    """

    row = IdleRow
    workspace: str
    cutoff: str
    keep: int
    hot: tuple[str, ...] = ()


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
        Centrality,
        Communities,
    )
}
