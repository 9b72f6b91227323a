"""A memory's relations by the names at their ends."""

from __future__ import annotations

from typing import Final, NamedTuple

from cortex.domain.taxonomy import NodeType, RelationType, Status
from cortex.domain.values import Node, Relation, shorten
from cortex.store.database import Snapshot

_SCANNED: Final = 40
_SHOWN: Final = 8
_TITLE: Final = 80
_HIDDEN: Final = frozenset({RelationType.CONTAINS, RelationType.SUPERSEDES})
_NAMED: Final = frozenset({NodeType.ENTITY, NodeType.PATTERN})


class Named(NamedTuple):
    """One relation: the titles of its ends, and its label where it has one, else its type."""

    source: str
    relation: str
    target: str


def relations_of(snapshot: Snapshot, node: Node) -> tuple[tuple[Named, ...], list[str]]:
    """At most 8 relations, by creation, and the names of the entities at their other ends.

    Containment, supersession, derived links and stale ends are left out.
    """
    relations = [
        relation
        for relation in (
            *snapshot.relations.outgoing(node.id, limit=_SCANNED),
            *snapshot.relations.incoming(node.id, limit=_SCANNED),
        )
        if relation.type not in _HIDDEN and not relation.derived
    ]
    others = [r.to_id if r.from_id == node.id else r.from_id for r in relations]
    nodes = {
        other.id: other
        for other in snapshot.nodes.by_ids(list(dict.fromkeys(others)))
        if other.status is not Status.STALE
    } | {node.id: node}
    shown: list[Named] = []
    for relation in relations:
        if relation.from_id in nodes and relation.to_id in nodes:
            shown += _named(relation, nodes[relation.from_id], nodes[relation.to_id])
    beside = [
        nodes[other].title for other in others if other in nodes and nodes[other].type in _NAMED
    ]
    return tuple(shown[:_SHOWN]), list(dict.fromkeys(beside))


def _named(relation: Relation, source: Node, target: Node) -> list[Named]:
    """A relation's own verbs, where it has some: `related_to` is stored without direction."""
    verbs = relation.data.get("labels")
    verbs = verbs if isinstance(verbs, list) else [relation.data]
    titles = {node.id: shorten(node.title, _TITLE) for node in (source, target)}
    named = []
    for verb in verbs:
        label = verb.get("label") if isinstance(verb, dict) else None
        if not isinstance(label, str):
            named.append(Named(titles[source.id], relation.type.value, titles[target.id]))
            continue
        first, second = verb.get("from"), verb.get("to")
        if first not in titles or second not in titles:
            first, second = source.id, target.id
        named.append(Named(titles[first], label, titles[second]))
    return named
