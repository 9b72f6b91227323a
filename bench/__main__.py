"""Every bench in turn: `python -m bench`, or `make bench`."""

from __future__ import annotations

import importlib.util
import sys
from typing import Final

from bench import dream, graph_engine, health, ingest, measures, ping, services, start, worker

# A fifth of the sizes that the targets name: the whole run takes minutes, not half an hour.
_MODEST: Final = ("--nodes", "20000", "--relations", "60000")
BENCHES: Final = (
    ("Start of the server", start, ()),
    ("What an agent asks for, in the engine", services, ()),
    ("The graph engine beside recursive CTEs", graph_engine, ()),
    ("The ingest of many files", ingest, ()),
    ("The analytics worker beside SQLite", worker, (*_MODEST, "--history", "200000")),
    ("Health, diff, impact, paths", health, _MODEST),
    ("A dream", dream, ("--memories", "20000", "--subjects", "1200")),
    ("Pings beside a measure", ping, ()),
    ("Whole-graph measures beside other libraries", measures, _MODEST),
)


def main() -> None:
    """Each prints its own table; run alone, it takes its own options and larger sizes."""
    for title, bench, options in BENCHES:
        print(f"\n## {title}\n", flush=True)
        if bench is measures and importlib.util.find_spec("igraph") is None:
            print("left out: the libraries that it compares with are not installed")
            continue
        sys.argv = [bench.__name__, *options]
        bench.main()


if __name__ == "__main__":
    sys.exit(main())
