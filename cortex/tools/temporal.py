"""Tools that answer by time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

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
    fitting,
    joined,
    names_of,
    node_json,
    node_line,
    relation_json,
    relation_line,
)

if TYPE_CHECKING:
    from cortex.memory import Memory


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

    nodes = fitting([node_json(node) for node in found.nodes], STRUCTURED * 2 // 3)
    relations = fitting([relation_json(r) for r in found.relations], STRUCTURED // 3)
    shown = found.nodes[: len(nodes)]
    cut = len(nodes) < len(found.nodes)
    next_cursor = encode_cursor(shown[-1]) if cut and shown else found.next_cursor
    names = names_of(memory, [node.id for node in shown])
    lines = [f"{node.created_at[:19]} {node_line(node, names)}" for node in shown]
    lines += [relation_line(relation, names) for relation in found.relations]
    footer = f"\n{len(shown)} nodes" + (f"; next: cursor={next_cursor}" if next_cursor else "")
    return Answer(
        joined(lines) + footer,
        {
            "nodes": nodes,
            "relations": relations,
            "truncated": next_cursor is not None,
            "next_cursor": next_cursor,
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
    limit: Limit = 50,
    cursor: Cursor | None = None,
) -> Answer:
    """What happened, newest first: nodes made, changed, deleted, relations, navigation."""
    found = memory.timeline.session_timeline(
        workspace=workspace_id,
        from_time=from_time or None,
        to_time=to_time or None,
        session=session,
        limit=limit,
        cursor=cursor,
    )
    events: list[dict[str, Any]] = [
        {
            "at": event.at,
            "kind": event.kind,
            "id": event.id,
            "title": event.title,
            "status": event.status,
            "detail": event.detail,
            "actor": event.actor,
        }
        for event in found.events
    ]
    names = names_of(memory, [event.id for event in found.events if event.id])
    lines = [
        f"{event.at[:19]} {event.kind} {names(event.id)} {event.detail} "
        + (f"[{event.status}] " if event.status not in (None, "active") else "")
        + event.title
        for event in found.events
    ]
    footer = f"\n{len(events)} events"
    if found.next_cursor:
        footer += f"; next: cursor={found.next_cursor}"
    return Answer(
        joined(lines) + footer,
        {
            "events": events,
            "truncated": found.next_cursor is not None,
            "next_cursor": found.next_cursor,
            "generation": found.generation,
        },
    )
