"""One memory, looked at whole: what it says, what it is joined to, how it came to be so."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from cortex.domain.errors import AmbiguousError, NotFoundError
from cortex.domain.instants import Instant
from cortex.domain.values import PREFIX, Node, NodeId, Relation, WorkspaceId, unpack
from cortex.services.engine import Engine
from cortex.services.reach import reach_of
from cortex.services.resolving import chain_of, describe, resolve_node
from cortex.services.retrieval.context import Place, places_of
from cortex.services.warnings import Warnings, warnings_of
from cortex.store.changes import LogRow
from cortex.store.database import Snapshot
from cortex.store.embeddings import IndexState

_RELATIONS: Final = 200
_COLUMNS: Final = ("type", "workspace_id", "parent_id", "status")


@dataclass(frozen=True, slots=True)
class Shown:
    """A node with all there is to see. Relations come with their other end, oldest first, at
    most 200 each way of `degree` in all; `chain` is its supersedes chain, newest first, the
    node among it, or empty where it stands alone."""

    node: Node
    outgoing: tuple[tuple[Relation, Node], ...]
    incoming: tuple[tuple[Relation, Node], ...]
    degree: int
    chain: tuple[Node, ...]
    files: tuple[Place, ...]
    warnings: Warnings
    index: IndexState | None


@dataclass(frozen=True, slots=True)
class Change:
    """One change of a node: `op` is insert, update or delete; `fields` maps what differs to
    its values before and after, None where there is none."""

    at: Instant
    actor: str
    op: str
    fields: Mapping[str, tuple[Any, Any]]


@dataclass(frozen=True, slots=True)
class Past:
    """A node's changes, newest first; `node` is None when it was deleted."""

    id: NodeId
    node: Node | None
    changes: tuple[Change, ...]


class Inspecting:
    """Looks at single nodes, for people."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def locate(self, reference: str, workspace: str | None = None) -> Node:
        """The node that a person names: here first, else where it is the only one.

        An id prefix or path copied from a search everywhere needs no workspace beside it.
        Raises NotFoundError, AmbiguousError, InvalidError.
        """
        with self._engine.database.read() as snapshot:
            return self._locate(snapshot, reference, workspace)

    def _locate(self, snapshot: Snapshot, reference: str, workspace: str | None) -> Node:
        place = self._engine.workspace(workspace)
        try:
            return resolve_node(snapshot, reference, place, strict=workspace is not None)
        except NotFoundError:
            found = [] if workspace else _elsewhere(snapshot, reference, place)
            if not found:
                raise
        if len(found) > 1:
            named = "; ".join(f"{describe(node)} in {node.workspace_id}" for node in found[:5])
            raise AmbiguousError(
                f"{reference!r} names nodes of {len(found)} workspaces",
                f"Candidates: {named}",
                "Pass --workspace",
            )
        return found[0]

    def show(self, reference: str, workspace: str | None = None) -> Shown:
        """The node with everything around it."""
        with self._engine.database.read() as snapshot:
            node = self._locate(snapshot, reference, workspace)
            chain = chain_of(snapshot, node)
            shown = Shown(
                node,
                _ends(snapshot, snapshot.relations.outgoing(node.id, limit=_RELATIONS), node),
                _ends(snapshot, snapshot.relations.incoming(node.id, limit=_RELATIONS), node),
                snapshot.relations.degree(node.id),
                tuple(chain) if len(chain) > 1 else (),
                places_of(snapshot, [node], reach_of(snapshot, self._engine.settings)),
                warnings_of(snapshot, (node,)),
                snapshot.outbox.state(node.key),
            )
        drifted = self._engine.drift.warnings((node,))  # asks the disk, so after the transaction
        return replace(shown, warnings=(*shown.warnings, *drifted))

    def past(self, reference: str, workspace: str | None = None) -> Past:
        """The node's changes as the log has them; also of one that was deleted."""
        with self._engine.database.read() as snapshot:
            try:
                node = self._locate(snapshot, reference, workspace)
            except NotFoundError:
                gone = _gone(snapshot, reference)
                if gone is None:
                    raise
                rows = snapshot.changes.of_node(gone[0])
                return Past(NodeId(gone[1]), None, _changes(rows, None))
            rows = snapshot.changes.of_node(node.key)
            return Past(node.id, node, _changes(rows, node))


def _elsewhere(snapshot: Snapshot, reference: str, here: WorkspaceId) -> list[Node]:
    found = []
    for place in snapshot.nodes.workspaces():
        if place != here:
            try:
                found.append(resolve_node(snapshot, reference, place, strict=True))
            except NotFoundError:
                continue  # one workspace less to choose from
    return found


def _ends(
    snapshot: Snapshot, relations: Sequence[Relation], node: Node
) -> tuple[tuple[Relation, Node], ...]:
    ends = [r.to_id if r.from_id == node.id else r.from_id for r in relations]
    others = {other.id: other for other in snapshot.nodes.by_ids(ends)}
    return tuple((r, others[end]) for r, end in zip(relations, ends, strict=True))


def _gone(snapshot: Snapshot, reference: str) -> tuple[int, str] | None:
    """Key and id of the one deleted node that the reference names."""
    prefix = reference.strip().lower()
    found = snapshot.changes.gone(prefix) if len(prefix) >= PREFIX else []
    if len(found) > 1:
        raise AmbiguousError(
            f"{reference!r} names {len(found)} deleted nodes or more",
            "Candidates: " + "; ".join(node for _, node in found),
            "Give more of the id",
        )
    return found[0] if found else None


def _changes(rows: Sequence[LogRow], present: Node | None) -> tuple[Change, ...]:
    """The log's rows with what each changed: the next row's before is this one's after."""
    last = None if present is None else _fields_of(present)
    after = [*(_flat(row.before) for row in rows[1:]), last] if rows else []
    return tuple(
        Change(row.at, row.actor, row.op, _differing(_flat(row.before), then))
        for row, then in reversed(list(zip(rows, after, strict=True)))
    )


def _flat(before: Mapping[str, Any] | None) -> dict[str, Any] | None:
    if before is None:
        return None
    return {**unpack(before["data"]), **{name: before[name] for name in _COLUMNS}}


def _fields_of(node: Node) -> dict[str, Any]:
    columns = (node.type.value, node.workspace_id, node.parent_id, node.status.value)
    return {**node.data, **dict(zip(_COLUMNS, columns, strict=True))}


def _differing(
    before: Mapping[str, Any] | None, after: Mapping[str, Any] | None
) -> dict[str, tuple[Any, Any]]:
    old, new = before or {}, after or {}
    return {
        name: (old.get(name), new.get(name))
        for name in dict.fromkeys((*old, *new))
        if old.get(name) != new.get(name)
    }
