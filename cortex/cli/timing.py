"""How long repeated calls take, beside what was promised."""

from __future__ import annotations

import gc
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

COLUMNS: Final = ("", "where", "clients", "p50", "p95", "max", "CPU", "runs", "target", "met", "")
_WARMING: Final = 3


@dataclass(frozen=True, slots=True)
class Target:
    """A promise: a figure's p50, p95 or max stays below `limit`, in the figure's own unit."""

    limit: float
    of: Literal["p50", "p95", "max"] = "p95"

    def __str__(self) -> str:
        return f"{self.of} < {self.limit:g}"


@dataclass(frozen=True, slots=True)
class Figure:
    """What was measured of one subject, in `unit`; `note` says what was done.

    `where` is "engine" (this process) or "stdio" (through the server, with a real client),
    `clients` how many calls were under way at once, `nodes` how large the memory was.
    `cpu` is the CPU time of one call in ms, of this process or of the server with its worker;
    it hardly moves with what else the machine does. `ratio` is p50 by that of an empty tool of
    the same server, called in turn with it.
    """

    subject: str
    p50: float
    p95: float
    most: float
    runs: int
    note: str = ""
    targets: tuple[Target, ...] = ()
    where: str = "engine"
    clients: int = 1
    nodes: int = 0
    unit: str = "ms"
    cpu: float | None = None
    ratio: float | None = None
    ratio_limit: float | None = None

    @property
    def met(self) -> bool | None:
        """Whether every promise is kept; None where there is none."""
        if not self.targets and self.ratio_limit is None:
            return None
        kept = all(self._value(target) < target.limit for target in self.targets)
        if self.ratio is None or self.ratio_limit is None:
            return kept
        return kept and self.ratio <= self.ratio_limit

    def _value(self, target: Target) -> float:
        match target.of:
            case "p50":
                return self.p50
            case "p95":
                return self.p95
            case "max":
                return self.most

    @property
    def target(self) -> str:
        """The promises in words."""
        said = [str(target) for target in self.targets]
        if self.ratio_limit is not None:
            said.append(f"≤ {self.ratio_limit:g} × empty")
        return ", ".join(said)

    @property
    def cells(self) -> tuple[str, ...]:
        """The figure as a row below COLUMNS."""
        met = {None: "", True: "yes", False: "no"}[self.met]
        note = self.note if self.ratio is None else f"{self.ratio:.2f} × empty; {self.note}"
        unit = "" if self.unit == "ms" else f" {self.unit}"
        numbers = (f"{_rounded(number)}{unit}" for number in (self.p50, self.p95, self.most))
        cpu = "" if self.cpu is None else str(_rounded(self.cpu))
        return (
            self.subject, self.where, str(self.clients), *numbers, cpu, str(self.runs), self.target,
            met, note.removesuffix("; "),
        )  # fmt: skip

    def plain(self) -> dict[str, Any]:
        """The figure as JSON has it."""
        return {
            "subject": self.subject,
            "where": self.where,
            "clients": self.clients,
            "nodes": self.nodes,
            "unit": self.unit,
            "p50": _rounded(self.p50),
            "p95": _rounded(self.p95),
            "max": _rounded(self.most),
            "cpu": None if self.cpu is None else _rounded(self.cpu),
            "runs": self.runs,
            "ratio": None if self.ratio is None else round(self.ratio, 3),
            "target": self.target,
            "met": self.met,
            "note": self.note,
        }


def figure_of(
    subject: str,
    times: Sequence[float],
    *,
    note: str = "",
    targets: Sequence[Target] = (),
    where: str = "engine",
    clients: int = 1,
    nodes: int = 0,
    cpu: float | None = None,
    empty: Sequence[float] = (),
    ratio_limit: float | None = None,
) -> Figure:
    """The figure of some wall times in milliseconds; `empty` are those of the empty tool."""
    p50, p95 = quantile(times, 0.5), quantile(times, 0.95)
    ratio = p50 / quantile(empty, 0.5) if empty else None
    return Figure(
        subject, p50, p95, max(times), len(times), note, tuple(targets), where, clients, nodes,
        cpu=cpu, ratio=ratio, ratio_limit=ratio_limit if empty else None,
    )  # fmt: skip


def value_of(
    subject: str,
    value: float,
    unit: str,
    *,
    note: str = "",
    below: float | None = None,
    where: str = "engine",
    nodes: int = 0,
) -> Figure:
    """A single value, such as a size, with the limit that was promised."""
    targets = () if below is None else (Target(below, "max"),)
    return Figure(subject, value, value, value, 1, note, targets, where, 1, nodes, unit)


def timed(
    subject: str,
    call: Callable[[int], object],
    runs: int,
    *,
    note: str = "",
    targets: Sequence[Target] = (),
    nodes: int = 0,
) -> Figure:
    """Call `call(0) … call(runs - 1)` in this process, after up to three unmeasured ones."""
    for warm in range(min(_WARMING, runs)):
        call(warm)
    gc.collect()
    times, used = [], time.process_time()
    for turn in range(runs):
        began = time.perf_counter()
        call(turn)
        times.append((time.perf_counter() - began) * 1000)
    cpu = (time.process_time() - used) * 1000 / runs
    return figure_of(subject, times, note=note, targets=targets, nodes=nodes, cpu=cpu)


def quantile(values: Sequence[float], share: float) -> float:
    """The value below which that share of them lies, interpolated (type 7 of Hyndman and Fan)."""
    ordered = sorted(values)
    place = (len(ordered) - 1) * share
    low, high = math.floor(place), math.ceil(place)
    return ordered[low] + (ordered[high] - ordered[low]) * (place - low)


def _rounded(value: float) -> float:
    """Three decimals where it is small, none where it is large."""
    return round(value, 3 if value < 1 else 2 if value < 100 else 0 if value >= 1000 else 1)
