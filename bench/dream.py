"""Times a dream of a large memory: the plan, the apply, the apply again, the undo.

Run: python -m bench.dream [--memories N] [--subjects S] [--seed S]; the neighbour graph is
current, as the follower keeps it.
"""

from __future__ import annotations

import argparse
import resource
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from bench.dreamers import write_dreamer
from bench.timing import header
from cortex.cli.serving import calm_collector
from cortex.config import load_settings
from cortex.domain.progress import PROGRESS
from cortex.memory import open_memory
from cortex.services.dreaming.dreaming import Dreamt

T = TypeVar("T")


def main() -> None:
    """Write the memory, dream, print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--memories", type=int, default=100_000)
    parser.add_argument("--subjects", type=int, default=6_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--steps", action="store_true", help="also when each step began")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        memory = open_memory(load_settings(home=Path(folder), workspace="bench", env={}))
        memory.engine.after_write = lambda: None  # nothing here is embedded
        made = write_dreamer(memory.engine.database, given.memories, given.subjects, given.seed)
        with memory.engine.database.read() as snapshot:
            relations = snapshot.relations.count(memory.settings.workspace)
        print(
            f"{len(made.keys)} memories of {given.subjects} subjects, {relations} relations, "
            f"seed {given.seed}; {header()}"
        )
        print("| what | wall s | CPU s | changes |\n|---|---|---|---|", flush=True)
        calm_collector()
        if given.steps:
            began = time.perf_counter()
            PROGRESS.set(
                lambda done, total, what: print(f"  {time.perf_counter() - began:.1f} s {what}")
            )
        dream = memory.dreaming.dream
        _timed("plan, lite", lambda: dream("plan", "lite"))
        _timed("plan, deep", lambda: dream("plan", "deep"))
        _timed("apply, deep", lambda: dream("apply", "deep"))
        _timed("apply again, deep", lambda: dream("apply", "deep"))
        _timed("undo", lambda: memory.undoing.undo())
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
        print(f"\n{peak} MB at the peak, the writing of the memory included")
        memory.close()


def _timed(subject: str, call: Callable[[], T]) -> T:
    wall, cpu = time.perf_counter(), time.process_time()
    done = call()
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    steps = ""
    if isinstance(done, Dreamt):
        parts = ", ".join(f"{step} {count:,}" for step, count in done.steps.items() if count)
        steps = f"{done.total:,}" + (f": {parts}" if parts else "")
    print(f"| {subject} | {wall:.1f} | {cpu:.1f} | {steps} |", flush=True)
    return done


if __name__ == "__main__":
    main()
