"""The protocol server: tools and resources registered, calls run in threads, errors mapped."""

from __future__ import annotations

import asyncio
import difflib
import logging
import time
import uuid
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from functools import partial
from typing import Any, Final, Generic, TypeVar

import anyio
import anyio.to_thread
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp_types import (
    CallToolRequestParams,
    CallToolResult,
    ListResourcesResult,
    ListResourceTemplatesResult,
    ListToolsResult,
    PaginatedRequestParams,
    ReadResourceRequestParams,
    ReadResourceResult,
    Resource,
    ResourceTemplate,
    TextResourceContents,
    Tool,
    ToolAnnotations,
)

from cortex.domain.caller import CALLER, Caller
from cortex.domain.errors import CortexError, NotFoundError
from cortex.domain.progress import PROGRESS, Report
from cortex.domain.values import clean, shorten
from cortex.server.errors import resource_error, tool_error, unexpected
from cortex.server.rate import Rate
from cortex.server.results import answer_with, answering, tool_answer
from cortex.tools.registry import ToolSpec
from cortex.tools.resource import ResourceSpec, find

logger = logging.getLogger(__name__)

M = TypeVar("M")
T = TypeVar("T")

THREADS: Final = 16

Context = ServerRequestContext[Any, Any]


def build_server(
    tools: Sequence[ToolSpec[M]],
    resources: Sequence[ResourceSpec[M]],
    memory: Callable[[], Awaitable[M]],
    *,
    name: str,
    version: str,
    instructions: str | None = None,
    on_listed: Callable[[], None] | None = None,
    absent: Collection[str] = (),
    rate: float = 0,
) -> Server[Any]:
    """A server of exactly these tools and resources.

    `absent` names tools that exist and are left out here: a call of one is told so. `rate` is
    how many calls and reads a second are served for long, 0 for any number.

    `memory` is awaited by each call and each read, never by a list. `on_listed` is called
    when a client has asked for the tools. Raises ValueError for two of one name.
    """
    face = _Face(tools, resources, memory, on_listed or (lambda: None), absent, Rate(rate))
    server = Server[Any](
        name,
        version=version,
        instructions=instructions,
        on_list_tools=face.list_tools,
        on_call_tool=face.call_tool,
        on_list_resources=face.list_resources,
        on_list_resource_templates=face.list_templates,
        on_read_resource=face.read_resource,
    )
    server.middleware.append(answering)
    return server


