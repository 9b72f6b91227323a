"""How long a graph takes to build, to save and to load, and how many bytes it holds.

Run: python -m bench.graph_size FILE [--workspace NAME]. The graph must have been saved, as the
process that calls this has done: a heap with holes would hide what a graph takes.
"""

from __future__ import annotations

import argparse
import gc
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import psutil

from cortex.domain.values import WorkspaceId
from cortex.graph.capture import capture
from cortex.graph.shelf import Shelf
from cortex.graph.workspace import WorkspaceGraph
from cortex.store.database import Database


def resident(made: Callable[[], WorkspaceGraph]) -> tuple[float, float, float]:
    """CPU and wall seconds of the fastest, and megabytes that each further graph takes.

    The first ones also fill the page cache and the heap, so they say nothing of size.
    """
    copies, sizes, cpu, wall = [], [], [], []
    for _ in range(5):
        began = time.thread_time(), time.perf_counter()
        copies.append(made())
        cpu.append(time.thread_time() - began[0])
        wall.append(time.perf_counter() - began[1])
        gc.collect()
        sizes.append(psutil.Process().memory_info().rss / 1e6)
    return min(cpu), min(wall), (sizes[-1] - sizes[1]) / 3


def made(database: Database, place: WorkspaceId, shelf: Shelf | None = None) -> WorkspaceGraph:
    graph = WorkspaceGraph(place, shelf)
    with database.read() as snapshot:
        graph.catch_up(snapshot)
    return graph


def loading(database: Database, shelf: Shelf, place: WorkspaceId) -> None:
    """Print how long the file takes to load, and what a node and a relation hold."""
    with database.read() as snapshot:
        found = shelf.load(snapshot, place)
    assert found is not None
    head, columns = found
    names = ("near", "far", "payload", "light", "weight")
    bare = replace(columns, **{name: getattr(columns, name)[:0] for name in names})
    del found, columns

    def nodes_alone() -> WorkspaceGraph:
        graph = WorkspaceGraph(place)
        graph.fill(bare)
        return graph

    _, _, of_nodes = resident(nodes_alone)
    cpu, wall, whole = resident(lambda: made(database, place, shelf))
    size = shelf.path(place).stat().st_size / 1e6
    print(f"load {cpu:.2f} s, wall {wall:.2f} s, of a file of {size:.1f} MB")
    print(
        f"resident {whole:.1f} MB: {of_nodes * 1e6 / head.nodes:.0f} bytes a node, "
        f"{(whole - of_nodes) * 1e6 / head.relations:.0f} a relation"
    )


def building(database: Database, place: WorkspaceId) -> None:
    """Print how long a build takes, the copy for a file, and rows."""
    began = time.thread_time(), time.perf_counter()
    graph = made(database, place)
    cpu, wall = time.thread_time() - began[0], time.perf_counter() - began[1]
    print(f"build {cpu:.2f} s, wall {wall:.2f} s; estimated {graph.memory_bytes() / 1e6:.1f} MB")
    start = time.thread_time()
    taken = capture(graph)
    held = (time.thread_time() - start) * 1000
    start = time.thread_time()
    taken.columns()
    packed = (time.thread_time() - start) * 1000
    print(f"to save it, the lock is held {held:.0f} ms, then {packed:.0f} ms without")
    start = time.thread_time()
    graph.rows(incoming=False)
    graph.rows(incoming=True)
    rows = (time.thread_time() - start) * 1000
    more = graph.row_cache.memory_bytes() / 1e6
    print(f"rows of both directions: {rows:.0f} ms, {more:.1f} MB more")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", type=Path)
    parser.add_argument("--workspace", default="bench")
    given = parser.parse_args()
    database, place = Database(given.file), WorkspaceId(given.workspace)
    shelf = Shelf(given.file, writable=True)
    loading(database, shelf, place)
    building(database, place)
    database.close()


if __name__ == "__main__":
    main()
