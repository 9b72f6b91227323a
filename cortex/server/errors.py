"""What a client is told when something fails: one line, a stable code, what to do next."""

from __future__ import annotations

import logging
import uuid
from typing import Final

from mcp import MCPError
from mcp_types import INTERNAL_ERROR, INVALID_PARAMS, CallToolResult, TextContent

from cortex.domain.errors import CortexError, UnavailableError
from cortex.domain.values import clean

logger = logging.getLogger(__name__)

# Whose fault it is decides the JSON-RPC code; the stable code stands in the message.
_OURS: Final = frozenset({"unavailable", "busy"})


def tool_error(error: CortexError) -> CallToolResult:
    """The result by which the model reads the error; a protocol error might not reach it."""
    line = clean(str(error))
    return CallToolResult(
        content=[TextContent(type="text", text=line)],
        structured_content={"error": {"code": error.code, "message": clean(error.message)}},
        is_error=True,
    )


def resource_error(error: CortexError, uri: str) -> MCPError:
    """The protocol error for a resource that could not be read."""
    return MCPError(
        INTERNAL_ERROR if error.code in _OURS else INVALID_PARAMS,
        clean(str(error)),
        {"uri": uri, "code": error.code},
    )


def unexpected(error: BaseException, where: str) -> UnavailableError:
    """Log the traceback under a short id; the client learns the id and nothing else."""
    short = uuid.uuid4().hex[:8]
    logger.error("internal error %s in %s", short, where, exc_info=error)
    return UnavailableError(
        f"internal error {short} in {where}",
        "",
        "The traceback is on the server's stderr under this id; read the present state "
        "before you repeat a write",
    )
