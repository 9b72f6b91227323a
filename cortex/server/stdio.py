"""Serving one client over stdin and stdout, from the first byte to the exit."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
import os
import signal
import sys
import threading
from collections.abc import Callable, Collection, Sequence
from typing import Any, Final, NoReturn, TypeVar

import anyio
import anyio.lowlevel
from mcp.server.lowlevel import Server

from cortex.server.app import build_server
from cortex.server.opening import Closable, Opening
from cortex.server.transport import Transport
from cortex.server.wire import Wire, claim
from cortex.tools.registry import ToolSpec
from cortex.tools.resource import ResourceSpec

logger = logging.getLogger(__name__)

C = TypeVar("C", bound=Closable)

# The parts of 5 seconds, after which hosts kill: requests under way when stdin ends, a memory
# that is still being opened, and all of it together.
DRAIN: Final = 2.5
WAIT_FOR_OPENING: Final = 1.0
LAST: Final = 4.5


def serve_stdio(
    tools: Sequence[ToolSpec[C]],
    resources: Sequence[ResourceSpec[C]],
    open_memory: Callable[[], C],
    *,
    name: str,
    version: str,
    instructions: str | None = None,
    on_close: Callable[[], None] | None = None,
    absent: Collection[str] = (),
    rate: float = 0,
) -> NoReturn:
    """Serve until stdin ends, the client goes, or SIGTERM, SIGINT or SIGHUP; then exit with 0.

    `open_memory` runs in a thread, after the tools were listed or a call came; its `close` is
    called at the end, then `on_close`. Whoever imports much before this should `claim()` the
    wire first, so that no import can print into the protocol.

    It does not return: a thread that is still in a tool cannot be stopped and would hold the
    process, so the process ends by `os._exit`, without atexit. What needs an orderly end
    belongs in `close` or `on_close`.
    """
    wire = claim()
    logging.basicConfig(  # for a caller that has set up no log of its own
        stream=sys.stderr, level=logging.WARNING, format="%(levelname)s %(name)s: %(message)s"
    )
    opening = Opening(open_memory)
    server = build_server(
        tools,
        resources,
        opening.ready,
        name=name,
        version=version,
        instructions=instructions,
        on_listed=opening.want,
        absent=absent,
        rate=rate,
    )
    gc.freeze()  # what the SDK made lives as long as the process; do not scan it again and again
    code = 1
    try:
        anyio.run(_serve, server, wire, opening)
        code = 0
    except Exception:  # the process ends here, and its memory is to be closed first
        logger.exception("the server failed")
    _leave(code, opening, on_close)


async def _serve(server: Server[Any], wire: Wire, opening: Opening[Any]) -> None:
    transport = Transport(wire)
    async with anyio.create_task_group() as group:
        _stop_on_signals(group.cancel_scope.cancel)
        group.start_soon(opening.run)
        await transport.serve(server, drain=DRAIN, at_end=_arm)
        group.cancel_scope.cancel()


def _stop_on_signals(stop: Callable[[], None]) -> None:
    """Have the signals that end a process call `stop` in the loop."""
    loop = asyncio.get_running_loop()

    def end() -> None:
        _arm()
        stop()

    for kind in ("SIGTERM", "SIGINT", "SIGHUP"):
        number = getattr(signal, kind, None)
        if number is None:  # SIGHUP on Windows
            continue
        if kind == "SIGHUP" and signal.getsignal(number) is signal.SIG_IGN:  # under nohup
            continue
        try:
            loop.add_signal_handler(number, end)
        except NotImplementedError:  # Windows: its loops know no signals, the interpreter does
            signal.signal(number, lambda *_: loop.call_soon_threadsafe(end))


def _arm() -> None:
    """From now on the process has LAST seconds, whatever may hang."""
    timer = threading.Timer(LAST, _give_up)
    timer.daemon = True
    timer.start()


def _give_up() -> None:
    logger.warning("closing took longer than %s s; left it there", LAST)
    os._exit(0)


def _leave(code: int, opening: Opening[Any], on_close: Callable[[], None] | None) -> NoReturn:
    _arm()
    try:
        opening.close(WAIT_FOR_OPENING)
        if on_close is not None:
            on_close()
    except Exception:  # nothing is left but to say it and end
        logger.exception("closing failed")
        code = 1
    logger.info("stopped, exit code %d", code)
    for stream in (sys.stdout, sys.stderr):
        # Either may be gone with the client that held it.
        with contextlib.suppress(OSError, ValueError, AttributeError):
            stream.flush()
    os._exit(code)
