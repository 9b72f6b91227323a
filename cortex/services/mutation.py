"""How knowledge changes: A update, B supersede, C stale-cascade, and explicit deletion."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

from cortex.domain.errors import ConflictError, InvalidError, StaleTargetError
from cortex.domain.taxonomy import (
    FILE_RELATIONS,
    HIERARCHY,
    NodeType,
    RelationType,
    Status,
    parse_kind,
)
from cortex.domain.values import Node, NodeId, Relation, new_id, shorten
from cortex.graph.descent import descendants
from cortex.services.engine import Engine
from cortex.services.fields import Fields, merged, require_content
from cortex.services.files import with_facts
from cortex.services.linking import ensure_root
from cortex.services.reach import project_of
from cortex.services.repeating import once
from cortex.services.resolving import describe, head_of, resolve_node
from cortex.services.screening import screened
from cortex.store.database import Transaction

_DEPEND_IN: Final = frozenset(
    {
        RelationType.DERIVES_FROM,
        RelationType.DEPENDS_ON,
        RelationType.CONSTRAINED_BY,
        RelationType.IMPLEMENTS,
        RelationType.QUESTIONS,
        RelationType.ANSWERS,
        RelationType.SUPPORTS,
    }
)
_DEPEND_OUT: Final = frozenset(
    {RelationType.SUPPORTS, RelationType.LEADS_TO, RelationType.BLOCKS, RelationType.RESOLVES}
)
_CARRIED: Final = frozenset({*FILE_RELATIONS, RelationType.CONSTRAINED_BY})
_SHOWN: Final = 50


@dataclass(frozen=True, slots=True)
class Updated:
    """What an update did, or with `dry_run` would do; `marked` are the cascade's nodes."""

    id: str
    workspace_id: str
    status: str
    changed: list[str]
    marked: list[dict[str, Any]]
    marked_total: int
    notes: list[str]
    dry_run: bool


@dataclass(frozen=True, slots=True)
class Superseded:
    """The new head; `left` are relations that stay with the old node, `dependents` nodes
    that rest on it and want a review."""

    new_id: str | None
    old_id: str
    status: str
    workspace_id: str
    left: list[dict[str, Any]]
    dependents: list[dict[str, Any]]
    moved: list[str]
    marked: list[dict[str, Any]]
    notes: list[str]
    dry_run: bool


@dataclass(frozen=True, slots=True)
class Deleted:
    """Ids of what is gone, and of the children that went up to its parent."""

    deleted: list[str]
    moved: list[str]
    relations: int
    workspace_id: str
    dry_run: bool


