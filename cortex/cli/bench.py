"""`cortex bench`: how fast this machine answers from a copy of one's own memory."""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from cortex.cli.options import AsJson, Home, Workspace, opened
from cortex.cli.timing import COLUMNS, Figure, Target, figure_of, timed
from cortex.config import FILE_NAME, Settings, load_settings
from cortex.domain.errors import CortexError, NotFoundError
from cortex.domain.values import workspace_name

if TYPE_CHECKING:
    from mcp import Client

    from cortex.domain.values import Node
    from cortex.memory import Memory

commands = typer.Typer()

Arguments = Callable[[int], dict[str, Any]]

_SAMPLE: Final = 200
_WARMING: Final = 3
_GRAPH: Final = (Target(10),)
_SEARCH: Final = (Target(50),)
_WORDS: Final = 8
# Where the copy must not reach: the Qdrant collection is the memory's own, and knows no copies.
_NOT_FOR_A_COPY: Final = ("CORTEX_QDRANT_", "CORTEX_HOME", "CORTEX_READ_ONLY", "CORTEX_TOOLS")


class BenchFailedError(CortexError):
    """A tool did not answer, so that its time says nothing."""

    code = "unavailable"


@dataclass(frozen=True, slots=True)
class _Case:
    """A tool, asked in this process and through the server with the same arguments."""

    subject: str
    tool: str
    arguments: Arguments
    targets: tuple[Target, ...]


@commands.command()
def bench(
    calls: Annotated[
        int, typer.Option("--calls", min=1, max=10_000, help="How often each is called.")
    ] = 50,
    home: Home = None,
    workspace: Workspace = None,
    as_json: AsJson = False,
) -> None:
    """Time the usual calls on a copy of the memory, in this process and over stdio.

    The copy is removed at the end; the memory itself is only read. Targets are those of
    100,000 memories on two cores.
    """
    from cortex.services.keeping.backing_up import BackingUp

    settings = load_settings(home=home, workspace=workspace)
    if not settings.database.exists():
        raise NotFoundError(
            f"there is no memory at {settings.database}", "", "Name its home with --home"
        )
    with tempfile.TemporaryDirectory(prefix="cortex-bench-") as folder:
        # No search waits for vectors that the memory still owes: it would time the waiting.
        copy = replace(settings, home=Path(folder), qdrant=None, read_only=False, search_wait=0.0)
        BackingUp(settings).back_up(copy.database)
        if settings.models.exists():
            # Without the right for links, meaning is searched with the model of the install.
            with suppress(OSError):
                copy.models.symlink_to(settings.models, target_is_directory=True)
        held, figures = _measure(copy, calls, chosen=workspace is not None)
    _show(settings, held, figures, as_json=as_json)


def _measure(
    settings: Settings, calls: int, *, chosen: bool
) -> tuple[dict[str, Any], list[Figure]]:
    """What the copy holds, and the figures; nothing of the home is left open."""
    import anyio

    began = time.perf_counter()
    with opened(settings) as memory:
        place = settings.workspace if chosen else _largest(memory)
        found = memory.reading.overview(place, _SAMPLE)  # raises NotFoundError for none
        took = (time.perf_counter() - began) * 1000
        held = {"workspace": place, "nodes": found.total, "relations": found.relations_total}
    settings = replace(settings, workspace=workspace_name(place))
    cases = list(_cases(found.nodes))
    figures = [figure_of("open the file", [took], nodes=found.total)]
    with opened(settings) as memory:
        figures += [_in_process(memory, case, calls, found.total) for case in cases]
    figures += anyio.run(_over_stdio, settings, cases, calls, found.total)
    return held, figures


def _largest(memory: Memory) -> str:
    """This process's workspace; where it is empty, the one with the most nodes."""
    held: Mapping[str, Mapping[str, Any]] = memory.status()["workspaces"]
    own = str(memory.settings.workspace)
    return (
        own if own in held else max(held, key=lambda name: (held[name]["nodes"], name), default=own)
    )


