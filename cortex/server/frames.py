"""Bytes of stdin as protocol messages, or as the errors that answer what is none.

The SDK drops a line that it cannot read, and its client waits for ever. Here each line with
a request in it gets a reply: broken Unicode is replaced and served, what is not JSON or not
JSON-RPC is answered with an error under the request's id, where an id can be made out.
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from mcp_types import (
    INVALID_REQUEST,
    PARSE_ERROR,
    ErrorData,
    JSONRPCError,
    JSONRPCMessage,
    JSONRPCNotification,
    RequestId,
    jsonrpc_message_adapter,
)
from pydantic import ValidationError

logger = logging.getLogger(__name__)

MAX_LINE: Final = 8 << 20
_KEPT: Final = 1 << 16  # of a line that is too long: enough to find its id at either end

_SURROGATE: Final = re.compile(rb"\\u[dD][89a-fA-F]")
_STRING: Final = r'"(?:[^"\\]++|\\.)*+"'
# An open string ends with the text; failing there instead would try again at each quote in it.
_TOKEN: Final = re.compile(r'"(?:[^"\\]++|\\.)*+(?:"|\\?\Z)|[{}\[\]]', re.DOTALL)
_ID: Final = re.compile(rf"\s*:\s*(-?[0-9]{{1,18}}(?![0-9.eE])|{_STRING})")
_LAST_ID: Final = re.compile(
    rf'"id"\s*:\s*(-?[0-9]{{1,18}}|{_STRING})\s*(?:,\s*"jsonrpc"\s*:\s*"2\.0"\s*)?\}}\s*$'
)
_TOO_DEEP: Final = "Invalid request: its parameters are nested too deeply."
_BROKEN: Final = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class TooLong:
    """A line above the limit; only its two ends were kept."""

    length: int
    head: bytes
    tail: bytes


class Reply(JSONRPCError):
    """An error that answers a line which cannot be served."""


class Lines:
    """Cuts a stream of chunks into lines; holds at most `limit` bytes and a chunk."""

    def __init__(self, limit: int = MAX_LINE) -> None:
        self._limit = limit
        self._parts: list[bytes] = []
        self._length = 0
        self._head = b""
        self._tail = b""

    def feed(self, chunk: bytes) -> Iterator[bytes | TooLong]:
        """The lines that this chunk completes."""
        *complete, rest = chunk.split(b"\n")
        for part in complete:
            self._add(part)
            yield self._take()
        self._add(rest)

    def end(self) -> Iterator[bytes | TooLong]:
        """The last line, when it has no line break."""
        if self._length:
            yield self._take()

    def _add(self, part: bytes) -> None:
        self._length += len(part)
        if self._length <= self._limit:
            self._parts.append(part)
            return
        start = b"".join(self._parts)
        self._parts.clear()
        self._head = self._head or (start or part)[:_KEPT]
        self._tail = (self._tail + start[-_KEPT:] + part)[-_KEPT:]

    def _take(self) -> bytes | TooLong:
        if self._length > self._limit:
            line: bytes | TooLong = TooLong(self._length, self._head, self._tail)
        else:
            line = b"".join(self._parts)
        self._parts = []
        self._length = 0
        self._head = self._tail = b""
        return line


def parse(line: bytes | TooLong) -> JSONRPCMessage | Reply | None:
    """The message of a line, or the Reply to send in its place.

    None when there is nothing to do: a blank line, or a broken answer, which must not be
    answered.
    """
    if isinstance(line, TooLong):
        return _too_long(line)
    if not line.strip():
        return None
    text = line.decode("utf-8", errors="replace").removeprefix("\ufeff")
    try:
        if _SURROGATE.search(line):
            return _typed(_mended(json.loads(text)))
        message = jsonrpc_message_adapter.validate_json(text, by_name=False)
        if isinstance(message, JSONRPCNotification):
            # The SDK takes a request with an id of another type for a notification, and
            # would never answer it.
            return _typed(json.loads(text))
    except (ValueError, RecursionError):
        return _diagnose(text)
    return message


def _typed(value: Any) -> JSONRPCMessage | Reply | None:
    try:
        message = jsonrpc_message_adapter.validate_python(value, by_name=False)
    except ValidationError:
        return _not_a_message(value)
    if isinstance(message, JSONRPCNotification) and isinstance(value, dict) and "id" in value:
        return _not_a_message(value)
    return message


def _mended(value: Any) -> Any:
    """The value with each lone surrogate replaced by U+FFFD; JSON has joined the pairs."""
    if isinstance(value, str):
        return _BROKEN.sub("\ufffd", value)
    if isinstance(value, list):
        return [_mended(item) for item in value]
    if isinstance(value, dict):
        return {_mended(key): _mended(item) for key, item in value.items()}
    return value


def _diagnose(text: str) -> Reply | None:
    """The reply to a text that the SDK's reader refused."""
    request_id = _find_id(text[:_KEPT], text[-_KEPT:])
    try:
        value = json.loads(text)
        jsonrpc_message_adapter.validate_python(value, by_name=False)
    except ValidationError:
        return _not_a_message(value)
    except RecursionError:
        return _reply(request_id, INVALID_REQUEST, _TOO_DEEP)
    except ValueError as error:
        return _reply(
            request_id,
            PARSE_ERROR,
            f"Parse error: the line is not JSON ({error}). Send one JSON-RPC message a line.",
        )
    # It is a message, but more deeply nested than the SDK reads.
    return _reply(request_id, INVALID_REQUEST, _TOO_DEEP)


def _not_a_message(value: Any) -> Reply | None:
    if isinstance(value, dict) and "method" not in value and value.keys() & {"result", "error"}:
        logger.warning("dropped an answer that is not JSON-RPC")
        return None
    request_id = value.get("id") if isinstance(value, dict) else None
    if not isinstance(request_id, int | str) or isinstance(request_id, bool):
        request_id = None
    what = "a batch" if isinstance(value, list) else "not a JSON-RPC request"
    return _reply(
        request_id,
        INVALID_REQUEST,
        f"Invalid request: the line is {what}. "
        'Send {"jsonrpc": "2.0", "id": a number or text, "method": text, "params": an object}.',
    )


def _too_long(line: TooLong) -> Reply:
    head, tail = (end.decode("utf-8", errors="replace") for end in (line.head, line.tail))
    return _reply(
        _find_id(head, tail),
        INVALID_REQUEST,
        f"too_large: the line has {line.length:,} bytes. Valid: up to {MAX_LINE:,}. "
        "Split the text, or keep a fileref to the file instead.",
    )


def _find_id(head: str, tail: str) -> RequestId | None:
    """The `id` of the outermost object, in a text that need not be whole JSON.

    Some clients write it first, others last; of a text cut in the middle both ends are tried.
    """
    depth = 0
    for token in _TOKEN.finditer(head):
        if token[0] in "{[":
            depth += 1
        elif token[0] in "}]":
            depth -= 1
        elif depth == 1 and token[0] == '"id"' and (found := _ID.match(head, token.end())):
            return _as_id(found[1])
    last = _LAST_ID.search(tail)
    return _as_id(last[1]) if last else None


def _as_id(text: str) -> RequestId | None:
    try:
        value = json.loads(text)
    except ValueError:
        return None
    return _BROKEN.sub("\ufffd", value) if isinstance(value, str) else int(value)


def _reply(request_id: RequestId | None, code: int, message: str) -> Reply:
    return Reply(jsonrpc="2.0", id=request_id, error=ErrorData(code=code, message=message))
