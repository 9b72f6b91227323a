"""The command that looks back: the history of visits, or of one node."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from cortex.cli.completing import complete_node
from cortex.cli.options import AsJson, Home, Workspace, opened
from cortex.config import load_settings

if TYPE_CHECKING:
    from cortex.memory import Memory
    from cortex.services.inspecting import Past

commands = typer.Typer()

_BESIDE: Final = 60  # characters of two values that are read side by side

Limit = Annotated[int, typer.Option("--limit", "-n", min=1, max=1000, help="How many.")]


@commands.command()
def history(
    node: Annotated[
        str | None,
        typer.Argument(
            metavar="[NODE]", help="A node: how it came to be so.", autocompletion=complete_node
        ),
    ] = None,
    limit: Limit = 30,
    home: Home = None,
    workspace: Workspace = None,
    as_json: AsJson = False,
) -> None:
    """Show where agents were, newest first; with NODE, who changed it, when, and how."""
    with opened(load_settings(home=home, workspace=workspace)) as memory:
        if node is not None:
            _print_past(memory.inspecting.past(node, workspace), limit, as_json=as_json)
        else:
            _print_visits(memory, workspace, limit, as_json=as_json)


def _print_visits(memory: Memory, workspace: str | None, limit: int, *, as_json: bool) -> None:
    from rich.text import Text

    from cortex.cli.looking import dump, out, table
    from cortex.domain.values import shorten

    entries = memory.viewport.history(workspace, limit).entries
    if as_json:
        shown = [
            {
                "at": entry.visit.at,
                "action": entry.visit.action.value,
                "node_id": entry.visit.node_id or None,
                "title": entry.node.title if entry.node else None,
                "context": dict(entry.visit.context),
            }
            for entry in entries
        ]
        dump(shown)
        return
    if not entries:
        place = memory.engine.workspace(workspace)
        out.print(Text(f"No visits in {place!r} yet; agents leave them as they search and focus."))
        return
    rows = []
    for entry in entries:
        title = entry.node.title if entry.node else ("deleted" if entry.visit.node_id else "")
        query = entry.visit.context.get("query")
        rows.append(
            (
                entry.visit.at[:19],
                entry.visit.action.value,
                entry.visit.node_id[:8],
                f"“{shorten(str(query), 60)}” {title}" if query else title,
                entry.visit.context.get("actor", ""),
            )
        )
    out.print(table("", ("at", "action", "id", "", "by"), rows))


def _print_past(past: Past, limit: int, *, as_json: bool) -> None:
    from rich.text import Text

    from cortex.cli.looking import dump, out

    changes = past.changes[:limit]
    if as_json:
        entries = [
            {
                "at": change.at,
                "by": change.actor,
                "op": change.op,
                "fields": {
                    name: {"before": old, "after": new}
                    for name, (old, new) in change.fields.items()
                },
            }
            for change in changes
        ]
        dump({"id": past.id, "deleted": past.node is None, "changes": entries})
        return
    title = past.node.title if past.node else "deleted"
    out.print(Text(f"{past.id} {title}"), soft_wrap=True)
    names = {"insert": "made", "update": "changed", "delete": "deleted"}
    for change in changes:
        out.print(Text(f"\n{change.at[:19]}  {names[change.op]} by {change.actor}"))
        for line in _field_lines(change.fields, change.op):
            out.print(Text(f"  {line}"))
    if len(past.changes) > limit:
        out.print(f"\n… and {len(past.changes) - limit} earlier; --limit shows more")


def _field_lines(fields: Mapping[str, tuple[Any, Any]], op: str) -> list[str]:
    if op == "update" and not fields:
        return ["nothing but its time"]
    lines = []
    for name, (old, new) in fields.items():
        if op == "insert":
            if new is not None:
                lines.append(f"{name}: {_short(new)}")
        elif op == "delete":
            lines.append(f"{name}: {_short(old)}")
        elif len(_short(old)) + len(_short(new)) > _BESIDE:
            lines += [f"{name}: {_short(old)}", f"{' ' * len(name)}→ {_short(new)}"]
        else:
            lines.append(f"{name}: {_short(old)} → {_short(new)}")
    return lines


def _short(value: Any) -> str:
    import json

    from cortex.domain.values import shorten

    if value is None:
        return "nothing"
    return shorten(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False), 160)
