"""Workspaces as a whole: listed, renamed, merged, deleted.

A node that moves leaves the caches of one workspace and enters those of the other: its row
and its relations' rows change, so the log names them, and every follower of either
workspace sees it at its next look (invariant 3). Nothing is embedded again: vectors hang on
the node's key.
"""

from __future__ import annotations

from dataclasses import dataclass

from cortex.domain.errors import ConflictError, InvalidError, NotFoundError
from cortex.domain.instants import Instant
from cortex.domain.taxonomy import SYMMETRIC, RelationType, Status
from cortex.domain.values import Node, NodeId, WorkspaceId, workspace_name
from cortex.services.engine import Engine
from cortex.services.linking import ensure_root
from cortex.store.database import Snapshot, Transaction
from cortex.store.meta import LAST_GC

# Of the root that goes: contains is written anew, and a root supersedes nothing.
_LEFT = frozenset({RelationType.CONTAINS, RelationType.SUPERSEDES})


@dataclass(frozen=True, slots=True)
class WorkspaceSummary:
    """One workspace: how much it holds, and when its newest content was written."""

    name: WorkspaceId
    nodes: int
    relations: int
    active: int
    stale: int
    archived: int
    newest: Instant | None


@dataclass(frozen=True, slots=True)
class Moved:
    """How many nodes and relations are in `workspace` now that were in `source`."""

    source: str
    workspace: str
    nodes: int
    relations: int


@dataclass(frozen=True, slots=True)
class Removed:
    """What a deletion took, or with `dry_run` would take."""

    workspace: str
    nodes: int
    relations: int
    types: dict[str, int]
    dry_run: bool


class Workspaces:
    """Lists workspaces, and changes them as a whole."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def list(self) -> tuple[WorkspaceSummary, ...]:
        """Every workspace that holds a node, by name."""
        with self._engine.database.read() as snapshot:
            return tuple(_summary(snapshot, name) for name in snapshot.nodes.workspaces())

    def rename(self, old: str, new: str) -> Moved:
        """Give a workspace a name that no other has; its root's title follows.

        Raises NotFoundError for an unknown one, ConflictError where the new name is taken.
        """
        source, into = workspace_name(old), workspace_name(new)
        with self._engine.write() as transaction:
            _require(transaction, source)
            _refuse_same(source, into, "renamed")
            if into in transaction.nodes.workspaces():
                raise ConflictError(
                    f"workspace {into!r} exists already",
                    "Valid: a name that is not in use",
                    f"Join the two with `cortex workspace merge {source} {into}`",
                )
            nodes = transaction.places.move_nodes(source, into, None)
            relations = transaction.places.move_relations(source, into)
            self._finish(transaction, source, into)
            root = transaction.nodes.root(into)
            if root is not None and root.data.get("title") == source:
                data = {**root.data, "title": into}
                transaction.nodes.set_data(root.key, data, transaction.at)
        self._engine.graphs.prune(self._engine.database)
        return Moved(source, into, nodes, relations)

    def merge(self, source: str, into: str) -> Moved:
        """Move everything of one workspace into another.

        The children of its session root go below the other's root, the root itself goes,
        with its visits and relations given to the other. Raises NotFoundError for an
        unknown name, InvalidError for a merge into itself.
        """
        origin, target = workspace_name(source), workspace_name(into)
        with self._engine.write() as transaction:
            _require(transaction, origin)
            _require(transaction, target)
            _refuse_same(origin, target, "merged")
            places = transaction.places
            old = transaction.nodes.root(origin)
            new, _ = ensure_root(transaction, target)
            nodes = places.move_nodes(origin, target, None if old is None else old.id)
            if old is not None:
                places.adopt(old.id, new.id)
                _carry(transaction, old, new)
                places.move_visits(old.id, new.id)
                transaction.nodes.delete([old.key])
            relations = places.move_relations(origin, target)
            self._finish(transaction, origin, target)
        self._engine.graphs.prune(self._engine.database)
        return Moved(origin, target, nodes, relations)

    def _finish(self, transaction: Transaction, source: WorkspaceId, into: WorkspaceId) -> None:
        transaction.places.move_beside(source, into)
        transaction.places.forget(source, LAST_GC + source)

    def delete(self, name: str, *, dry_run: bool = False) -> Removed:
        """Remove a workspace with all it holds, its history included.

        Raises NotFoundError for an unknown one.
        """
        place = workspace_name(name)
        if dry_run:
            with self._engine.database.read() as snapshot:
                return _removed(snapshot, place, dry_run=True)
        with self._engine.write() as transaction:
            removed = _removed(transaction, place, dry_run=False)
            transaction.nodes.delete(transaction.places.deepest_first(place))
            transaction.places.forget(place, LAST_GC + place)
        self._engine.graphs.prune(self._engine.database)
        return removed


def _summary(snapshot: Snapshot, name: WorkspaceId) -> WorkspaceSummary:
    counts = snapshot.nodes.counts(name)
    return WorkspaceSummary(
        name,
        snapshot.nodes.count(name),
        snapshot.relations.count(name),
        counts.get(Status.ACTIVE, 0),
        counts.get(Status.STALE, 0),
        counts.get(Status.ARCHIVED, 0),
        snapshot.places.newest(name),
    )


def _removed(snapshot: Snapshot, place: WorkspaceId, *, dry_run: bool) -> Removed:
    _require(snapshot, place)
    return Removed(
        place,
        snapshot.nodes.count(place),
        snapshot.relations.count(place),
        {kind.value: count for kind, count in snapshot.nodes.type_counts(place).items()},
        dry_run,
    )


def _require(snapshot: Snapshot, name: WorkspaceId) -> None:
    known = snapshot.nodes.workspaces()
    if name not in known:
        shown = ", ".join(known[:20]) or "none yet"
        raise NotFoundError(
            f"there is no workspace {name!r}",
            f"Known: {shown}" + (f" and {len(known) - 20} more" if len(known) > 20 else ""),
            "Name one of these",
        )


def _refuse_same(source: WorkspaceId, into: WorkspaceId, verb: str) -> None:
    if source == into:
        raise InvalidError(
            f"workspace {source!r} cannot be {verb} into itself",
            "Valid: two different names",
            "`cortex workspace list` shows them",
        )


def _carry(transaction: Transaction, old: Node, new: Node) -> None:
    """The relations of a root that goes, written for the root that stays."""
    store = transaction.relations
    for relation in (*store.outgoing(old.id), *store.incoming(old.id)):
        if relation.type in _LEFT:
            continue
        ends: tuple[NodeId, NodeId] = (
            new.id if relation.from_id == old.id else relation.from_id,
            new.id if relation.to_id == old.id else relation.to_id,
        )
        near, far = sorted(ends) if relation.type in SYMMETRIC else ends
        if store.find(near, far, relation.type) is None:
            store.insert(
                new.workspace_id, near, far, relation.type, transaction.at, relation.weight,
                relation.data,
            )  # fmt: skip
