"""What the commands print: tables for people, JSON for programs."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rich.console import Console, Group
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from cortex.cli.index_screen import iter_qdrant_lines
from cortex.tools.desktop import desktop_open
from cortex.tools.vector import graph_search

if TYPE_CHECKING:
    from cortex.memory import Memory

# Piped output has no width; 80 columns would cut paths and words.
out = Console(highlight=False, soft_wrap=False, width=None if sys.stdout.isatty() else 160)
err = Console(stderr=True, highlight=False)


def dump(value: Any) -> None:
    """One JSON document on stdout."""
    out.print_json(json.dumps(value, ensure_ascii=False), highlight=False)


def table(title: str, columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> Group | Table:
    """A plain table; the texts of memories are shown as they are, never as markup."""
    made = Table(box=None, pad_edge=False)
    for name in columns:
        made.add_column(name, overflow="fold")
    for row in rows:
        made.add_row(*(Text(str(cell)) for cell in row))
    return Group(Text(title), made) if title else made


def progress(what: str) -> Progress:
    """A bar on stderr, gone when it is done."""
    return Progress(
        TextColumn(what),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        console=err,
        transient=True,
    )


def print_search(
    memory: Memory,
    query: str,
    workspace: str | None,
    *,
    top_k: int,
    explain: bool,
    as_json: bool,
) -> None:
    """Hits with their context and the files to read."""
    arguments = {"query": query, "top_k": top_k, "workspace_id": workspace, "explain": explain}
    answer = graph_search.call(memory, arguments)
    if as_json:
        dump(answer.structured)
        return
    found = answer.structured
    if found["degraded"]:
        err.print(Text(f"degraded: {found['degraded']}"), style="yellow")
    if not found["hits"]:
        out.print(Text(answer.text))
        return
    rows = [
        (
            f"{hit['score']:.2f}",
            hit["id"][:8],
            hit["type"],
            _state(hit),
            hit["workspace_id"],
            _summary(hit),
        )
        for hit in found["hits"]
    ]
    count = found["total"]
    title = f"{count} hit{'' if count == 1 else 's'}"
    out.print(table(title, ("score", "id", "type", "status", "in", ""), rows))
    if found["files"]:
        out.print("\nread next")
        for place in found["files"]:
            line = f":{place['line']}" if place["line"] else ""
            # A path on one line, whatever the width: it is there to be clicked or copied.
            out.print(Text(f"{place['path']}{line}  {place['freshness']}"), soft_wrap=True)
    if explain:
        names = ("semantic", "keyword")
        ranks = [
            (hit["id"][:8], *(_standing(hit, name) for name in names)) for hit in found["hits"]
        ]
        out.print(table("\nwhy: rank (score)", ("id", *names), ranks))
        for reason, left in found["withheld"].items():
            out.print(Text(f"left out: {left['count']} {reason}"))


def _state(node: Mapping[str, Any]) -> str:
    """Its status, and that its file is not as it was noted."""
    return str(node["status"]) + (" unverified" if "unverified" in node else "")


def _standing(hit: Mapping[str, Any], ranker: str) -> str:
    """Where one ranker put a hit, and with what score; a dash where it did not."""
    if ranker not in hit["ranks"]:
        return "–"
    return f"{hit['ranks'][ranker]} ({hit['scores'][ranker]:.2f})"


def _summary(hit: Mapping[str, Any]) -> str:
    text = " ".join(hit["text"].split())[:160]
    title = hit["title"]
    shown = title if not text or text.startswith(title.rstrip("…")) else f"{title} — {text}"
    return f"{shown} ({hit['note']})" if "note" in hit else shown


def print_desktop(memory: Memory, *, as_json: bool) -> None:
    """The viewport."""
    structured = desktop_open.call(memory, {"max_chars": 20_000}).structured
    if as_json:
        dump(structured)
        return
    out.print(Text(f"workspace {structured['workspace_id']}  session {structured['session_id']}"))
    if structured["graph"] == "empty":
        out.print("Nothing here yet. `cortex ingest PATH` reads a folder; agents add the rest.")
    if structured["anchor"]:
        anchor = structured["anchor"]
        out.print(Text(f"last focus {anchor['node_id'][:8]} at {anchor['at'][:19]}"))
    if structured["hot"]:
        rows = [(n["id"][:8], n["type"], _state(n), n["title"]) for n in structured["hot"]]
        out.print(table("\nhot", ("id", "type", "status", "title"), rows))
    if structured["cold"]:
        cold = [(n["id"][:8], n["type"], n["title"]) for n in structured["cold"]]
        title = f"\ncold ({len(cold)} of {structured['total']})"
        out.print(table(title, ("id", "type", "title"), cold))
    archive = structured["archive"]
    if archive["count"]:
        out.print(Text(f"\n{archive['count']} archived, the oldest of {archive['oldest'][:10]}"))


def print_status(memory: Memory, *, as_json: bool) -> None:
    """File, workspaces, index."""
    status = memory.status()
    if as_json:
        dump(status)
        return
    out.print(Text(f"file        {status['file']}"))
    out.print(Text(f"workspace   {status['workspace']}"))
    out.print(Text(f"generation  {status['generation']}"))
    model = status["model"]
    name = f"{model['name']} ({model['dimension']})" if model else "none yet: no text is embedded"
    out.print(Text(f"model       {name}"))
    index = status["index"]
    line = f"{index['ready']} ready, {index['pending']} pending, {index['failed']} failed"
    mapped = index.get("file_bytes")
    out.print(Text(f"vectors     {line}" + (f", {mapped / 1e6:.0f} MB in files" if mapped else "")))
    if index["backend"] == "qdrant":
        for line in iter_qdrant_lines(index):
            out.print(Text(line))
    if status["upgrade"]:
        out.print(Text(f"upgraded    {_upgrade_line(status['upgrade'])}"))
    if status["index_problem"]:
        err.print(Text(f"semantic search is out: {status['index_problem']}"), style="yellow")
    places = [
        (name, place["nodes"], place["relations"], place["statuses"].get("stale", 0),
         place["statuses"].get("archived", 0))
        for name, place in status["workspaces"].items()
    ]  # fmt: skip
    if places:
        columns = ("workspace", "nodes", "relations", "stale", "archived")
        out.print(table("", columns, places))
    else:
        out.print("No memories yet. `cortex ingest PATH` reads a folder.")


def _upgrade_line(upgrade: Mapping[str, Any]) -> str:
    repairs = ", ".join(f"{count} {kind}" for kind, count in upgrade["repairs"].items())
    return f"{upgrade['at'][:19]} from {upgrade['backup']}; repaired: {repairs or 'nothing'}"


def print_reindex(memory: Memory, model: str | None, *, as_json: bool) -> None:
    """Run a reindex behind a bar, then say what it did."""
    with progress("reindex") as bar:
        task = bar.add_task("reindex", total=None)

        def show(done: int, total: int) -> None:
            bar.update(task, completed=done, total=total)

        done = memory.indexing.reindex(model, show)
    if as_json:
        dump(
            {
                "nodes": done.nodes,
                "embedded": done.embedded,
                "model": done.model,
                "migrated": done.migrated,
            }
        )
        return
    out.print(Text(f"{done.nodes} nodes in the keyword index, {done.embedded} embedded anew"))
    out.print(Text(f"model: {done.model}" + (" (migrated)" if done.migrated else "")))


def wait_for_vectors(memory: Memory) -> int:
    """Wait behind a bar until nothing is owed, or the model is out; what is left."""
    total = memory.indexing.wait(None, 0.0)
    with progress("embedding") as bar:
        task = bar.add_task("embedding", total=total)
        left = total
        while left:
            left = memory.indexing.wait(None, 0.3)
            bar.update(task, completed=total - left)
            if memory.indexing.problem:
                return left
    return 0
