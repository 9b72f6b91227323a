"""What happened, counted: by time, by type, by week; who replaced whom; what lies idle.

The analytics worker answers first: it holds the history in columns. Where it cannot run, or
a measure keeps it, SQLite gives the same rows more slowly, and `degraded` says why. Without
a worker SQLite is asked alone: for one question it is the sooner, since the worker reads the
file whole when it starts. A chain of supersedes is a few look-ups by index: always SQLite's.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, Protocol

from cortex.domain.activity import (
    BucketRow,
    ChurnRow,
    EventRow,
    IdleRow,
    Row,
    StepRow,
    Told,
    TypeRow,
    Unit,
    parse_unit,
)
from cortex.domain.errors import BusyError, UnavailableError
from cortex.domain.instants import Instant, parse_window
from cortex.domain.values import Node
from cortex.services.archiving import archive_terms
from cortex.services.engine import Engine
from cortex.services.history import History
from cortex.services.resolving import resolve_node
from cortex.store.database import Snapshot


class HistorySource(Protocol):
    """What the analytics worker offers, so that nothing here imports it.

    Raises UnavailableError where it cannot run, BusyError where others keep it.
    """

    def events(
        self,
        workspace: str,
        start: Instant | None,
        stop: Instant | None,
        actor: str | None,
        take: int,
        skip: int,
    ) -> Told[EventRow]: ...

    def taking_part(
        self,
        workspace: str,
        start: Instant | None,
        stop: Instant | None,
        types: Sequence[str],
        relation: str,
        after: tuple[str, str],
        take: int,
    ) -> Told[StepRow]: ...

    def buckets(
        self,
        workspace: str,
        unit: Unit,
        kind: str | None,
        start: Instant | None,
        stop: Instant | None,
    ) -> Told[BucketRow]: ...

    def by_type(
        self, workspace: str, start: Instant | None, stop: Instant | None
    ) -> Told[TypeRow]: ...

    def churn(
        self, workspace: str, start: Instant | None, stop: Instant | None
    ) -> Told[ChurnRow]: ...

    def idle(self, workspace: str, take: int) -> Told[IdleRow]: ...

    def candidates(
        self, workspace: str, cutoff: Instant, keep: int, hot: Sequence[str], take: int
    ) -> Told[IdleRow]: ...


@dataclass(frozen=True, slots=True)
class Counted(Generic[Row]):
    """Rows of a count; `degraded` says why the worker did not give them, `unread` bad cells."""

    rows: tuple[Row, ...]
    generation: int
    degraded: str | None = None
    unread: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Idling:
    """Nodes, the longest idle first, of `total`; each with its last sign of life."""

    nodes: tuple[tuple[Node, IdleRow], ...]
    total: int
    generation: int
    degraded: str | None = None
    unread: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Link:
    """One link of a chain; what superseded it, when, and why, where that is said."""

    node: Node
    superseded_by: Node | None
    at: Instant | None
    reason: str | None


class Activity:
    """Counts what happened in a workspace."""

    def __init__(self, engine: Engine, history: History, source: HistorySource | None) -> None:
        self._engine = engine
        self._history = history
        self._source = source

    def buckets(
        self,
        unit: str = "day",
        *,
        kind: str | None = None,
        from_time: str | None = None,
        to_time: str | None = None,
        workspace: str | None = None,
    ) -> Counted[BucketRow]:
        """Events by hour, day or week (UTC, from Monday) and kind, oldest first.

        Units in which nothing happened are left out. `kind` as `session_timeline` names it.
        """
        place, (start, stop) = self._engine.workspace(workspace), parse_window(from_time, to_time)
        asked = parse_unit(unit)
        return self._counted(
            lambda source: source.buckets(place, asked, kind, start, stop),
            lambda snapshot: snapshot.activity.buckets(place, asked, kind, start, stop),
        )

    def by_type(
        self,
        *,
        from_time: str | None = None,
        to_time: str | None = None,
        workspace: str | None = None,
    ) -> Counted[TypeRow]:
        """Events by the type of their node and kind, most first."""
        place, (start, stop) = self._engine.workspace(workspace), parse_window(from_time, to_time)
        return self._counted(
            lambda source: source.by_type(place, start, stop),
            lambda snapshot: snapshot.activity.by_type(place, start, stop),
        )

    def churn(
        self,
        *,
        from_time: str | None = None,
        to_time: str | None = None,
        workspace: str | None = None,
    ) -> Counted[ChurnRow]:
        """Nodes created, superseded, archived and deleted by week, oldest first."""
        place, (start, stop) = self._engine.workspace(workspace), parse_window(from_time, to_time)
        return self._counted(
            lambda source: source.churn(place, start, stop),
            lambda snapshot: snapshot.activity.churn(place, start, stop),
        )

    def lineage(self, reference: str, workspace: str | None = None) -> tuple[Link, ...]:
        """The chain of supersedes that a node is a link of, oldest first.

        A node that several superseded stands there once for each. Raises NotFoundError.
        """
        place = self._engine.workspace(workspace)
        with self._engine.database.read() as snapshot:
            node = resolve_node(snapshot, reference, place, strict=workspace is not None)
            rows = snapshot.activity.lineage(node.id)
            nodes = _nodes(snapshot, [row.id for row in rows])
        return tuple(
            Link(
                nodes[row.id],
                None if row.superseded_by is None else nodes[row.superseded_by],
                row.superseded_at,
                row.reason,
            )
            for row in rows
        )

    def idle(self, *, limit: int = 50, workspace: str | None = None) -> Idling:
        """Active nodes by the age of their last sign of life, the longest idle first."""
        place = self._engine.workspace(workspace)
        return self._idling(
            self._counted(
                lambda source: source.idle(place, limit),
                lambda snapshot: snapshot.idleness.rows(
                    place, snapshot.archiving.last_activity(place), None, limit
                ),
            )
        )

    def archive_candidates(self, *, limit: int = 50, workspace: str | None = None) -> Idling:
        """What the next archiving would take, each with the last sign of life that is too old."""
        place = self._engine.workspace(workspace)
        with self._engine.database.read() as snapshot:
            terms = archive_terms(snapshot, place, self._engine.settings)
            generation = snapshot.generation().seq
        if terms is None:
            return Idling((), 0, generation)
        last, cutoff, keep, hot = terms

        def by_sqlite(snapshot: Snapshot) -> tuple[IdleRow, ...]:
            keys = snapshot.archiving.idle(place, cutoff, keep, json.dumps(hot))
            return snapshot.idleness.rows(place, last, keys, limit) if keys else ()

        return self._idling(
            self._counted(
                lambda source: source.candidates(place, cutoff, keep, hot, limit), by_sqlite
            )
        )

    def _counted(
        self,
        worker: Callable[[HistorySource], Told[Row]],
        sqlite: Callable[[Snapshot], tuple[Row, ...]],
    ) -> Counted[Row]:
        self._history.flush()
        degraded = None
        if self._source is not None:
            try:
                told = worker(self._source)
                return Counted(told.rows, told.generation, None, told.unread)
            except (BusyError, UnavailableError) as error:
                degraded = degraded_by(error)
        with self._engine.database.read() as snapshot:
            return Counted(sqlite(snapshot), snapshot.generation().seq, degraded)

    def _idling(self, counted: Counted[IdleRow]) -> Idling:
        """The rows with their nodes; one that was deleted meanwhile is left out."""
        with self._engine.database.read() as snapshot:
            nodes = _nodes(snapshot, [row.id for row in counted.rows])
        return Idling(
            tuple((nodes[row.id], row) for row in counted.rows if row.id in nodes),
            counted.rows[0].total if counted.rows else 0,
            counted.generation,
            counted.degraded,
            counted.unread,
        )


def degraded_by(error: BusyError | UnavailableError) -> str:
    """What an answer says that SQLite gave in the worker's place."""
    return f"SQLite answered, without the analytics worker: {error.message}"


def _nodes(snapshot: Snapshot, ids: Sequence[str]) -> dict[str, Node]:
    wanted = list(dict.fromkeys(ids))
    return {str(node.id): node for node in snapshot.nodes.by_ids(wanted)}
