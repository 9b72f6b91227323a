"""One page of a graph answer: what fits the budget, and where the next page begins."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from cortex.domain.errors import InvalidError
from cortex.domain.values import Node, Relation
from cortex.tools.cards import Told, listed, node_card, relation_card
from cortex.tools.registry import Written
from cortex.tools.render import STRUCTURED, TEXT, Names, characters, fitting, written

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
    further: Callable[[Relation], dict[str, Any]] | None = None,
) -> Page:
    """The nodes from `offset` on that fit both forms of the answer, with their relations.

    `pairs` begins with the first page. A relation stands on the page of its later end, so
    that the pages together have each once; it is dropped only where one node has more
    relations than a whole page can show. `further` gives what the JSON of a relation has
    beside its own fields.
    """
    place = {node.id: at for at, (node, _) in enumerate(pairs)}
    place.update({node.id: -1 for node in starts})
    due: dict[int, list[Relation]] = {}
    for relation in relations:
        if relation.from_id in place and relation.to_id in place:
            due.setdefault(max(place[relation.from_id], place[relation.to_id]), []).append(relation)

    def told(at: int) -> list[Told]:
        return [_told_relation(relation, names, further) for relation in due.get(at, ())]

    first = told(-1) if offset == 0 else []
    shown = fitting(first, STRUCTURED, Told.measure)
    cut = len(shown) < len(first)
    room = STRUCTURED - sum(each.size + 1 for each in shown)
    space = _LINES - sum(len(each.line) + 1 for each in shown)
    nodes: list[Told] = []
    for at, (node, depth) in enumerate(pairs[offset:], offset):
        mine, own = _told_node(node, depth, names), told(at)
        if not nodes:
            fit = fitting(own, room - mine.size, Told.measure)
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
        listed(nodes),
        listed(shown),
        [each.line for each in (*nodes, *shown)],
        more or cut,
        str(reached) if more and nodes else None,
        footer,
    )


def _told_node(node: Node, depth: int, names: Names) -> Told:
    card = node_card(node, names)
    more = b',"depth":%d}' % depth
    return Told(
        card.shown(depth=depth),
        f"depth {depth}: {names(node.id)} {card.words}",
        card.written[:-1] + more,
        card.size + len(more) - 1,
    )


def _told_relation(
    relation: Relation, names: Names, further: Callable[[Relation], dict[str, Any]] | None
) -> Told:
    card = relation_card(relation)
    if further is None:
        return Told(card.shown(), card.line(names), card.written, card.size)
    more = further(relation)
    added = b"," + written(more)[1:]
    return Told(
        card.shown(**more),
        card.line(names),
        card.written[:-1] + added,
        card.size - 1 + characters(added),
    )
