"""Tools that measure the whole graph."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field

from cortex.tools.arguments import FromTime, NodeKinds, RelationKinds, ToTime, Workspace
from cortex.tools.registry import Answer, tool
from cortex.tools.render import STRUCTURED, brief_json, fitting, joined, names_of, node_line

if TYPE_CHECKING:
    from cortex.memory import Memory
    from cortex.services.measures import Community

Measure = Literal[
    "pagerank",
    "degree",
    "in_degree",
    "out_degree",
    "betweenness",
    "closeness",
    "harmonic",
    "eigenvector",
    "katz",
    "hubs",
    "authorities",
    "core",
]


@tool(title="Central memories", sets=("analytics",), writes=False)
def graph_centrality(
    memory: Memory,
    measure: Measure = "pagerank",
    relations: RelationKinds = (),
    node_types: NodeKinds = (),
    from_time: FromTime = "",
    to_time: ToTime = "",
    limit: Annotated[int, Field(ge=1, le=100)] = 20,
    workspace_id: Workspace | None = None,
) -> Answer:
    """What much hangs on: the most central active nodes."""
    found = memory.measures.centrality(
        measure,
        relations=relations,
        node_types=node_types,
        from_time=from_time or None,
        to_time=to_time or None,
        limit=limit,
        workspace=workspace_id,
    )
    names = names_of(memory, [node.id for node, _ in found.nodes])
    nodes = [
        {"score": round(score, 6), "type": node.type.value, **brief_json(node, names=names)}
        for node, score in found.nodes
    ]
    kind = "exact" if found.exact else "approximate"
    if found.error_bound is not None:
        kind += f", within {found.error_bound:.2g}"
    lines = [f"{measure} of {found.total} nodes ({kind}; {found.source})"] if found.nodes else []
    lines += [f"{score:.4g} {node_line(node, names, cut=0)}" for node, score in found.nodes]
    return Answer(
        joined(lines or ["no nodes to measure"]),
        {
            "nodes": fitting(nodes, STRUCTURED),
            "exact": found.exact,
            "error_bound": found.error_bound,
            "source": found.source,
            "total": found.total,
            "truncated": found.total > len(nodes),
            "generation": found.generation,
        },
    )


@tool(title="Communities", sets=("analytics",), writes=False)
def graph_communities(
    memory: Memory,
    relations: RelationKinds = (),
    node_types: NodeKinds = (),
    limit: Annotated[int, Field(ge=1, le=50)] = 10,
    workspace_id: Workspace | None = None,
) -> Answer:
    """What belongs together: the largest groups of memories, each with its best joined members."""
    found = memory.measures.communities(
        relations=relations, node_types=node_types, limit=limit, workspace=workspace_id
    )
    ids = [node.id for each in found.communities for node in each.members]
    names = names_of(memory, ids)
    groups: list[dict[str, Any]] = [
        {
            "id": str(each.number),
            "size": each.size,
            "label": _label(each),
            "members": [
                {"type": node.type.value, **brief_json(node, names=names)} for node in each.members
            ],
        }
        for each in found.communities
    ]
    lines = [f"{found.total} communities, modularity {found.modularity:.3f} ({found.source})"]
    for each in found.communities:
        lines.append(f"{each.number}: {each.size} nodes, {_label(each)}")
        lines += [f"   {node_line(node, names, cut=0)}" for node in each.members]
    shown = fitting(groups, STRUCTURED)
    return Answer(
        joined(lines),
        {
            "communities": shown,
            "modularity": found.modularity,
            "total": found.total,
            "source": found.source,
            "truncated": found.total > len(shown),
            "generation": found.generation,
        },
    )


def _label(community: Community) -> str:
    """Its best joined member's title."""
    return community.members[0].title if community.members else ""
