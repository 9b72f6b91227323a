"""`cortex serve`: check the file, then serve; the heavy imports come after the handshake."""

from __future__ import annotations

import gc
import logging
import os
from typing import NoReturn

from cortex import __version__
from cortex.cli.logs import set_up_logging
from cortex.config import Settings
from cortex.server.stdio import serve_stdio
from cortex.store.database import Database
from cortex.tools.catalogue import INSTRUCTIONS, TOOLS
from cortex.tools.registry import select
from cortex.tools.resources import RESOURCES

logger = logging.getLogger(__name__)


def calm_collector() -> None:
    """Let the cyclic collector look at what is new, seldom.

    A memory holds hundreds of thousands of long-lived objects and makes no cycles; by
    default a full collection strikes in the middle of large answers (10 ms and more).
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 100)


def serve_memory(settings: Settings, tools: str) -> NoReturn:
    """Serve this memory on stdio until the client goes.

    Raises, before a byte is served, what is wrong with the file, the folder or the names
    of the tools: a host shows the one line and the exit code.
    """
    chosen = select(TOOLS, tools, settings.read_only)
    database = Database(settings.database, read_only=settings.read_only)
    set_up_logging(settings.home)
    logger.info(
        "cortex %s starts: process %d, workspace %s, %s, %d tools%s",
        __version__,
        os.getpid(),
        ascii(settings.workspace),
        settings.database,
        len(chosen),
        ", read-only" if settings.read_only else "",
    )

    def opened():  # type: ignore[no-untyped-def]  # its type would import the engine too early
        from cortex.memory import open_memory

        memory = open_memory(settings, client="mcp", database=database)
        memory.indexing.resume()
        if any(spec.name == "store_memory" for spec in chosen):
            memory.hybrid.following.start()
        calm_collector()
        return memory

    serve_stdio(
        chosen,
        RESOURCES,
        opened,
        name="cortex",
        version=__version__,
        instructions=INSTRUCTIONS,
        absent=[spec.name for spec in TOOLS if spec not in chosen],
        rate=settings.rate,
    )
