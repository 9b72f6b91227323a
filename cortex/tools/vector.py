"""Tools that store and search by meaning."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from cortex.domain.taxonomy import NodeType
from cortex.tools.arguments import (
    Data,
    Flag,
    FromTime,
    Key,
    LayerKind,
    NodeKind,
    NodeKinds,
    NodeRef,
    Text,
    Texts,
    ToTime,
    Workspace,
)
from cortex.tools.graph import added_answer
from cortex.tools.registry import Answer, tool

if TYPE_CHECKING:
    from cortex.memory import Memory

TopK = Annotated[int, Field(ge=1, le=100)]
Query = Annotated[Text, "what you want to know, in words"]
Everywhere = Annotated[Workspace | None, "default: everywhere, yours first"]


@tool(title="Store a text", sets=("roo",), writes=True)
def vector_store(
    memory: Memory,
    text: Text,
    metadata: Data | None = None,
    type: NodeKind = NodeType.NOTE,
    title: Text = "",
    tags: Texts = (),
    parent_id: NodeRef | None = None,
    workspace_id: Workspace | None = None,
    idempotency_key: Key | None = None,
) -> Answer:
    """Remember a text that is found again by meaning."""
    from cortex.services.fields import Fields

    memory.search.require_model()
    added = memory.adding.add_node(
        type,
        Fields(title or None, text, list(tags) or None, data=metadata),
        parent=parent_id,
        workspace=workspace_id,
        key=idempotency_key,
    )
    return added_answer(memory, added)


@tool(title="Search by meaning", sets=("roo",), writes=False)
def vector_search(
    memory: Memory,
    query: Query,
    top_k: TopK = 10,
    workspace_id: Everywhere = None,
    time_from: FromTime = "",
    time_to: ToTime = "",
    types: NodeKinds = (),
    layer: LayerKind | None = None,
    tags: Annotated[Texts, "must have all"] = (),
    include_stale: Flag = False,
) -> Answer:
    """Memories nearest in meaning, with exact filters. For an answer with context and files use
    graph_search."""
    from cortex.tools.hits import found_answer

    found = memory.search.vector_search(
        query,
        top_k=top_k,
        workspace=workspace_id,
        time_from=time_from or None,
        time_to=time_to or None,
        types=types,
        layer=layer,
        tags=tags,
        include_stale=include_stale,
    )
    return found_answer(memory, found)


@tool(title="Search memory", sets=("roo", "core"), writes=False)
def graph_search(
    memory: Memory,
    query: Query,
    top_k: TopK = 10,
    workspace_id: Everywhere = None,
    explain: Annotated[Flag, "show ranks, scores and what was left out"] = False,
) -> Answer:
    """Start here: what is known about something, by meaning and keywords, with each hit's
    context (parents, facts, decisions) and the file:line to read next. After a change, write
    back what you learnt."""
    from cortex.tools.hits import found_answer

    found = memory.search.graph_search(query, top_k=top_k, workspace=workspace_id, explain=explain)
    return found_answer(memory, found, full=True, explain=explain)
