"""Times whole-graph measures beside networkx, igraph, networkit, scipy and rustworkx.

The graph is arrays alone, in the shape of an agent's memory: a tree of `contains`, chains of
reasoning, links to files, a few hubs. Every answer is compared before it is timed. Times are
CPU time of the process on one thread, least of the runs, so that other work on the machine
does not count; the factor is the other library's time by ours. The matrices that a snapshot
keeps are there for ours, as a graph already built is for the others; building them has lines
of its own. igraph comes with the extra `bench`, and is left out where it is not installed.
Run: python -m bench.measures [--nodes N] [--relations M] [--seed S] [--small K] [--families F …]
[--out FILE].
"""

from __future__ import annotations

import argparse
import importlib.metadata
import importlib.util
import json
import os
import platform
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from analytics.measures.networkit_graph import networkit_graph, one_thread
from analytics.snapshot import GraphSnapshot
from bench.comparison import LIBRARIES, OTHERWISE, Case, Line, milliseconds, skipped, table
from bench.memory_arrays import generate
from bench.rival_communities import groupings
from bench.rival_graphs import LARGE, Libraries
from bench.rival_parts import parts
from bench.rival_ranks import ranks, spectra
from bench.rival_searches import all_distances, sampled, searches

FAMILIES: Mapping[str, Callable[[Libraries], Iterator[Case]]] = {
    "ranks": ranks,
    "parts": parts,
    "communities": groupings,
    "spectra": spectra,
    "searches": searches,
    "sampled": sampled,
}


def whole_graph(graphs: Libraries, families: Iterable[str]) -> Iterator[Case]:
    """Measures for graphs of any size; a large one is measured twice, the second time warm."""
    for family in families:
        for case in FAMILIES[family](graphs):
            yield replace(case, runs=2) if len(graphs.snapshot) > LARGE else case


def installed(cases: Iterator[Case]) -> Iterator[Case]:
    """Without the libraries that are not here."""
    absent = {name for name in LIBRARIES if importlib.util.find_spec(name) is None}
    for case in cases:
        others = {name: rival for name, rival in case.others.items() if name not in absent}
        yield replace(case, others=others)


def building(snapshot: GraphSnapshot, seed: int) -> dict[str, float]:
    """CPU ms of what the measures find ready."""
    size = len(snapshot), len(snapshot.source)

    def library_graph() -> None:
        with one_thread():
            fresh = replace(snapshot)  # the copy has no matrices yet
            networkit_graph(fresh, directed=False, weights="sum")

    return {
        "snapshot, its arrays drawn and sorted": milliseconds(lambda: generate(*size, seed), 1),
        "directed matrix": milliseconds(lambda: replace(snapshot).simple(True, "sum"), 3),
        "undirected matrix": milliseconds(lambda: replace(snapshot).simple(False, "sum"), 3),
        "undirected matrix and networkit's graph": milliseconds(
            library_graph, 2
        ),  # the first imports it
    }


def measured(
    nodes: int, relations: int, seed: int, small: int, families: Iterable[str]
) -> dict[str, Any]:
    """Both tables, printed, and as plain values."""
    snapshot = generate(nodes, relations, seed)
    built = building(snapshot, seed)
    for name, cost in built.items():
        print(f"{name}: {cost:.0f} ms")
    large = table(installed(whole_graph(Libraries(snapshot), families)))
    slow: list[Line] = []
    if small:
        print(f"\n{small} nodes, {3 * small} relations")
        slow = table(installed(all_distances(Libraries(generate(small, 3 * small, seed)))))
    for reason in skipped([*large, *slow]):
        print(f"skipped: {reason}")
    return {
        "nodes": nodes,
        "relations": relations,
        "seed": seed,
        "command": f"python -m bench.measures --nodes {nodes} --relations {relations}",
        "machine": f"{os.cpu_count()} shared cores, {platform.machine()}",
        "python": platform.python_version(),
        "versions": {
            name: importlib.metadata.version(name)
            for name in ("numpy", *LIBRARIES)
            if importlib.util.find_spec(name)
        },
        "building_cpu_ms": {name: round(cost, 1) for name, cost in built.items()},
        "measures": [line.plain() for line in large],
        "small": {"nodes": small, "relations": 3 * small},
        "small_measures": [line.plain() for line in slow],
    }


def keep(run: dict[str, Any], file: Path) -> None:
    """Put a run into the file, its measures in the place of those of the same graph."""
    runs = json.loads(file.read_text("utf-8"))["runs"] if file.exists() else []
    others = [each for each in runs if each["nodes"] != run["nodes"]]
    for before in runs:
        if (before["nodes"], before["seed"]) == (run["nodes"], run["seed"]):
            for table_name in ("measures", "small_measures"):
                new = {line["measure"] for line in run[table_name]}
                kept = [line for line in before[table_name] if line["measure"] not in new]
                run[table_name] = kept + run[table_name]
    ordered = sorted([*others, run], key=lambda each: int(each["nodes"]))
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps({"runs": ordered}, indent=1) + "\n", "utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=100_000)
    parser.add_argument("--relations", type=int, default=300_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--small", type=int, default=2_000, help="nodes for O(nm) measures, or 0")
    parser.add_argument("--out", type=Path, help="a JSON file that keeps one run a size")
    parser.add_argument("--families", nargs="*", default=list(FAMILIES), choices=list(FAMILIES))
    given = parser.parse_args()
    print(f"{given.nodes} nodes, {given.relations} relations, seed {given.seed}; CPU ms")
    run = measured(given.nodes, given.relations, given.seed, given.small, given.families)
    if given.out:
        keep(run, given.out)
    if OTHERWISE in json.dumps(run):
        sys.exit("an answer differs: see the lines skipped")


if __name__ == "__main__":
    main()
