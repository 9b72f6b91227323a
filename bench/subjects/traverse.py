"""Traversals by type and depth, their rows fetched."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from bench.context import AGAIN, RATIO, Context, each
from cortex.cli.timing import Figure

_TYPED: Final = ["contains", "decomposes_to", "supports", "derives_from"]


def measure(context: Context) -> Iterator[Figure]:
    """Depth 3, twenty nodes, from leaves over all types and from tasks over four.

    Each place is new to the server, but for "again": twenty places in turn.
    """
    leaves, tasks, hubs = context.starts.leaves, context.starts.tasks, context.starts.hubs
    traverse = context.memory.reading.traverse
    yield context.engine(
        "traverse", lambda turn: traverse(leaves[turn % len(leaves)]), note="all types, depth 3"
    )
    yield context.engine(
        "traverse, 4 of 22 types",
        lambda turn: traverse(tasks[turn % len(tasks)], _TYPED),
        note="depth 3",
    )
    context.stop()
    yield context.stdio(
        "traverse", "graph_traverse", each("start_id", leaves),
        ratio=RATIO, note="all types, depth 3",
    )  # fmt: skip
    yield context.stdio(
        "traverse again", "graph_traverse", each("start_id", leaves[:AGAIN]),
        ratio=RATIO, note="all types, depth 3",
    )  # fmt: skip
    yield context.stdio(
        "traverse, 4 of 22 types", "graph_traverse", each("start_id", tasks, relation=_TYPED),
        ratio=RATIO, note="depth 3",
    )  # fmt: skip
    yield context.stdio(
        "traverse from a hub", "graph_traverse", each("start_id", hubs, direction="both"),
        note="both ways, depth 3, 20 of all, a few in turn",
    )  # fmt: skip
    leaf = each("start_id", leaves)
    yield context.together("traverse", "graph_traverse", leaf, 8)
    yield context.together("traverse", "graph_traverse", leaf, 32)
