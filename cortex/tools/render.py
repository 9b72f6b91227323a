"""From values to what a client sees: compact text for a model, complete JSON for a program."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, TypeVar

from pydantic_core import PydanticSerializationError, to_json

from cortex.domain.taxonomy import Status
from cortex.domain.values import PREFIX, Node, Relation, clean_json, shorten
from cortex.services.drift import Drifted, sentences

STRUCTURED: Final = 24_000
TEXT: Final = 8_000
WHOLE_TEXT: Final = 100_000
UNVERIFIED: Final = "[unverified] "
_CUT: Final = 200
_NAME: Final = 100
_DATA: Final = 1_000
_COMMON: Final = frozenset({"title", "text", "tags", "path", "pinned"})

if TYPE_CHECKING:
    from cortex.memory import Memory

T = TypeVar("T")


def written(value: Any) -> bytes:
    """The compact JSON, in a fifth of the time of json.dumps; a lone surrogate is replaced."""
    try:
        return to_json(value)
    except PydanticSerializationError:
        return to_json(clean_json(value))


def size(value: Any) -> int:
    """Characters of the compact JSON."""
    return characters(written(value))


def characters(text: bytes) -> int:
    """How many characters the UTF-8 text has."""
    return len(text) if text.isascii() else len(text.decode())


def fitting(items: Iterable[T], budget: int, measure: Callable[[T], int] = size) -> list[T]:
    """The first items whose sizes, with a comma each, stay within the budget."""
    kept: list[T] = []
    for item in items:
        budget -= measure(item) + 1
        if budget < 0:
            break
        kept.append(item)
    return kept


class Names:
    """What an answer knows of the ids that it shows.

    Called, it gives an id as text shows it: 8 characters where that is unique, else whole.
    `unverified` are those whose file is not as it was noted.
    """

    def __init__(self, unique: Mapping[str, bool], drifted: Drifted = MappingProxyType({})) -> None:
        self._short = {node: node[:PREFIX] for node, alone in unique.items() if alone}
        self._drifted = drifted

    def __call__(self, node_id: str) -> str:
        return self._short.get(node_id, node_id)

    def unverified(self, node_id: str) -> bool:
        """Whether the node's mark belongs beside it, in text and in JSON."""
        return node_id in self._drifted

    def warnings(self, nodes: Sequence[Node]) -> tuple[str, ...]:
        """One sentence per file that is not as these nodes noted it."""
        return sentences(nodes, self._drifted)


PLAIN: Final = Names({})


def names_of(memory: Memory, ids: Sequence[str]) -> Names:
    """Names and marks for these ids, as the memory and the disk are now."""
    return Names(*memory.reading.known(ids))


def node_json(node: Node, *, cut: int = _CUT, names: Names = PLAIN) -> dict[str, Any]:
    """The fields that every node object has; `text` cut to `cut` characters."""
    text = node.text
    shown: dict[str, Any] = {
        "id": node.id,
        "type": node.type.value,
        "title": node.title,
        "status": node.status.value,
        "created_at": node.created_at,
        "updated_at": node.updated_at,
        "workspace_id": node.workspace_id,
        "parent_id": node.parent_id,
        "tags": list(node.tags),
        "text": text if len(text) <= cut else text[: max(cut - 1, 0)] + "…",
    }
    if len(text) > cut:
        shown["text_chars"] = len(text)
    if node.pinned:
        shown["pinned"] = True
    if names.unverified(node.id):
        shown["unverified"] = True
    shown.update(own_words(node))
    return shown


def own_words(node: Node) -> dict[str, str]:
    """Its path, and kind and label up to 100 characters, as far as it has them."""
    data = node.data
    shown = {"path": data["path"]} if isinstance(data.get("path"), str) and data["path"] else {}
    for name in ("kind", "label"):
        if isinstance(data.get(name), str):
            shown[name] = shorten(data[name], _NAME)
    return shown


