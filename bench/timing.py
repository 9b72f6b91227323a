"""Percentiles of repeated calls, and the line that says where they were taken."""

from __future__ import annotations

import gc
import platform
import sqlite3
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, slots=True)
class Figure:
    """A subject's wall times in milliseconds; `note` says what was done."""

    subject: str
    p50: float
    p95: float
    runs: int
    note: str = ""
    target: str = ""

    @property
    def row(self) -> str:
        return (
            f"| {self.subject} | {self.p50:.2f} | {self.p95:.2f} | {self.runs} | {self.target} | "
            f"{self.note} |"
        )


def timed(
    subject: str, call: Callable[[int], object], runs: int, *, note: str = "", target: str = ""
) -> Figure:
    """Call `call(0) … call(runs - 1)` after three unmeasured ones."""
    for warm in range(3):
        call(warm)
    gc.collect()
    times = []
    for turn in range(runs):
        start = time.perf_counter()
        call(turn)
        times.append((time.perf_counter() - start) * 1000)
    p50, p95 = np.percentile(times, [50, 95])
    return Figure(subject, float(p50), float(p95), runs, note, target)


def header() -> str:
    """The machine's part of a result."""
    return (
        f"Python {platform.python_version()}, SQLite {sqlite3.sqlite_version}, "
        f"{platform.machine()}, {platform.system()}"
    )


COLUMNS = "| subject | p50 ms | p95 ms | runs | target p95 | what |\n|---|---|---|---|---|---|"
