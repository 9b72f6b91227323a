"""Embedding gives way to the writes of its process, which want the same processor.

While one write follows another, what they owe is left for a pause; but not for long, and not
when somebody waits for it. A burst that outlasts the patience is let on between the batches.
What an earlier process left owing waits for a longer pause: loading the model takes as much as
hundreds of writes, and who has just started has other things to do.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Final

_QUIET: Final = 0.1  # seconds without a write, after which there is a pause
_SETTLED: Final = 1.0  # the same for what an earlier process left
_PATIENCE: Final = 10.0  # seconds of giving way, at most, before the first batch
_BETWEEN: Final = 1.0  # and before each that follows, once those are used up


class Yielding:
    """What one background thread still puts up with; `idle_seconds` says since when none wrote."""

    def __init__(self, idle_seconds: Callable[[], float]) -> None:
        self._idle_seconds = idle_seconds
        self._asked = threading.Event()
        self._left = _PATIENCE
        self._old = False

    def begin(self) -> None:
        """There is something to do again: give way, with new patience; to none for 0.1 s, too."""
        self._left = _PATIENCE
        self._wait(self._left, least=_QUIET)

    def give_way(self) -> None:
        """Wait for a pause, as long as the patience lasts and nobody asks."""
        self._wait(max(self._left, _BETWEEN))

    def pressed(self) -> bool:
        """Whether somebody has begun to write for whom there is patience left."""
        return self._left > 0 and not self._asked.is_set() and self._idle_seconds() < _QUIET

    def _wait(self, seconds: float, *, least: float = 0.0) -> None:
        began = time.monotonic()
        deadline = began + seconds
        while not self._asked.is_set():
            quiet = _SETTLED if self._old else _QUIET
            now = time.monotonic()
            wait = min(max(quiet - self._idle_seconds(), began + least - now), deadline - now)
            if wait <= 0:
                break
            self._asked.wait(min(wait, _QUIET))
        self._asked.clear()
        self._old = False
        self._left = max(deadline - time.monotonic(), 0.0)

    def owe(self, *, old: bool) -> None:
        """What is owed is of this process's own writes, or `old`: of an earlier process."""
        self._old = old

    def end(self) -> None:
        """Somebody waits for what is owed, or it is time to stop."""
        self._asked.set()
