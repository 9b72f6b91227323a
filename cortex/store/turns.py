"""Whose turn it is to write, among the threads of this process: first come, first served.

The turn is handed from one thread to the next, never put down while somebody waits, so that
no newcomer can take it from under those who stand in line.
"""

from __future__ import annotations

import threading
from collections import deque


class _Waiting:
    """One thread in line; `granted` is held until the turn is its own."""

    def __init__(self, thread: int, *, short: bool) -> None:
        self.thread = thread
        self.short = short
        self.granted = threading.Lock()
        self.granted.acquire()


class Turns:
    """A lock that keeps its waiters in order, and knows which of them will be short."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._line: deque[_Waiting] = deque()
        self._holder: int | None = None

    @property
    def mine(self) -> bool:
        """Whether this thread has the turn."""
        return self._holder == threading.get_ident()

    @property
    def taken(self) -> bool:
        """Whether any thread has the turn."""
        return self._holder is not None

    @property
    def waiting(self) -> int:
        """How many stand in line."""
        return len(self._line)

    def take(self, seconds: float | None, *, short: bool) -> bool:
        """Wait for the turn, None for as long as it takes; False when it was not had.

        A thread that has the turn is refused at once: it would wait for itself.
        """
        me = threading.get_ident()
        with self._lock:
            if self._holder == me:
                return False
            if self._holder is None:
                self._holder = me
                return True
            waiting = _Waiting(me, short=short)
            self._line.append(waiting)
        had = False
        try:
            had = waiting.granted.acquire(timeout=-1 if seconds is None else max(seconds, 0.0))
        finally:
            if not had:
                with self._lock:
                    if self._holder == me:  # granted at the last moment
                        had = True
                    else:
                        self._line.remove(waiting)
        return had

    def hand_to_short(self) -> bool:
        """Give the turn to whoever is next in line if that one is short; else keep it."""
        with self._lock:
            if not self._line or not self._line[0].short:
                return False
            self._grant()
            return True

    def release(self) -> None:
        """Give the turn to whoever is next in line, or put it down."""
        with self._lock:
            if self._line:
                self._grant()
            else:
                self._holder = None

    def _grant(self) -> None:
        waiting = self._line.popleft()
        self._holder = waiting.thread
        waiting.granted.release()
