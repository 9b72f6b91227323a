"""The tool that takes changes back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field

from cortex.tools.arguments import Flag, Key, Text, Workspace
from cortex.tools.registry import Answer, tool
from cortex.tools.render import STRUCTURED, fitting, joined, names_of

if TYPE_CHECKING:
    from cortex.memory import Memory
    from cortex.services.keeping.undoing import Undone

ANYONE = "*"


@tool(title="Undo", sets=("care",), writes=True)
def memory_undo(
    memory: Memory,
    count: Annotated[int, Field(ge=1, le=1000, description="how many writes")] = 1,
    tx: Annotated[int | None, Field(ge=1, description="this one alone")] = None,
    redo: Annotated[Flag, "take back undos instead"] = False,
    actor: Annotated[Text, "default: your own client's; * anyone's"] = "",
    dry_run: Annotated[Flag, "only say what would change"] = False,
    workspace_id: Workspace | None = None,
    idempotency_key: Key | None = None,
) -> Answer:
    """Take back the last writes, newest first, all or none. A later change of the same nodes is
    never lost: it is refused then, and named."""
    undoing = memory.undoing
    done = undoing.undo(
        count,
        tx=tx,
        redo=redo,
        actor="" if tx is not None or actor == ANYONE else actor or undoing.client,
        dry_run=dry_run,
        workspace=workspace_id,
        key=idempotency_key,
    )
    return undone_answer(memory, done)


def undone_answer(memory: Memory, done: Undone) -> Answer:
    """What was taken back, as text and as JSON."""
    names = names_of(memory, [node["id"] for node in done.nodes])
    verb = ("would take" if done.dry_run else "took") + (" undo" if done.redo else "") + " back"
    lines = [
        f"{verb} {step['tx']}: {step['changes']} changes by {step['actor']} at {step['at']}"
        for step in done.undone
    ]
    if done.tx is not None and not done.redo:
        lines.append(f"this is transaction {done.tx}; redo takes it back")
    lines.append(f"nodes: {done.nodes_total}, relations: {done.relations}")
    lines += [_line(node, names(node["id"])) for node in done.nodes]
    lines += [f"note: {note}" for note in done.notes]
    steps = fitting(done.undone, STRUCTURED // 2)
    nodes = fitting(done.nodes, STRUCTURED // 2)
    return Answer(
        joined(lines),
        {
            "tx": done.tx,
            "undone": steps,
            "undone_total": len(done.undone),
            "nodes": nodes,
            "nodes_total": done.nodes_total,
            "relations": done.relations,
            "truncated": len(nodes) < done.nodes_total or len(steps) < len(done.undone),
            "redo": done.redo,
            "dry_run": done.dry_run,
            "notes": done.notes,
            "reach": done.reach,
            "workspace_id": done.workspace_id,
            "generation": memory.generation(),
        },
    )


def _line(node: Mapping[str, Any], shown: str) -> str:
    return f"{node['op']}: {shown} {node['type']} {node['title']}"
