"""Cards: a node or a relation as graph answers show it, written once.

What stays in memory (`HeldNode`, `HeldRelation`) keeps its card; of anything else it is made
anew. What may change while the row does not is no part of it: how short an id can be, how far
away a node is, whether its file is as it was noted.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from typing import Any, NamedTuple

from cortex.domain.values import Node, Relation
from cortex.graph.kept import HeldNode, HeldRelation
from cortex.tools.registry import Written
from cortex.tools.render import (
    PLAIN,
    Names,
    characters,
    node_json,
    node_words,
    relation_json,
    relation_words,
    written,
)


class Told(NamedTuple):
    """What an answer says in both forms; its JSON written, and how many characters that is."""

    json: dict[str, Any]
    line: str
    written: bytes
    size: int

    def measure(self) -> int:
        """The size, for `fitting`."""
        return self.size


def listed(told: Sequence[Told]) -> Written:
    """The list of them, as JSON."""
    text = b"[%b]" % b",".join([each.written for each in told])
    return Written([each.json for each in told], text)


class NodeCard(NamedTuple):
    """A node's `json`, the same written, the characters of that, and its line without the id."""

    json: dict[str, Any]
    written: bytes
    size: int
    words: str

    def shown(self, **more: Any) -> dict[str, Any]:
        """The JSON for one answer, whose reader may change it, with further fields."""
        return {**self.json, "tags": [*self.json["tags"]], **more}


class RelationCard(NamedTuple):
    """A relation's `json`, the same written, the characters of that.

    Its line is the name of `near`, `arrow`, the name of `far`, `weight`.
    """

    json: dict[str, Any]
    written: bytes
    size: int
    near: str
    arrow: str
    far: str
    weight: str

    def shown(self, **more: Any) -> dict[str, Any]:
        """The JSON for one answer, whose reader may change it, with further fields."""
        own = {**self.json, **more}
        if "data" in own:
            own["data"] = deepcopy(own["data"])
        return own

    def line(self, names: Names) -> str:
        return f"{names(self.near)} {self.arrow} {names(self.far)}{self.weight}"


def node_card(node: Node, names: Names = PLAIN) -> NodeCard:
    """The card of a node, with its mark where its file is not as it was noted."""
    if not isinstance(node, HeldNode) or names.unverified(node.id):
        return _node_card(node, names)
    if node.card is None:
        node.card = _node_card(node, names)
    card: NodeCard = node.card
    return card


def relation_card(relation: Relation) -> RelationCard:
    """The card of a relation."""
    if not isinstance(relation, HeldRelation):
        return _relation_card(relation)
    if relation.card is None:
        relation.card = _relation_card(relation)
    card: RelationCard = relation.card
    return card


def _node_card(node: Node, names: Names) -> NodeCard:
    shown = node_json(node, names=names)
    text = written(shown)
    words = node_words(node, names, title=shown["title"])
    return NodeCard(shown, text, characters(text), words)


def _relation_card(relation: Relation) -> RelationCard:
    shown = relation_json(relation)
    text = written(shown)
    return RelationCard(shown, text, characters(text), *relation_words(relation))
