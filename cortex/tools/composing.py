"""The tool that completes triples and analogies."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field

from cortex.domain.values import Node
from cortex.tools.arguments import Id, Text, Workspace
from cortex.tools.registry import Answer, tool
from cortex.tools.render import (
    STRUCTURED,
    TEXT,
    brief_json,
    fitting,
    joined,
    names_of,
    node_line,
)

if TYPE_CHECKING:
    from cortex.memory import Memory
    from cortex.services.composition.composing import Composition
    from cortex.services.composition.patterns import Pattern

Part = Annotated[Id, Field(description="node id, 8+ characters of it, or title")]


@tool(title="Compose a query", sets=("hybrid",), writes=False)
def compose(
    memory: Memory,
    a: Part = "",
    b: Part = "",
    c: Part = "",
    relation: Annotated[Text, "type or label; several steps: uses,<uses (< walks back)"] = "",
    limit: Annotated[int, Field(ge=1, le=50)] = 10,
    workspace_id: Workspace | None = None,
) -> Answer:
    """Complete a triple or an analogy by hypervectors. a + relation: what? relation + b: who?
    a + b: how related? a + b + c: what is to c as b is to a?

    An answer is confirmed where the graph says the same (evidence: relation ids). Noise is no
    answer; the order of equally right answers means nothing. Nothing beyond the graph is inferred.
    """
    found = memory.composing.compose(a, b, c, relation, limit=limit, workspace=workspace_id)
    asked = {name: node for name, node in zip("abc", found.asked, strict=True) if node is not None}
    names = names_of(memory, [node.id for node in (*asked.values(), *_nodes(found))])
    answers = fitting(
        [
            {
                **brief_json(each.node, names=names),
                "type": each.node.type.value,
                **_pattern_json(each.pattern),
            }
            for each in found.answers
        ],
        STRUCTURED - 4000,
    )
    lines = [f"{name}: {node_line(node, names, cut=0)}" for name, node in asked.items()]
    lines += [f"a {_steps(each)} b: {_weighed(each)}" for each in found.patterns]
    shown = [
        f"{node_line(each.node, names, cut=0)}\n   {_steps(each.pattern)}: {_weighed(each.pattern)}"
        for each in found.answers
    ]
    kept = fitting([*lines, *shown], TEXT - 200, len)
    answers = answers[: len(kept) - len(lines)]
    if found.why:
        kept.append(f"no answer above {found.threshold:g}. {found.why}")
    left = found.total - len(answers)
    if left:
        kept.append(f"… {left} more; a larger limit shows up to 50")
    elif found.truncated:
        kept.append("a node has more relations than were encoded; there may be more answers")
    return Answer(
        joined(kept),
        {
            **{name: brief_json(node, names=names) for name, node in asked.items()},
            "answers": answers,
            "patterns": [_pattern_json(each) for each in found.patterns],
            "total": found.total,
            "truncated": found.truncated or bool(left),
            "threshold": found.threshold,
            "why": found.why,
            "workspace_id": found.workspace_id,
            "generation": found.generation,
        },
    )


def _pattern_json(pattern: Pattern) -> dict[str, Any]:
    return {
        "steps": [str(step) for step in pattern.steps],
        "similarity": round(pattern.similarity, 4),
        "margin": round(pattern.margin, 4),
        "confirmed": pattern.confirmed,
        "evidence": [each for each in pattern.evidence if each is not None],
    }


def _steps(pattern: Pattern) -> str:
    return " · ".join(str(step) for step in pattern.steps)


def _weighed(pattern: Pattern) -> str:
    said = "confirmed" if pattern.confirmed else "not in the graph"
    return f"similarity {pattern.similarity:.3f}, margin {pattern.margin:.3f}, {said}"


def _nodes(found: Composition) -> list[Node]:
    return [each.node for each in found.answers]
