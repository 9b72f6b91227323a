"""Every subject at some sizes: `python -m bench`, or `make bench`.

Prints one table and writes results/nodes-N.json. Memories are made once and kept in a cache
(CORTEX_BENCH_CACHE). Further benches stand by themselves, each with its own table:
graph_engine, worker, health, dream, measures, ingest, ping, search, memory, …
Run: python -m bench [--sizes N,M] [--subjects open,search] [--runs R] [--seed S] [--out FOLDER].
"""

from __future__ import annotations

import argparse
import importlib
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Final

from bench.context import Context
from bench.growth import growth
from bench.prepared import prepare
from bench.report import FOLDER, about, heading, keep, row, verdict
from cortex.cli.timing import Figure

# In this order: those that read before those that write, and memory last, which changes most.
SUBJECTS: Final = (
    "open", "traverse", "walk", "expand", "search", "timeline", "analytics", "start", "cascade",
    "write", "memory",
)  # fmt: skip
DENSITY: Final = 3  # relations a node


def run(context: Context, subjects: list[str]) -> Iterator[list[Figure]]:
    """The figures of one subject after another, printed as they come."""
    for name in subjects:
        figures = []
        for figure in importlib.import_module(f"bench.subjects.{name}").measure(context):
            figures.append(figure)
            print(row(figure), flush=True)
        yield figures


def main() -> None:
    """Measure, print, keep; exit code 1 where a promise is broken and --strict was given."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", default="10000,100000", help="nodes; three relations each")
    parser.add_argument("--subjects", default=",".join(SUBJECTS))
    parser.add_argument("--runs", type=int, default=100, help="of a quick call")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path, default=FOLDER)
    parser.add_argument("--strict", action="store_true", help="fail where a promise is broken")
    given = parser.parse_args()
    subjects = [name for name in SUBJECTS if name in given.subjects.split(",")]
    if unknown := set(given.subjects.split(",")) - set(SUBJECTS):
        parser.error(f"no subject {', '.join(sorted(unknown))}; valid: {', '.join(SUBJECTS)}")
    told = about(given.seed, ["python", "-m", "bench", *sys.argv[1:]])
    sizes = sorted(int(size) for size in given.sizes.split(","))
    for size in sizes:
        prepare(size, DENSITY * size, given.seed)
    began = time.perf_counter()
    print(f"seed {given.seed}; {told['machine']}; Python {told['versions']['python']}, "
          f"SQLite {told['versions']['sqlite']}; milliseconds of wall time")  # fmt: skip
    print(heading(), flush=True)
    figures: list[Figure] = []
    with tempfile.TemporaryDirectory(prefix="cortex-bench-") as folder:
        for size in sizes:
            prepared = prepare(size, DENSITY * size, given.seed)
            with closing(Context(prepared, Path(folder), given.runs)) as context:
                for taken in run(context, subjects):
                    keep(given.out, size, told, taken)  # what is measured outlives a failure
                    figures += taken
    figures += (grown := growth(figures))
    for figure in grown:
        print(row(figure), flush=True)
    print(f"\n{verdict(figures)}\n{time.perf_counter() - began:.0f} s, results in {given.out}")
    if given.strict and any(figure.met is False for figure in figures):
        sys.exit(1)


if __name__ == "__main__":
    main()
