"""The tool that consolidates a memory: dream.

What each step does, with its law and source: `cortex.domain.dreams`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

from cortex.domain.values import shorten
from cortex.tools.arguments import Key, Workspace
from cortex.tools.registry import Answer, tool
from cortex.tools.render import STRUCTURED, Names, fitting, joined, names_of

if TYPE_CHECKING:
    from cortex.memory import Memory
    from cortex.services.dreaming.dreaming import Dreamt

_LINES: Final = 60


@tool(title="Dream", sets=("hybrid",), writes=True, idempotent=True)
def dream(
    memory: Memory,
    mode: Annotated[Literal["plan", "apply"], "plan lists the changes, apply makes them"] = "plan",
    depth: Annotated[
        Literal["lite", "deep"],
        "lite: waves of the last week's memories; deep: of all, and patterns, archiving, links",
    ] = "lite",
    workspace_id: Workspace | None = None,
    idempotency_key: Key | None = None,
) -> Answer:
    """Consolidate: strengthen what belongs together, lengthen what proved itself, bundle
    clusters into patterns, archive what is faint. Deletes nothing; a second apply changes
    nothing; memory_undo takes it back."""
    if depth == "deep":  # what was written a moment ago is waited for, as a search does
        memory.indexing.wait(memory.engine.workspace(workspace_id), memory.settings.search_wait)
    done = memory.dreaming.dream(mode, depth, workspace=workspace_id, key=idempotency_key)
    return dream_answer(memory, done)


def dream_answer(memory: Memory, done: Dreamt) -> Answer:
    """A dream as text and as JSON; the changes as far as they fit."""
    shown = fitting(done.changes, STRUCTURED - 6000)
    worst = fitting(done.pairs["worst"], 4000)
    structured = {
        **whole_json(memory, done),
        "changes": shown,
        "truncated": len(shown) < done.total,
        "pairs": {**done.pairs, "worst": worst},
    }
    return Answer(joined(_lines(memory, done)), structured)


def whole_json(memory: Memory, done: Dreamt) -> dict[str, Any]:
    """Everything that a dream says, all changes with it."""
    return {
        "mode": done.mode,
        "depth": done.depth,
        "workspace_id": done.workspace_id,
        "tx": done.tx,
        "memories": done.memories,
        "replayed": done.replayed,
        "linked": done.linked,
        "communities": done.communities,
        "steps": done.steps,
        "changes": done.changes,
        "total": done.total,
        "truncated": len(done.changes) < done.total,
        "pairs": done.pairs,
        "order_parameter": done.order,
        "notes": done.notes,
        "generation": memory.generation(),
    }


def _lines(memory: Memory, done: Dreamt) -> list[str]:
    verb = "changed" if done.mode == "apply" else "would change"
    parts = [f"{step} {count}" for step, count in done.steps.items() if count]
    lines = [
        f"{done.workspace_id}, {done.depth}: {done.memories} memories, {done.replayed} replayed, "
        f"{done.linked} linked in {done.communities} communities",
        f"{verb} {done.total}: {', '.join(parts)}" if parts else f"{verb} nothing",
        f"pairs: {done.pairs['constructive']} constructive, {done.pairs['destructive']} "
        f"destructive; order R {done.order['before']:.3f} → {done.order['after']:.3f}",
    ]
    if done.tx is not None:
        lines.append(f"this is transaction {done.tx}; memory_undo takes it back")
    lines += [f"note: {note}" for note in done.notes]
    first = done.changes[:_LINES]
    ids = [each for change in first for each in _ids(change)]
    names = names_of(memory, list(dict.fromkeys(ids)))
    lines += [_line(change, names) for change in first]
    if done.total > len(first):
        lines.append(f"… {done.total - len(first)} more changes; cortex dream --json lists all")
    return lines


def _ids(change: dict[str, Any]) -> list[str]:
    if "node_id" in change:
        return [change["node_id"]]
    return [change["relation"]["from_id"], change["relation"]["to_id"]]


def _line(change: dict[str, Any], names: Names) -> str:
    if "node_id" in change:
        subject = names(change["node_id"])
    else:
        ends = change["relation"]
        subject = f"{names(ends['from_id'])} -{ends['type']}-> {names(ends['to_id'])}"
    before, after = _brief(change["before"]), _brief(change["after"])
    return f"{change['step']}: {subject} {before} → {after}: {change['reason']}"


def _brief(value: Any) -> str:
    if value is None:
        return "nothing"
    if isinstance(value, float):
        return f"{value:.3g}"
    if isinstance(value, dict) and "half_life" in value:
        return f"{value['half_life']:g} h"
    if isinstance(value, dict):
        return repr(shorten(str(value.get("title") or value.get("text") or value), 80))
    return str(value)
