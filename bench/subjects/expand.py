"""A memory with what is around it: read, and taken into focus."""

from __future__ import annotations

from collections.abc import Iterator

from bench.context import AGAIN, RATIO, Context, each
from cortex.cli.timing import Figure


def measure(context: Context) -> Iterator[Figure]:
    """Depth 2, the ten nearest nodes; a hub has some thousands of relations.

    Each place is new to the server, but for "again": twenty places in turn.
    """
    leaves, hubs = context.starts.leaves, context.starts.hubs
    get, focus = context.memory.reading.get, context.memory.viewport.focus
    yield context.engine("get", lambda turn: get([leaves[turn % len(leaves)]]), note="depth 2")
    yield context.engine(
        "get a hub", lambda turn: get([hubs[turn % len(hubs)]]), note="depth 2, a few in turn"
    )
    yield context.engine(
        "focus", lambda turn: focus(leaves[turn % len(leaves)]), note="depth 2, history written"
    )
    context.stop()
    leaf = each("node_id", leaves)
    yield context.stdio("get", "graph_get_node", leaf, ratio=RATIO, note="depth 2")
    again = each("node_id", leaves[:AGAIN])
    yield context.stdio("get again", "graph_get_node", again, ratio=RATIO, note="depth 2")
    yield context.stdio(
        "answer that is ready", "ready", lambda _: {}, targets=(), note="as long as that of a get"
    )
    yield context.stdio(
        "get a hub", "graph_get_node", each("node_id", hubs), note="depth 2, a few in turn"
    )
    yield context.stdio(
        "focus", "desktop_focus", each("node_id", leaves[::-1]), ratio=RATIO,
        note="depth 2, history written",
    )  # fmt: skip
    yield context.together("get", "graph_get_node", leaf, 8, note="depth 2")
    yield context.together("get", "graph_get_node", leaf, 32, note="depth 2")
