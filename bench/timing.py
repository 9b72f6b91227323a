"""Percentiles of repeated calls as a line of a table, and where they were taken.

For benches that print a table of their own; those of `python -m bench` take their figures from
`cortex.cli.timing` as they are.
"""

from __future__ import annotations

import platform
import sqlite3
from collections.abc import Callable
from typing import Final

from cortex.cli import timing
from cortex.cli.timing import Figure as _Figure
from cortex.cli.timing import Target

COLUMNS: Final = (
    "| subject | p50 ms | p95 ms | runs | target p95 | what |\n|---|---|---|---|---|---|"
)


class Figure(_Figure):
    """A subject's wall times in milliseconds; `note` says what was done."""

    __slots__ = ()

    @property
    def row(self) -> str:
        limit = f"{self.targets[0].limit:g}" if self.targets else ""
        return (
            f"| {self.subject} | {self.p50:.2f} | {self.p95:.2f} | {self.runs} | {limit} | "
            f"{self.note} |"
        )


def timed(
    subject: str, call: Callable[[int], object], runs: int, *, note: str = "", target: str = ""
) -> Figure:
    """Call `call(0) … call(runs - 1)` after three unmeasured ones; `target` is of p95, in ms."""
    targets = (Target(float(target)),) if target else ()
    taken = timing.timed(subject, call, runs, note=note, targets=targets)
    return Figure(taken.subject, taken.p50, taken.p95, taken.most, taken.runs, note, targets)


def header() -> str:
    """The machine's part of a result."""
    return (
        f"Python {platform.python_version()}, SQLite {sqlite3.sqlite_version}, "
        f"{platform.machine()}, {platform.system()}"
    )
