"""Tools that read and write the graph."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field

from cortex.domain.values import shorten
from cortex.tools.arguments import (
    Cursor,
    Data,
    Depth,
    Flag,
    Items,
    Key,
    Limit,
    NodeKind,
    NodeKinds,
    NodeRef,
    NodeRefs,
    RelationKind,
    RelationKinds,
    StatusKind,
    Text,
    Texts,
    Weight,
    Workspace,
)
from cortex.tools.registry import Answer, tool
from cortex.tools.render import (
    STRUCTURED,
    TEXT,
    Names,
    fitting,
    further_data,
    joined,
    node_line,
    whole_json,
)

if TYPE_CHECKING:
    from cortex.domain.values import Node, Relation
    from cortex.memory import Memory
    from cortex.tools.cards import Told

DryRun = Annotated[Flag, "only say what would change"]
Pinned = Annotated[Flag, "keep in the hot set"]
Files = Annotated[Texts, '"path:line" of files it comes from']


@tool(title="Add a memory", sets=("roo", "core"), writes=True)
def graph_add_node(
    memory: Memory,
    type: NodeKind,
    title: Text = "",
    text: Text = "",
    tags: Texts = (),
    data: Data | None = None,
    parent_id: Annotated[NodeRef | None, "default: the session root"] = None,
    path: Annotated[Text, "of a fileref"] = "",
    relations: Annotated[Texts, '"type:id", from the new node'] = (),
    files: Files = (),
    pinned: Pinned | None = None,
    workspace_id: Workspace | None = None,
    idempotency_key: Key | None = None,
) -> Answer:
    """Remember one fact, decision, task, error, file … with its parent, relations and files.
    Search first; `similar` names active nodes that say nearly the same: supersede or update
    those instead."""
    from cortex.services.fields import Fields

    added = memory.adding.add_node(
        type,
        Fields(title or None, text or None, list(tags) or None, path or None, pinned, data),
        parent=parent_id,
        relations=relations,
        files=files,
        workspace=workspace_id,
        key=idempotency_key,
    )
    return added_answer(memory, added)


def added_answer(memory: Memory, added: Any) -> Answer:
    """The answer of a write that made a node."""
    lines = [f"added {added.type} {added.id} in {added.workspace_id}: {added.title}"]
    lines += [
        f"similar: {item['id']} {item['type']} {item['title']} ({item['likeness']:.0%})"
        for item in added.similar
    ]
    lines += [f"note: {note}" for note in added.notes]
    structured = {
        "id": added.id,
        "type": added.type,
        "title": added.title,
        "workspace_id": added.workspace_id,
        "parent_id": added.parent_id,
        "similar": added.similar,
        "notes": added.notes,
        "generation": memory.generation(),
    }
    return Answer("\n".join(lines), structured)


@tool(title="Get a memory", sets=("roo", "core"), writes=False)
def graph_get_node(
    memory: Memory,
    node_id: NodeRefs,
    depth: Annotated[int, Field(ge=0, le=10, description="hops around it")] = 2,
    limit: Limit = 10,
    cursor: Cursor | None = None,
    workspace_id: Workspace | None = None,
) -> Answer:
    """A node whole, with the nodes and relations around it, nearest first, and warnings when
    it is stale, superseded, archived, or its file changed."""
    from cortex.tools.paging import page_of, read_offset

    offset = read_offset(cursor)
    found = memory.reading.get(
        node_id, depth=depth, limit=limit, offset=offset, workspace=workspace_id
    )
    names = Names(*found.known)
    starts = [whole_json(node, names) for node in found.starts]
    for shown in starts[1:]:
        shown["text"] = shown["text"][:1000]
    page = page_of(found.nodes, found.relations, found.starts, found.total, offset, names)
    lines: list[str] = []
    for node in found.starts:
        lines.append(node_line(node, names, cut=0))
        lines.append(
            f"id {node.id} · created {node.created_at} · updated {node.updated_at} · "
            f"workspace {node.workspace_id}"
            + (f" · tags {', '.join(node.tags)}" if node.tags else "")
            + (f" · path {node.data['path']}" if node.data.get("path") else "")
        )
        extra = further_data(node)
        if extra:
            lines.append(f"data {shorten(json.dumps(extra, ensure_ascii=False), 400)}")
    warnings = [*found.warnings, *names.warnings(found.starts)]
    lines += [f"warning: {warning}" for warning in warnings]
    if found.index is not None and found.index.state != "ready":
        problem = f": {found.index.problem}" if found.index.problem else ""
        lines.append(f"vector index: {found.index.state}{problem}")
    body = [node.text for node in found.starts if node.text]
    head = "\n".join(lines)
    texts = "\n".join(_whole(text, max(40_000 - len(head), 1000)) for text in body)
    text = "\n".join(part for part in (head, texts, joined(page.lines)) if part)
    structured: dict[str, Any] = {
        "node": starts[0],
        "relations": page.relations,
        "nodes": page.nodes,
        "total": found.total,
        "degree": found.degree,
        "truncated": page.truncated,
        "next_cursor": page.next_cursor,
        "warnings": warnings,
        "index": None if found.index is None else found.index.state,
        "index_problem": None if found.index is None else found.index.problem,
        "generation": found.generation,
    }
    if len(starts) > 1:
        structured["starts"] = starts
    return Answer(text + page.footer, structured)


def _whole(text: str, room: int) -> str:
    """The text, or as much as there is room for, saying so."""
    if len(text) <= room:
        return text
    return f"{text[:room]}\n… cut at {room:,} of {len(text):,} characters; cortex://node/ID has all"


@tool(title="Relate memories", sets=("roo", "core"), writes=True, idempotent=True)
def graph_add_relation(
    memory: Memory,
    from_id: NodeRef,
    to_id: NodeRef,
    type: RelationKind,
    weight: Weight = 1.0,
    data: Data | None = None,
    workspace_id: Workspace | None = None,
    idempotency_key: Key | None = None,
) -> Answer:
    """Join two nodes of one workspace; again refreshes the weight. A verb of your own:
    related_to with data {"label": …}."""
    linked = memory.linking.add_relation(
        from_id,
        to_id,
        type,
        weight=weight,
        data=data,
        workspace=workspace_id,
        key=idempotency_key,
    )
    lines = [
        f"{'related' if linked.created else 'refreshed'} {linked.from_id} -{linked.type}-> "
        f"{linked.to_id} ({linked.weight:g})",
        *(f"note: {note}" for note in linked.notes),
    ]
    structured = {
        "id": linked.id,
        "type": linked.type,
        "from_id": linked.from_id,
        "to_id": linked.to_id,
        "weight": linked.weight,
        "created": linked.created,
        "workspace_id": linked.workspace_id,
        "notes": linked.notes,
        "generation": memory.generation(),
    }
    return Answer("\n".join(lines), structured)


@tool(title="Traverse the graph", sets=("roo",), writes=False)
def graph_traverse(
    memory: Memory,
    start_id: NodeRef,
    relation: RelationKinds = (),
    depth: Depth = 3,
    direction: Literal["out", "in", "both"] = "out",
    limit: Annotated[int, Field(ge=1, le=1000)] = 20,
    types: NodeKinds = (),
    cursor: Cursor | None = None,
    derived: Annotated[Flag, "follow derived links too"] = False,
    workspace_id: Workspace | None = None,
) -> Answer:
    """Nodes reached from one over relations of some types, by depth; `types` filters what is
    returned, not what is walked through."""
    from cortex.tools.paging import page_of, read_offset

    offset = read_offset(cursor)
    found = memory.reading.traverse(
        start_id,
        relation,
        depth=depth,
        direction=direction,
        types=types,
        limit=limit,
        offset=offset,
        derived=derived,
        workspace=workspace_id,
    )
    names = Names(*found.known)
    page = page_of(found.nodes, found.relations, (found.start,), found.total, offset, names)
    lines = [f"from {node_line(found.start, names)}", *page.lines]
    structured = {
        "start_id": found.start.id,
        "nodes": page.nodes,
        "relations": page.relations,
        "truncated": page.truncated or found.truncated,
        "total": found.total,
        "next_cursor": page.next_cursor,
        "generation": found.generation,
    }
    return Answer(joined(lines) + page.footer, structured)


@tool(title="Walk a reasoning chain", sets=("roo",), writes=False)
def graph_walk(
    memory: Memory,
    start_id: NodeRef,
    steps: Annotated[int, Field(ge=1, le=100)] = 5,
    direction: Literal["forward", "backward"] = "forward",
    workspace_id: Workspace | None = None,
) -> Answer:
    """Follow how one thing led to the next (leads_to, triggers, resolves, derives_from,
    supports, answers, sequel_to, supersedes), the strongest relation at each step."""
    from cortex.tools.cards import Told, listed

    found = memory.reading.walk(start_id, steps=steps, direction=direction, workspace=workspace_id)
    names = Names(*found.known)
    chain = [_step(relation, node, names) for relation, node in found.path]
    path = fitting(chain, STRUCTURED, Told.measure)
    lines = [each.line for each in chain]
    lines += [f"note: {note}" for note in found.notes]
    return Answer(
        joined(lines, TEXT),
        {
            "path": listed(path),
            "notes": list(found.notes),
            "truncated": len(path) < len(found.path),
            "generation": found.generation,
        },
    )


def _step(relation: Relation | None, node: Node, names: Names) -> Told:
    """A node of the chain, after the relation that led to it, pointing as it is stored."""
    from cortex.tools.cards import Told, node_card, relation_card

    card = node_card(node, names)
    line = f"{names(node.id)} {card.words}"
    if relation is None:
        text = b'{"node":%b,"relation":null}' % card.written
        return Told({"node": card.shown(), "relation": None}, line, text, card.size + 25)
    way = relation_card(relation)
    name = relation.type.value
    arrow = f"-{name}->" if relation.to_id == node.id else f"<-{name}-"
    text = b'{"node":%b,"relation":%b}' % (card.written, way.written)
    size = card.size + way.size + 21
    return Told({"node": card.shown(), "relation": way.shown()}, f"{arrow} {line}", text, size)


@tool(title="Split a task", sets=("roo",), writes=True)
def graph_decompose(
    memory: Memory,
    task_id: NodeRef,
    subtasks: Annotated[Items, 'titles, or objects {"title", "text", "tags"}, in order'],
    workspace_id: Workspace | None = None,
    idempotency_key: Key | None = None,
) -> Answer:
    """Write a task's subtasks in order."""
    made = memory.adding.decompose(task_id, subtasks, workspace=workspace_id, key=idempotency_key)
    lines = [f"decomposed {made.task_id} into {len(made.ids)} subtasks", *made.ids, *made.notes]
    return Answer(
        "\n".join(lines),
        {
            "task_id": made.task_id,
            "ids": made.ids,
            "workspace_id": made.workspace_id,
            "notes": made.notes,
            "generation": memory.generation(),
        },
    )


