"""Tools that look the graph over: its health, its past, what hangs on what, and how."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field

from cortex.domain.values import Node, Relation
from cortex.tools.arguments import Flag, FromTime, NodeRef, ToTime, Workspace
from cortex.tools.registry import Answer, tool
from cortex.tools.render import (
    STRUCTURED,
    TEXT,
    Names,
    brief_json,
    fitting,
    joined,
    names_of,
    node_line,
    relation_line,
)

if TYPE_CHECKING:
    from cortex.memory import Memory
    from cortex.services.health import Finding
    from cortex.services.past import Changed, Delta
    from cortex.services.routes import Route, Routes

Count = Annotated[int, Field(ge=1, le=20, description="how many paths")]
_OLD = 120  # characters of a value before and after


@tool(title="Health of the memory", sets=("analytics",), writes=False)
def graph_health(memory: Memory, workspace_id: Workspace | None = None) -> Answer:
    """What has come loose: contradictions, stale support, changed files, orphans, duplicates;
    a score, and for each finding the call that mends its first example."""
    health = memory.checkup.health(workspace_id)
    names = names_of(memory, [node.id for each in health.findings for node in each.examples])
    lines = [f"score {health.score:g} of 100, {health.nodes} active nodes"]
    for finding in health.findings:
        lines.append(f"{finding.check.value}: {finding.count} (−{finding.points:g})")
        lines += [f"   {node_line(node, names, cut=0)}" for node in finding.examples]
        lines.append(f"   mend: {finding.mend}")
    if not health.findings:
        lines.append("nothing has come loose")
    return Answer(
        joined(lines),
        {
            "score": health.score,
            "nodes": health.nodes,
            "findings": [_finding_json(each, names) for each in health.findings],
            "workspace_id": health.workspace_id,
            "generation": health.generation,
        },
    )


def _finding_json(finding: Finding, names: Names) -> dict[str, Any]:
    return {
        "check": finding.check.value,
        "count": finding.count,
        "examples": [_brief(node, names) for node in finding.examples],
        "mend": finding.mend,
        "weight": finding.weight,
        "affected": finding.affected,
        "points": finding.points,
    }


@tool(title="What changed", sets=("analytics",), writes=False)
def graph_diff(
    memory: Memory,
    from_time: FromTime,
    to_time: ToTime = "",
    workspace_id: Workspace | None = None,
) -> Answer:
    """What was added, changed and removed between two times, by default until now."""
    diff = memory.past.diff(workspace_id, from_time, to_time or None)
    nodes, relations = diff.nodes, diff.relations
    ids = [node.id for node in _nodes_of(nodes)]
    ids += [end for each in _nodes_of(relations) for end in (each.from_id, each.to_id)]
    names = names_of(memory, list(dict.fromkeys(ids))[:1000])
    parts: dict[str, tuple[list[dict[str, Any]], list[str], int]] = {}
    for name, items in (
        ("added", (*nodes.added, *relations.added)),
        ("changed", (*nodes.changed, *relations.changed)),
        ("removed", (*nodes.removed, *relations.removed)),
    ):
        parts[name] = _part(items, names)
    totals = {name: total for name, (_, _, total) in parts.items()}
    lines = [", ".join(f"{total} {name}" for name, total in totals.items())]
    for name, (_, said, total) in parts.items():
        lines += [f"{name} {line}" for line in said]
        if len(said) < total:
            lines.append(f"… {total - len(said)} more {name}; a narrower window shows them")
    return Answer(
        joined(lines),
        {
            **{name: shown for name, (shown, _, _) in parts.items()},
            "totals": totals,
            "truncated": any(len(shown) < total for shown, _, total in parts.values()),
            "from_seq": diff.from_seq,
            "to_seq": diff.to_seq,
            "workspace_id": diff.workspace_id,
            "generation": diff.generation,
        },
    )


def _nodes_of(delta: Delta[Any]) -> list[Any]:
    return [*delta.added, *(each.after for each in delta.changed), *delta.removed]


def _part(items: Sequence[Any], names: Names) -> tuple[list[dict[str, Any]], list[str], int]:
    """One list as JSON and as lines, each within a third of its budget; and how many."""
    few = items[:400]
    shown = fitting((_item_json(item, names) for item in few), STRUCTURED // 3)
    lines = fitting((_item_line(item, names) for item in few), TEXT // 3 - 120, len)
    both = min(len(shown), len(lines))
    return shown[:both], lines[:both], len(items)


def _item_json(item: Node | Relation | Changed[Any], names: Names) -> dict[str, Any]:
    if not isinstance(item, tuple):
        fields = {name: [_cut(old), _cut(new)] for name, (old, new) in item.fields.items()}
        return {**_item_json(item.after, names), "fields": fields}
    if isinstance(item, Relation):
        return {
            "entity": "relation",
            "id": item.id,
            "type": item.type.value,
            "from_id": item.from_id,
            "to_id": item.to_id,
        }
    return {"entity": "node", **_brief(item, names)}


def _item_line(item: Node | Relation | Changed[Any], names: Names) -> str:
    if not isinstance(item, tuple):
        said = (f"{name}: {_cut(old)} → {_cut(new)}" for name, (old, new) in item.fields.items()
                if name != "updated_at")  # fmt: skip
        return f"{_item_line(item.after, names)}\n   " + "; ".join(said)
    if isinstance(item, Relation):
        return relation_line(item, names)
    return node_line(item, names, cut=80)


def _cut(value: Any) -> Any:
    """The value itself where it is short, else the start of its text."""
    text = value if isinstance(value, str) else repr(value)
    if len(text) <= _OLD:
        return value
    return " ".join(text[:_OLD].split()) + "…"


def _brief(node: Node, names: Names) -> dict[str, Any]:
    return {**brief_json(node, 100, names), "type": node.type.value}


@tool(title="What hangs on a node", sets=("analytics",), writes=False)
def graph_impact(memory: Memory, node_id: NodeRef, workspace_id: Workspace | None = None) -> Answer:
    """Before you supersede: what would go stale below the node, and what would lose its only
    active support."""
    found = memory.impacts.impact(node_id, workspace=workspace_id)
    pairs = (*found.stale, *found.unsupported)
    names = names_of(memory, [found.node.id, *dict.fromkeys(node.id for node, _ in pairs)])
    lists = {
        "stale": (found.stale, found.stale_total),
        "unsupported": (found.unsupported, found.unsupported_total),
    }
    lines = [node_line(found.node, names)]
    structured: dict[str, Any] = {"node": _brief(found.node, names)}
    cut = False
    for name, (reached, total) in lists.items():
        shown = fitting(
            ({**_brief(node, names), "depth": depth} for node, depth in reached), STRUCTURED // 2
        )
        said = fitting(
            (f"{depth} {node_line(node, names, cut=0)}" for node, depth in reached),
            TEXT // 2 - 200,
            len,
        )
        both = min(len(shown), len(said))
        structured[name], said = shown[:both], said[:both]
        structured[f"{name}_total"] = total
        cut = cut or both < total
        lines += [f"{name}: {total}", *said]
        if len(said) < total:
            lines.append(f"… {total - len(said)} more")
    structured["truncated"] = found.truncated or cut
    structured["generation"] = found.generation
    return Answer(joined(lines), structured)


@tool(title="Paths between two nodes", sets=("analytics",), writes=False)
def graph_path(
    memory: Memory,
    from_id: NodeRef,
    to_id: NodeRef,
    k: Count = 3,
    include_derived: Annotated[Flag, "also neighbour links"] = False,
    workspace_id: Workspace | None = None,
) -> Answer:
    """How two nodes hang together: the shortest paths, relations walked both ways. A relation's
    length is 2 − weight. None leads through a session."""
    found = memory.routing.paths(from_id, to_id, k, derived=include_derived, workspace=workspace_id)
    return paths_answer(memory, found, "graph_add_relation makes one")


def paths_answer(memory: Memory, found: Routes, hint: str) -> Answer:
    """Paths, the shortest first; `hint` says what makes one where there is none."""
    names = names_of(
        memory, list(dict.fromkeys(node.id for path in found.paths for node in path.nodes))
    )
    paths = fitting([_path_json(path, names) for path in found.paths], STRUCTURED)
    lines = fitting(
        [f"length {path.length:g}: {_path_text(path, names)}" for path in found.paths],
        TEXT - 100,
        len,
    )
    paths = paths[: len(lines)]
    lines = lines[: len(paths)]
    if not found.paths:
        lines = [f"no path but through the session; {hint}"]
    return Answer(
        joined(lines),
        {
            "paths": paths,
            "total": len(found.paths),
            "truncated": found.truncated or len(paths) < len(found.paths),
            "generation": found.generation,
        },
    )


def _path_json(path: Route, names: Names) -> dict[str, Any]:
    relations = [
        {
            "id": each.id,
            "type": each.type.value,
            "from_id": each.from_id,
            "to_id": each.to_id,
            "weight": each.weight,
        }
        for each in path.relations
    ]
    nodes = [_brief(node, names) for node in path.nodes]
    return {"nodes": nodes, "relations": relations, "length": path.length}


def _path_text(path: Route, names: Names) -> str:
    parts = [node_line(path.nodes[0], names, cut=0)]
    for here, relation, node in zip(path.nodes, path.relations, path.nodes[1:], strict=False):
        name = relation.type.value
        arrow = f"-{name}->" if relation.from_id == here.id else f"<-{name}-"
        parts.append(f"\n   {arrow} {node_line(node, names, cut=0)}")
    return "".join(parts)
