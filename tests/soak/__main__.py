"""`python -m tests.soak`, or `make soak`: prints what was done, how fast, and what was wrong.

SOAK_SECONDS (300), SOAK_KILLS (60, of servers and workers alone) and SOAK_SEED are read from
the environment; a run without a seed draws one, and says it first.
"""

from __future__ import annotations

import os
import secrets
import sys
import tempfile
from pathlib import Path

import anyio
import numpy as np

from tests.soak.running import CLIENTS, SERVERS, Outcome, soak


def main() -> int:
    seconds = float(os.environ.get("SOAK_SECONDS", "300"))
    kills = int(os.environ.get("SOAK_KILLS", "60"))
    seed = int(os.environ.get("SOAK_SEED") or secrets.randbelow(1_000_000))
    print(f"seed {seed}, {seconds:g} s, {SERVERS} servers, {CLIENTS} clients", flush=True)
    with tempfile.TemporaryDirectory(prefix="cortex-soak-") as folder:
        outcome = anyio.run(soak, Path(folder), seconds, kills, seed)
    show(outcome)
    return 1 if outcome.faults else 0


def show(outcome: Outcome) -> None:
    """The table, then the verdict."""
    print("\n| operation | times | p50 ms | p95 ms | p99 ms |\n|---|---|---|---|---|")
    everything = [time for times in outcome.times.values() for time in times]
    for name, times in [*sorted(outcome.times.items()), ("all", everything)]:
        p50, p95, p99 = np.percentile(times, [50, 95, 99]) if times else (0.0, 0.0, 0.0)
        print(f"| {name} | {len(times)} | {p50:.1f} | {p95:.1f} | {p99:.1f} |")
    kills = ", ".join(f"{kind} {count}" for kind, count in sorted(outcome.kills.items()))
    ended = ", ".join(f"{kind} {count}" for kind, count in sorted(outcome.ended.items()))
    print(f"\n{outcome.operations} operations in {outcome.seconds:.0f} s, seed {outcome.seed}")
    print(f"{outcome.kills.total()} kills: {kills}; came to their end: {ended}")
    print(f"{outcome.acknowledged} writes acknowledged; {outcome.lost} calls lost to kills")
    errors = ", ".join(f"{kind} {count}" for kind, count in outcome.errors.items() if count)
    print(f"errors at clients: {errors or 'none'}")
    for fault in outcome.faults[:40]:
        print(f"FAULT {fault}")
    print(f"{len(outcome.faults)} faults")


if __name__ == "__main__":
    sys.exit(main())
