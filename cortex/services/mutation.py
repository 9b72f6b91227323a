"""How knowledge changes: A update, B supersede, C stale-cascade, and explicit deletion."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final, TypeVar

from cortex.domain.errors import ConflictError, InvalidError, StaleTargetError
from cortex.domain.taxonomy import (
    FILE_RELATIONS,
    HIERARCHY,
    NodeType,
    RelationType,
    Status,
    parse_kind,
)
from cortex.domain.values import Node, NodeId, Relation, WorkspaceId, new_id, shorten
from cortex.graph.descent import descendants
from cortex.graph.workspace import WorkspaceGraph
from cortex.services.engine import Engine
from cortex.services.fields import Fields, merged, require_content
from cortex.services.files import with_facts
from cortex.services.linking import ensure_root
from cortex.services.reach import project_of
from cortex.services.repeating import once
from cortex.services.resolving import describe, head_of, resolve_node
from cortex.services.screening import screened
from cortex.store.database import Snapshot, Transaction

T = TypeVar("T")

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
        }

        def do(snapshot: Snapshot, node: Node, graph: WorkspaceGraph | None = None) -> Updated:
            return self._update(snapshot, node, changes, wanted, graph, cascade, flagged)

        strict = workspace is not None
        if dry_run:
            return self._planned(reference, place, strict, do)
        with self._engine.write(short=not cascade) as transaction:

            def done() -> Updated:
                return do(transaction, resolve_node(transaction, reference, place, strict=strict))

            return once(transaction, place, key, request, Updated, done)

    def _planned(
        self,
        reference: str,
        place: WorkspaceId,
        strict: bool,
        do: Callable[[Snapshot, Node, WorkspaceGraph], T],
    ) -> T:
        """What doing it would do: read, without the write lock, and whatever key was given."""
        with self._engine.database.read() as snapshot:
            node = resolve_node(snapshot, reference, place, strict=strict)
        place = node.workspace_id
        with self._engine.graphs.view(self._engine.database, place) as (snapshot, graph):
            return do(snapshot, resolve_node(snapshot, node.id, place, strict=True), graph)

    def _update(
        self,
        snapshot: Snapshot,
        node: Node,
        changes: Mapping[str, Any],
        wanted: Status | None,
        graph: WorkspaceGraph | None,
        cascade: bool,
        flagged: Sequence[str],
    ) -> Updated:
        """In a transaction; in a mere snapshot, what that would do. So the other two."""
        notes: list[str] = list(flagged)
        if node.type is NodeType.FILEREF:
            changes = with_facts(dict(changes), project_of(self._engine.settings))
        data = merged(node.data, changes)
        changed = sorted(name for name in changes if node.data.get(name) != data.get(name))
        if changed:
            require_content(data, node.type)
        if node.status is Status.STALE and changed and head_of(snapshot, node) is not node:
            notes.append(f"{describe(node)} is superseded by {head_of(snapshot, node).id}")
        below = self._below(snapshot, node, graph) if cascade else []
        marked: list[Node] = []
        if wanted is not None:
            if wanted is Status.ACTIVE:
                head = head_of(snapshot, node)
                if head.id != node.id:
                    raise StaleTargetError(
                        f"{describe(node)} is superseded and cannot be active",
                        f"Its head: {head.id}",
                        "Update the head, or supersede it by the old wording",
                    )
            marked = [each for each in (node, *below) if each.status is not wanted]
            if wanted is Status.ACTIVE:
                kept = [each for each in marked if head_of(snapshot, each).id != each.id]
                notes += [f"{describe(each)} stays stale: it is superseded" for each in kept]
                marked = [each for each in marked if each not in kept]
        if isinstance(snapshot, Transaction):
            if changed:
                snapshot.nodes.set_data(node.key, data, snapshot.at)
            if marked and wanted is not None:
                snapshot.nodes.set_status([each.key for each in marked], wanted, snapshot.at)
        return Updated(
            node.id,
            node.workspace_id,
            (wanted or node.status).value,
            changed + (["status"] if node in marked else []),
            _brief(marked) if cascade else [],
            len(marked) if cascade else 0,
            notes,
            not isinstance(snapshot, Transaction),
        )

    def _below(
        self,
        snapshot: Snapshot,
        node: Node,
        graph: WorkspaceGraph | None,
        kinds: Collection[RelationType] = HIERARCHY,
    ) -> list[Node]:
        """Everything below by these relations, breadth first, in the `graph` of the snapshot.

        Without one, as a transaction sees it: only committed state may enter the graph, so
        this comes before the transaction's own changes.
        """
        if graph is not None:
            return snapshot.nodes.by_keys(descendants(graph, node.key, kinds))
        with self._engine.graphs.within(snapshot, node.workspace_id) as present:
            keys = descendants(present, node.key, kinds)
        return snapshot.nodes.by_keys(keys)

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
        }

        def do(snapshot: Snapshot, node: Node, graph: WorkspaceGraph | None = None) -> Superseded:
            return self._supersede(snapshot, node, changes, graph, cascade, flagged)

        strict = workspace is not None
        if dry_run:
            return self._planned(reference, place, strict, do)
        with self._engine.write() as transaction:

            def done() -> Superseded:
                return do(transaction, resolve_node(transaction, reference, place, strict=strict))

            return once(transaction, place, key, request, Superseded, done)

    def _supersede(
        self,
        snapshot: Snapshot,
        old: Node,
        changes: Mapping[str, Any],
        graph: WorkspaceGraph | None,
        cascade: bool,
        flagged: Sequence[str],
    ) -> Superseded:
        head = head_of(snapshot, old)
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
        below = self._below(snapshot, old, graph) if cascade else []
        children = [] if cascade else snapshot.nodes.children(old.id)
        outgoing = snapshot.relations.outgoing(old.id)
        incoming = snapshot.relations.incoming(old.id)
        stays = [
            relation
            for relation in (*outgoing, *incoming)
            if relation.type not in _CARRIED and relation.type is not RelationType.CONTAINS
        ]
        dependents = [r.from_id for r in incoming if r.type in _DEPEND_IN]
        dependents += [r.to_id for r in outgoing if r.type in _DEPEND_OUT]
        new: Node | None = None
        if isinstance(snapshot, Transaction):
            new = self._replace(snapshot, old, data, children, outgoing, incoming)
            snapshot.nodes.set_status([each.key for each in below], Status.STALE)
        return Superseded(
            None if new is None else new.id,
            old.id,
            "superseded",
            old.workspace_id,
            _ends(snapshot, old, stays),
            _brief(snapshot.nodes.by_ids(list(dict.fromkeys(dependents)))),
            [child.id for child in children],
            _brief(below),
            list(flagged),
            new is None,
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
        request = {"id": reference, "cascade": cascade}

        def do(snapshot: Snapshot, node: Node, graph: WorkspaceGraph | None = None) -> Deleted:
            return self._delete(snapshot, node, graph, cascade)

        strict = workspace is not None
        if dry_run:
            return self._planned(reference, place, strict, do)
        with self._engine.write() as transaction:

            def done() -> Deleted:
                return do(transaction, resolve_node(transaction, reference, place, strict=strict))

            return once(transaction, place, key, request, Deleted, done)

    def _delete(
        self, snapshot: Snapshot, node: Node, graph: WorkspaceGraph | None, cascade: bool
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
            goners += self._below(snapshot, node, graph, (RelationType.CONTAINS,))
        else:
            children = snapshot.nodes.children(node.id)
        ids = [each.id for each in goners]
        relations = snapshot.relations.touching(ids)
        planned = not isinstance(snapshot, Transaction)
        if isinstance(snapshot, Transaction):
            above = node.parent_id
            if children and above is None:
                above = ensure_root(snapshot, node.workspace_id)[0].id
            if children and above is not None:
                snapshot.places.adopt(node.id, above)
            # The deepest first: a child goes before the parent whose relations it holds.
            snapshot.nodes.delete([each.key for each in reversed(goners)])
        return Deleted(
            list(ids), [child.id for child in children], relations, node.workspace_id, planned
        )


def _brief(nodes: Sequence[Node]) -> list[dict[str, Any]]:
    return [
        {"id": node.id, "type": node.type.value, "title": shorten(node.title, 80)}
        for node in nodes[:_SHOWN]
    ]


def _ends(snapshot: Snapshot, node: Node, relations: Sequence[Relation]) -> list[dict[str, Any]]:
    """The relations seen from `node`: type, direction, and the other end."""
    others = {
        each.id: each
        for each in snapshot.nodes.by_ids(
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
