"""An answer as the protocol's result: its text, and the same as JSON."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence, Set
from typing import Any

from mcp_types import CallToolResult, TextContent
from pydantic_core import PydanticSerializationError, to_json

from cortex.domain.values import clean
from cortex.tools.registry import Answer


def tool_result(answer: Answer) -> CallToolResult:
    """One text block, and the structured form; each complete, for hosts pass on only one."""
    return CallToolResult(
        content=[TextContent(type="text", text=clean(answer.text))],
        structured_content=sent(answer.structured),
    )


def sent(value: dict[str, Any]) -> dict[str, Any]:
    """The value as JSON can carry it: itself, where one pass of a fast encoder finds no fault.

    The encoder refuses lone surrogates and what is no value; NUL and numbers that JSON cannot
    write are looked for in what it wrote. Then each value is looked at in turn, at ten times
    the cost. Raises TypeError as `json_safe`.
    """
    try:
        written = to_json(value)
    except PydanticSerializationError:
        return dict(json_safe(value))
    suspect = any(mark in written for mark in (b"\\u0000", b"NaN", b"Infinity"))
    return dict(json_safe(value)) if suspect else value


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
