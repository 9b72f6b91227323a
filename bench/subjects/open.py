"""Opening the desktop: what is hot, the titles of the rest."""

from __future__ import annotations

import time
from collections.abc import Iterator

from bench.context import RATIO, Context
from cortex.cli.timing import Figure, figure_of
from cortex.tools.desktop import desktop_open


def measure(context: Context) -> Iterator[Figure]:
    """The rendered desktop, within 5,000 characters."""
    with context.apart() as morning:
        began = time.perf_counter()
        desktop_open.call(morning, {})
        first = (time.perf_counter() - began) * 1000
    yield figure_of("open, the day's first", [first], nodes=context.nodes,
                    note="what lies idle is archived behind it")  # fmt: skip
    memory = context.memory
    yield context.engine("open", lambda _: desktop_open.call(memory, {}), note="rendered")
    yield context.stdio("open", "desktop_open", lambda _: {}, ratio=RATIO)
    history = context.memory.viewport.history
    yield context.engine("history", lambda _: history(None), note="the newest 20")
    yield context.stdio("history", "desktop_history", lambda _: {}, ratio=RATIO)
