"""Opening the memory in the background, once, while the protocol is already served."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import Final, Generic, Protocol, TypeVar

import anyio
import anyio.to_thread

from cortex.domain.errors import CortexError, UnavailableError
from cortex.server.errors import unexpected

logger = logging.getLogger(__name__)

# A client asks for the tools at once. Opening imports the engine, and would slow that answer
# by sharing the interpreter with it, so it waits for the answer, or this long.
GRACE: Final = 1.5


class Closable(Protocol):
    """What the server asks of a memory: that it can be closed, from any thread."""

    def close(self) -> None: ...


C = TypeVar("C", bound=Closable)


class Opening(Generic[C]):
    """A memory to come. `await ready()` from any request; `close()` from any thread."""

    def __init__(self, open_memory: Callable[[], C]) -> None:
        self._open_memory = open_memory
        self._wanted = anyio.Event()
        self._opened = anyio.Event()
        self._memory: C | None = None
        self._failure: CortexError | None = None
        self._begun = False
        self._ended = threading.Event()

    def want(self) -> None:
        """Begin now. Called in the loop; again and again is fine."""
        self._wanted.set()

    async def ready(self) -> C:
        """The memory, once it is open.

        Raises UnavailableError with the reason when it could not be opened.
        """
        self.want()
        await self._opened.wait()
        if self._memory is None:
            reason = self._failure.message if self._failure else "it was closed"
            raise UnavailableError(
                f"The memory is not open: {reason}", "", "Repair this, then start the server again"
            )
        return self._memory

    async def run(self) -> None:
        """Open it when it is wanted, at the latest after GRACE."""
        with anyio.move_on_after(GRACE):
            await self._wanted.wait()
        self._begun = True
        await anyio.to_thread.run_sync(self._open, abandon_on_cancel=True)
        self._opened.set()

    def _open(self) -> None:
        try:
            self._memory = self._open_memory()
        except CortexError as error:
            logger.warning("the memory could not be opened: %s", error)
            self._failure = error
        except Exception as error:  # noqa: BLE001 - every call must be told why, not lose its server
            self._failure = unexpected(error, "opening the memory")
        finally:
            self._ended.set()

    def close(self, wait: float) -> None:
        """Close the memory, if it was opened; one that is being opened is given `wait` seconds."""
        if self._begun and not self._ended.wait(wait):
            logger.warning("the memory was still being opened; left as it is")
            return
        if self._memory is not None:
            self._memory.close()
