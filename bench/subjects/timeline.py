"""What happened, and what came to be, in order."""

from __future__ import annotations

from collections.abc import Iterator

from bench.context import LOCAL, Context
from cortex.cli.timing import Figure

_FIRST, _LAST = "2026-02-01", "2026-03-02"
_MONTH = {"from_time": _FIRST, "to_time": _LAST}


def measure(context: Context) -> Iterator[Figure]:
    """A page of 50 events or nodes; events of a month counted by day, by the worker."""
    timeline = context.memory.timeline
    yield context.engine(
        "timeline", lambda _: timeline.session_timeline(), note="the newest 50 events",
        targets=LOCAL,
    )  # fmt: skip
    yield context.engine(
        "temporal walk", lambda _: timeline.temporal_walk(from_time=_FIRST, to_time=_LAST),
        note="50 nodes of a month", targets=LOCAL,
    )  # fmt: skip
    yield context.stdio("timeline", "session_timeline", lambda _: {}, note="the newest 50 events")
    yield context.stdio(
        "temporal walk", "temporal_walk", lambda _: dict(_MONTH), note="50 nodes of a month"
    )
    yield context.stdio(
        "timeline counted", "session_timeline", lambda _: {**_MONTH, "by": "day"},
        runs=max(5, context.runs // 10), note="a month by day and kind", targets=(),
    )  # fmt: skip
