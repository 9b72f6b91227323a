"""Embedding gives way to the writes of its process, which want the same processor.

While one write follows another, what they owe is left for a pause; but not for long, and not
when somebody waits for it.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Final

_QUIET: Final = 0.1  # seconds without a write, after which there is a pause
_PATIENCE: Final = 2.0  # seconds of giving way, at most, until what is owed is paid


class Yielding:
    """What one background thread still puts up with; `idle_seconds` says since when none wrote."""

    def __init__(self, idle_seconds: Callable[[], float]) -> None:
        self._idle_seconds = idle_seconds
        self._asked = threading.Event()
        self._left = _PATIENCE

    def begin(self) -> None:
        """There is something to do again: give way, with new patience."""
        self._left = _PATIENCE
        self.give_way()

    def give_way(self) -> None:
        """Wait for a pause, as long as the patience lasts and nobody asks."""
        began = time.monotonic()
        deadline = began + self._left
        while not self._asked.is_set():
            wait = min(_QUIET - self._idle_seconds(), deadline - time.monotonic())
            if wait <= 0:
                break
            self._asked.wait(wait)
        self._asked.clear()
        self._left = max(deadline - time.monotonic(), 0.0)

    def end(self) -> None:
        """Somebody waits for what is owed, or it is time to stop."""
        self._asked.set()
