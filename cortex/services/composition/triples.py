"""What the graph says around one node, as triples and as bundles of hypervectors.

A triple is (node id, verb, node id). The verb is the relation's type, or the label of a
`related_to`; where nobody recorded which end a label starts from, and for `contradicts` and
plain `related_to`, both directions are said. Derived links say nothing. Weights are not encoded.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np

from cortex.domain.taxonomy import RELATION_TYPES, SYMMETRIC, RelationType
from cortex.domain.values import NodeId, Relation, RelationId
from cortex.store.database import Snapshot
from cortex.vectors.hypervectors import CAPACITY, Codebook, Hypervector, triple

MOST_TRIPLES: Final = 1000
VERBS: Final = tuple(kind.value for kind in RELATION_TYPES)


class Triple(NamedTuple):
    """One statement and the relation that makes it."""

    subject: NodeId
    verb: str
    object: NodeId
    evidence: RelationId


@dataclass(frozen=True, slots=True)
class Around:
    """The triples of a node, either way, by creation; and their bundles, at most 100 in each.

    `bundles` is (bundles, 10,000) of ±1; no triple, no bundle. `truncated` where the node has
    more than 1,000 and the rest was left out.
    """

    node: NodeId
    triples: tuple[Triple, ...]
    bundles: Hypervector
    truncated: bool

    def evidence(self, subject: str, verb: str, object_: str) -> RelationId | None:
        """The relation that says exactly this, if there is one."""
        for each in self.triples:
            if (each.subject, each.verb, each.object) == (subject, verb, object_):
                return each.evidence
        return None

    def others(self) -> list[NodeId]:
        """The nodes at the other ends, each once, by creation of the relation."""
        ends = (each.object if each.subject == self.node else each.subject for each in self.triples)
        return list(dict.fromkeys(ends))


def verb_name(text: str) -> str:
    """The form in which verbs are compared: "Written in" and "written-in" are written_in."""
    return "_".join(text.casefold().replace("-", " ").replace("_", " ").split())


def node_item(node: str) -> str:
    """The name of a node in the codebook."""
    return f"node:{node}"


def verb_item(verb: str) -> str:
    """The name of a verb in the codebook."""
    return f"verb:{verb}"


def around(snapshot: Snapshot, book: Codebook, node: NodeId, verb: str = "") -> Around:
    """The triples of a node; of one that has more than 1,000, those of the verb alone if given."""
    said, more = _read(snapshot, node, ())
    if more and verb:
        kinds = [kind for kind in RELATION_TYPES if kind in (verb, RelationType.RELATED_TO)]
        said, more = _read(snapshot, node, tuple(kinds))
        said = [each for each in said if each.verb == verb]
    kept = tuple(said[:MOST_TRIPLES])
    return Around(node, kept, encode(book, kept), more or len(said) > len(kept))


def _read(
    snapshot: Snapshot, node: NodeId, kinds: tuple[RelationType, ...]
) -> tuple[list[Triple], bool]:
    """By creation, then id; and whether there are relations beyond those read."""
    most = MOST_TRIPLES + 1
    out = snapshot.relations.outgoing(node, kinds, most)
    back = snapshot.relations.incoming(node, kinds, most)
    relations = sorted((*out, *back), key=lambda each: (each.created_at, each.id))
    said = dict.fromkeys(each for relation in relations for each in triples_of(relation))
    return list(said), max(len(out), len(back)) == most


def triples_of(relation: Relation) -> Iterator[Triple]:
    """What one relation says; nothing where it is derived."""
    if relation.derived:
        return
    ends = (relation.from_id, relation.to_id)
    verbs = relation.data.get("labels")
    labelled = False
    for verb in verbs if isinstance(verbs, list) else [relation.data]:
        label = verb.get("label") if isinstance(verb, dict) else None
        if relation.type is not RelationType.RELATED_TO or not isinstance(label, str):
            continue
        name = verb_name(label)
        if not name:
            continue
        labelled = True
        known = (verb.get("from"), verb.get("to"))
        if known != ends[::-1]:
            yield Triple(ends[0], name, ends[1], relation.id)
        if known != ends:
            yield Triple(ends[1], name, ends[0], relation.id)
    if not labelled:
        yield Triple(ends[0], relation.type.value, ends[1], relation.id)
        if relation.type in SYMMETRIC:
            yield Triple(ends[1], relation.type.value, ends[0], relation.id)


def encode(book: Codebook, said: Sequence[Triple]) -> Hypervector:
    """(bundles, 10,000): the triples in their order, at most 100 a bundle."""
    rows = [
        (node_item(each.subject), verb_item(each.verb), node_item(each.object)) for each in said
    ]
    names = list(dict.fromkeys(name for row in rows for name in row))
    items = book.items(names)
    place = {name: at for at, name in enumerate(names)}
    at = np.array([[place[name] for name in row] for row in rows], np.intp).reshape(-1, 3)
    bundles = [
        book.bundle(triple(*(items[column] for column in part.T)))
        for part in (at[first : first + CAPACITY] for first in range(0, len(at), CAPACITY))
    ]
    return np.stack(bundles) if bundles else items
