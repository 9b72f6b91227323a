"""A snapshot's simple graph for networkit, on one thread with a seed.

networkit's parallel loops finish in any order, so two runs on more threads may differ; one
thread and a seed make every run the same. Both are settings of the process, which is the
worker's or a notebook's: the number of threads is put back, the generator stays seeded.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from analytics.simple_graph import Weights
from analytics.snapshot import GraphSnapshot


@contextmanager
def one_thread(seed: int = 1) -> Iterator[None]:
    import networkit as nk

    before = nk.getMaxNumberOfThreads()
    nk.setNumberOfThreads(1)
    nk.setSeed(seed, False)
    try:
        yield
    finally:
        nk.setNumberOfThreads(before)


def networkit_graph(
    snapshot: GraphSnapshot,
    *,
    directed: bool,
    weights: Weights = "none",
    reverse: bool = False,
) -> Any:
    """Its node numbers are the snapshot's positions; edges of weight 0 are left out.

    Built once, 0.5 µs an edge, and kept with the snapshot: whoever changes it copies it first.
    """
    import networkit as nk

    name = "networkit, reversed" if reverse else "networkit"
    kept = snapshot.library_graphs.get((name, directed, weights))
    if kept is not None:
        return kept
    edges = snapshot.simple(directed, weights).tocoo()
    once = edges.data > 0 if directed else (edges.data > 0) & (edges.row < edges.col)
    row, column, data = edges.row[once], edges.col[once], edges.data[once]
    if reverse:
        row, column = column, row
    ends = row.astype(np.uint64), column.astype(np.uint64)
    made = nk.GraphFromCoo(
        (data, ends), n=len(snapshot), weighted=weights != "none", directed=directed
    )
    snapshot.library_graphs[name, directed, weights] = made
    return made
