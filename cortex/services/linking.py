"""Writing single relations under the rules: one workspace, no cycle, smaller id first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from cortex.domain.errors import ConflictError, InvalidError, TooLargeError
from cortex.domain.taxonomy import (
    ACYCLIC,
    SYMMETRIC,
    NodeType,
    RelationType,
    Status,
    off_taxonomy,
    parse_kind,
)
from cortex.domain.values import (
    MAX_RELATION_DATA,
    Node,
    NodeId,
    Relation,
    WorkspaceId,
    clean_json,
    new_id,
    pack,
)
from cortex.domain.verbs import with_verb
from cortex.services.engine import Engine
from cortex.services.repeating import once
from cortex.services.resolving import describe, resolve_node
from cortex.services.screening import screened
from cortex.store.database import Snapshot, Transaction


@dataclass(frozen=True, slots=True)
class Linked:
    """A relation as it stands now; `created` is False where it was refreshed."""

    id: str
    type: str
    from_id: str
    to_id: str
    weight: float
    created: bool
    workspace_id: str
    notes: list[str]


class Linking:
    """Relations between memories."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def add_relation(
        self,
        from_id: str,
        to_id: str,
        kind: str,
        *,
        weight: float = 1.0,
        data: Mapping[str, Any] | None = None,
        workspace: str | None = None,
        key: str | None = None,
    ) -> Linked:
        """Join two nodes, or refresh the relation that joins them already.

        Raises InvalidError across workspaces, onto itself, or where `contains` or
        `supersedes` would close a cycle; ConflictError for a second parent.
        """
        place = self._engine.workspace(workspace)
        flagged = screened(self._engine.settings, {"data": dict(data or {})})
        request = {"from": from_id, "to": to_id, "type": kind, "weight": weight, "data": data}
        with self._engine.write(short=True) as transaction:

            def do() -> Linked:
                source = resolve_node(transaction, from_id, place, strict=workspace is not None)
                target = resolve_node(transaction, to_id, place, strict=workspace is not None)
                linked = link(
                    transaction,
                    source,
                    target,
                    parse_kind(RelationType, kind, "type"),
                    weight=weight,
                    data=data,
                )
                return replace(linked, notes=[*flagged, *linked.notes])

            return once(transaction, place, key, request, Linked, do)


def link(
    transaction: Transaction,
    source: Node,
    target: Node,
    kind: RelationType,
    *,
    weight: float = 1.0,
    data: Mapping[str, Any] | None = None,
) -> Linked:
    """Write or refresh one relation within a transaction."""
    if not 0.0 <= weight <= 1.0:  # NaN is refused here as well
        raise InvalidError(f"weight {weight} is out of range", "Valid: 0.0 to 1.0", "Correct it")
    if source.workspace_id != target.workspace_id:
        raise InvalidError(
            f"{describe(source)} is in workspace {source.workspace_id!r}, {describe(target)} in "
            f"{target.workspace_id!r}",
            "Valid: two nodes of one workspace",
            "Add a node that says it in the other workspace",
        )
    if source.id == target.id:
        raise InvalidError(
            f"{describe(source)} cannot be related to itself", "Valid: two different nodes"
        )
    said = source.id, target.id
    if kind in SYMMETRIC and source.id > target.id:
        source, target = target, source
    note = off_taxonomy(kind, source.type, target.type)
    notes = [note] if note else []
    extra = clean_json(dict(data or {}))
    if len(pack(extra)) > MAX_RELATION_DATA:
        raise TooLargeError(
            "a relation's data is too large",
            f"Valid: up to {MAX_RELATION_DATA:,} characters",
            "Say it in a node, and relate that",
        )
    present = transaction.relations.find(source.id, target.id, kind)
    if kind is RelationType.RELATED_TO:
        extra = _directed(extra, present.data if present else {}, *said)
    if present is not None:
        kept = {**present.data, **extra}
        if present.derived and ("label" in extra or not extra.get("derived")):
            del kept["derived"]  # what somebody states is a neighbour link no longer
        transaction.relations.refresh(present.key, weight, kept, transaction.at)
        return _linked(present, weight, False, notes)
    refuse_cycle(transaction, source, target, kind)
    if kind is RelationType.CONTAINS and target.parent_id is not None:
        raise ConflictError(
            f"{describe(target)} is contained in {target.parent_id} already",
            "Valid: one parent",
            "Use belongs_to or related_to for a second home",
        )
    if kind is RelationType.SUPERSEDES and target.status is not Status.STALE:
        # Invariant 6: a superseded node is never active.
        transaction.nodes.set_status([target.key], Status.STALE)
        notes.append(f"{describe(target)} is stale now")
    made = transaction.relations.insert(
        source.workspace_id, source.id, target.id, kind, transaction.at, weight, extra
    )
    return _linked(made, weight, True, notes)


def _directed(
    extra: dict[str, Any], known: Mapping[str, Any], source: str, target: str
) -> dict[str, Any]:
    """A verb of one's own keeps its direction, which `related_to` itself has not."""
    label = extra.get("label")
    if not isinstance(label, str) or "from" in extra:
        return extra
    rest = {name: value for name, value in extra.items() if name != "label"}
    return with_verb({**known, **rest}, label, source, target)


def _linked(relation: Relation, weight: float, created: bool, notes: Sequence[str]) -> Linked:
    return Linked(
        relation.id,
        relation.type.value,
        relation.from_id,
        relation.to_id,
        weight,
        created,
        relation.workspace_id,
        list(notes),
    )


def refuse_cycle(snapshot: Snapshot, source: Node, target: Node, kind: RelationType) -> None:
    """Raise InvalidError where the relation would close a cycle (invariant 6)."""
    if kind not in ACYCLIC:
        return
    # contains: is the new child an ancestor of its parent? supersedes: does the old one
    # supersede the new one already? Both walk the short way, link by link.
    queue = [source.id]
    seen: set[NodeId] = set()
    while queue:
        node = queue.pop()
        if node == target.id:
            raise InvalidError(
                f"{kind} from {describe(source)} to {describe(target)} would close a cycle",
                f"Valid: {kind} without cycles",
                "Turn it round, or relate them by related_to",
            )
        if node not in seen:
            seen.add(node)
            queue += [r.from_id for r in snapshot.relations.incoming(node, (kind,))]


def ensure_root(transaction: Transaction, workspace: WorkspaceId) -> tuple[Node, bool]:
    """The session root of the workspace, and whether it was made now."""
    root = transaction.nodes.root(workspace)
    if root is not None:
        return root, False
    made = transaction.nodes.insert(
        NodeId(new_id()),
        NodeType.SESSION,
        workspace,
        None,
        {"title": workspace},
        transaction.at,
    )
    return made, True
