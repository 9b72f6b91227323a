"""Commands about time: the timeline and its counts, churn, lineages, what lies idle."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

import typer

from cortex.cli.options import AsJson, Home, NodeRef, Workspace, opened
from cortex.config import load_settings

if TYPE_CHECKING:
    from cortex.memory import Memory
    from cortex.services.activity import Counted, Idling

commands = typer.Typer()

_BAR: Final = 30
_DAY: Final = 86_400

From = Annotated[str | None, typer.Option("--from", help="From when: 2026-05-12, or with a time.")]
To = Annotated[str | None, typer.Option("--to", help="Until when; a date includes its day.")]
Limit = Annotated[int, typer.Option("--limit", "-n", min=1, max=1000, help="How many.")]


@commands.command()
def timeline(
    from_time: From = None,
    to_time: To = None,
    session: Annotated[
        Literal["all", "last"], typer.Option("--session", help="Everyone, or the last one only.")
    ] = "all",
    by: Annotated[
        Literal["hour", "day", "week", "type"] | None,
        typer.Option("--by", help="Count instead: by UTC hour, day, week, or by type of node."),
    ] = None,
    limit: Limit = 50,
    home: Home = None,
    workspace: Workspace = None,
    as_json: AsJson = False,
) -> None:
    """Show what happened, newest first: made, changed, deleted, related, visited."""
    with opened(load_settings(home=home, workspace=workspace)) as memory:
        if by is None:
            _print_events(memory, from_time, to_time, session, limit, workspace, as_json=as_json)
            return
        if session != "all":
            raise typer.BadParameter("--by counts everyone's events: leave --session out")
        window = {"from_time": from_time, "to_time": to_time, "workspace": workspace}
        if by == "type":
            counted = memory.activity.by_type(**window)
            events = [(row.type or "gone", row.kind, row.total) for row in counted.rows]
            _print_counts(by, counted, events, limit, as_json=as_json)
            return
        buckets = memory.activity.buckets(by, **window)
        width = 13 if by == "hour" else 10
        events = [(row.start[:width], row.kind, row.total) for row in reversed(buckets.rows)]
        _print_counts(by, buckets, events, limit, as_json=as_json)


def _print_events(
    memory: Memory,
    from_time: str | None,
    to_time: str | None,
    session: Literal["all", "last"],
    limit: int,
    workspace: str | None,
    *,
    as_json: bool,
) -> None:
    from rich.text import Text

    from cortex.cli.looking import dump, out, table

    found = memory.timeline.session_timeline(
        workspace=workspace,
        from_time=from_time,
        to_time=to_time,
        session=session,
        limit=limit,
    )
    if as_json:
        dump({"events": [asdict(event) for event in found.events],
              "truncated": found.next_cursor is not None, "degraded": found.degraded})  # fmt: skip
        return
    _warn(found.degraded)
    if not found.events:
        place = memory.engine.workspace(workspace)
        out.print(Text(f"Nothing happened in {place!r} in that time."))
        return
    rows = [
        (event.at[:19], event.kind, event.id[:8], event.detail.partition(":")[0], event.title,
         event.actor or "")
        for event in found.events
    ]  # fmt: skip
    out.print(table("", ("at", "what", "id", "type", "title", "by"), rows))
    if found.next_cursor is not None:
        out.print("… and earlier; --limit or --to shows more")


def _print_counts(
    by: str,
    counted: Counted[Any],
    events: Iterable[tuple[str, str, int]],
    limit: int,
    *,
    as_json: bool,
) -> None:
    """A line for each group, in the order given: its total, a bar, what it is made of."""
    from cortex.cli.looking import out, table

    if as_json:
        _dump_counted(counted, by=by)
        return
    groups: dict[str, list[tuple[int, str]]] = {}
    for group, kind, total in events:
        groups.setdefault(group, []).append((total, kind))
    sums = {group: sum(total for total, _ in parts) for group, parts in groups.items()}
    order = list(sums) if by != "type" else sorted(sums, key=lambda group: (-sums[group], group))
    most = max(sums.values(), default=1)
    rows = [
        (group, sums[group], "█" * -(-sums[group] * _BAR // most),
         ", ".join(f"{total} {kind}" for total, kind in sorted(groups[group], reverse=True)))
        for group in order[:limit]
    ]  # fmt: skip
    _warn(counted.degraded, *counted.unread)
    if not rows:
        out.print("Nothing happened in that time.")
        return
    out.print(table(f"{sum(sums.values())} events", (by, "", "", ""), rows))
    if len(order) > limit:
        out.print(f"… and {len(order) - limit} more; --limit shows them")


@commands.command()
def churn(
    from_time: From = None,
    to_time: To = None,
    home: Home = None,
    workspace: Workspace = None,
    as_json: AsJson = False,
) -> None:
    """Show by week how many memories were created, superseded, archived and deleted."""
    from cortex.cli.looking import out, table

    with opened(load_settings(home=home, workspace=workspace)) as memory:
        counted = memory.activity.churn(from_time=from_time, to_time=to_time, workspace=workspace)
    if as_json:
        _dump_counted(counted)
        return
    _warn(counted.degraded, *counted.unread)
    if not counted.rows:
        out.print("Nothing came or went in that time.")
        return
    columns = ("week of", "created", "superseded", "archived", "deleted")
    out.print(table("", columns, [(row.week[:10], *row[1:]) for row in reversed(counted.rows)]))


@commands.command()
def lineage(
    node: NodeRef, home: Home = None, workspace: Workspace = None, as_json: AsJson = False
) -> None:
    """Show what a memory replaced and what replaced it, oldest first, when and why."""
    from cortex.cli.looking import dump, out, table

    with opened(load_settings(home=home, workspace=workspace)) as memory:
        links = memory.activity.lineage(memory.inspecting.locate(node, workspace).id)
    if as_json:
        dump(
            [
                {
                    "id": link.node.id,
                    "type": link.node.type.value,
                    "status": link.node.status.value,
                    "title": link.node.title,
                    "created_at": link.node.created_at,
                    "superseded_by": link.superseded_by.id if link.superseded_by else None,
                    "superseded_at": link.at,
                    "reason": link.reason,
                }
                for link in links
            ]
        )
        return
    rows = [
        (link.node.id[:8], link.node.status.value, link.node.created_at[:16],
         link.at[:16] if link.at else "", link.superseded_by.id[:8] if link.superseded_by else "",
         link.reason or "", link.node.title)
        for link in links
    ]  # fmt: skip
    columns = ("id", "status", "made", "superseded", "by", "reason", "title")
    out.print(table("", columns, rows))


@commands.command()
def idle(
    candidates: Annotated[
        bool,
        typer.Option("--candidates", help="Only what the next archiving would take."),
    ] = False,
    limit: Limit = 50,
    home: Home = None,
    workspace: Workspace = None,
    as_json: AsJson = False,
) -> None:
    """Show the memories that have lain idle longest, and their last sign of life."""
    with opened(load_settings(home=home, workspace=workspace)) as memory:
        if candidates:
            found = memory.activity.archive_candidates(limit=limit, workspace=workspace)
        else:
            found = memory.activity.idle(limit=limit, workspace=workspace)
    _print_idle(found, candidates=candidates, as_json=as_json)


def _print_idle(found: Idling, *, candidates: bool, as_json: bool) -> None:
    from cortex.cli.looking import dump, out, table

    if as_json:
        nodes = [
            {
                "id": node.id,
                "type": node.type.value,
                "title": node.title,
                "last_at": row.last_at,
                "what": row.what,
                "below": bool(row.below),
                "idle_seconds": row.idle_seconds,
            }
            for node, row in found.nodes
        ]
        dump({"nodes": nodes, "total": found.total, "degraded": found.degraded,
              "unread": list(found.unread)})  # fmt: skip
        return
    _warn(found.degraded, *found.unread)
    if not found.nodes:
        out.print("Nothing is due for the archive." if candidates else "No active memories.")
        return
    rows = [
        (f"{row.idle_seconds / _DAY:.1f}", row.last_at[:16],
         row.what + (" below it" if row.below else ""), node.id[:8], node.type.value, node.title)
        for node, row in found.nodes
    ]  # fmt: skip
    which = "that archiving would take next" if candidates else "active memories"
    title = f"{len(rows)} of {found.total} {which}"
    out.print(table(title, ("days idle", "last", "what", "id", "type", "title"), rows))


def _dump_counted(counted: Counted[Any], **beside: str) -> None:
    from cortex.cli.looking import dump

    rows: Sequence[dict[str, Any]] = [row._asdict() for row in counted.rows]
    total = {"total": sum(row["total"] for row in rows)} if beside else {}
    dump({"counts": rows, **beside, **total, "degraded": counted.degraded,
          "unread": list(counted.unread), "generation": counted.generation})  # fmt: skip


def _warn(*said: str | None) -> None:
    from rich.text import Text

    from cortex.cli.looking import err

    for line in said:
        if line:
            err.print(Text(line), style="yellow", soft_wrap=True)
