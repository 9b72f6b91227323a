"""What happened over time, through the worker, in the words of those who ask."""

from __future__ import annotations

from collections.abc import Sequence

from analytics.client import Worker
from analytics.queries import (
    ActivityByType,
    Buckets,
    Chronological,
    Churn,
    Events,
    Idle,
    IdleTimes,
    Query,
)
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
)
from cortex.domain.instants import Instant

# Reading a file of millions of rows takes longer: it goes on, and SQLite answers meanwhile.
_TIMEOUT = 10.0
# A measure may hold the worker for seconds; whoever only counts asks SQLite instead.
_WAIT = 1.0


class WorkerHistory:
    """Raises UnavailableError where the worker cannot run, BusyError where it takes too long."""

    def __init__(self, worker: Worker) -> None:
        self._worker = worker

    def events(
        self,
        workspace: str,
        start: Instant | None,
        stop: Instant | None,
        actor: str | None,
        take: int,
        skip: int,
    ) -> Told[EventRow]:
        """A page of events, newest first."""
        return self._told(Events(workspace, start, stop, actor, take, skip))

    def taking_part(
        self,
        workspace: str,
        start: Instant | None,
        stop: Instant | None,
        types: Sequence[str],
        relation: str,
        after: tuple[str, str],
        take: int,
    ) -> Told[StepRow]:
        """Nodes that take part in such a relation, in order of creation."""
        at, node = after
        asked = Chronological(
            workspace, start, stop, tuple(types), relation, at or None, node, take
        )
        return self._told(asked)

    def buckets(
        self,
        workspace: str,
        unit: Unit,
        kind: str | None,
        start: Instant | None,
        stop: Instant | None,
    ) -> Told[BucketRow]:
        """Events by unit and kind, oldest first."""
        return self._told(Buckets(workspace, unit.value, kind, start, stop))

    def by_type(self, workspace: str, start: Instant | None, stop: Instant | None) -> Told[TypeRow]:
        """Events by type of node and kind, most first."""
        return self._told(ActivityByType(workspace, start, stop))

    def churn(self, workspace: str, start: Instant | None, stop: Instant | None) -> Told[ChurnRow]:
        """What came and went by week, oldest first."""
        return self._told(Churn(workspace, start, stop))

    def idle(self, workspace: str, take: int) -> Told[IdleRow]:
        """Active nodes, the longest idle first."""
        return self._told(IdleTimes(workspace, take))

    def candidates(
        self, workspace: str, cutoff: Instant, keep: int, hot: Sequence[str], take: int
    ) -> Told[IdleRow]:
        """What archiving would take, the longest idle first."""
        return self._told(Idle(workspace, cutoff, keep, tuple(hot), take))

    def _told(self, query: Query[Row]) -> Told[Row]:
        answer = self._worker.ask(query, timeout=_TIMEOUT, wait=_WAIT)
        return Told(answer.rows, answer.generation.seq, answer.unread)
