"""How far long work has come, told to whoever asked for it."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar

Report = Callable[[float, float, str], None]
"""Done, of how much, what is done now. What does not rise is not passed on to a client."""


def _nobody(done: float, total: float, message: str) -> None:
    """Where nobody asked."""


# The server sets it for each request; a worker thread sees the value of its own request.
PROGRESS: ContextVar[Report] = ContextVar("cortex_progress", default=_nobody)
