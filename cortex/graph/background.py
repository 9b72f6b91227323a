"""Work on graphs that nobody waits for: one thread, started when there is some.

Corner: a job that is waiting already is not queued twice; at the end the one that runs is
waited for, those behind it are dropped.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Hashable

from cortex.domain.errors import CortexError

logger = logging.getLogger(__name__)


class Background:
    """Runs jobs one after another, by name."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._lock = threading.Lock()
        self._waiting: dict[Hashable, Callable[[], None]] = {}
        self._thread: threading.Thread | None = None
        self._ended = False

    def run(self, what: Hashable, job: Callable[[], None]) -> None:
        """Do this soon, unless it is waiting already; returns at once."""
        with self._lock:
            if self._ended:
                return
            self._waiting.setdefault(what, job)
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, name=self._name, daemon=True)
                self._thread.start()

    def _work(self) -> None:
        while True:
            with self._lock:
                if not self._waiting:
                    self._thread = None
                    return
                what = next(iter(self._waiting))
                job = self._waiting.pop(what)
            try:
                job()
            except CortexError as error:  # the memory was closed, or is damaged: readers are told
                logger.info("%s: %s", self._name, error)
            except BaseException:
                with self._lock:
                    self._thread = None
                raise

    def drain(self) -> None:
        """Wait until nothing is left to do."""
        with self._lock:
            thread = self._thread
        if thread is not None:
            thread.join()

    def close(self) -> None:
        """Take no more, and wait for what is running."""
        with self._lock:
            self._ended = True
            self._waiting.clear()
            thread = self._thread
        if thread is not None:
            thread.join()
