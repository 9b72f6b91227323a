"""One page of a graph answer: what fits the budget, and where the next page begins."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from cortex.domain.errors import InvalidError
from cortex.domain.values import Node, NodeId, Relation
from cortex.tools.render import (
    STRUCTURED,
    TEXT,
    Names,
    fitting,
    node_json,
    node_line,
    relation_json,
    relation_line,
    size,
)

_LINES: Final = TEXT - 400  # beside them stand the start node and the footer
_MOST: Final = 120  # a node takes 200 characters of JSON, or 24 of a line, at least


@dataclass(frozen=True, slots=True)
class Page:
    """Nodes with their depths, and the relations between what is shown."""

    pairs: tuple[tuple[Node, int], ...]
    nodes: list[dict[str, Any]]
    relations: tuple[Relation, ...]
    truncated: bool
    next_cursor: str | None
    footer: str

    @property
    def shown(self) -> list[Node]:
        return [node for node, _ in self.pairs]


def read_offset(cursor: str | None) -> int:
    """How many nodes the pages before have shown."""
    if not cursor:
        return 0
    if not cursor.isdigit() or len(cursor) > 9:
        raise InvalidError(
            f"cursor {cursor[:40]!r} is not one of ours",
            "Valid: next_cursor of the last answer",
            "Leave it out to begin again",
        )
    return int(cursor)


def ids_on(pairs: Sequence[tuple[Node, int]], starts: Sequence[Node], offset: int) -> list[NodeId]:
    """The ids that a page can show: no more nodes fit it than these."""
    return [*(node.id for node in starts), *(node.id for node, _ in pairs[offset:][:_MOST])]


def page_of(
    pairs: Sequence[tuple[Node, int]],
    relations: Sequence[Relation],
    starts: Sequence[Node],
    total: int,
    offset: int,
    names: Names,
) -> Page:
    """The nodes from `offset` on that fit both forms of the answer, with their relations.

    `pairs` begins with the first page. A relation stands on the page of its later end, so
    that the pages together have each once; it is dropped only where one node has more
    relations than a whole page can show.
    """
    place = {node.id: at for at, (node, _) in enumerate(pairs)}
    place.update({node.id: -1 for node in starts})
    due: dict[int, list[Relation]] = {}
    for relation in relations:
        if relation.from_id in place and relation.to_id in place:
            due.setdefault(max(place[relation.from_id], place[relation.to_id]), []).append(relation)
    shown = fitting(due.get(-1, []) if offset == 0 else [], STRUCTURED, _size)
    cut = offset == 0 and len(shown) < len(due.get(-1, []))
    room = STRUCTURED - sum(_size(r) + 1 for r in shown)
    lines = _LINES - sum(len(relation_line(r, names)) + 1 for r in shown)
    nodes: list[dict[str, Any]] = []
    for at, (node, depth) in enumerate(pairs[offset:], offset):
        item = {**node_json(node, names=names), "depth": depth}
        own = due.get(at, [])
        if not nodes:
            fit = fitting(own, room - size(item), _size)
            cut, own = cut or len(fit) < len(own), fit
        room -= size(item) + 1 + sum(_size(r) + 1 for r in own)
        lines -= len(f"depth {depth}: {node_line(node, names)}") + 1
        lines -= sum(len(relation_line(r, names)) + 1 for r in own)
        if nodes and (room < 0 or lines < 0):
            break
        nodes.append(item)
        shown += own
    reached = offset + len(nodes)
    more = reached < total
    footer = f"\n{len(nodes)} of {total} nodes around it"
    if more:
        footer += f"; next: cursor={reached}" if nodes else "; raise limit"
    return Page(
        tuple(pairs[offset:reached]),
        nodes,
        tuple(shown),
        more or cut,
        str(reached) if more and nodes else None,
        footer,
    )


def _size(relation: Relation) -> int:
    return size(relation_json(relation))
