"""Real servers over stdio, driven by the real client."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any, Literal

from mcp import Client, StdioServerParameters
from mcp.types import CallToolResult

ROOT = Path(__file__).parent.parent


def parameters(
    home: Path, *options: str, workspace: str | None = "w", cwd: Path | None = None, **env: str
) -> StdioServerParameters:
    """How a host would start the server on this data folder."""
    place = ["--workspace", workspace] if workspace else []
    return StdioServerParameters(
        command=sys.executable,
        args=["-m", "cortex", "serve", "--home", str(home), *place, *options],
        env={"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), "HOME": str(home.parent), **env},
        cwd=cwd or home.parent,
    )


@asynccontextmanager
async def connected(
    home: Path,
    *options: str,
    workspace: str | None = "w",
    mode: Literal["auto", "legacy"] = "legacy",
    cwd: Path | None = None,
    **env: str,
) -> AsyncIterator[Client]:
    """A client of a server of its own; `legacy` is what hosts speak today."""
    target = parameters(home, *options, workspace=workspace, cwd=cwd, **env)
    async with Client(target, mode=mode) as client:
        yield client


async def result(client: Client, name: str, **arguments: Any) -> CallToolResult:
    """The raw result of a call."""
    return await client.call_tool(name, arguments)


async def call(client: Client, name: str, **arguments: Any) -> dict[str, Any]:
    """The structured content of a call that must succeed."""
    done = await client.call_tool(name, arguments)
    assert not done.is_error, text_of(done)
    assert done.structured_content is not None
    return done.structured_content


async def refused(client: Client, name: str, **arguments: Any) -> str:
    """The one line of a call that must fail."""
    done = await client.call_tool(name, arguments)
    assert done.is_error, text_of(done)
    text = text_of(done)
    assert "\n" not in text, "an error is one line"
    return text


def text_of(done: CallToolResult) -> str:
    """The text block of a result."""
    return "\n".join(block.text for block in done.content if block.type == "text")


class Wire:
    """A client that speaks in lines: for bytes that no proper client sends."""

    def __init__(self, home: Path, *options: str, **env: str) -> None:
        target = parameters(home, *options, **env)
        self._log = tempfile.TemporaryFile()  # noqa: SIM115 - open as long as the server
        self.process = subprocess.Popen(
            [target.command, *target.args],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            env=target.env,
            cwd=target.cwd,
        )
        self.heard: list[bytes] = []
        self._watchdog = threading.Timer(60, self.process.kill)
        self._watchdog.start()

    def write(self, line: bytes) -> None:
        assert self.process.stdin
        self.process.stdin.write(line + b"\n")
        self.process.stdin.flush()

    def reply(self) -> Any:
        """The next line that is an answer."""
        assert self.process.stdout
        self.heard.append(self.process.stdout.readline())
        message = json.loads(self.heard[-1])
        return message if "id" in message else self.reply()

    def ask(self, method: str, **params: Any) -> Any:
        """The answer to one request."""
        request = {"jsonrpc": "2.0", "id": len(self.heard), "method": method, "params": params}
        self.write(json.dumps(request).encode())
        return self.reply()

    def greet(self) -> Any:
        """Open the conversation as hosts do today."""
        me = {"name": "wire", "version": "1"}
        answer = self.ask(
            "initialize", protocolVersion="2025-11-25", capabilities={}, clientInfo=me
        )
        self.write(b'{"jsonrpc":"2.0","method":"notifications/initialized"}')
        return answer

    def call(self, name: str, **arguments: Any) -> Any:
        return self.ask("tools/call", name=name, arguments=arguments)["result"]

    def stderr(self) -> str:
        self._log.seek(0)
        return self._log.read().decode()

    def end(self, within: float = 5.0) -> int:
        """Close the client's end and wait for the exit code."""
        assert self.process.stdin
        self.process.stdin.close()
        return self.process.wait(within)

    def close(self) -> None:
        self._watchdog.cancel()
        self.process.kill()
        self.process.wait()
        for stream in (self.process.stdin, self.process.stdout, self._log):
            with contextlib.suppress(BrokenPipeError):
                stream.close()  # type: ignore[union-attr]


@contextmanager
def wired(home: Path, *options: str, greet: bool = True, **env: str) -> Iterator[Wire]:
    """A server spoken to in lines; it is killed at the end."""
    wire = Wire(home, *options, **env)
    try:
        if greet:
            wire.greet()
        yield wire
    finally:
        wire.close()
