"""Reasoning chains, and the paths between two memories."""

from __future__ import annotations

from collections.abc import Iterator

from bench.context import RATIO, Context, each
from cortex.cli.timing import Figure


def measure(context: Context) -> Iterator[Figure]:
    """Five steps from where a chain begins; three paths between leaves chosen at random."""
    heads, leaves = context.starts.heads, context.starts.leaves
    walk, paths = context.memory.reading.walk, context.memory.routing.paths
    yield context.engine("walk", lambda turn: walk(heads[turn % len(heads)]), note="5 steps")
    yield context.stdio("walk", "graph_walk", each("start_id", heads), ratio=RATIO, note="5 steps")
    few = max(5, context.runs // 20)
    yield context.engine(
        "path", lambda turn: paths(leaves[turn], leaves[-1 - turn]), runs=few,
        note="k = 3, between two leaves", targets=(),
    )  # fmt: skip
    yield context.stdio(
        "path", "graph_path", lambda turn: {"from_id": leaves[turn], "to_id": leaves[-1 - turn]},
        runs=few, targets=(), note="k = 3, between two leaves",
    )  # fmt: skip
