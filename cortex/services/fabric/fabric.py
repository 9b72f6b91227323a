"""The Memory Fabric: recall over everything, and entities out of texts into the graph."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from cortex.domain.errors import InvalidError
from cortex.domain.secrets import find_secrets
from cortex.domain.taxonomy import NodeType, RelationType
from cortex.domain.values import Node, NodeId, WorkspaceId, clean
from cortex.domain.verbs import with_verb
from cortex.services.adding import insert_child
from cortex.services.engine import Engine
from cortex.services.fabric.extract import MOST_TEXT, extract
from cortex.services.fabric.recall import Recall, Recalled
from cortex.services.fabric.values import Entity, EntityKind, Extraction, Statement
from cortex.services.fabric.verbs import relation_type
from cortex.services.fabric.vocabulary import GraphNames, Names
from cortex.services.fabric.words import fold_name
from cortex.services.history import History
from cortex.services.linking import ensure_root, link
from cortex.services.repeating import once
from cortex.services.retrieval.search import Search
from cortex.store.database import Transaction


@dataclass(frozen=True, slots=True)
class Stored:
    """What the graph holds of a text now: `ids` by name as the text writes it; `created` are
    the names that are new, `related` how many relations were new. All JSON values."""

    workspace_id: str
    ids: dict[str, str]
    created: list[str]
    related: int


class Fabric:
    """Recalls memories, and finds entities and relations in texts."""

    def __init__(self, engine: Engine, search: Search, history: History) -> None:
        self._engine = engine
        self._names = GraphNames()
        self._recall = Recall(engine, search, history, self._names)

    def recall(self, query: str, limit: int = 10, *, workspace: str | None = None) -> Recalled:
        """The memories that answer, best first, by the fabric's pipeline (`recall.py`).

        At most `limit`, 1 to 100. Raises InvalidError for another limit.
        """
        return self._recall.recall(query, limit, workspace=workspace)

    def extract(self, text: str, *, workspace: str | None = None) -> Extraction:
        """Entities and relations of a text, by rules and the names that the workspace knows.

        Of a text above 100,000 characters the beginning is read. Raises InvalidError for an
        empty one.
        """
        if not text.strip():
            raise InvalidError("text is empty", "Valid: one sentence or more", "Pass text")
        place = self._engine.workspace(workspace)
        with self._engine.database.read() as snapshot:
            names = self._names.of(snapshot, place)
        return extract(clean(text[:MOST_TEXT]), names)

    def store(
        self, extraction: Extraction, *, workspace: str | None = None, key: str | None = None
    ) -> Stored:
        """Write an extraction into the graph: all or nothing, nothing twice.

        An entity that a node of the workspace bears already, by its name without regard to
        case and hyphens, or by a file's path, is that node; others become nodes of type
        entity with data.kind. Verbs that are one of the relation types become it, others
        `related_to` with their label.
        """
        place = self._engine.workspace(workspace)
        # A name that looks like a key names nothing: it is left out of the graph.
        extraction = _without_secrets(extraction)
        request = {
            "entities": [[entity.name, entity.kind.value] for entity in extraction.entities],
            "relations": [[r.source, r.relation, r.target] for r in extraction.relations],
        }
        with self._engine.write() as transaction:
            return once(
                transaction,
                place,
                key,
                request,
                Stored,
                lambda: self._store(transaction, place, extraction),
            )

    def _store(
        self, transaction: Transaction, place: WorkspaceId, extraction: Extraction
    ) -> Stored:
        # Read before the first write: the cache must never see what may be rolled back.
        names = self._names.of(transaction, place)
        root, _ = ensure_root(transaction, place)
        nodes: dict[str, Node] = {}
        created: list[str] = []
        for entity in extraction.entities:
            node = _known(transaction, place, names, entity)
            if node is None:
                data = {"title": entity.name, "kind": entity.kind.value}
                node = insert_child(transaction, NodeType.ENTITY, place, root, data)
                created.append(entity.name)
            nodes[entity.name] = node
        related = sum(_relate(transaction, nodes, statement) for statement in extraction.relations)
        return Stored(place, {name: node.id for name, node in nodes.items()}, created, related)


def _without_secrets(extraction: Extraction) -> Extraction:
    entities = tuple(each for each in extraction.entities if not find_secrets(each.name))
    names = {entity.name for entity in entities}
    relations = tuple(r for r in extraction.relations if {r.source, r.target} <= names)
    return replace(extraction, entities=entities, relations=relations)


def _known(
    transaction: Transaction, place: WorkspaceId, names: Names, entity: Entity
) -> Node | None:
    """The node that stands for this entity already."""
    if entity.kind is EntityKind.FILE:
        files = transaction.nodes.by_path(place, entity.name)
        if files:
            return files[0]
    name = names.find(fold_name(entity.name))
    return transaction.nodes.find(NodeId(name.node_id)) if name else None


def _relate(transaction: Transaction, nodes: dict[str, Node], said: Statement) -> bool:
    """Write one statement; whether it was new."""
    source, target = nodes[said.source], nodes[said.target]
    if source.id == target.id:
        return False
    kind = relation_type(said.relation)
    if kind is not None:
        label = {} if kind.value == said.relation else {"label": said.relation}
        return link(transaction, source, target, kind, data=label).created
    first, second = sorted((source.id, target.id))
    present = transaction.relations.find(first, second, RelationType.RELATED_TO)
    known: dict[str, Any] = dict(present.data) if present else {}
    data = with_verb(known, said.relation, source.id, target.id)
    link(transaction, source, target, RelationType.RELATED_TO, data=data)
    return data != known