def _cases(nodes: Sequence[Node]) -> Iterator[_Case]:
    """The short form: what an agent does all day, writing last."""
    ids = [node.id for node in nodes]
    said = [" ".join((node.text or node.title).split()[:_WORDS]) for node in nodes]
    questions = [text for text in said if text] or ["what was decided"]

    def each(name: str, values: Sequence[str], **others: Any) -> Arguments:
        return lambda turn: {name: values[turn % len(values)], **others}

    yield _Case("open", "desktop_open", lambda _: {}, _GRAPH)
    yield _Case("get", "graph_get_node", each("node_id", ids), _GRAPH)
    yield _Case("traverse", "graph_traverse", each("start_id", ids, direction="both"), _GRAPH)
    yield _Case("walk", "graph_walk", each("start_id", ids), _GRAPH)
    yield _Case("timeline", "session_timeline", lambda _: {}, _GRAPH)
    yield _Case("search, keyword", "search_keyword", each("query", questions), _SEARCH)
    yield _Case("search, meaning", "vector_search", each("query", questions), _SEARCH)
    yield _Case("search", "graph_search", each("query", questions), _SEARCH)
    yield _Case("focus", "desktop_focus", each("node_id", ids), _GRAPH)
    yield _Case(
        "add", "graph_add_node",
        lambda turn: {"type": "note", "text": f"{turn} {questions[turn % len(questions)]}"},
        _GRAPH,
    )  # fmt: skip


def _in_process(memory: Memory, case: _Case, calls: int, nodes: int) -> Figure:
    from cortex.tools.catalogue import TOOLS

    tool = next(each for each in TOOLS if each.name == case.tool)
    return timed(
        case.subject,
        lambda turn: tool.call(memory, case.arguments(turn)),
        calls,
        targets=case.targets,
        nodes=nodes,
    )


async def _over_stdio(
    settings: Settings, cases: Sequence[_Case], calls: int, nodes: int
) -> list[Figure]:
    from mcp import Client, StdioServerParameters

    wanted = ",".join(case.tool for case in cases)
    env = {name: value for name, value in os.environ.items()
           if not name.startswith(_NOT_FOR_A_COPY)}  # fmt: skip
    server = StdioServerParameters(
        command=sys.executable,
        args=["-m", "cortex", "serve", "--home", str(settings.home),
              "--workspace", settings.workspace, "--tools", wanted],
        env={**env, "CORTEX_RATE": "0", "CORTEX_SEARCH_WAIT": "0"},
    )  # fmt: skip
    began = time.perf_counter()
    async with Client(server) as client:
        await client.list_tools()
        ready = (time.perf_counter() - began) * 1000
        figures = [
            figure_of(
                "start, tools listed", [ready], where="stdio", nodes=nodes, targets=(Target(1000),)
            )
        ]
        for case in cases:
            times = [await _round_trip(client, case, turn) for turn in range(-_WARMING, calls)]
            figures.append(
                figure_of(
                    case.subject, times[_WARMING:], where="stdio", nodes=nodes, targets=case.targets
                )
            )
    return figures


async def _round_trip(client: Client, case: _Case, turn: int) -> float:
    began = time.perf_counter()
    done = await client.call_tool(case.tool, case.arguments(turn))
    took = (time.perf_counter() - began) * 1000
    if done.is_error:
        said = " ".join(block.text for block in done.content if block.type == "text")
        raise BenchFailedError(f"{case.tool} failed: {said}", "", "Run cortex doctor")
    return took


def _show(
    settings: Settings, held: Mapping[str, Any], figures: Sequence[Figure], *, as_json: bool
) -> None:
    from rich.text import Text

    from cortex.cli.looking import dump, out, table

    if as_json:
        dump(
            {"file": str(settings.database), **held, "figures": [each.plain() for each in figures]}
        )
        return
    title = (
        f"a copy of {settings.home / FILE_NAME}: {held['nodes']:,} nodes, {held['relations']:,} "
        f"relations in {held['workspace']}; milliseconds"
    )
    out.print(table(title, COLUMNS[:-1], [each.cells[:-1] for each in figures]))
    promised = [each for each in figures if each.met is not None]
    kept = sum(1 for each in promised if each.met)
    out.print(Text(f"\n{kept} of {len(promised)} targets met; the memory itself was only read"))
