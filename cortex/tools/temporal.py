"""Tools that answer by time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cortex.domain.errors import InvalidError
from cortex.tools.arguments import (
    Cursor,
    FromTime,
    Limit,
    NodeKinds,
    NodeRef,
    RelationKind,
    ToTime,
    Workspace,
)
from cortex.tools.registry import Answer, tool
from cortex.tools.render import (
    STRUCTURED,
    TEXT,
    UNVERIFIED,
    Names,
    fitting,
    joined,
    names_of,
    node_json,
    node_line,
    relation_json,
    relation_line,
)

if TYPE_CHECKING:
    from cortex.domain.activity import BucketRow, TypeRow
    from cortex.memory import Memory
    from cortex.services.activity import Counted
    from cortex.services.timeline import Event, Events


@tool(title="Walk through time", sets=("roo",), writes=False)
def temporal_walk(
    memory: Memory,
    workspace_id: Workspace | None = None,
    from_time: FromTime = "",
    to_time: ToTime = "",
    relation_type: Annotated[RelationKind | None, "only nodes with such a relation"] = None,
    node_types: NodeKinds = (),
    start_id: Annotated[NodeRef | None, "only nodes near this one"] = None,
    limit: Limit = 50,
    cursor: Cursor | None = None,
) -> Answer:
    """Nodes in the order in which they came to be, oldest first: what led to what."""
    found = memory.timeline.temporal_walk(
        workspace=workspace_id,
        from_time=from_time or None,
        to_time=to_time or None,
        relation_type=relation_type,
        node_types=node_types,
        start_id=start_id,
        limit=limit,
        cursor=cursor,
    )
    from cortex.services.viewport import encode_cursor

    names = names_of(memory, [node.id for node in found.nodes])
    nodes = fitting([node_json(node, names=names) for node in found.nodes], STRUCTURED * 2 // 3)
    lines = fitting(
        [f"{node.created_at[:19]} {node_line(node, names)}" for node in found.nodes],
        TEXT * 2 // 3,
        len,
    )
    shown = found.nodes[: min(len(nodes), len(lines))]
    nodes, lines = nodes[: len(shown)], lines[: len(shown)]
    ids = {node.id for node in shown}
    beside = [r for r in found.relations if r.from_id in ids or r.to_id in ids]
    relations = fitting([relation_json(r) for r in beside], STRUCTURED // 3)
    cut = len(shown) < len(found.nodes)
    next_cursor = encode_cursor(shown[-1]) if cut and shown else found.next_cursor
    lines += [relation_line(relation, names) for relation in beside]
    footer = f"\n{len(shown)} nodes" + (f"; next: cursor={next_cursor}" if next_cursor else "")
    return Answer(
        joined(lines) + footer + _note(found.degraded),
        {
            "nodes": nodes,
            "relations": relations,
            "truncated": next_cursor is not None or len(relations) < len(beside),
            "next_cursor": next_cursor,
            "degraded": found.degraded,
            "generation": found.generation,
        },
    )


@tool(title="Session timeline", sets=("roo", "core"), writes=False)
def session_timeline(
    memory: Memory,
    workspace_id: Workspace | None = None,
    from_time: FromTime = "",
    to_time: ToTime = "",
    session: Annotated[Literal["all", "current", "last"], "whose events"] = "all",
    by: Annotated[
        Literal["hour", "day", "week", "type"] | None, "count them instead, by time or node type"
    ] = None,
    limit: Limit = 50,
    cursor: Cursor | None = None,
) -> Answer:
    """What happened, newest first: nodes made, changed, deleted, relations, navigation."""
    if by is not None:
        if session != "all":
            raise InvalidError(
                "by counts everyone's events", "Valid: by with session all", "Leave one of them out"
            )
        return _counted(memory, by, from_time or None, to_time or None, workspace_id)

    def page(limit: int) -> tuple[Events, list[dict[str, Any]], list[str]]:
        found = memory.timeline.session_timeline(
            workspace=workspace_id,
            from_time=from_time or None,
            to_time=to_time or None,
            session=session,
            limit=limit,
            cursor=cursor,
        )
        names = names_of(memory, [event.id for event in found.events if event.id])
        return (
            found,
            fitting([_event_json(event, names) for event in found.events], STRUCTURED),
            fitting([_event_line(event, names) for event in found.events], TEXT - 100, len),
        )

    found, events, lines = page(limit)
    if min(len(events), len(lines)) < len(found.events):
        # Asked again with what fits, so that the next page begins where this one ends.
        found, events, lines = page(max(min(len(events), len(lines)), 1))
    footer = f"\n{len(events)} events"
    if found.next_cursor:
        footer += f"; next: cursor={found.next_cursor}"
    return Answer(
        joined(lines) + footer + _note(found.degraded),
        {
            "events": events,
            "truncated": found.next_cursor is not None,
            "next_cursor": found.next_cursor,
            "degraded": found.degraded,
            "generation": found.generation,
        },
    )


def _counted(
    memory: Memory,
    by: Literal["hour", "day", "week", "type"],
    from_time: str | None,
    to_time: str | None,
    workspace: str | None,
) -> Answer:
    """Counts by unit of time, newest first, or by type of node, most first."""
    service = memory.activity
    window = {"from_time": from_time, "to_time": to_time, "workspace": workspace}
    found: Counted[TypeRow] | Counted[BucketRow]
    if by == "type":
        found = service.by_type(**window)
        rows: Sequence[TypeRow | BucketRow] = found.rows
        lines = [f"{row.type or 'gone'} {row.kind} {row.total}" for row in found.rows]
    else:
        found = service.buckets(by, **window)
        rows = found.rows[::-1]
        width = 13 if by == "hour" else 10
        lines = [f"{row.start[:width]} {row.kind} {row.total}" for row in found.rows[::-1]]
    counts = fitting([row._asdict() for row in rows], STRUCTURED)
    shown = fitting(lines, TEXT - 200, len)
    total = sum(row.total for row in rows)
    cut = f", {len(shown)} of {len(lines)} lines shown" if len(shown) < len(lines) else ""
    return Answer(
        joined(shown) + f"\n{total} events{cut}" + _note(found.degraded),
        {
            "counts": counts,
            "by": by,
            "total": total,
            "truncated": len(counts) < len(rows),
            "degraded": found.degraded,
            "unread": list(found.unread),
            "generation": found.generation,
        },
    )


def _note(degraded: str | None) -> str:
    return f"\ndegraded: {degraded}" if degraded else ""


def _event_json(event: Event, names: Names) -> dict[str, Any]:
    shown: dict[str, Any] = {
        "at": event.at,
        "kind": event.kind,
        "id": event.id,
        "title": event.title,
        "status": event.status,
        "detail": event.detail,
        "actor": event.actor,
    }
    return {**shown, "unverified": True} if names.unverified(event.id) else shown


def _event_line(event: Event, names: Names) -> str:
    status = f"[{event.status}] " if event.status not in (None, "active") else ""
    status += UNVERIFIED if names.unverified(event.id) else ""
    return f"{event.at[:19]} {event.kind} {names(event.id)} {event.detail} {status}{event.title}"
