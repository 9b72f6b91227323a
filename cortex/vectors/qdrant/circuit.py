"""A circuit breaker: while a server is out, its callers are told at once.

Idea: closed, calls pass; after `failures` in a row, or one timeout, it opens and calls are
refused without being made; when the pause is over, one call is let through as a probe
(half-open), and its outcome closes the circuit or doubles the pause. A random part of the
pause keeps the processes that share a server from probing it in step.

Cost: a lock around a few comparisons. Corner: a probe that ends in neither outcome (an
interrupt) must be given back by `abandoned`, else nobody would probe again.

Source: M. Nygard, Release It!, 2007, "Circuit Breaker".
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable
from typing import Final, Literal

from cortex.domain.errors import UnavailableError

State = Literal["closed", "open", "half-open"]

FAILURES: Final = 3
PAUSE: Final = 1.0
LONGEST: Final = 30.0


class Circuit:
    """Safe to use from threads; `pause` and `longest` in seconds of `clock`."""

    def __init__(
        self,
        *,
        failures: int = FAILURES,
        pause: float = PAUSE,
        longest: float = LONGEST,
        clock: Callable[[], float] = time.monotonic,
        chance: Callable[[], float] = random.random,
    ) -> None:
        self._limit = failures
        self._pause = pause
        self._longest = longest
        self._clock = clock
        self._chance = chance
        self._lock = threading.Lock()
        self._failures = 0
        self._openings = 0
        self._due = 0.0
        self._probing = False
        self.problem: str | None = None
        """Why the last call that failed did; None after one that did not."""

    @property
    def state(self) -> State:
        """`half-open` while a probe is under way."""
        if not self._openings:
            return "closed"
        return "half-open" if self._probing else "open"

    def left(self) -> float:
        """Seconds until a probe is let through; 0 while closed or due."""
        with self._lock:
            return max(self._due - self._clock(), 0.0) if self._openings else 0.0

    def admit(self) -> None:
        """Let the caller through, who then reports; raises UnavailableError while open."""
        with self._lock:
            if not self._openings:
                return
            if self._probing or self._clock() < self._due:
                raise UnavailableError(f"{self.problem} It is tried again by itself")
            self._probing = True

    def succeeded(self) -> None:
        """The server answered."""
        with self._lock:
            self._failures = self._openings = 0
            self._probing = False
            self.problem = None

    def failed(self, problem: str, *, at_once: bool = False) -> None:
        """The server did not; `at_once` opens without waiting for more failures."""
        with self._lock:
            self.problem = problem
            self._failures += 1
            if self._openings and not self._probing:
                return  # a call from before the opening: says nothing new
            self._probing = False
            if at_once or self._openings or self._failures >= self._limit:
                pause = min(self._pause * 2.0**self._openings, self._longest)
                self._due = self._clock() + pause * (0.75 + 0.5 * self._chance())
                self._openings = min(self._openings + 1, 30)

    def abandoned(self) -> None:
        """The call ended without an outcome: let another probe."""
        with self._lock:
            self._probing = False
