"""One real MCP client for all of them: calls over stdio with a limit, and the memory they hold."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import anyio
import psutil
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client

CALL_SECONDS: Final = 30.0
START_SECONDS: Final = 60.0


class Refused(Exception):
    """A peer answered a call with an error."""


@dataclass(frozen=True, slots=True)
class Reply:
    """What came back: its text blocks, its structured part, and the wall time in milliseconds."""

    text: str
    structured: Mapping[str, Any]
    milliseconds: float


@dataclass(frozen=True, slots=True)
class Session:
    """An open conversation with one server."""

    client: Client
    before: frozenset[int]

    async def call(self, tool: str, **arguments: Any) -> Reply:
        """One call; TimeoutError after 30 s, Refused with the peer's own words."""
        with anyio.fail_after(CALL_SECONDS):
            began = time.perf_counter()
            done = await self.client.call_tool(tool, arguments)
            took = (time.perf_counter() - began) * 1000
        text = "\n".join(block.text for block in done.content if block.type == "text")
        if done.is_error:
            raise Refused(f"{tool}: {text[:200]}")
        return Reply(text, done.structured_content or {}, took)

    def megabytes(self) -> float:
        """The proportional set size of the server with all that it started."""
        total = 0
        for process in psutil.Process().children(recursive=True):
            if process.pid not in self.before:
                with contextlib.suppress(psutil.NoSuchProcess):  # it ended meanwhile
                    total += process.memory_full_info().pss
        return total / 1e6


def started(command: Sequence[str | Path], home: Path, **env: str) -> StdioServerParameters:
    """How to start a server that knows no home but this one."""
    first, *rest = map(str, command)
    kept = {name: os.environ[name] for name in ("PATH", "SSL_CERT_FILE") if name in os.environ}
    return StdioServerParameters(
        command=first, args=rest, cwd=home, env={**kept, "HOME": str(home), **env}
    )


@asynccontextmanager
async def serving(target: StdioServerParameters, log: Path) -> AsyncIterator[Session]:
    """A session with a server that is started here and ended with it; its stderr goes to `log`."""
    before = frozenset(each.pid for each in psutil.Process().children(recursive=True))
    with log.open("w", encoding="utf-8") as errors:
        async with Client(
            stdio_client(target, errlog=errors), mode="legacy", read_timeout_seconds=START_SECONDS
        ) as client:
            yield Session(client, before)
