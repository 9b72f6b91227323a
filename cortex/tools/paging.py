"""One page of a graph answer: what fits the budget, and where the next page begins."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from cortex.domain.errors import InvalidError
from cortex.domain.values import Node, Relation
from cortex.tools.render import STRUCTURED, fitting, node_json, relation_json, size

_NODES: Final = STRUCTURED * 2 // 3
_RELATIONS: Final = STRUCTURED - _NODES


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


def page_of(
    pairs: Sequence[tuple[Node, int]],
    relations: Sequence[Relation],
    starts: Sequence[Node],
    total: int,
    offset: int,
) -> Page:
    """Cut nodes and relations to the budget; relations to dropped nodes go too."""
    objects = [{**node_json(node), "depth": depth} for node, depth in pairs]
    nodes = fitting(objects, _NODES)
    kept = tuple(pairs[: len(nodes)])
    ids = {node.id for node, _ in kept} | {node.id for node in starts}
    between = [r for r in relations if r.from_id in ids and r.to_id in ids]
    shown = fitting(between, _RELATIONS, lambda relation: size(relation_json(relation)))
    reached = offset + len(kept)
    more = reached < total
    footer = f"\n{len(kept)} of {total} nodes"
    if more:
        footer += f"; next: cursor={reached}" if kept else "; raise limit"
    return Page(
        kept,
        nodes,
        tuple(shown),
        more or len(shown) < len(between),
        str(reached) if more and kept else None,
        footer,
    )
