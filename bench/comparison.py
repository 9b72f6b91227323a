"""Answers compared with those of other libraries, then timed in CPU time of the process."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

Values = Any


@dataclass(frozen=True, slots=True)
class Case:
    """A measure, and what must answer alike: each gives an array to compare."""

    name: str
    ours: Callable[[], Values]
    others: dict[str, Callable[[], Values]] = field(default_factory=dict)
    tolerance: float = 1e-6
    target: str = ""
    runs: int = 3


def milliseconds(call: Callable[[], Values], runs: int) -> float:
    times = []
    for _ in range(runs):
        gc.collect()
        before = time.process_time()
        call()
        times.append((time.process_time() - before) * 1000)
    return min(times)


def show(cases: Iterator[Case]) -> None:
    print("| measure | CPU ms | target | networkx | ratio | igraph | ratio |")
    print("|---|---|---|---|---|---|---|")
    for case in cases:
        found = case.ours()
        line = f"| {case.name} | {milliseconds(case.ours, case.runs):.1f} | {case.target} |"
        ours = float(line.split("|")[2])
        for library in ("networkx", "igraph"):
            other = case.others.get(library)
            if other is None:
                line += " | |"
                continue
            theirs = other()
            assert found.shape == theirs.shape, f"{case.name}: {library} differs in shape"
            apart = np.abs(found - theirs).max(initial=0.0)
            assert apart <= case.tolerance, f"{case.name}: {library} differs by {apart}"
            cost = milliseconds(other, 1)
            line += f" {cost:.0f} | {cost / max(ours, 0.1):.1f}× |"
        print(line, flush=True)
