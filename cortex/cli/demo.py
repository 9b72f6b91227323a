"""The main job, shown on real text: ingest, serve, search, walk, supersede, find again."""

from __future__ import annotations

import os
import sys
import sysconfig
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any, Final

import anyio
import psutil
from rich.text import Text

from cortex.cli.looking import out, progress, table, wait_for_vectors
from cortex.config import Settings
from cortex.domain.errors import CortexError

if TYPE_CHECKING:
    from mcp import Client

    from cortex.memory import Memory
    from cortex.services.ingest.writing import Ingested

# A part of Python's own library that lies on every machine: about 1,600 documented pieces.
_PACKAGES: Final = (
    "json",
    "email",
    "http",
    "logging",
    "asyncio",
    "urllib",
    "importlib",
    "concurrent",
)
_QUESTION: Final = "decode a JSON document that may have other data after its end"
_TASK: Final = "Choose how this service signs its tokens"
_OLD: Final = "Sign access tokens with HS256 and one shared secret"
_NEW: Final = "Sign access tokens with RS256; only the issuer holds the private key"


@dataclass(slots=True)
class Calls:
    """Calls to the server with their round trips in milliseconds."""

    client: Client
    times: list[tuple[str, float]] = field(default_factory=list)

    async def __call__(self, name: str, **arguments: Any) -> Mapping[str, Any]:
        start = time.perf_counter()
        done = await self.client.call_tool(name, arguments)
        self.times.append((name, (time.perf_counter() - start) * 1000))
        if done.is_error or done.structured_content is None:
            said = " ".join(block.text for block in done.content if block.type == "text")
            raise DemoFailed(f"{name} failed: {said}")
        structured: Mapping[str, Any] = done.structured_content
        return structured


class DemoFailed(CortexError):
    """The demo did not show what it promises."""

    code = "conflict"


def run_demo(settings: Settings, path: Path | None) -> None:
    """Run every step, print it, and leave the workspace for `cortex search`.

    Raises DemoFailed where a step does not give what it must.
    """
    began = time.perf_counter()
    question = _ingest(settings, path)
    anyio.run(_drive, settings, question)
    out.print(Text(f"\nall of it took {time.perf_counter() - began:.0f} s"))
    out.print(
        Text(
            f"Now ask yourself:  {_command()} search -w {settings.workspace} "
            '"parse an HTTP date header"'
        )
    )


def _command() -> str:
    """How this program is called from here."""
    program = Path(sys.argv[0])
    if program.name.startswith("cortex"):
        return os.path.relpath(program) if program.is_absolute() else str(program)
    return "python -m cortex"


def _ingest(settings: Settings, path: Path | None) -> str:
    """Read the text in; the question to ask of it."""
    from cortex.memory import open_memory

    library = Path(sysconfig.get_path("stdlib"))
    roots = [path] if path else [library / name for name in _PACKAGES]
    memory = open_memory(settings, client="demo")
    try:
        began = time.perf_counter()
        reports = _read(memory, roots)
        read = time.perf_counter() - began
        wait_for_vectors(memory)
        embedded = time.perf_counter() - began - read
        _forget_last_run(memory)
        status = memory.status()
        place = status["workspaces"].get(settings.workspace, {"nodes": 0, "relations": 0})
        rows = [
            ("files", sum(report.files + report.unchanged for report in reports)),
            ("nodes", place["nodes"]),
            ("relations", place["relations"]),
            ("reading", f"{read:.1f} s"),
            ("embedding", f"{embedded:.1f} s ({status['index']['ready']} texts)"),
            ("file", status["file"]),
        ]
        out.print(table("1. Ingest: docstrings and documents become memories", ("", ""), rows))
        if path is None and place["nodes"] < 1500:
            raise DemoFailed(f"only {place['nodes']} nodes were read of Python's own library")
        return _QUESTION if path is None else _own_question(memory)
    finally:
        memory.close()


def _read(memory: Memory, roots: Sequence[Path]) -> list[Ingested]:
    with progress("reading") as bar:
        task = bar.add_task("reading", total=len(roots))
        reports = []
        for root in roots:
            reports.append(memory.ingest.ingest(root))
            bar.advance(task)
    return reports


def _forget_last_run(memory: Memory) -> None:
    """Remove the small story of an earlier demo, so that this one starts afresh."""
    found = memory.timeline.temporal_walk(node_types=["task"], limit=1000)
    for node in found.nodes:
        if node.title == _TASK:
            memory.mutation.delete(node.id, cascade=True)


def _own_question(memory: Memory) -> str:
    """What the longest text of the folder begins with, asked as a question."""
    found = memory.timeline.temporal_walk(node_types=["entity", "chunk", "decision"], limit=200)
    if not found.nodes:
        raise DemoFailed("the folder holds no Markdown, text, or documented Python")
    node = max(found.nodes, key=lambda node: (len(node.text), node.id))
    said = node.text.split("\n", 1)[-1]
    return " ".join(said.split()[:12]) or node.title


