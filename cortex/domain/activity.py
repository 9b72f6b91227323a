"""Rows of what happened over time: the analytics worker and SQLite answer with the same ones.

Instants are the 27-character text; a `start` or `week` is where its unit begins, in UTC.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Generic, NamedTuple, TypeVar

from cortex.domain.errors import InvalidError
from cortex.domain.instants import Instant

Row = TypeVar("Row", bound=tuple[Any, ...])


class Unit(StrEnum):
    """Of UTC; a week begins on Monday."""

    HOUR = "hour"
    DAY = "day"
    WEEK = "week"


def parse_unit(name: str) -> Unit:
    """The unit of that name. Raises InvalidError with the valid ones."""
    try:
        return Unit(name)
    except ValueError:
        valid = "Valid: " + ", ".join(Unit)
        raise InvalidError(f"unit {name!r} is unknown", valid, "Send one of these") from None


class EventRow(NamedTuple):
    """One event; `title` is the node's data text, or None when it is gone."""

    at: Instant
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
    created_at: Instant


class BucketRow(NamedTuple):
    """How many events of a kind happened from `start` on, for one unit."""

    start: Instant
    kind: str
    total: int


class TypeRow(NamedTuple):
    """How many events of a kind befell nodes of a type; the type is None where it is gone."""

    type: str | None
    kind: str
    total: int


class ChurnRow(NamedTuple):
    """One week, from its Monday: what came, what was replaced, archived, deleted."""

    week: Instant
    created: int
    superseded: int
    archived: int
    deleted: int


class LineageRow(NamedTuple):
    """One link of a chain of supersedes; at its head `superseded_by` is None.

    `reason` is what the relation or the newer node says in data.reason.
    """

    id: str
    type: str
    status: str
    created_at: Instant
    superseded_by: str | None
    superseded_at: Instant | None
    reason: str | None


class IdleRow(NamedTuple):
    """An active node of `total`, and its last sign of life.

    `what` is created, changed, focused or opened, of the node itself or, where `below` is 1,
    of one that it contains. `idle_seconds` counts to the workspace's last activity.
    """

    key: int
    id: str
    last_at: Instant
    what: str
    below: int
    idle_seconds: float
    total: int


@dataclass(frozen=True, slots=True)
class Told(Generic[Row]):
    """Rows, the log's seq that they reflect, and the cells of the file that nothing could read."""

    rows: tuple[Row, ...]
    generation: int
    unread: tuple[str, ...] = ()
