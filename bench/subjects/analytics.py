"""Whole-graph measures: on arrays of that size in this process, and as a tool asks the worker."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

from analytics.measures import (
    communities,
    core_number,
    pagerank,
    sampled_betweenness,
    weakly_connected_components,
)
from analytics.snapshot import GraphSnapshot
from bench import memory_arrays
from bench.context import Context
from cortex.cli.timing import Figure, Target


def measure(context: Context) -> Iterator[Figure]:
    """The measures alone, then a ranking through server and worker, its snapshot kept."""
    graph = memory_arrays.generate(context.nodes, context.prepared.relations, context.seed)
    measures: tuple[tuple[str, Callable[[GraphSnapshot], object], int, tuple[Target, ...]], ...] = (
        ("pagerank", pagerank, 5, (Target(100, "p50"),)),
        ("components", weakly_connected_components, 5, (Target(100, "p50"),)),
        ("betweenness, sampled", sampled_betweenness, 1, (Target(5000, "p50"),)),
        ("cores", core_number, 3, ()),
        ("communities", communities, 2, ()),
    )
    for name, call, runs, targets in measures:
        yield context.engine(
            name, partial(_of, call, graph), runs=runs, targets=targets, note="on arrays"
        )
    yield context.stdio(
        "pagerank", "graph_centrality", lambda _: {"measure": "pagerank"},
        runs=max(3, context.runs // 20), targets=(), note="from the worker, its rows read",
    )  # fmt: skip
    yield context.stdio(
        "health", "graph_health", lambda _: {}, runs=max(2, context.runs // 50),
        targets=(Target(2000),), note="a look over all of it",
    )  # fmt: skip


def _of(call: Callable[[GraphSnapshot], object], graph: GraphSnapshot, turn: int) -> object:
    return call(graph)
