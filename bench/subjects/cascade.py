"""Marking outdated work stale, with all below it."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import cycle

from bench.context import RATIO, Context, each
from cortex.cli.timing import Figure
from cortex.services.fields import Fields


def measure(context: Context) -> Iterator[Figure]:
    """What would be marked below a task; 10,000 memories (half of a small memory) marked."""
    tasks, archive = context.starts.tasks, context.starts.archive
    update, nothing = context.memory.mutation.update, Fields()
    yield context.engine(
        "cascade, planned",
        lambda turn: update(
            tasks[turn % len(tasks)], nothing, status="stale", cascade=True, dry_run=True
        ),
        note="below a task",
    )
    yield context.stdio(
        "cascade, planned", "graph_update_node",
        each("node_id", tasks, status="stale", cascade=True, dry_run=True),
        ratio=RATIO, note="below a task",
    )  # fmt: skip
    few = max(4, context.runs // 20)
    yield context.engine(
        "cascade of an archive, planned",
        lambda _: update(archive, nothing, status="stale", cascade=True, dry_run=True),
        runs=few, note="10,000 below, at most half of all", targets=(),
    )  # fmt: skip
    turns = cycle(("stale", "active"))
    yield context.engine(
        "cascade of an archive",
        lambda _: update(archive, nothing, status=next(turns), cascade=True),
        runs=4, note="marked, then taken back, durable", targets=(),
    )  # fmt: skip
