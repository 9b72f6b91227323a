"""Instants: UTC text of 27 characters that sorts as time (invariant 5)."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Final, NewType

from cortex.domain.errors import InvalidError, UnavailableError

Instant = NewType("Instant", str)
Clock = Callable[[], Instant]

_FORM: Final = "%Y-%m-%dT%H:%M:%S.%fZ"
_DATE: Final = re.compile(r"\d{4}-\d{2}-\d{2}")
_ISO: Final = re.compile(
    r"\d{4}-\d{2}-\d{2}([T ]\d{2}:\d{2}(:\d{2}([.,]\d{1,9})?)?\s*(Z|z|[+-]\d{2}(:?\d{2})?)?)?"
)
_VALID: Final = (
    "Valid: 2026-05-14, 2026-05-14T08:30, 2026-05-14T08:30:00Z, 2026-05-14T08:30:00+05:30; "
    "without a zone it means UTC"
)
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def render(moment: datetime) -> Instant:
    """The 27-character form of an aware datetime, in UTC."""
    return Instant(moment.astimezone(UTC).strftime(_FORM).rjust(27, "0"))


def now() -> Instant:
    """The system's clock, in microseconds."""
    return render(datetime.now(UTC))


def as_datetime(instant: Instant) -> datetime:
    """The aware datetime of a stored instant.

    Raises UnavailableError for one that no cortex wrote: a byte of the file has changed.
    """
    try:
        return datetime.fromisoformat(instant)
    except ValueError:
        raise UnavailableError(
            f"the file is damaged: the time {ascii(instant)[:60]} cannot be read",
            "",
            "Run `cortex doctor`, then restore a backup",
        ) from None


def as_microseconds(instant: Instant) -> int:
    """Microseconds since 1970-01-01 UTC. Raises as `as_datetime`."""
    return (as_datetime(instant) - _EPOCH) // timedelta(microseconds=1)


def before(instant: Instant, **delta: float) -> Instant:
    """The instant earlier by `timedelta(**delta)`; `before(now, days=7)`."""
    return render(as_datetime(instant) - timedelta(**delta))


def later(instant: Instant, **delta: float) -> Instant:
    """The instant later by `timedelta(**delta)`."""
    return render(as_datetime(instant) + timedelta(**delta))


def parse_instant(text: str, field: str, *, end: bool = False) -> Instant:
    """Read ISO 8601; naive means UTC; a date alone as an end includes its whole day.

    Raises InvalidError naming the field and the accepted forms; a leap second, month 13
    or day 40 is refused, never guessed.
    """
    value = text.strip()
    if not _ISO.fullmatch(value):
        raise InvalidError(f"{field} {text!r} is not a time", _VALID, "Send one of these forms")
    date_only = _DATE.fullmatch(value) is not None
    value = value.replace(",", ".").replace("z", "Z").replace(" ", "T", 1).replace(" ", "")
    try:
        moment = datetime.fromisoformat(value)
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=UTC)
        if date_only and end:
            moment += timedelta(days=1) - timedelta(microseconds=1)
        return render(moment)
    except (ValueError, OverflowError) as error:
        raise InvalidError(
            f"{field} {text!r} is not a time ({error})", _VALID, "Send one of these forms"
        ) from None


def parse_window(
    from_time: str | None,
    to_time: str | None,
    fields: tuple[str, str] = ("from_time", "to_time"),
) -> tuple[Instant | None, Instant | None]:
    """Both ends of a window, inclusive; `fields` are what the caller calls them.

    Raises InvalidError when it is turned round.
    """
    first, last = fields
    start = parse_instant(from_time, first) if from_time else None
    stop = parse_instant(to_time, last, end=True) if to_time else None
    if start and stop and start > stop:
        raise InvalidError(
            f"{first} {from_time!r} is after {last} {to_time!r}",
            f"Valid: {first} ≤ {last}",
            "Swap them",
        )
    return start, stop
