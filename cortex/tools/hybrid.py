"""Tools of the hybrid memory: store, search, strengthen, forget, relate."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

from pydantic import Field

from cortex.domain.taxonomy import RelationType
from cortex.tools.arguments import (
    Data,
    Flag,
    Key,
    NodeRef,
    RelationKind,
    Text,
    Texts,
    Weight,
    Workspace,
)
from cortex.tools.registry import Answer, tool
from cortex.tools.render import (
    STRUCTURED,
    fitting,
    joined,
    names_of,
    node_line,
)

if TYPE_CHECKING:
    from cortex.domain.values import Relation
    from cortex.memory import Memory
    from cortex.services.waves import Strengthened

SETS: Final = ("hybrid",)
Count = Annotated[int, Field(ge=1, le=100)]
Query = Annotated[Text, "what you want to know, in words"]
Everywhere = Annotated[Workspace | None, "default: everywhere, yours first"]


@tool(title="Store a memory", sets=SETS, writes=True)
def store_memory(
    memory: Memory,
    text: Text,
    tags: Texts = (),
    importance: Annotated[float, Field(ge=0, le=1, description="how long it stays strong")] = 0.5,
    metadata: Data | None = None,
    workspace_id: Workspace | None = None,
    idempotency_key: Key | None = None,
) -> Answer:
    """Remember a text. Its entities and its nearest neighbours are linked in the background; a
    memory that says nearly the same is strengthened and named in `similar`."""
    memory.search.require_model()
    stored = memory.hybrid.remembering.store(
        text,
        tags=tags,
        importance=importance,
        metadata=metadata,
        workspace=workspace_id,
        key=idempotency_key,
    )
    memory.hybrid.following.start()
    lines = [f"stored {stored.id} in {stored.workspace_id}: {stored.title}"]
    lines += [
        f"similar, strengthened: {item['id']} {item['title']} ({item['likeness']:.0%})"
        for item in stored.similar
    ]
    structured = {
        "id": stored.id,
        "type": stored.type,
        "title": stored.title,
        "workspace_id": stored.workspace_id,
        "parent_id": stored.parent_id,
        "amplitude": round(stored.amplitude, 4),
        "similar": stored.similar,
        "reinforced": stored.reinforced,
        "notes": stored.notes,
        "generation": memory.generation(),
    }
    return Answer(joined(lines), structured)


@tool(title="Search memories", sets=SETS, writes=False)
def search(
    memory: Memory,
    query: Query,
    limit: Count = 10,
    explain: Annotated[Flag, "show ranks, scores and what was left out"] = False,
    workspace_id: Everywhere = None,
) -> Answer:
    """By meaning, keywords and time together."""
    from cortex.tools.hits import found_answer

    found = memory.hybrid.search(query, limit, workspace=workspace_id)
    return found_answer(memory, found, explain=explain)


@tool(title="Search by meaning alone", sets=SETS, writes=False)
def search_semantic(
    memory: Memory, query: Query, limit: Count = 10, workspace_id: Everywhere = None
) -> Answer:
    """Nearest in meaning; the score is the cosine."""
    from cortex.tools.hits import found_answer

    found = memory.search.vector_search(query, top_k=limit, workspace=workspace_id)
    return found_answer(memory, found)


@tool(title="Search by keyword alone", sets=SETS, writes=False)
def search_keyword(
    memory: Memory, query: Query, limit: Count = 10, workspace_id: Everywhere = None
) -> Answer:
    """By the words themselves (BM25): names, paths, identifiers."""
    from cortex.tools.hits import found_answer

    found = memory.search.keyword_search(query, top_k=limit, workspace=workspace_id)
    return found_answer(memory, found)


@tool(title="Search recent memories", sets=SETS, writes=False)
def search_recent(
    memory: Memory,
    query: Annotated[Text, "empty: all of the window"] = "",
    hours: Annotated[float, Field(gt=0, le=87840, description="how far back")] = 24,
    limit: Count = 10,
    workspace_id: Everywhere = None,
) -> Answer:
    """The last hours: relevance, halved with each half of the window, times up to 2 for what is
    often opened."""
    from cortex.tools.hits import found_answer

    found = memory.hybrid.recent.search(query, hours, limit, workspace=workspace_id)
    return found_answer(memory, found)


@tool(title="Forget a memory", sets=SETS, writes=True, destructive=True)
def forget(
    memory: Memory,
    node_id: NodeRef,
    mode: Annotated[
        Literal["decay", "archive", "delete"], "halve its strength, hide it, or remove it"
    ] = "decay",
    workspace_id: Workspace | None = None,
    idempotency_key: Key | None = None,
) -> Answer:
    """Let a memory fade, archive it, or delete it; the answer says how to have it back."""
    gone = memory.hybrid.forgetting.forget(
        node_id, mode, workspace=workspace_id, key=idempotency_key
    )
    strong = "" if gone.strength is None else f", strength {gone.strength:.2f}"
    lines = [f"{gone.mode}: {gone.id} {gone.title}, {gone.status}{strong}", gone.back]
    if gone.moved:
        lines.append(f"{len(gone.moved)} children moved up")
    lines += [f"note: {note}" for note in gone.notes]
    structured = {
        "id": gone.id,
        "mode": gone.mode,
        "status": gone.status,
        "strength": gone.strength,
        "moved": fitting(gone.moved, STRUCTURED),
        "back": gone.back,
        "workspace_id": gone.workspace_id,
        "notes": gone.notes,
        "generation": memory.generation(),
    }
    return Answer(joined(lines), structured)


@tool(title="Strengthen a memory", sets=SETS, writes=True)
def boost(
    memory: Memory,
    node_id: NodeRef,
    amount: Annotated[float, Field(gt=0, le=10)] = 0.5,
    workspace_id: Workspace | None = None,
    idempotency_key: Key | None = None,
) -> Answer:
    """Add to a memory's amplitude (up to 10): it comes earlier on the desktop and is archived
    later."""
    done = memory.hybrid.waves.boost(node_id, amount, workspace=workspace_id, key=idempotency_key)
    return _wave_answer(memory, done)


def _wave_answer(memory: Memory, done: Strengthened) -> Answer:
    lines = [f"{done.id}: strength {done.strength_before:.2f} → {done.strength:.2f}"]
    lines += [f"note: {note}" for note in done.notes]
    structured = {
        "id": done.id,
        "amplitude": round(done.amplitude, 6),
        "strength": round(done.strength, 6),
        "strength_before": round(done.strength_before, 6),
        "workspace_id": done.workspace_id,
        "notes": done.notes,
        "generation": memory.generation(),
    }
    return Answer("\n".join(lines), structured)


@tool(title="Relate two memories", sets=SETS, writes=True, idempotent=True)
def relate(
    memory: Memory,
    from_id: NodeRef,
    to_id: NodeRef,
    type: RelationKind = RelationType.RELATED_TO,
    weight: Weight = 1.0,
    workspace_id: Workspace | None = None,
    idempotency_key: Key | None = None,
) -> Answer:
    """Join two memories. A contradiction records its interference and changes neither."""
    linked = memory.hybrid.relating.relate(
        from_id, to_id, type, weight=weight, workspace=workspace_id, key=idempotency_key
    )
    done = "related" if linked.created else "refreshed"
    lines = [f"{done} {linked.from_id} -{linked.type}-> {linked.to_id} ({linked.weight:g})"]
    lines += [f"note: {note}" for note in linked.notes]
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


@tool(title="Find related memories", sets=SETS, writes=False)
def find_related(
    memory: Memory,
    node_id: NodeRef,
    depth: Annotated[int, Field(ge=1, le=5)] = 2,
    limit: Annotated[int, Field(ge=1, le=200)] = 30,
    include_derived: Annotated[Flag, "also over neighbour links"] = False,
    workspace_id: Workspace | None = None,
) -> Answer:
    """What is joined to a memory over relations of any type, either way."""
    from cortex.services.reading import shown
    from cortex.tools.paging import page_of

    found = memory.hybrid.relating.related(
        node_id, depth=depth, limit=limit, derived=include_derived, workspace=workspace_id
    )
    names = names_of(
        memory, [node.id for node in shown((found.start,), [node for node, _ in found.nodes])]
    )
    page = page_of(found.nodes, found.relations, (found.start,), found.total, 0, names, _derived)
    notes = []
    if found.neighbours:
        notes.append(f"{found.neighbours} neighbours by likeness: include_derived shows them")
    lines = [node_line(found.start, names), *(f"note: {note}" for note in notes), *page.lines]
    structured: dict[str, Any] = {
        "start_id": found.start.id,
        "nodes": page.nodes,
        "relations": page.relations,
        "total": found.total,
        "truncated": page.truncated or found.truncated,
        "notes": notes,
        "generation": found.generation,
    }
    return Answer(joined(lines), structured)


def _derived(relation: Relation) -> dict[str, Any]:
    return {"derived": relation.derived}


@tool(title="Paths between memories", sets=SETS, writes=False)
def get_path(
    memory: Memory,
    from_id: NodeRef,
    to_id: NodeRef,
    k: Annotated[int, Field(ge=1, le=20, description="how many paths")] = 3,
    include_derived: Annotated[Flag, "also over neighbour links"] = False,
    workspace_id: Workspace | None = None,
) -> Answer:
    """How two memories hang together: the shortest paths, relations walked both ways."""
    from cortex.tools.analytics import paths_answer

    found = memory.routing.paths(from_id, to_id, k, derived=include_derived, workspace=workspace_id)
    return paths_answer(memory, found, "relate makes one")
