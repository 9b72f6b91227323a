"""What a check of the doctor found, in the form that people and programs read."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final

from cortex.config import Settings
from cortex.services.engine import Engine
from cortex.services.meaning.semantic import Semantic

EXAMPLES: Final = 5
BY_FIX: Final = "--fix does it"
RESTORE: Final = "cortex restore FILE, a backup"
COMPACT: Final = "cortex compact --keep 0: the log begins anew, memories stay"


class State(StrEnum):
    """`fault`: something is not as it must be. `warning`: nothing is lost or wrong, yet."""

    OK = "ok"
    FAULT = "fault"
    WARNING = "warning"
    SKIPPED = "skipped"


@dataclass(frozen=True, slots=True)
class Finding:
    """One check's result.

    `count` is how many things are at fault, or of an ok check how many were looked at;
    `examples` at most 5 of them, as text; `said` why it was skipped or what it compared;
    `mend` the command that mends it, "" where nothing is to mend; `rows` what a mender needs
    to know, never shown.
    """

    check: str
    state: State
    count: int
    examples: tuple[str, ...] = ()
    said: str = ""
    mend: str = ""
    rows: tuple[Any, ...] = field(default=(), repr=False)

    def rendered(self) -> dict[str, Any]:
        """As JSON shows it."""
        return {
            "check": self.check,
            "state": self.state.value,
            "count": self.count,
            "examples": list(self.examples),
            "said": self.said,
            "mend": self.mend,
        }


@dataclass(frozen=True, slots=True)
class Case:
    """An open memory under examination; `step` is called as a long check goes on."""

    settings: Settings
    engine: Engine
    semantic: Semantic
    wal_bound: int
    step: Callable[[int, int], None] = lambda done, total: None


def fine(check: str, count: int, said: str) -> Finding:
    """Nothing wrong among `count` things."""
    return Finding(check, State.OK, count, said=said)


def skipped(check: str, why: str) -> Finding:
    """Not looked at, and why."""
    return Finding(check, State.SKIPPED, 0, said=why)


def found(
    check: str,
    examples: Iterable[str],
    said: str,
    mend: str,
    *,
    rows: Sequence[Any] = (),
    state: State = State.FAULT,
) -> Finding:
    """Something wrong; every example is given, the first five are kept."""
    wrong = list(examples)
    return Finding(check, state, len(wrong), tuple(wrong[:EXAMPLES]), said, mend, tuple(rows))
