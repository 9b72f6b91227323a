"""Times the ingest of many small files, and what memory it takes: it must not grow with them.

Each size runs in a process of its own, whose peak of resident memory is read at its end;
what was resident before the ingest began is taken off. Texts are not embedded: that costs
the model's memory and milliseconds a text, whatever the number of files.
Run: python -m bench.ingest [--files N] [--seed S].
"""

from __future__ import annotations

import argparse
import multiprocessing
import random
import resource
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

import psutil

from bench.sentences import sentence
from bench.timing import header
from cortex.config import load_settings
from cortex.memory import open_memory

_FOLDER: int = 200
_KIB: int = 1 << 10
_MIB: int = 1 << 20


class Run(NamedTuple):
    """Seconds of a first and of an unchanged second ingest; MiB that the first one added."""

    first: float
    again: float
    grown: float
    nodes: int


def scatter(root: Path, files: int, seed: int) -> None:
    """So many Markdown files of two sections, some hundred a folder."""
    rng = random.Random(seed)
    for number in range(files):
        folder = root / f"part{number // _FOLDER:03}"
        folder.mkdir(parents=True, exist_ok=True)
        text = f"# Note {number}\n\n{sentence(rng)}\n\n## More\n\n{sentence(rng)}\n"
        (folder / f"note{number:05}.md").write_text(text)


def run(root: Path, home: Path) -> Run:
    """Ingest twice in this process."""
    memory = open_memory(load_settings(home=home, workspace="bench", env={}, cwd=root))
    memory.engine.after_write = lambda: None
    before = psutil.Process().memory_info().rss
    began = time.perf_counter()
    report = memory.ingest.ingest(root)
    first = time.perf_counter() - began
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * _KIB
    began = time.perf_counter()
    memory.ingest.ingest(root)
    again = time.perf_counter() - began
    memory.close()
    return Run(first, again, (peak - before) / _MIB, report.nodes)


def main() -> None:
    """One row per size."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    print(f"{header()}, seed {given.seed}")
    print(
        "| files | nodes | first s | again s | resident memory added, MiB |\n|---|---|---|---|---|"
    )
    for files in (given.files // 20, given.files // 4, given.files):
        with tempfile.TemporaryDirectory() as name:
            place = Path(name)
            scatter(place / "docs", files, given.seed)
            with multiprocessing.get_context("spawn").Pool(1) as pool:
                done = pool.apply(run, (place / "docs", place / "home"))
        print(
            f"| {files} | {done.nodes} | {done.first:.1f} | {done.again:.1f} | {done.grown:.0f} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
