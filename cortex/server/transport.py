"""The SDK's two message streams over one wire."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, Final

import anyio
import anyio.to_thread
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.server.lowlevel import Server
from mcp.shared.message import SessionMessage
from mcp_types import (
    INTERNAL_ERROR,
    ErrorData,
    JSONRPCError,
    JSONRPCNotification,
    JSONRPCRequest,
    JSONRPCResponse,
    RequestId,
)

from cortex.server.frames import Lines, Reply, TooLong, parse
from cortex.server.results import line_of
from cortex.server.wire import Wire

logger = logging.getLogger(__name__)

# What may wait for an answer: a client that only sends would else fill the memory.
MAX_DUE: Final = 4096
MAX_HELD: Final = 64 << 20


class Transport:
    """Reads lines in one thread and writes them in another; the loop never blocks on the pipe.

    The SDK's own transport answers nothing to a line that it cannot read, and drops the
    requests under way when stdin ends; this one does neither.
    """

    def __init__(self, wire: Wire) -> None:
        self._wire = wire
        self._due: dict[RequestId, int] = {}
        self._held = 0
        self._settled = anyio.Event()
        self._ended = False
        self._reading = anyio.CapacityLimiter(1)
        self._writing = anyio.CapacityLimiter(1)

    async def serve(self, server: Server[Any], *, drain: float, at_end: Callable[[], None]) -> None:
        """Run the server until stdin ends or the client no longer reads.

        At the end of stdin `at_end` is called, and the requests under way get `drain` seconds
        to be answered.
        """
        inbox, incoming = anyio.create_memory_object_stream[SessionMessage | Exception](0)
        outgoing, outbox = anyio.create_memory_object_stream[SessionMessage](0)
        written = anyio.Event()
        async with anyio.create_task_group() as group:

            async def receive() -> None:
                async with inbox, outgoing.clone() as replies:
                    await self._receive(inbox, replies)
                    at_end()
                    self._ended = True
                    self._settle()
                    with anyio.move_on_after(drain):
                        await self._settled.wait()

            async def send() -> None:
                async with outbox:
                    alive = await self._send(outbox)
                written.set()
                if not alive:
                    group.cancel_scope.cancel()

            group.start_soon(receive)
            group.start_soon(send)
            await server.run(incoming, outgoing, server.create_initialization_options())
            # A client that ended stdin may no longer read stdout either.
            with anyio.move_on_after(0.5):
                await written.wait()
            group.cancel_scope.cancel()

    async def _receive(
        self,
        inbox: MemoryObjectSendStream[SessionMessage | Exception],
        replies: MemoryObjectSendStream[SessionMessage],
    ) -> None:
        lines = Lines()
        while chunk := await self._read():
            for line in lines.feed(chunk):
                await self._deliver(line, inbox, replies)
        for line in lines.end():
            await self._deliver(line, inbox, replies)

    async def _deliver(
        self,
        line: bytes | TooLong,
        inbox: MemoryObjectSendStream[SessionMessage | Exception],
        replies: MemoryObjectSendStream[SessionMessage],
    ) -> None:
        message = parse(line)
        match message:
            case None:
                return
            case Reply():
                await replies.send(SessionMessage(message))
                return
            case JSONRPCRequest():
                size = len(line) if isinstance(line, bytes) else 0
                if self._held + size > MAX_HELD or len(self._due) >= MAX_DUE:
                    await replies.send(SessionMessage(_too_many(message.id)))
                    return
                self._held += size - self._due.get(message.id, 0)
                self._due[message.id] = size
            case JSONRPCNotification(method="notifications/cancelled", params=dict() as params):
                self._settle(params.get("requestId"))
        await inbox.send(SessionMessage(message))

    async def _read(self) -> bytes:
        """The next bytes; none when stdin has ended, or cannot be read any more."""
        try:
            return await anyio.to_thread.run_sync(
                self._wire.read, abandon_on_cancel=True, limiter=self._reading
            )
        except OSError as error:  # a terminal that went away
            logger.debug("stdin: %s", error)
            return b""

    async def _send(self, outbox: MemoryObjectReceiveStream[SessionMessage]) -> bool:
        """Write what comes; False when the client no longer reads."""
        async for item in outbox:
            message = item.message
            if isinstance(message, JSONRPCResponse):
                line = line_of(message)
            else:
                line = message.model_dump_json(by_alias=True, exclude_unset=True).encode()
            try:
                await anyio.to_thread.run_sync(
                    self._wire.write,
                    line + b"\n",
                    abandon_on_cancel=True,
                    limiter=self._writing,
                )
            except OSError as error:  # the client has closed its end: nobody is left to tell
                logger.debug("stdout: %s", error)
                return False
            if isinstance(message, JSONRPCResponse | JSONRPCError):
                self._settle(message.id)
        return True

    def _settle(self, request_id: Any = None) -> None:
        """A request was answered or withdrawn; after the end of stdin, note when none is left."""
        if isinstance(request_id, int | str):
            self._held -= self._due.pop(request_id, 0)
        if self._ended and not self._due:
            self._settled.set()


def _too_many(request_id: RequestId) -> Reply:
    message = (
        "busy: too many requests wait for their answers on this connection. "
        f"Valid: up to {MAX_DUE:,}, of {MAX_HELD >> 20} MiB. Read some answers, then send again."
    )
    return Reply(
        jsonrpc="2.0", id=request_id, error=ErrorData(code=INTERNAL_ERROR, message=message)
    )
