"""Tools of a conversation: begin it, and ask what memory has for it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Final

from pydantic import Field

from cortex.domain.values import shorten
from cortex.tools.arguments import Key, Text, Workspace
from cortex.tools.hybrid import SETS
from cortex.tools.registry import Answer, tool
from cortex.tools.render import brief_json, fitting, joined, mark, names_of, size

if TYPE_CHECKING:
    from cortex.memory import Memory

_NO_SEARCH: Final[dict[str, Any]] = {"total": 0, "degraded": None, "pending": 0, "notes": []}


@tool(title="Begin a conversation", sets=SETS, writes=True)
def session_start(
    memory: Memory,
    title: Text,
    workspace_id: Workspace | None = None,
    idempotency_key: Key | None = None,
) -> Answer:
    """Make a session for this conversation: what store_memory keeps from now on goes below it."""
    started = memory.hybrid.sessions.start(title, workspace=workspace_id, key=idempotency_key)
    memory.hybrid.following.start()
    structured = {
        "session_id": started.session_id,
        "title": started.title,
        "workspace_id": started.workspace_id,
        "parent_id": started.parent_id,
        "generation": memory.generation(),
    }
    return Answer(f"session {started.session_id} {started.title}", structured)


@tool(title="Context for the conversation", sets=SETS, writes=False)
def session_context(
    memory: Memory,
    query: Annotated[Text, "what the conversation is about; empty: what is newest"] = "",
    max_chars: Annotated[int, Field(ge=500, le=24_000, description="ceiling of the reply")] = 4000,
    workspace_id: Workspace | None = None,
) -> Answer:
    """What memory has for the present question, each hit with its context, within a budget."""
    from cortex.tools.hits import found_answer

    seen = memory.hybrid.sessions.context(query, workspace=workspace_id)
    names = names_of(memory, [node.id for node in seen.recent])
    structured: dict[str, Any] = {
        "session": None if seen.session is None else brief_json(seen.session, names=names),
        "anchor": None if seen.anchor is None else brief_json(seen.anchor, names=names),
        "hits": [],
        "context": [],
        "files": [],
        "recent": [],
        "truncated": False,
        **_NO_SEARCH,
        "empty": not seen.recent,
        "generation": seen.generation,
    }
    lines = []
    if seen.session is not None:
        lines.append(f"session {names(seen.session.id)} {shorten(seen.session.title, 80)}")
    if seen.found is not None:
        answer = found_answer(memory, seen.found, full=True)
        structured |= {name: answer.structured[name] for name in (*_NO_SEARCH, "empty")}
        for name, share in (("hits", 0.6), ("context", 0.8), ("files", 1.0)):
            room = int((max_chars - size(structured) - 60) * share)
            structured[name] = fitting(answer.structured[name], room)
            structured["truncated"] |= len(structured[name]) < len(answer.structured[name])
        lines += answer.text.split("\n")
    recent = [{"type": node.type.value, **brief_json(node, 120, names)} for node in seen.recent]
    structured["recent"] = fitting(recent, max_chars - size(structured) - 20)
    lines += [
        f"recent: {names(node.id)} {node.type} {mark(node, names)}{shorten(node.title, 100)}"
        for node in seen.recent
    ]
    return Answer(joined(lines or ["nothing is remembered here yet"], max_chars), structured)
