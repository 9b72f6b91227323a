"""The order in which processes write: two advisory locks before SQLite's own.

Idea: SQLite's waiters look again after ever longer pauses, so whoever has just released the
lock has it again first. Here a process takes `next`, waits with it for `now`, and puts `next`
down once it has `now`: who releases `now` finds the next one at the door already. A try costs
a microsecond, so a waiter tries each millisecond; BEGIN IMMEDIATE tried as often halves what
all of them get done.

SQLite's lock stays the truth. Where these cannot be had (no flock, a folder that cannot be
written, files that somebody deleted) its own waiting orders the writers, as before; and one
who stands in line asks it now and then, so that a process which was stopped at the door holds
up nobody. The kernel frees both locks when a process dies.
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Final

try:
    import fcntl
except ImportError:  # Windows has no flock
    _LOCKS = False
else:
    _LOCKS = True

_PAUSE: Final = 0.001
_NAMES: Final = ("writer-next.lock", "writer-now.lock")


class Turnstile:
    """One process's place at the door; used by one of its threads at a time."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._usable = _LOCKS
        self._next = self._now = -1
        self._queued = self._inside = False

    def pass_within(self, seconds: float) -> bool:
        """Wait to be let in, at most so long; True when inside, or where there is no door.

        After False the place in line is kept until `leave`.
        """
        if not self._open():
            return True
        deadline = time.monotonic() + seconds
        while not self._advance():
            if time.monotonic() >= deadline:
                return not self._usable
            time.sleep(_PAUSE)
        return True

    def leave(self) -> None:
        """Let the next one in; nothing where this process neither is inside nor waits."""
        if self._inside:
            self._inside = False
            fcntl.flock(self._now, fcntl.LOCK_UN)
        if self._queued:
            self._queued = False
            fcntl.flock(self._next, fcntl.LOCK_UN)

    def close(self) -> None:
        self._usable = self._queued = self._inside = False
        for descriptor in (self._next, self._now):
            if descriptor >= 0:
                os.close(descriptor)
        self._next = self._now = -1

    def _advance(self) -> bool:
        self._queued = self._queued or self._try(self._next)
        self._inside = self._queued and self._try(self._now)
        if self._inside:
            self._queued = False
            fcntl.flock(self._next, fcntl.LOCK_UN)
        return self._inside or not self._usable

    def _try(self, descriptor: int) -> bool:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        except OSError:  # a filesystem without flock
            self._usable = False
            return False
        return True

    def _open(self) -> bool:
        if self._usable and self._now < 0:
            try:
                self._folder.mkdir(mode=0o700, exist_ok=True)
                self._next, self._now = (
                    os.open(self._folder / name, os.O_RDWR | os.O_CREAT, 0o600) for name in _NAMES
                )
            except OSError:
                self._usable = False
        return self._usable