def bounded_data(data: Mapping[str, Any], room: int) -> tuple[dict[str, Any], int]:
    """The entries that fit `room` characters together, texts cut; and the size of all of them."""
    whole = size(data)
    if whole <= room:
        return dict(data), whole
    kept: dict[str, Any] = {}
    for name, value in data.items():
        room -= len(name) + 6
        shown = shorten(value, _CUT) if isinstance(value, str) and size(value) > room else value
        if len(name) > _NAME or size(shown) > room:
            continue
        room -= size(shown)
        kept[name] = shown
    return kept, whole


def mark(node: Node, names: Names = PLAIN) -> str:
    """What text puts before a title, as "[stale] ": not active, or its file changed."""
    status = "" if node.status is Status.ACTIVE else f"[{node.status.value}] "
    return status + (UNVERIFIED if names.unverified(node.id) else "")


def brief_json(node: Node, cut: int = 80, names: Names = PLAIN) -> dict[str, Any]:
    """A node named beside another one: id, title, status where it is not active."""
    shown: dict[str, Any] = {"id": node.id, "title": shorten(node.title, cut)}
    if node.status is not Status.ACTIVE:
        shown["status"] = node.status.value
    if names.unverified(node.id):
        shown["unverified"] = True
    return shown


def further_data(node: Node) -> dict[str, Any]:
    """What its data holds beside the common fields."""
    return {name: value for name, value in node.data.items() if name not in _COMMON}


def whole_json(node: Node, names: Names = PLAIN) -> dict[str, Any]:
    """A node with its text and its further data whole (up to 100,000 characters each)."""
    shown = node_json(node, cut=WHOLE_TEXT, names=names)
    extra, whole = bounded_data(further_data(node), WHOLE_TEXT)
    if whole > len("{}"):
        shown["data"] = extra
    if whole > WHOLE_TEXT:
        shown["data_chars"] = whole
    return shown


def relation_json(relation: Relation) -> dict[str, Any]:
    """A relation's fields; `data` up to 1,000 characters, then `data_chars` says how many."""
    shown: dict[str, Any] = {
        "id": relation.id,
        "type": relation.type.value,
        "from_id": relation.from_id,
        "to_id": relation.to_id,
        "weight": relation.weight,
        "created_at": relation.created_at,
        "updated_at": relation.updated_at,
    }
    if relation.data:
        shown["data"], whole = bounded_data(relation.data, _DATA)
        if whole > _DATA:
            shown["data_chars"] = whole
    return shown


def node_line(node: Node, names: Names, *, cut: int = 160, title: str | None = None) -> str:
    """One line: id, type, what there is to know of it, title, the start of the text.

    `title` is the node's, where the caller has it at hand already.
    """
    return f"{names(node.id)} {node_words(node, names, cut=cut, title=title)}"


def node_words(node: Node, names: Names, *, cut: int = 160, title: str | None = None) -> str:
    """The line of a node without its id."""
    parts = [node.type.value]
    if said := mark(node, names).rstrip():
        parts.append(said)
    title = shorten(node.title if title is None else title, 100)
    parts.append(title)
    text = shorten(node.text, cut)
    if text and not text.startswith(title.rstrip("…")):
        parts.append(f"— {text}")
    elif len(text) > len(title):
        parts[-1] = text
    return " ".join(parts)


def relation_line(relation: Relation, names: Names) -> str:
    """One line: from -type-> to, the weight where it is not 1; a verb as it was said."""
    near, arrow, far, weight = relation_words(relation)
    return f"{names(near)} {arrow} {names(far)}{weight}"


def relation_words(relation: Relation) -> tuple[str, str, str, str]:
    """The line of a relation in its parts: an id, an arrow, an id, the weight."""
    weight = "" if relation.weight == 1.0 else f" ({relation.weight:g})"
    label = relation.data.get("label")
    kind = relation.type.value
    name = f"{kind}:{shorten(label, _NAME)}" if isinstance(label, str) else kind
    near, far = relation.from_id, relation.to_id
    if relation.data.get("from") == far:
        near, far = far, near
    return near, f"-{name}->", far, weight


def joined(lines: Sequence[str], budget: int = TEXT) -> str:
    """The lines within the budget; says how many were left out."""
    kept = fitting(lines, budget - 60, len)
    left = len(lines) - len(kept)
    if left:
        kept.append(f"… {left} more lines; the structured content has them")
    return "\n".join(kept)
