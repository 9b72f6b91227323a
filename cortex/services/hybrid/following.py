"""The thread that reads and links memories after they were stored.

It is started by the first write of a hybrid tool in this process (at once where
CORTEX_NEIGHBOURS is on), sleeps until something is written, and ends with the memory. What it
left undone is in the file: the next process goes on.
"""

from __future__ import annotations

import threading
from typing import Final

from cortex.domain.caller import CALLER, Caller
from cortex.domain.errors import BusyError, CortexError
from cortex.services.engine import Engine
from cortex.services.hybrid.mentions import Mentions
from cortex.services.neighbours import Neighbours
from cortex.store.undo import FOLLOWER

_SOON: Final = 0.2  # while texts are being embedded
_RETRY: Final = 30.0


class Following:
    """Runs both followers after each write, in one thread of this process."""

    def __init__(self, engine: Engine, mentions: Mentions, neighbours: Neighbours) -> None:
        self._engine = engine
        self._mentions = mentions
        self._neighbours = neighbours
        self._wake = threading.Event()
        self._stop = threading.Event()
        self._starting = threading.Lock()
        self._working = threading.Lock()
        self._thread: threading.Thread | None = None
        self.problem: str | None = None
        """Why links wait, where the model or the index is out."""

    def start(self) -> None:
        """Follow from now on."""
        if self._engine.settings.read_only or self._stop.is_set():
            return
        with self._starting:
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="following", daemon=True)
                self._thread.start()
        self._wake.set()

    def notify(self) -> None:
        """Something was written."""
        if self._thread is not None:
            self._wake.set()
        elif self._neighbours.everyone:
            self.start()

    def catch_up(self) -> None:
        """Do now what there is to do. Raises UnavailableError where the model is out."""
        with self._working:
            self._catch_up()

    def _catch_up(self) -> None:
        before = CALLER.set(Caller(FOLLOWER, "follower"))  # so that the log says who it was
        try:
            self._mentions.catch_up()
            self._neighbours.catch_up()
        finally:
            CALLER.reset(before)

    def _run(self) -> None:
        pause: float | None = None
        while not self._stop.is_set():
            self._wake.wait(pause)
            self._wake.clear()
            if self._stop.is_set():
                return
            try:
                self.catch_up()
                self.problem = None
                pause = _SOON if self._pending() else None
            except BusyError:
                pause = _SOON
            except CortexError as error:
                self.problem, pause = error.message, _RETRY  # shown by `status`, tried again

    def _pending(self) -> bool:
        with self._engine.database.read() as snapshot:
            return snapshot.outbox.pending(None) > 0

    def close(self) -> None:
        """Stop after the batch in hand."""
        self._stop.set()
        self._wake.set()
        if self._thread is not None:
            self._thread.join(2.0)
