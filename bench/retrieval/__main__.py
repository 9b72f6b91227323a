"""Runs the product's own search over retrieval sets and prints how much of it finds.

The store, the services and the offline model are those of the product; a set's memory and
its embeddings are kept in a folder, so that a second run takes a minute. Figures alone are
written, never a text of the sets.
Run: python -m bench.retrieval DATA [--sets locomo,beam] [--ablations] [--out FILE].
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from bench.retrieval.building import build
from bench.retrieval.measuring import ABLATIONS, COLUMNS, Way, measure
from bench.retrieval.sets import find_sets, read_set
from bench.retrieval.vectors import KeptEmbedder
from bench.timing import header

_HEAD = "| set | way | R@5 | R@10 | MRR | nDCG@10 |\n|---|---|---|---|---|---|"


def main() -> int:
    """Build, ask, print; 1 where there is no set."""
    parser = argparse.ArgumentParser(prog="python -m bench.retrieval", description=__doc__)
    parser.add_argument("data", type=Path, nargs="?", help="folder with *.json.gz sets")
    parser.add_argument("--sets", default="", help="beginnings of their names, by commas")
    parser.add_argument("--ways", default="", help="only these columns, by commas")
    parser.add_argument("--ablations", action="store_true", help="the default less each signal")
    parser.add_argument("--out", type=Path, help="also write the figures: FILE.json or FILE.md")
    given = parser.parse_args()
    names = [name for name in given.sets.split(",") if name]
    paths = find_sets(given.data, names) if given.data else []
    if not paths:
        where = f"in {given.data}" if given.data else "given"
        print(f"no retrieval sets {where}: pass the folder of the *.json.gz files, "
              "make bench-retrieval DATA=FOLDER", file=sys.stderr)  # fmt: skip
        return 1
    folder = Path(
        os.environ.get("CORTEX_BENCH_CACHE") or Path(tempfile.gettempdir(), "cortex-bench")
    )
    ways = {**COLUMNS, **(ABLATIONS if given.ablations else {})}
    wanted = [name for name in given.ways.split(",") if name]
    ways = {name: way for name, way in ways.items() if not wanted or name in wanted}
    figures = {}
    print(_HEAD, flush=True)
    embedder = KeptEmbedder("offline", folder)
    for path in paths:
        name, rows = _run(path, folder, embedder, ways)
        figures[name] = rows
    embedder.close()
    if given.out is not None:
        given.out.parent.mkdir(parents=True, exist_ok=True)
        text = _markdown(figures) if given.out.suffix == ".md" else json.dumps(figures, indent=1)
        given.out.write_text(text + "\n")
    return 0


def _row(name: str, way: str, values: Sequence[float]) -> str:
    return f"| {name} | {way} | " + " | ".join(f"{value:.1f}" for value in values) + " |"


def _markdown(figures: Mapping[str, Mapping[str, Sequence[float]]]) -> str:
    rows = [_row(name, way, row) for name, ways in figures.items() for way, row in ways.items()]
    told = "Printed by `make bench-retrieval DATA=…`: the product's search, the offline model."
    return "\n".join((f"# Search quality\n\n{told} {header()}.\n", _HEAD, *rows))


def _run(
    path: Path, folder: Path, embedder: KeptEmbedder, ways: Mapping[str, Way]
) -> tuple[str, dict[str, list[float]]]:
    loaded = read_set(path)
    built = build(loaded, folder, embedder)
    rows = {}
    try:
        for name, way in ways.items():
            rows[name] = measure(loaded, built, way).row
            print(_row(loaded.name, name, rows[name]), flush=True)
    finally:
        built.memory.close()
    return loaded.name, rows


if __name__ == "__main__":
    sys.exit(main())
