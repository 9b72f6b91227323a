"""A lease in the file: at most one process at a time brings a remote index up to date.

It is kept in real time, whatever the memory's clock says, and runs out by itself, so that a
process that died holds nobody up. One that was merely paused may send a last request after
another took over: the index leaves points alone that are newer than what it is sent.
"""

from __future__ import annotations

import secrets
import time
from typing import Final

from cortex.domain.errors import BusyError, UnavailableError
from cortex.domain.instants import later, now
from cortex.domain.values import new_id
from cortex.services.engine import Engine
from cortex.store.meta import MEMORY_ID, PUSHER

SECONDS: Final = 30.0  # longer than one request may take
_RENEW: Final = 5.0


class Lease:
    """One process's hold; not to be shared by threads that push at the same time."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._me = secrets.token_hex(8)
        self._renewed = 0.0

    def take(self) -> bool:
        """Take or renew it, False while another holds it; the first ever gives the memory its
        id. Raises BusyError when the file's write lock is not had."""
        present = now()
        with self._engine.database.write(self._engine.actor) as transaction:
            until, _, holder = (transaction.meta.find(PUSHER) or "").partition(" ")
            if holder not in ("", self._me) and until > present:
                return False
            transaction.meta.set(PUSHER, f"{later(present, seconds=SECONDS)} {self._me}")
            if transaction.meta.find(MEMORY_ID) is None:
                transaction.meta.set(MEMORY_ID, new_id())
        self._renewed = time.monotonic()
        return True

    def held(self) -> bool:
        """Whether it still is ours; renews it when it is no longer fresh."""
        return time.monotonic() - self._renewed <= _RENEW or self.take()

    def release(self) -> None:
        """Let others push now."""
        try:
            with self._engine.database.write(self._engine.actor, wait=1.0) as transaction:
                if (transaction.meta.find(PUSHER) or "").endswith(self._me):
                    transaction.meta.set(PUSHER, "")
        except (BusyError, UnavailableError):
            return  # it runs out by itself
