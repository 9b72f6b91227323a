"""Who is calling: the client and the connection of the request being served."""

from __future__ import annotations

from contextvars import ContextVar
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Caller:
    """`client` is what the client calls itself; `connection` is new with each process."""

    client: str = ""
    connection: str = ""


_NOBODY: Final = Caller()

# The server sets it for each request; a worker thread sees the value of its own request.
CALLER: ContextVar[Caller] = ContextVar("cortex_caller", default=_NOBODY)
