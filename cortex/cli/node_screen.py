"""One memory on the screen: whole, with everything around it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from rich.text import Text

from cortex.cli.looking import dump, out, table
from cortex.domain.taxonomy import Status
from cortex.domain.values import Node, Relation, shorten
from cortex.tools.hits import place_json
from cortex.tools.render import brief_json, relation_json, whole_json

if TYPE_CHECKING:
    from cortex.memory import Memory
    from cortex.services.inspecting import Shown

_OWN = frozenset({"title", "text", "tags", "pinned", "path"})


def print_shown(memory: Memory, shown: Shown, *, as_json: bool) -> None:
    """A node: head, text, data, warnings, chain, relations, files."""
    if as_json:
        dump(_json(shown))
        return
    node = shown.node
    for part in _head(shown):
        # Whatever the width, an id or a path stays on one line: it is there to be copied.
        out.print(part, soft_wrap=True)
    for warning in shown.warnings:
        out.print(Text(f"! {warning}", style="yellow"))
    if node.text:
        out.print()
        out.print(Text(node.text))
    rest = {name: value for name, value in node.data.items() if name not in _OWN}
    if rest:
        rows = [(name, _value(value)) for name, value in rest.items()]
        out.print(table("\ndata", ("key", "value"), rows))
    if shown.chain:
        chain = [
            ("›" if each.id == node.id else "", each.id[:8], each.status.value,
             each.created_at[:10], each.title)
            for each in shown.chain
        ]  # fmt: skip
        columns = ("", "id", "status", "made", "title")
        out.print(table("\nreplaced over time, newest first", columns, chain))
    relations = [*_lines(shown.outgoing, "→"), *_lines(shown.incoming, "←")]
    if relations:
        title = f"\n{shown.degree} relations" if shown.degree > 1 else "\n1 relation"
        out.print(table(title, ("", "relation", "id", "type", "title"), relations))
        if shown.degree > len(relations):
            out.print(f"… and {shown.degree - len(relations)} more")
    if shown.files:
        out.print("\nfiles")
        for place in shown.files:
            line = f":{place.line}" if place.line else ""
            out.print(Text(f"{place.path}{line}  {place.freshness}"), soft_wrap=True)


def _head(shown: Shown) -> Iterator[Text]:
    node = shown.node
    state = node.status.value + (", pinned" if node.pinned else "")
    if node.data.get("title"):
        yield Text(node.title, style="bold")
    yield Text(f"{node.type} {node.id}  {state}")
    yield Text(
        f"in {node.workspace_id}, made {node.created_at[:16]}Z, changed {node.updated_at[:16]}Z"
    )
    if node.data.get("path"):
        yield Text(f"path {node.data['path']}")
    if node.tags:
        yield Text("tags " + ", ".join(node.tags))
    if shown.index is not None and shown.index.state != "ready":
        why = f": {shown.index.problem}" if shown.index.problem else ""
        yield Text(f"not in the vector index yet ({shown.index.state}{why})")


def _value(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _lines(ends: Sequence[tuple[Relation, Node]], arrow: str) -> Iterator[tuple[str, ...]]:
    for relation, other in ends:
        label = relation.data.get("label")
        name = f"{relation.type}:{label}" if isinstance(label, str) else relation.type.value
        weight = "" if relation.weight == 1.0 else f" {relation.weight:g}"
        mark = "" if other.status is Status.ACTIVE else f"[{other.status}] "
        title = mark + shorten(other.title, 100)
        yield arrow, name + weight, other.id[:8], other.type.value, title


def _json(shown: Shown) -> dict[str, Any]:
    return {
        "node": {**whole_json(shown.node), "text": shown.node.text},
        "outgoing": [_end_json(relation, other) for relation, other in shown.outgoing],
        "incoming": [_end_json(relation, other) for relation, other in shown.incoming],
        "degree": shown.degree,
        "chain": [{**brief_json(each), "created_at": each.created_at} for each in shown.chain],
        "files": [place_json(place) for place in shown.files],
        "warnings": list(shown.warnings),
        "index": None if shown.index is None else shown.index.state,
    }


def _end_json(relation: Relation, other: Node) -> dict[str, Any]:
    return {**relation_json(relation), "other": {"type": other.type.value, **brief_json(other)}}