@tool(title="Update a memory", sets=("roo", "core"), writes=True, idempotent=True)
def graph_update_node(
    memory: Memory,
    node_id: NodeRef,
    title: Text = "",
    text: Text = "",
    tags: Annotated[Texts | None, "replaces the tags"] = None,
    data: Annotated[Data | None, "merged; null removes a key"] = None,
    path: Annotated[Text, "of a fileref that moved"] = "",
    status: StatusKind | None = None,
    pinned: Pinned | None = None,
    cascade: Annotated[Flag, "status also for all below"] = False,
    dry_run: DryRun = False,
    workspace_id: Workspace | None = None,
    idempotency_key: Key | None = None,
) -> Answer:
    """Correct a node in place. When the knowledge itself changed, use graph_supersede.
    status=stale with cascade marks outdated work below; status=active takes it back."""
    from cortex.services.fields import Fields

    done = memory.mutation.update(
        node_id,
        Fields(
            title or None,
            text or None,
            None if tags is None else list(tags),
            path or None,
            pinned,
            data,
        ),
        status=status,
        cascade=cascade,
        dry_run=dry_run,
        workspace=workspace_id,
        key=idempotency_key,
    )
    verb = "would update" if done.dry_run else "updated"
    lines = [f"{verb} {done.id}: {', '.join(done.changed) or 'nothing changed'} ({done.status})"]
    lines += [f"{done.status}: {m['id']} {m['type']} {m['title']}" for m in done.marked]
    lines += [f"note: {note}" for note in done.notes]
    return Answer(
        joined(lines),
        {
            "id": done.id,
            "status": done.status,
            "changed": done.changed,
            "marked": done.marked,
            "marked_total": done.marked_total,
            "dry_run": done.dry_run,
            "notes": done.notes,
            "workspace_id": done.workspace_id,
            "generation": memory.generation(),
        },
    )


