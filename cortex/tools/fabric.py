"""Tools of the Memory Fabric: recall, and entities out of a text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Final

from pydantic import Field

from cortex.domain.values import shorten
from cortex.tools.arguments import Flag, Key, Text, Workspace
from cortex.tools.registry import Answer, tool
from cortex.tools.render import STRUCTURED, Names, fitting, joined, names_of, node_line, own_words

if TYPE_CHECKING:
    from cortex.memory import Memory
    from cortex.services.fabric.recall import Recalled, Recollection

_EXPLAINED: Final = 3


@tool(title="Recall", sets=("fabric",), writes=False)
def recall(
    memory: Memory,
    query: Annotated[Text, "a question"],
    limit: Annotated[int, Field(ge=1, le=100)] = 10,
    workspace_id: Annotated[Workspace | None, "default: everywhere, yours first"] = None,
    explain: Annotated[Flag, "show each step"] = False,
) -> Answer:
    """What is remembered, with the entities and relations of each memory; also answers over
    several hops of named entities ("what did X recommend about Y?")."""
    found = memory.fabric.recall(query, limit, workspace=workspace_id)
    names = names_of(memory, [each.node.id for each in found.results])
    budget = STRUCTURED * (6 if explain else 9) // 10
    results = fitting([_result(each, names, explain) for each in found.results], budget)
    structured: dict[str, Any] = {
        "query": found.query,
        "total_results": len(results),
        "sources": {"graph": len(results)},
        "results": results,
        "total": found.candidates,
        "truncated": len(results) < len(found.results),
        "degraded": found.degraded,
        "pending": found.pending,
        "empty": found.empty,
        "notes": list(found.notes),
        "generation": found.generation,
    }
    lines = [f"note: {note}" for note in found.notes]
    if found.degraded:
        lines.append(f"degraded: {found.degraded}")
    if found.pending:
        lines.append(f"{found.pending} texts are not in the vector index yet")
    if found.empty and not found.degraded:
        lines.append("nothing is remembered here yet")
    elif not results:
        lines.append("nothing found; try other words, or desktop_open to look around")
    for each in found.results[: len(results)]:
        lines += _lines(each, names, memory.settings.workspace)
    if explain:
        structured["explain"] = _steps(found)
        lines += _step_lines(found)
    return Answer(joined(lines), structured)


def _result(each: Recollection, names: Names, explain: bool) -> dict[str, Any]:
    from cortex.tools.hits import passage

    node = each.node
    metadata: dict[str, Any] = {
        "type": node.type.value,
        "title": node.title,
        "status": node.status.value,
        "workspace_id": node.workspace_id,
        "tags": list(node.tags),
    }
    if names.unverified(node.id):
        metadata["unverified"] = True
    metadata |= own_words(node)
    if each.merged:
        metadata["cross_validated"] = True
        metadata["merged"] = [other.id for other in each.merged]
    if each.hit.via is not None:
        metadata["matched_id"] = each.hit.via.id
        metadata["note"] = f"the older wording matched: {_old_wording(each)}"
    shown = {
        "id": f"graph:{node.id}",
        "text": passage(each.hit) or node.title,
        "score": round(each.score, 4),
        "relevance": round(each.factors["relevance"], 4),
        "source": "graph",
        "timestamp": node.created_at,
        "entities": list(each.entities),
        "graph_relations": [
            {"from": r.source, "relation": r.relation, "to": r.target} for r in each.relations
        ],
        "metadata": metadata,
    }
    if explain:
        shown["factors"] = {name: round(value, 4) for name, value in each.factors.items()}
        shown["elsewhere"] = list(each.elsewhere)
        shown["nearness"] = round(each.nearness, 4)
        shown["scores"] = dict(each.hit.scores)
    return shown


def _old_wording(each: Recollection) -> str:
    old = each.hit.via
    return shorten(old.text or old.title, 120) if old else ""


def _lines(each: Recollection, names: Names, own: str) -> list[str]:
    line = f"{each.score:.2f} {node_line(each.node, names, cut=300)}"
    if each.node.workspace_id != own:
        line += f" [{each.node.workspace_id}]"
    if each.merged:
        line += f" (said {len(each.merged) + 1} times)"
    lines = [line]
    if each.hit.via is not None:
        lines.append(f"   (the older wording matched: {_old_wording(each)})")
    if each.entities:
        lines.append("   entities: " + ", ".join(shorten(name, 60) for name in each.entities))
    lines += [
        f"   {shorten(r.source, 60)} -{r.relation}-> {shorten(r.target, 60)}"
        for r in each.relations[:_EXPLAINED]
    ]
    return lines


def _steps(found: Recalled) -> dict[str, Any]:
    """What each step of the pipeline did."""
    return {
        "parsed": {
            "query": found.parsed.query,
            "entity_hints": list(found.parsed.entity_hints),
            "intent": found.parsed.intent.value,
        },
        "linked": {hint: list(nodes) for hint, nodes in found.linked.items()},
        "candidates": found.candidates,
        "merged": sum(len(each.merged) for each in found.results),
        "boosted": [f"graph:{each.node.id}" for each in found.results if each.elsewhere],
        "weights": dict(found.weights),
        "withheld": {
            why: {"count": left.count, "ids": list(left.ids)}
            for why, left in found.withheld.items()
        },
    }


def _step_lines(found: Recalled) -> list[str]:
    parsed = found.parsed
    hints = ", ".join(
        f"{hint} ({len(found.linked.get(hint, ()))} nodes)" for hint in parsed.entity_hints
    )
    lines = [
        f"parsed: {parsed.query!r}, intent {parsed.intent}, hints: {hints or 'none'}",
        f"candidates: {found.candidates}",
    ]
    for each in found.results:
        factors = " · ".join(
            f"{name} {value:.3f}^{found.weights[name]:g}" for name, value in each.factors.items()
        )
        boost = f"; ×1.2 for {', '.join(each.elsewhere)}" if each.elsewhere else ""
        near = f"; nearness {each.nearness:.2f}" if each.nearness else ""
        lines.append(f"{each.node.id[:8]} {each.score:.3f} = {factors}{boost}{near}")
    lines += [f"left out: {left.count} {why}" for why, left in found.withheld.items()]
    return lines


@tool(title="Extract entities", sets=("fabric",), writes=True, idempotent=True)
def extract_entities(
    memory: Memory,
    text: Text,
    store: Annotated[Flag, "write them into the graph, without duplicates"] = False,
    workspace_id: Workspace | None = None,
    idempotency_key: Key | None = None,
) -> Answer:
    """Names (agents, people, projects, technologies, patterns, files, identifiers) in a text and
    what it says of them ("X uses Y for Z"), by rules."""
    found = memory.fabric.extract(text, workspace=workspace_id)
    entities: list[dict[str, Any]] = [
        {"name": entity.name, "type": entity.kind.value} for entity in found.entities
    ]
    relations = [
        {"from": said.source, "relation": said.relation, "to": said.target}
        for said in found.relations
    ]
    structured: dict[str, Any] = {}
    lines = []
    if store and entities:
        stored = memory.fabric.store(found, workspace=workspace_id, key=idempotency_key)
        kept = [entity for entity in entities if entity["name"] in stored.ids]
        for entity in kept:
            entity["id"] = stored.ids[entity["name"]]
            entity["created"] = entity["name"] in stored.created
        structured = {
            "workspace_id": stored.workspace_id,
            "created": len(stored.created),
            "related": stored.related,
        }
        if len(kept) < len(entities):
            structured["notes"] = ["names that look like keys were not stored"]
            lines.append("note: names that look like keys were not stored")
        known = len(kept) - len(stored.created)
        lines.append(
            f"stored: {len(stored.created)} new, {known} known, {stored.related} relations"
        )
    names = names_of(memory, [entity["id"] for entity in entities if "id" in entity])
    shown = fitting(entities, STRUCTURED // 2)
    said = fitting(relations, STRUCTURED // 3)
    structured |= {
        "entities": shown,
        "relations": said,
        "total": len(entities),
        "truncated": len(shown) < len(entities) or len(said) < len(relations),
        "generation": memory.generation(),
    }
    lines += [
        f"{names(entity['id']) + ' ' if 'id' in entity else ''}{entity['type']} {entity['name']}"
        for entity in shown
    ]
    lines += [f"{each['from']} -{each['relation']}-> {each['to']}" for each in said]
    return Answer(joined(lines or ["no entities found"]), structured)