class _Face(Generic[M]):
    """The handlers, over what was registered."""

    def __init__(
        self,
        tools: Sequence[ToolSpec[M]],
        resources: Sequence[ResourceSpec[M]],
        memory: Callable[[], Awaitable[M]],
        on_listed: Callable[[], None],
        absent: Collection[str],
        rate: Rate,
    ) -> None:
        names = [spec.name for spec in tools] + [spec.uri_template for spec in resources]
        twice = [name for name, times in Counter(names).items() if times > 1]
        if twice:
            raise ValueError(f"registered twice: {', '.join(twice)}")
        self._tools = {spec.name: spec for spec in tools}
        self._resources = tuple(resources)
        self._memory = memory
        self._on_listed = on_listed
        self._absent = frozenset(absent)
        self._rate = rate
        self._limiter = anyio.CapacityLimiter(THREADS)
        self._connection = uuid.uuid4().hex[:8]
        self._client = ""
        self._listing = ListToolsResult(tools=[_as_tool(spec) for spec in tools])

    async def list_tools(
        self, ctx: Context, params: PaginatedRequestParams | None
    ) -> ListToolsResult:
        self._meet(ctx)
        self._on_listed()
        return self._listing

    async def call_tool(self, ctx: Context, params: CallToolRequestParams) -> CallToolResult:
        self._meet(ctx)
        spec = self._tools.get(params.name)
        began, outcome = time.perf_counter(), "cancelled"
        try:
            self._rate.take()
            if spec is None:
                raise self._unknown_tool(params.name)
            answer = await self._in_thread(
                ctx, partial(_run, spec, await self._memory(), params.arguments or {})
            )
            outcome = "ok"
            return answer_with(answer)
        except CortexError as error:
            outcome = error.code
            return tool_error(error)
        except Exception as error:  # noqa: BLE001 - the edge: a bug in one tool is that call's error
            outcome = "failed"
            return tool_error(unexpected(error, params.name))
        finally:
            # The name and the outcome alone: arguments and messages hold what is remembered.
            name = spec.name if spec else "an unknown tool"
            spent = (time.perf_counter() - began) * 1000
            logger.info("call %s: %s, %.0f ms", name, outcome, spent)

    async def list_resources(
        self, ctx: Context, params: PaginatedRequestParams | None
    ) -> ListResourcesResult:
        return ListResourcesResult(
            resources=[
                Resource(
                    uri=spec.uri_template,
                    name=spec.name,
                    title=spec.title,
                    description=spec.description,
                    mime_type=spec.mime_type,
                )
                for spec in self._resources
                if spec.concrete
            ]
        )

    async def list_templates(
        self, ctx: Context, params: PaginatedRequestParams | None
    ) -> ListResourceTemplatesResult:
        return ListResourceTemplatesResult(
            resource_templates=[
                ResourceTemplate(
                    uri_template=spec.uri_template,
                    name=spec.name,
                    title=spec.title,
                    description=spec.description,
                    mime_type=spec.mime_type,
                )
                for spec in self._resources
                if not spec.concrete
            ]
        )

    async def read_resource(
        self, ctx: Context, params: ReadResourceRequestParams
    ) -> ReadResourceResult:
        uri = params.uri
        found = find(self._resources, uri)
        try:
            self._rate.take()
            if found is None:
                raise self._unknown_resource(uri)
            spec, values = found
            text = await self._in_thread(ctx, partial(_read, spec, await self._memory(), values))
        except CortexError as error:
            raise resource_error(error, uri) from None
        except Exception as error:  # noqa: BLE001 - the edge: a bug in one reader is that read's error
            raise resource_error(unexpected(error, shorten(uri, 60)), uri) from None
        return ReadResourceResult(
            contents=[TextResourceContents(uri=uri, mime_type=spec.mime_type, text=text)]
        )

    def _meet(self, ctx: Context) -> None:
        """Log who is connected, when it says so first."""
        if not self._client and (name := _client(ctx)):
            self._client = name
            logger.info("client %s, connection %s", ascii(name), self._connection)

    async def _in_thread(self, ctx: Context, work: Callable[[], T]) -> T:
        """Run the work in a thread, so that the loop answers pings meanwhile.

        A cancelled call returns at once and its thread runs on: a write is not torn.
        """
        CALLER.set(Caller(_client(ctx), self._connection))
        PROGRESS.set(_teller(ctx))
        return await anyio.to_thread.run_sync(
            partial(_contained, work), abandon_on_cancel=True, limiter=self._limiter
        )

    def _unknown_tool(self, name: str) -> NotFoundError:
        near = difflib.get_close_matches(name.lower(), self._tools, 3, 0.5)
        return NotFoundError(
            f"There is no tool {shorten(clean(name), 60)!r}"
            + (" in this server, which was started without it" if name in self._absent else ""),
            "Valid: " + ("the names in tools/list" if near else ", ".join(self._tools)),
            f"Did you mean {' or '.join(near)}" if near else "Call one of these",
        )

    def _unknown_resource(self, uri: str) -> NotFoundError:
        return NotFoundError(
            f"There is no resource {shorten(clean(uri), 120)!r}",
            f"Valid: {', '.join(spec.uri_template for spec in self._resources) or 'none'}",
            "Read one of these",
        )


def _run(spec: ToolSpec[M], memory: M, arguments: Mapping[str, Any]) -> dict[str, Any]:
    return tool_answer(spec.call(memory, arguments))


def _read(spec: ResourceSpec[M], memory: M, values: Mapping[str, str]) -> str:
    return clean(spec.read(memory, values))


def _contained(work: Callable[[], T]) -> T:
    """Do the work; what is beyond Exception becomes one.

    A panic in a Rust extension and `sys.exit` derive from BaseException alone, and would take
    the server with them. Signals and cancellation do not reach a worker thread.
    """
    try:
        return work()
    except Exception:
        raise
    except BaseException as error:
        raise RuntimeError(f"{type(error).__name__}: {error}") from error


def _teller(ctx: Context) -> Report:
    """What sends a worker thread's progress to a client that asked for it, and waits for nothing.

    Scheduled, not awaited: a client that is gone or slow never holds up or tears a write.
    """
    loop = asyncio.get_running_loop()
    last = -1.0

    def tell(done: float, total: float, message: str) -> None:
        nonlocal last
        if done > last and not loop.is_closed():  # the protocol wants it to rise each time
            last = done
            said = ctx.session.report_progress(done, total, message)
            asyncio.run_coroutine_threadsafe(said, loop)

    return tell


def _client(ctx: Context) -> str:
    """What the client calls itself, "" when it does not say; bounded, for it is stored."""
    params = ctx.session.client_params
    return shorten(clean(params.client_info.name), 80) if params else ""


def _as_tool(spec: ToolSpec[Any]) -> Tool:
    """No output schema: it would double the list, and clients take structured content without."""
    return Tool(
        name=spec.name,
        title=spec.title,
        description=spec.description,
        input_schema=spec.input_schema,
        annotations=ToolAnnotations(
            read_only_hint=spec.hints.read_only,
            destructive_hint=spec.hints.destructive,
            idempotent_hint=spec.hints.idempotent,
            open_world_hint=spec.hints.open_world,
        ),
    )