@tool(title="Replace a memory", sets=("roo", "core"), writes=True)
def graph_supersede(
    memory: Memory,
    old_id: NodeRef,
    new_data: Annotated[Data | None, "the new node's fields, e.g. text"] = None,
    title: Text = "",
    text: Text = "",
    tags: Annotated[Texts | None, "default: the old tags"] = None,
    cascade: Annotated[Flag, "what is below goes stale instead of moving"] = False,
    dry_run: DryRun = False,
    workspace_id: Workspace | None = None,
    idempotency_key: Key | None = None,
) -> Answer:
    """A decision or fact changed: write the new one in the old one's place. The old one stays,
    stale; searches in its wording lead to the new one. Review `dependents` afterwards."""
    from cortex.services.fields import Fields

    done = memory.mutation.supersede(
        old_id,
        Fields(title or None, text or None, None if tags is None else list(tags), data=new_data),
        cascade=cascade,
        dry_run=dry_run,
        workspace=workspace_id,
        key=idempotency_key,
    )
    verb = "would supersede" if done.dry_run else "superseded"
    lines = [f"{verb} {done.old_id}" + (f" by {done.new_id}" if done.new_id else "")]
    lines += [f"review: {d['id']} {d['type']} {d['title']}" for d in done.dependents]
    lines += [
        f"left with the old one: {item['type']} {item['direction']} {item['id']} {item['title']}"
        for item in done.left
    ]
    lines += [f"stale: {m['id']} {m['type']} {m['title']}" for m in done.marked]
    lines += [f"note: {note}" for note in done.notes]
    return Answer(
        joined(lines),
        {
            "new_id": done.new_id,
            "old_id": done.old_id,
            "status": done.status,
            "left": done.left,
            "dependents": done.dependents,
            "moved": done.moved,
            "marked": done.marked,
            "notes": done.notes,
            "dry_run": done.dry_run,
            "workspace_id": done.workspace_id,
            "generation": memory.generation(),
        },
    )


@tool(title="Delete a memory", sets=("roo",), writes=True, destructive=True)
def graph_delete_node(
    memory: Memory,
    node_id: NodeRef,
    cascade: Annotated[Flag, "with everything it contains"] = False,
    dry_run: DryRun = False,
    workspace_id: Workspace | None = None,
    idempotency_key: Key | None = None,
) -> Answer:
    """Remove a node for good; its children move up unless cascade. Outdated knowledge is
    better superseded."""
    done = memory.mutation.delete(
        node_id, cascade=cascade, dry_run=dry_run, workspace=workspace_id, key=idempotency_key
    )
    verb = "would delete" if done.dry_run else "deleted"
    lines = [
        f"{verb} {len(done.deleted)} nodes, {done.relations} relations; {len(done.moved)} moved up"
    ]
    deleted = fitting(done.deleted, STRUCTURED // 2)
    moved = fitting(done.moved, STRUCTURED // 2)
    return Answer(
        joined(lines + deleted),
        {
            "deleted": deleted,
            "deleted_total": len(done.deleted),
            "moved": moved,
            "moved_total": len(done.moved),
            "relations": done.relations,
            "dry_run": done.dry_run,
            "workspace_id": done.workspace_id,
            "generation": memory.generation(),
        },
    )
