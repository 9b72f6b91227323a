"""An answer as the protocol's result: its text, and the same as JSON.

The SDK copies a result three times on its way out, and each copy visits every value in it.
So an answer is written as JSON once, in the thread that made it; what the SDK checks and
shapes is an empty result, into which a middleware puts the answer when the SDK is done, and
the transport sends the bytes as they are.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence, Set
from contextvars import ContextVar
from typing import Any, Final

from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp_types import CallToolResult, JSONRPCResponse
from pydantic_core import PydanticSerializationError, to_json

from cortex.domain.values import clean
from cortex.tools.registry import Answer, Written

EMPTY: Final = CallToolResult(content=[])

_ANSWER: ContextVar[list[dict[str, Any]]] = ContextVar("answer")


class Sealed(dict[str, Any]):
    """A JSON object, and the JSON text that is sent for it."""

    def __init__(self, value: dict[str, Any], written: bytes) -> None:
        super().__init__(value)
        self.written = written


async def answering(ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
    """The middleware that puts what `answer_with` was given into the result that the SDK made."""
    if ctx.method != "tools/call":
        return await call_next(ctx)
    given: list[dict[str, Any]] = []
    _ANSWER.set(given)
    shaped = await call_next(ctx)
    return {**shaped, **given[0]} if given and isinstance(shaped, dict) else shaped


def answer_with(answer: dict[str, Any]) -> CallToolResult:
    """The empty result to return; `answering` will put the answer of `tool_answer` in it.

    Raises LookupError outside of it.
    """
    _ANSWER.get().append(answer)
    return EMPTY


def tool_answer(answer: Answer) -> dict[str, Any]:
    """One text block, and the structured form; each complete, for hosts pass on only one."""
    return {
        "content": [{"type": "text", "text": clean(answer.text)}],
        "structuredContent": _sealed(answer.structured),
    }


def line_of(response: JSONRPCResponse) -> bytes:
    """The response as JSON; what is written already goes in as it is."""
    return b'{"jsonrpc":"2.0","id":%b,"result":%b}' % (
        to_json(response.id),
        _object(response.result),
    )


def _object(value: Mapping[str, Any]) -> bytes:
    """The object as JSON; of what is written already, the text that it has."""
    parts = [
        to_json(name)
        + b":"
        + (item.written if isinstance(item, Sealed | Written) else to_json(item))
        for name, item in value.items()
    ]
    return b"{%b}" % b",".join(parts)


def _sealed(value: dict[str, Any]) -> Sealed:
    """The value as JSON can carry it: itself, where one pass of a fast encoder finds no fault.

    The encoder refuses lone surrogates and what is no value; NUL and numbers that JSON cannot
    write are looked for in what it wrote. Then each value is looked at in turn, at ten times
    the cost. Raises TypeError for what neither takes for a value.
    """
    try:
        written = _object(value)
    except PydanticSerializationError:
        written = b"NaN"
    if any(mark in written for mark in (b"\\u0000", b"NaN", b"Infinity")):
        value = dict(json_safe(value))
        written = _object(value)
    return Sealed(value, written)


def json_safe(value: Any) -> Any:
    """The value in JSON's own types; a number that JSON cannot write is null.

    Raises TypeError for anything that is no value, so that a slip in a tool fails there and
    not in the transport.
    """
    match value:
        case None | bool() | int():
            return value
        case str():
            return clean(str(value))
        case float():
            return value if math.isfinite(value) else None
        case Mapping():
            return {clean(str(key)): json_safe(item) for key, item in value.items()}
        case Sequence() if not isinstance(value, bytes | bytearray | memoryview):
            return [json_safe(item) for item in value]
        case Set():
            return [json_safe(item) for item in sorted(value)]
    raise TypeError(f"{type(value).__name__} is no JSON value")
