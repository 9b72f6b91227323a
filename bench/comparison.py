"""Answers compared with those of other libraries, then timed in CPU time of the process.

A rival's `run` is timed on a graph that it has built already; turning what it returns into
an array, `read`, is not, though ours always returns arrays.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

Values = Any
OTHERWISE = "answers otherwise"
LIBRARIES = ("networkx", "igraph", "networkit", "scipy", "rustworkx")


@dataclass(frozen=True, slots=True)
class Rival:
    """Another library's call; `read` makes of its answer an array like ours.

    `why_not` says why it is not run, and is printed instead.
    """

    run: Callable[[], Any]
    read: Callable[[Any], Values] = np.asarray
    why_not: str = ""


@dataclass(frozen=True, slots=True)
class Case:
    """A measure, and what must answer alike within `tolerance` in every entry."""

    name: str
    ours: Callable[[], Any]
    read: Callable[[Any], Values]
    others: Mapping[str, Rival] = field(default_factory=dict)
    tolerance: float = 1e-6
    target: str = ""
    runs: int = 3


@dataclass(slots=True)
class Line:
    """CPU ms of ours and of each rival; `apart` the largest difference of an entry from ours."""

    name: str
    ours: float
    target: str = ""
    others: dict[str, float] = field(default_factory=dict)
    apart: dict[str, float] = field(default_factory=dict)
    skipped: dict[str, str] = field(default_factory=dict)

    def ratio(self, library: str) -> float:
        """The library's time by ours: above 1 where ours is faster."""
        return self.others[library] / max(self.ours, 0.05)

    def row(self) -> str:
        cells = [self.name, f"{self.ours:.1f}", self.target]
        for library in LIBRARIES:
            if library in self.others:
                cells.append(f"{self.others[library]:.1f} · {self.ratio(library):.1f}×")
            else:
                cells.append("skipped" if library in self.skipped else "–")
        return "| " + " | ".join(cells) + " |"

    def plain(self) -> dict[str, Any]:
        return {
            "measure": self.name,
            "cpu_ms": round(self.ours, 2),
            "target": self.target,
            "others": {
                library: {
                    "cpu_ms": round(cost, 2),
                    "ratio": round(self.ratio(library), 2),
                    "apart": float(f"{self.apart[library]:.2g}"),
                }
                for library, cost in self.others.items()
            },
            "skipped": self.skipped,
        }


def milliseconds(call: Callable[[], Any], runs: int) -> float:
    """Least CPU time of the runs: other work on the machine only ever adds."""
    return answered(call, runs)[1]


def answered(call: Callable[[], Any], runs: int) -> tuple[Any, float]:
    """The last run's answer, and the least CPU time in ms."""
    answer, times = None, []
    for _ in range(runs):
        gc.collect()
        before = time.process_time()
        answer = call()
        times.append((time.process_time() - before) * 1000)
    return answer, min(times)


def compared(case: Case) -> Line:
    """The case's times. A rival that answers otherwise has none, and is said."""
    answer, cost = answered(case.ours, case.runs)
    found = case.read(answer)
    line = Line(case.name, cost, case.target)
    for library, rival in case.others.items():
        if rival.why_not:
            line.skipped[library] = rival.why_not
            continue
        answer, cost = answered(
            rival.run, min(case.runs, 2) if library == "networkx" else case.runs
        )
        apart = _apart(found, rival.read(answer))
        if not apart <= case.tolerance:
            line.skipped[library] = f"{case.name}: {OTHERWISE} by {apart:.2g}"
            continue
        line.apart[library] = apart
        line.others[library] = cost
    return line


def _apart(ours: Values, theirs: Values) -> float:
    """The largest difference of an entry; infinite for another shape."""
    if ours.shape != theirs.shape:
        return float("inf")
    alike = ours == theirs  # infinities among them
    return float(np.abs(np.where(alike, 0.0, ours) - np.where(alike, 0.0, theirs)).max(initial=0))


def table(cases: Iterable[Case]) -> list[Line]:
    """Every case, printed as it is done."""
    print("| measure | CPU ms | target | " + " | ".join(LIBRARIES) + " |")
    print("|" + "---|" * (3 + len(LIBRARIES)))
    lines = []
    for case in cases:
        line = compared(case)
        print(line.row(), flush=True)
        lines.append(line)
    return lines


def skipped(lines: Sequence[Line]) -> list[str]:
    """What was not run, and why, once each."""
    return sorted({f"{name}: {why}" for line in lines for name, why in line.skipped.items()})
