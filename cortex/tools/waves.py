"""Tools that look at a memory as a whole: status and observe.

Each number with its definition and range: `cortex.services.hybrid.observing`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from cortex.domain.values import Node, shorten
from cortex.tools.arguments import Workspace
from cortex.tools.registry import Answer, tool
from cortex.tools.render import STRUCTURED, Names, brief_json, fitting, joined, names_of, node_line

if TYPE_CHECKING:
    from cortex.memory import Memory
    from cortex.services.hybrid.observing import Observation, State

_SETS: Final = ("hybrid",)
_BARS: Final = "▁▂▃▄▅▆▇█"


def sparkline(counts: Sequence[float]) -> str:
    """One bar a number, the highest for the greatest; a blank where there is nothing."""
    top = max(counts, default=0)
    if top <= 0:
        return " " * len(counts)
    scale = len(_BARS) - 1
    return "".join(_BARS[round(each / top * scale)] if each else " " for each in counts)


@tool(title="Status of the memory", sets=_SETS, writes=False)
def status(memory: Memory, workspace_id: Workspace | None = None) -> Answer:
    """How many memories there are, how their waves stand (order parameter R, integration Φ,
    differentiation Ξ, each in [0, 1]), and whether the index is up to date."""
    state = memory.hybrid.observing.status(workspace_id)
    return Answer(joined(_status_lines(state)), _status_json(state))


def _status_json(state: State) -> dict[str, Any]:
    seen = state.coherence
    return {
        "workspace_id": state.workspace_id,
        "memories": state.memories,
        "statuses": state.statuses,
        "waves": {
            "order_parameter": round(seen.order_parameter, 6),
            "integration": round(seen.integration, 6),
            "differentiation": round(seen.differentiation, 6),
            "communities": seen.communities,
            "components": seen.parts,
            "linked": len(seen.keys),
            "unlinked": state.unlinked,
            "links": seen.links,
            "as_of": {"generation": seen.generation.seq, "at": seen.at},
        },
        "neighbours": {"behind": state.behind, "problem": state.problem},
        "index": state.index,
        "generation": state.generation,
    }


def _status_lines(state: State) -> list[str]:
    seen, index = state.coherence, state.index
    age = state.generation - seen.generation.seq
    lines = [
        f"workspace {state.workspace_id}: {state.memories} memories, generation {state.generation}",
        f"waves: order R {seen.order_parameter:.3f}, integration Φ {seen.integration:.3f}, "
        f"differentiation Ξ {seen.differentiation:.3f}"
        + (f", as of {age} changes ago" if age else ""),
        f"neighbour links: {seen.links} between {len(seen.keys)} memories, "
        f"{seen.communities} communities, {seen.parts} components"
        + (f"; {state.behind} memories to look at" if state.behind else ""),
        f"vectors: {index['ready']} ready, {index['pending']} pending, {index['failed']} failed",
    ]
    problems = dict.fromkeys((state.problem, index.get("problem")))
    return lines + [f"problem: {each}" for each in problems if each]


@tool(title="Observe the memory", sets=_SETS, writes=False)
def observe(memory: Memory, workspace_id: Workspace | None = None) -> Answer:
    """Patterns: strengths and phases as histograms, clusters, what strengthened lately, what
    fades, which memories contradict each other."""
    seen = memory.hybrid.observing.observe(workspace_id)
    return observed(memory, seen)


def observed(memory: Memory, seen: Observation) -> Answer:
    """An observation as text and as JSON."""
    from cortex.services.hybrid.observing import STRENGTHS

    nodes: list[Node] = [node for each in seen.clusters for node in each.members]
    nodes += [node for node, _ in (*seen.strengthened, *seen.fading)]
    nodes += [node for each in seen.conflicts for node in (each.one, each.other)]
    names = names_of(memory, list(dict.fromkeys(node.id for node in nodes)))
    structured = _status_json(seen.state) | {
        "strength": {
            "mean": round(seen.mean_strength, 4),
            "mean_signal": round(seen.mean_signal, 4),
            "edges": list(STRENGTHS),
            "counts": list(seen.strengths),
        },
        "phase": {"from": -3.1416, "to": 3.1416, "counts": list(seen.phases)},
        "clusters": [
            {
                "size": each.size,
                "strength": round(each.strength, 4),
                "members": [_brief(node, names) for node in each.members],
            }
            for each in seen.clusters
        ],
        "strengthened": _strong_json(seen.strengthened, names),
        "fading": _strong_json(seen.fading, names),
        "conflicts": fitting(
            [
                {
                    "nodes": [_brief(each.one, names), _brief(each.other, names)],
                    "interference": round(each.interference, 4),
                }
                for each in seen.conflicts
            ],
            STRUCTURED // 3,
        ),
        "conflicts_total": seen.conflicts_total,
        "generations": {
            "epoch": seen.epoch,
            "log": seen.state.generation,
            "embeddings": seen.embeddings,
            "floor": seen.floor,
        },
        "memory": {"process_bytes": seen.process_bytes, "graph_bytes": seen.graph_bytes},
    }
    return Answer(joined(_lines(seen, names)), structured)


def _lines(seen: Observation, names: Names) -> list[str]:
    from cortex.services.hybrid.observing import STRENGTHS

    edges = ", ".join(f"{edge:g}" for edge in STRENGTHS)
    lines = _status_lines(seen.state)
    lines += [
        f"strength: mean {seen.mean_strength:.2f} [{sparkline(seen.strengths)}] over {edges}",
        f"phase [{sparkline(seen.phases)}] from −π to π",
    ]
    for number, each in enumerate(seen.clusters, 1):
        members = "; ".join(shorten(node.title, 50) for node in each.members)
        lines.append(
            f"cluster {number}: {each.size} memories, strength {each.strength:.2f}: {members}"
        )
    for title, strong in (("strengthened", seen.strengthened), ("fading", seen.fading)):
        lines += [f"{title} {value:.2f}: {node_line(node, names, cut=0)}" for node, value in strong]
    lines += [
        f"conflict ({each.interference:+.2f}): {names(each.one.id)} {shorten(each.one.title, 60)} "
        f"↔ {names(each.other.id)} {shorten(each.other.title, 60)}"
        for each in seen.conflicts
    ]
    lines.append(
        f"memory: process {seen.process_bytes >> 20} MiB, graph {seen.graph_bytes >> 20} MiB"
    )
    return lines


def _strong_json(strong: Sequence[tuple[Node, float]], names: Names) -> list[dict[str, Any]]:
    return [{**_brief(node, names), "strength": round(value, 4)} for node, value in strong]


def _brief(node: Node, names: Names) -> dict[str, Any]:
    return {"type": node.type.value, **brief_json(node, names=names)}
