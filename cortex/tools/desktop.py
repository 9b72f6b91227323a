"""Tools of the desktop: open it, move the focus, look back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Final

from pydantic import Field

from cortex.domain.values import shorten
from cortex.tools.arguments import Cursor, Limit, NodeRef, Workspace
from cortex.tools.paging import page_of
from cortex.tools.registry import Answer, tool
from cortex.tools.render import (
    STRUCTURED,
    UNVERIFIED,
    Names,
    brief_json,
    fitting,
    joined,
    mark,
    names_of,
    node_line,
    size,
    whole_json,
)

if TYPE_CHECKING:
    from cortex.domain.values import Node, Relation
    from cortex.memory import Memory
    from cortex.services.viewport import Desktop, HotNode

_HOT_TEXT: Final = 400
_HOT_SHARE: Final = 0.7


@tool(title="Open the desktop", sets=("roo", "core"), writes=False, idempotent=True)
def desktop_open(
    memory: Memory,
    workspace_id: Workspace | None = None,
    max_chars: Annotated[int, Field(ge=500, le=40_000, description="ceiling of the reply")] = 5000,
    cursor: Cursor | None = None,
) -> Answer:
    """Begin here each session: where you stopped (anchor), what matters now in full (hot), the
    other active memories by title (cold), and how many are archived."""
    desktop = memory.viewport.open(workspace_id, cursor=cursor)
    names = names_of(memory, _ids_of(desktop))
    structured = _desktop_json(desktop, max_chars, names)
    return Answer(_desktop_text(desktop, structured, names, max_chars), structured)


def _ids_of(desktop: Desktop) -> list[str]:
    """Neighbours of hot nodes are left out: a title beside a node stands for no knowledge yet,
    and asking for them would treble the cost."""
    anchored = [desktop.anchored] if desktop.anchored else []
    nodes = (*anchored, *(hot.node for hot in desktop.hot), *desktop.cold)
    return list(dict.fromkeys(node.id for node in nodes))


def _desktop_json(desktop: Desktop, max_chars: int, names: Names) -> dict[str, Any]:
    """The viewport within `max_chars` of compact JSON: hot first, then as many cold as fit."""
    archive = desktop.archive
    structured: dict[str, Any] = {
        "session_id": desktop.session.id,
        "workspace_id": desktop.session.workspace_id,
        "graph": "empty" if desktop.created else "loaded",
        "anchor": _anchor_json(desktop, names),
        "last_session": desktop.last_session
        and {"actor": desktop.last_session.actor, "at": desktop.last_session.at},
        "hot": [],
        "cold": [],
        "total": desktop.cold_total,
        "next_cursor": desktop.next_cursor,
        "truncated": desktop.next_cursor is not None,
        "stale": desktop.stale,
        "archive": {
            "count": archive.count,
            "oldest": archive.oldest,
            "hint": "search finds archived memories; desktop_focus brings one back",
        },
        "archived_now": desktop.archived_now,
        "notes": list(desktop.notes),
        "generation": desktop.generation,
    }
    room = max_chars - size(structured) - 120
    hot = fitting((_hot_json(node, names) for node in desktop.hot), int(room * _HOT_SHARE))
    structured["hot"] = hot
    if len(hot) < len(desktop.hot):
        structured["notes"].append(f"{len(desktop.hot) - len(hot)} hot nodes did not fit")
    room = max_chars - size(structured) - 120
    cold = ({"type": node.type.value, **brief_json(node, 80, names)} for node in desktop.cold)
    structured["cold"] = fitting(cold, room)
    shown = len(structured["cold"])
    if shown < len(desktop.cold):
        structured["truncated"] = True
        structured["next_cursor"] = desktop.cursor_after(desktop.cold[shown - 1]) if shown else None
    return structured


def _anchor_json(desktop: Desktop, names: Names) -> dict[str, Any] | None:
    if desktop.anchor is None or desktop.anchored is None:
        return None
    node = desktop.anchored
    shown = {"type": node.type.value, **brief_json(node, names=names)}
    if desktop.head is not None:
        shown["superseded_by"] = {"type": node.type.value, **brief_json(desktop.head, names=names)}
    return {"node_id": desktop.anchor.node_id, "at": desktop.anchor.at, **shown}


def _hot_json(hot: HotNode, names: Names) -> dict[str, Any]:
    node = hot.node
    text = node.text
    shown: dict[str, Any] = {
        "id": node.id,
        "type": node.type.value,
        "title": shorten(node.title, 120),
        "status": node.status.value,
        "text": text if len(text) <= _HOT_TEXT else text[: _HOT_TEXT - 1] + "…",
        "relations": [
            {"type": relation.type.value, **brief_json(other, 60)}
            for relation, other in hot.relations
        ],
        "degree": hot.degree,
    }
    if node.pinned:
        shown["pinned"] = True
    if names.unverified(node.id):
        shown["unverified"] = True
    return shown


def _desktop_text(
    desktop: Desktop, structured: dict[str, Any], names: Names, max_chars: int
) -> str:
    shown = {item["id"] for item in structured["hot"]}
    lines = [f"session {desktop.session.id} · workspace {desktop.session.workspace_id}"]
    if desktop.created:
        lines.append("graph: empty. Write what you learn with graph_add_node.")
    if desktop.anchor and desktop.anchored:
        stopped = f"{mark(desktop.anchored, names)}{shorten(desktop.anchored.title, 80)}"
        lines.append(
            f"you stopped at {desktop.anchor.node_id} {desktop.anchored.type} {stopped} "
            f"({desktop.anchor.at[:19]})"
        )
        if desktop.head:
            title = shorten(desktop.head.title, 80)
            lines.append(f"   it is superseded by {desktop.head.id} {title}")
    if desktop.last_session:
        lines.append(
            f"last session: {desktop.last_session.actor} until {desktop.last_session.at[:19]}; "
            "session_timeline session=last lists it"
        )
    lines += [f"note: {note}" for note in structured["notes"]]
    for hot in desktop.hot:
        if hot.node.id in shown:
            lines.append("hot: " + node_line(hot.node, names, cut=_HOT_TEXT))
            lines += [
                f"   {_toward(relation, hot.node)} {mark(other)}{shorten(other.title, 60)}"
                for relation, other in hot.relations
            ]
    lines += [
        f"cold: {names(item['id'])} {item['type']} "
        f"{UNVERIFIED if 'unverified' in item else ''}{item['title']}"
        for item in structured["cold"]
    ]
    tail = [f"{len(structured['cold'])} of {desktop.cold_total} cold nodes"]
    if structured["next_cursor"]:
        tail.append(f"next: cursor={structured['next_cursor']}")
    if desktop.stale:
        tail.append(f"{desktop.stale} stale")
    if desktop.archive.count:
        tail.append(
            f"{desktop.archive.count} archived (oldest {str(desktop.archive.oldest)[:10]}): search "
            "finds them"
        )
    end = "; ".join(tail)
    return joined(lines, max_chars - len(end) - 1) + "\n" + end


def _toward(relation: Relation, node: Node) -> str:
    """A relation of the node, pointing as it is stored."""
    name = relation.type.value
    return f"-{name}->" if relation.from_id == node.id else f"<-{name}-"


@tool(title="Focus on a memory", sets=("roo", "core"), writes=True, idempotent=True)
def desktop_focus(
    memory: Memory,
    node_id: NodeRef,
    limit: Limit = 10,
    workspace_id: Workspace | None = None,
) -> Answer:
    """Work on a node: it whole, its surroundings to depth 2, and warnings; moves the anchor and
    brings an archived node back."""
    done = memory.viewport.focus(node_id, limit=limit, workspace=workspace_id)
    found = done.around
    node = found.starts[0]
    names = Names(*found.known)
    page = page_of(found.nodes, found.relations, found.starts, found.total, 0, names)
    warnings = [*found.warnings, *names.warnings(found.starts), *done.notes]
    lines = [f"{done.action.value}: {node_line(node, names, cut=0)}", f"id {node.id}"]
    lines += [f"warning: {warning}" for warning in warnings]
    if done.restored:
        lines.append("restored from the archive")
    parts = ["\n".join(lines), node.text[:40_000], joined(page.lines)]
    rest = f"{len(page.nodes)} of {found.total} nodes around it"
    rest += "; graph_get_node pages through the rest" if page.truncated else ""
    return Answer(
        "\n".join(part for part in parts if part) + "\n" + rest,
        {
            "node": whole_json(node, names),
            "nodes": page.nodes,
            "relations": page.relations,
            "total": found.total,
            "truncated": page.truncated,
            "warnings": warnings,
            "action": done.action.value,
            "restored": done.restored,
            "generation": found.generation,
        },
    )


@tool(title="Navigation history", sets=("roo",), writes=False)
def desktop_history(
    memory: Memory,
    workspace_id: Workspace | None = None,
    limit: Annotated[int, Field(ge=1, le=200)] = 20,
) -> Answer:
    """Where you were, newest first: focuses, searches, traversals and what led to each."""
    found = memory.viewport.history(workspace_id, limit)
    names = Names(*found.known)
    lines: list[str] = []
    shown: list[dict[str, Any]] = []
    for entry in found.entries:
        visit, node = entry.visit, entry.node
        title = shorten(node.title, 80) if node else ("deleted" if visit.node_id else "")
        label = f"{names(node.id)} {node.type} {mark(node, names)}{title}" if node else title
        context = {k: v for k, v in visit.context.items() if k != "actor"}
        said = context.get("query") or ""
        lines.append(f"{visit.at[:19]} {visit.action.value} {label} {said}".rstrip())
        shown.append(
            {
                "at": visit.at,
                "action": visit.action.value,
                "node_id": visit.node_id or None,
                "node": {**brief_json(node, names=names), "type": node.type.value}
                if node
                else title,
                "context": context,
            }
        )
    fit = fitting(shown, STRUCTURED)
    return Answer(
        joined(lines or ["no history yet"]),
        {
            "entries": fit,
            "total": len(shown),
            "truncated": len(fit) < len(shown),
            "generation": found.generation,
        },
    )
