"""Every bench in turn: `python -m bench`, or `make bench`."""

from __future__ import annotations

import sys

from bench import graph_engine, ingest, services, start


def main() -> None:
    """Each prints its own table; the options are those of the benches alone."""
    for title, bench in (
        ("Start of the server", start),
        ("What an agent asks for, in the engine", services),
        ("The graph engine beside recursive CTEs", graph_engine),
        ("The ingest of many files", ingest),
    ):
        print(f"\n## {title}\n", flush=True)
        bench.main()


if __name__ == "__main__":
    sys.exit(main())
