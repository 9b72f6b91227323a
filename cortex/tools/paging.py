"""One page of a graph answer: what fits the budget, and where the next page begins."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from cortex.domain.errors import InvalidError
from cortex.domain.values import Node, Relation
from cortex.tools.registry import Written
from cortex.tools.render import (
    STRUCTURED,
    TEXT,
    Names,
    characters,
    fitting,
    node_json,
    node_line,
    relation_json,
    relation_line,
    written,
)

_LINES: Final = TEXT - 400  # beside them stand the start node and the footer


@dataclass(frozen=True, slots=True)
class Page:
    """Nodes with their depths, and the relations between what is shown, as JSON and as lines."""

    nodes: Written
    relations: Written
    lines: list[str]
    truncated: bool
    next_cursor: str | None
    footer: str


class _Told(NamedTuple):
    """A node or relation in both forms; its JSON written, and how many characters that is."""

    json: dict[str, Any]
    line: str
    written: bytes
    size: int


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


def page_of(
    pairs: Sequence[tuple[Node, int]],
    relations: Sequence[Relation],
    starts: Sequence[Node],
    total: int,
    offset: int,
    names: Names,
    shape: Callable[[Relation], dict[str, Any]] = relation_json,
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

    def told(at: int) -> list[_Told]:
        return [
            _told(shape(relation), relation_line(relation, names)) for relation in due.get(at, ())
        ]

    first = told(-1) if offset == 0 else []
    shown = fitting(first, STRUCTURED, _size)
    cut = len(shown) < len(first)
    room = STRUCTURED - sum(each.size + 1 for each in shown)
    space = _LINES - sum(len(each.line) + 1 for each in shown)
    nodes: list[_Told] = []
    for at, (node, depth) in enumerate(pairs[offset:], offset):
        item = node_json(node, names=names)
        item["depth"] = depth
        line = f"depth {depth}: {node_line(node, names, title=item['title'])}"
        mine, own = _told(item, line), told(at)
        if not nodes:
            fit = fitting(own, room - mine.size, _size)
            cut, own = cut or len(fit) < len(own), fit
        for each in (mine, *own):
            room -= each.size + 1
            space -= len(each.line) + 1
        if nodes and (room < 0 or space < 0):
            break
        nodes.append(mine)
        shown += own
    reached = offset + len(nodes)
    more = reached < total
    footer = f"\n{len(nodes)} of {total} nodes around it"
    if more:
        footer += f"; next: cursor={reached}" if nodes else "; raise limit"
    return Page(
        _listed(nodes),
        _listed(shown),
        [each.line for each in (*nodes, *shown)],
        more or cut,
        str(reached) if more and nodes else None,
        footer,
    )


def _told(item: dict[str, Any], line: str) -> _Told:
    text = written(item)
    return _Told(item, line, text, characters(text))


def _listed(told: Sequence[_Told]) -> Written:
    text = b"[%b]" % b",".join([each.written for each in told])
    return Written([each.json for each in told], text)


def _size(each: _Told) -> int:
    return each.size