async def _drive(settings: Settings, question: str) -> None:
    from mcp import Client, StdioServerParameters

    server = StdioServerParameters(
        command=sys.executable,
        args=["-m", "cortex", "serve", "--home", str(settings.home),
              "--workspace", settings.workspace],
        env={**os.environ},
    )  # fmt: skip
    began = time.perf_counter()
    async with Client(server) as client:
        tools = (await client.list_tools()).tools
        ready = (time.perf_counter() - began) * 1000
        out.print(
            Text(
                f"\n2. Serve: {len(tools)} tools over stdio, protocol {client.protocol_version}, "
                f"ready after {ready:.0f} ms"
            )
        )
        call = Calls(client)
        await _open(call)
        await _search(call, question)
        await _reason(call)
        _print_times(call)
        _print_memory()


async def _open(call: Calls) -> None:
    desktop = await call("desktop_open")
    cold = [(node["id"][:8], node["type"], node["title"]) for node in desktop["cold"][:4]]
    title = f"\n3. Open the desktop: {len(desktop['hot'])} hot, {desktop['total']} cold"
    out.print(table(title, ("id", "type", "title"), cold))


async def _search(call: Calls, question: str) -> None:
    """The regression pattern: meaning, then context, then the line to read."""
    found = await call("graph_search", query=question, top_k=3)
    out.print(Text(f"\n4. Search: {question}"))
    rows = [(f"{hit['score']:.2f}", hit["type"], hit["title"]) for hit in found["hits"]]
    out.print(table("   meaning", ("score", "type", "title"), rows))
    if not found["hits"] or not found["files"]:
        raise DemoFailed("the search found no file to read")
    parents = [parent["title"] for parent in found["context"][0]["parents"]]
    out.print(Text(f"   context    {' < '.join(parents) or '(top level)'}"))
    place = found["files"][0]
    line = place["line"] or 1
    shown = Path(place["path"]).read_text("utf-8", "replace").splitlines()[line - 1].strip()
    out.print(Text(f"   specifics  {place['path']}:{line}  ({place['freshness']})"))
    out.print(Text(f"              {shown}"))


async def _reason(call: Calls) -> None:
    """A decision with its reasons, walked; then it changes, and the old wording finds it."""
    task = await call("graph_add_node", type="task", title=_TASK)
    inside = {"parent_id": task["id"]}
    error = await call("graph_add_node", type="error", **inside,
                       text="Every service that checks a token can also forge one")  # fmt: skip
    thought = await call("graph_add_node", type="thought", **inside,
                         text="Checking should need no secret at all")  # fmt: skip
    old = await call("graph_add_node", type="decision", text=_OLD, **inside)
    for source, kind, target in (
        (error, "triggers", thought),
        (thought, "leads_to", old),
    ):
        await call("graph_add_relation", from_id=source["id"], to_id=target["id"], type=kind)
    walked = await call("graph_walk", start_id=error["id"])
    rows = [
        (step["relation"]["type"] if step["relation"] else "", step["node"]["type"],
         step["node"]["text"])
        for step in walked["path"]
    ]  # fmt: skip
    out.print(table("\n5. Walk the reasoning", ("by", "type", "text"), rows))
    new = await call("graph_supersede", old_id=old["id"], new_data={"text": _NEW})
    found = await call("vector_search", query=_OLD, top_k=3)
    best = found["hits"][0] if found["hits"] else {}
    if best.get("id") != new["new_id"]:
        raise DemoFailed("the old wording does not find the new decision")
    out.print(Text("\n6. Supersede: the decision changed"))
    out.print(Text(f"   asked in the old words  {_OLD}"))
    out.print(Text(f"   found                   {best['text']}"))
    out.print(Text(f"   because                 {best['note']}"))
    await call("desktop_focus", node_id=new["new_id"])
    desktop = await call("desktop_open")
    anchor = (desktop["anchor"] or {}).get("node_id")
    if anchor != new["new_id"]:
        raise DemoFailed("the desktop does not open where the agent stopped")
    out.print(Text(f"   next session opens at   {anchor[:8]}, the node in focus now"))


def _print_times(call: Calls) -> None:
    names = dict.fromkeys(name for name, _ in call.times)
    rows = []
    for name in names:
        times = sorted(ms for called, ms in call.times if called == name)
        rows.append((name, len(times), f"{median(times):.1f}", f"{times[-1]:.1f}"))
    out.print(table("\n7. Round trips in ms", ("tool", "calls", "median", "slowest"), rows))


def _print_memory() -> None:
    for child in psutil.Process().children(recursive=True):
        if "serve" in child.cmdline():
            whole = child.memory_info().rss / 1e6
            out.print(Text(f"\nThe server holds {whole:.0f} MB, the model included."))
