"""How many calls one connection may make: a token bucket.

A model asks a few times a second, a program as fast as it is answered. What is held off is a
loop that floods: its calls are refused at once with `busy`, nothing done and nothing queued.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

from cortex.domain.errors import BusyError

BURST: Final = 2.0  # seconds of calls that may come at once


class Rate:
    """A bucket that fills with `per_second` calls, up to BURST seconds of them; 0 has no bound.

    Not for several threads at once: the loop of the server asks. `clock` is in seconds and
    never goes back.
    """

    def __init__(self, per_second: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._per_second = per_second
        self._capacity = max(per_second * BURST, 1.0)
        self._left = self._capacity
        self._clock = clock
        self._at = clock()

    def take(self) -> None:
        """Count one call. Raises BusyError when there have been too many."""
        if self._per_second <= 0:
            return
        now = self._clock()
        self._left = min(self._capacity, self._left + (now - self._at) * self._per_second)
        self._at = now
        if self._left < 1.0:
            raise BusyError(
                f"more than {self._per_second:g} calls a second on this connection",
                f"Valid: {self._per_second:g} a second, {self._capacity:g} at once (CORTEX_RATE)",
                "Wait a second, then call again; nothing was done",
            )
        self._left -= 1.0