class Mutation:
    """Changes and removes nodes."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def update(
        self,
        reference: str,
        fields: Fields,
        *,
        status: str | None = None,
        cascade: bool = False,
        dry_run: bool = False,
        workspace: str | None = None,
        key: str | None = None,
    ) -> Updated:
        """Strategy A: merge fields into the node; with a status and `cascade`, strategy C.

        A null in `data` removes that key. Raises StaleTargetError where a superseded node
        would become active again (invariant 6).
        """
        place = self._engine.workspace(workspace)
        changes = fields.changes()
        flagged = screened(self._engine.settings, changes)
        wanted = parse_kind(Status, status, "status") if status else None
        if not changes and wanted is None:
            raise InvalidError(
                "nothing to change",
                "Valid: title, text, tags, data, pinned, status",
                "Pass at least one",
            )
        if cascade and wanted is None:
            raise InvalidError(
                "cascade needs a status", "Valid: status='stale' or 'active'", "Pass status"
            )
        request = {
            "id": reference,
            "fields": asdict(fields),
            "status": status,
            "cascade": cascade,
            "dry_run": dry_run,
        }
        with self._engine.write(short=not cascade) as transaction:

            def do() -> Updated:
                node = resolve_node(transaction, reference, place, strict=workspace is not None)
                return self._update(transaction, node, changes, wanted, cascade, dry_run, flagged)

            return once(transaction, place, key, request, Updated, do)

    def _update(
        self,
        transaction: Transaction,
        node: Node,
        changes: Mapping[str, Any],
        wanted: Status | None,
        cascade: bool,
        dry_run: bool,
        flagged: Sequence[str],
    ) -> Updated:
        notes: list[str] = list(flagged)
        if node.type is NodeType.FILEREF:
            changes = with_facts(dict(changes), project_of(self._engine.settings))
        data = merged(node.data, changes)
        changed = sorted(name for name in changes if node.data.get(name) != data.get(name))
        if changed:
            require_content(data, node.type)
        if node.status is Status.STALE and changed and head_of(transaction, node) is not node:
            notes.append(f"{describe(node)} is superseded by {head_of(transaction, node).id}")
        below = self._below(transaction, node) if cascade else []
        marked: list[Node] = []
        if wanted is not None:
            if wanted is Status.ACTIVE:
                head = head_of(transaction, node)
                if head.id != node.id:
                    raise StaleTargetError(
                        f"{describe(node)} is superseded and cannot be active",
                        f"Its head: {head.id}",
                        "Update the head, or supersede it by the old wording",
                    )
            marked = [each for each in (node, *below) if each.status is not wanted]
            if wanted is Status.ACTIVE:
                kept = [each for each in marked if head_of(transaction, each).id != each.id]
                notes += [f"{describe(each)} stays stale: it is superseded" for each in kept]
                marked = [each for each in marked if each not in kept]
        if not dry_run:
            if changed:
                transaction.nodes.set_data(node.key, data, transaction.at)
            if marked and wanted is not None:
                transaction.nodes.set_status([each.key for each in marked], wanted, transaction.at)
        return Updated(
            node.id,
            node.workspace_id,
            (wanted or node.status).value,
            changed + (["status"] if node in marked else []),
            _brief(marked) if cascade else [],
            len(marked) if cascade else 0,
            notes,
            dry_run,
        )

    def _below(self, transaction: Transaction, node: Node) -> list[Node]:
        """Everything below by contains and decomposes_to, breadth first.

        Only committed state may enter the graph, so this comes before the transaction's
        own changes.
        """
        with self._engine.graphs.within(transaction, node.workspace_id) as graph:
            keys = descendants(graph, node.key, HIERARCHY)
        return transaction.nodes.by_keys(keys)

    def supersede(
        self,
        reference: str,
        fields: Fields,
        *,
        cascade: bool = False,
        dry_run: bool = False,
        workspace: str | None = None,
        key: str | None = None,
    ) -> Superseded:
        """Strategy B: a new node takes the old one's place; the old one stays, stale.

        The new node takes type, parent, tags, pin, children by contains, index relations
        and constrained_by; with `cascade` what is below the old one goes stale instead of
        moving. Raises StaleTargetError, naming the head, for a node that is superseded.
        """
        place = self._engine.workspace(workspace)
        changes = fields.changes()
        flagged = screened(self._engine.settings, changes)
        request = {
            "id": reference,
            "fields": asdict(fields),
            "cascade": cascade,
            "dry_run": dry_run,
        }
        with self._engine.write() as transaction:

            def do() -> Superseded:
                old = resolve_node(transaction, reference, place, strict=workspace is not None)
                return self._supersede(transaction, old, changes, cascade, dry_run, flagged)

            return once(transaction, place, key, request, Superseded, do)

    def _supersede(
        self,
        transaction: Transaction,
        old: Node,
        changes: Mapping[str, Any],
        cascade: bool,
        dry_run: bool,
        flagged: Sequence[str],
    ) -> Superseded:
        head = head_of(transaction, old)
        if head.id != old.id:
            raise StaleTargetError(
                f"{describe(old)} is superseded already",
                f"Its head: {head.id}",
                "Supersede the head",
            )
        if old.type is NodeType.SESSION and old.parent_id is None:
            raise InvalidError("a session root cannot be superseded", "", "Update its title")
        carried = {name: old.data[name] for name in ("tags", "pinned") if name in old.data}
        data = merged(carried, changes)
        require_content(data, old.type)
        below = self._below(transaction, old) if cascade else []
        children = [] if cascade else transaction.nodes.children(old.id)
        outgoing = transaction.relations.outgoing(old.id)
        incoming = transaction.relations.incoming(old.id)
        stays = [
            relation
            for relation in (*outgoing, *incoming)
            if relation.type not in _CARRIED and relation.type is not RelationType.CONTAINS
        ]
        dependents = [r.from_id for r in incoming if r.type in _DEPEND_IN]
        dependents += [r.to_id for r in outgoing if r.type in _DEPEND_OUT]
        new: Node | None = None
        if not dry_run:
            new = self._replace(transaction, old, data, children, outgoing, incoming)
            transaction.nodes.set_status([each.key for each in below], Status.STALE)
        return Superseded(
            None if new is None else new.id,
            old.id,
            "superseded",
            old.workspace_id,
            _ends(transaction, old, stays),
            _brief(transaction.nodes.by_ids(list(dict.fromkeys(dependents)))),
            [child.id for child in children],
            _brief(below),
            list(flagged),
            dry_run,
        )

    def _replace(
        self,
        transaction: Transaction,
        old: Node,
        data: Mapping[str, Any],
        children: Sequence[Node],
        outgoing: Sequence[Relation],
        incoming: Sequence[Relation],
    ) -> Node:
        at, store = transaction.at, transaction.relations
        new = transaction.nodes.insert(
            NodeId(new_id()), old.type, old.workspace_id, old.parent_id, data, at
        )
        if old.parent_id is not None:
            store.insert(old.workspace_id, old.parent_id, new.id, RelationType.CONTAINS, at)
        moving = [r for r in outgoing if r.type is RelationType.CONTAINS] if children else []
        store.delete([relation.key for relation in moving])
        for relation in moving:
            store.insert(
                old.workspace_id, new.id, relation.to_id, relation.type, at, relation.weight,
                relation.data,
            )  # fmt: skip
        for relation in outgoing:
            if relation.type in _CARRIED:
                store.insert(
                    old.workspace_id, new.id, relation.to_id, relation.type, at,
                    relation.weight, relation.data,
                )  # fmt: skip
        for relation in incoming:
            if relation.type in _CARRIED:
                store.insert(
                    old.workspace_id, relation.from_id, new.id, relation.type, at,
                    relation.weight, relation.data,
                )  # fmt: skip
        transaction.nodes.set_status([old.key], Status.STALE)
        store.insert(old.workspace_id, new.id, old.id, RelationType.SUPERSEDES, at)
        return new

    def delete(
        self,
        reference: str,
        *,
        cascade: bool = False,
        dry_run: bool = False,
        workspace: str | None = None,
        key: str | None = None,
    ) -> Deleted:
        """Remove a node, with `cascade` everything that it contains.

        Else its children go to its parent. Vectors and keyword rows go in the same
        transaction; the history stays readable.
        """
        place = self._engine.workspace(workspace)
        request = {"id": reference, "cascade": cascade, "dry_run": dry_run}
        with self._engine.write() as transaction:

            def do() -> Deleted:
                node = resolve_node(transaction, reference, place, strict=workspace is not None)
                return self._delete(transaction, node, cascade, dry_run)

            return once(transaction, place, key, request, Deleted, do)

    def _delete(
        self, transaction: Transaction, node: Node, cascade: bool, dry_run: bool
    ) -> Deleted:
        root = node.type is NodeType.SESSION and node.parent_id is None
        if root and not cascade:
            raise ConflictError(
                f"{describe(node)} is the session root of {node.workspace_id!r}",
                "Valid: cascade=true, which deletes the whole workspace",
                "Delete single nodes instead, or pass cascade=true",
            )
        goners, children = [node], []
        if cascade:
            with self._engine.graphs.within(transaction, node.workspace_id) as graph:
                keys = descendants(graph, node.key, (RelationType.CONTAINS,))
            goners += transaction.nodes.by_keys(keys)
        else:
            children = transaction.nodes.children(node.id)
        ids = [each.id for each in goners]
        relations = transaction.relations.touching(ids)
        if not dry_run:
            above = node.parent_id
            if children and above is None:
                above = ensure_root(transaction, node.workspace_id)[0].id
            if children and above is not None:
                transaction.places.adopt(node.id, above)
            # The deepest first: a child goes before the parent whose relations it holds.
            transaction.nodes.delete([each.key for each in reversed(goners)])
        return Deleted(
            list(ids), [child.id for child in children], relations, node.workspace_id, dry_run
        )


def _brief(nodes: Sequence[Node]) -> list[dict[str, Any]]:
    return [
        {"id": node.id, "type": node.type.value, "title": shorten(node.title, 80)}
        for node in nodes[:_SHOWN]
    ]


def _ends(
    transaction: Transaction, node: Node, relations: Sequence[Relation]
) -> list[dict[str, Any]]:
    """The relations seen from `node`: type, direction, and the other end."""
    others = {
        each.id: each
        for each in transaction.nodes.by_ids(
            [r.to_id if r.from_id == node.id else r.from_id for r in relations]
        )
    }
    ends = []
    for relation in relations[:_SHOWN]:
        out = relation.from_id == node.id
        other = others[relation.to_id if out else relation.from_id]
        ends.append(
            {
                "type": relation.type.value,
                "direction": "out" if out else "in",
                "id": other.id,
                "title": shorten(other.title, 80),
            }
        )
    return ends
