"""Between the 27-character text of an instant and microseconds."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Final

from cortex.domain.instants import Instant, as_microseconds, render

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_BEGIN: Final = -(1 << 62)
_END: Final = 1 << 62


def text(microseconds: int) -> Instant:
    """The instant as text."""
    return render(_EPOCH + timedelta(microseconds=microseconds))


def window(start: str | None, stop: str | None) -> dict[str, int]:
    """Both ends, to be bound as $start and $stop; open ones lie beyond every instant."""
    return {
        "start": as_microseconds(Instant(start)) if start else _BEGIN,
        "stop": as_microseconds(Instant(stop)) if stop else _END,
    }
