"""A plan written into the file, within one transaction.

What changed since the plan was made is left alone: a change whose row moved meanwhile is not
made, and is counted, so that nobody's later write is lost and no writer waits for planning.
"""

from __future__ import annotations

from cortex.domain.dreams import Change
from cortex.domain.taxonomy import NodeType, RelationType, Status
from cortex.domain.values import NodeId
from cortex.services.dreaming.planning import Plan
from cortex.store.database import Transaction
from cortex.store.dreams import BUNDLE, SKIP


def write_plan(transaction: Transaction, plan: Plan) -> tuple[Change, ...]:
    """Make the changes of a plan; those that were made."""
    return _Writing(transaction, plan).run()


class _Writing:
    def __init__(self, transaction: Transaction, plan: Plan) -> None:
        self._transaction = transaction
        self._plan = plan
        since, now = plan.generation, transaction.generation()
        self._moved: frozenset[int] = frozenset()
        self._moved_relations: frozenset[int] = frozenset()
        self._moved_ids: frozenset[str] = frozenset()
        self._all = now.epoch != since.epoch or now.floor > since.seq
        if now.seq != since.seq and not self._all:
            touched = transaction.changes.touched(since.seq, now.seq)
            waves = transaction.waves.touched(since.seq)
            self._moved = frozenset([*touched.nodes, *waves])
            self._moved_relations = frozenset(touched.relations)
            gone = transaction.changes.deleted("node", touched.nodes)
            ids = [node.id for node in transaction.nodes.by_keys(touched.nodes)]
            self._moved_ids = frozenset([*ids, *(row["id"] for row in gone.values())])
        self._undone: set[tuple[str, object]] = set()

    def run(self) -> tuple[Change, ...]:
        if self._all:
            return ()
        for link in self._plan.links:
            self._link("replay", link.one, link.other, link.weight, {"derived": True})
        for old, weight in self._plan.mended:
            if weight is not None and old.key not in self._moved_relations:
                at = self._transaction.at
                self._transaction.relations.refresh(old.key, weight, old.data, at)
        self._bundle()
        waves = self._transaction.waves
        for each in self._plan.waves:
            if each.key not in self._moved:
                waves.put(each.key, each.wave, each.since)
        archived = [key for key in self._plan.archived if key not in self._moved]
        self._transaction.nodes.set_status(archived, Status.ARCHIVED)
        for link in self._plan.wiring.made:
            data = {"derived": True, "dream": SKIP}
            self._link("wire", link.one, link.other, link.weight, data)
        gone = [*self._plan.wiring.gone, *self._plan.bundling.untied]
        gone += [old.key for old, weight in self._plan.mended if weight is None]
        self._transaction.relations.delete(
            [key for key in gone if key not in self._moved_relations]
        )
        return tuple(change for change in self._plan.changes if self._made(change))

    def _made(self, change: Change) -> bool:
        if (change.step, change.subject) in self._undone:
            return False
        moved = self._moved if isinstance(change.subject, str) else self._moved_relations
        return change.key == 0 or change.key not in moved

    def _link(self, step: str, one: NodeId, other: NodeId, weight: float, data: object) -> None:
        relations, kind = self._transaction.relations, RelationType.RELATED_TO
        moved = one in self._moved_ids or other in self._moved_ids
        if moved or (self._moved_relations and relations.find(one, other, kind)):
            self._undone.add((step, (one, kind.value, other)))
            return
        assert isinstance(data, dict)
        place, at = self._plan.workspace, self._transaction.at
        relations.insert(place, one, other, kind, at, weight, data)

    def _bundle(self) -> None:
        transaction, bundling = self._transaction, self._plan.bundling
        place = self._plan.workspace
        root = transaction.nodes.root(place) if bundling.made else None
        for each in bundling.made:
            if each.id in self._moved_ids:  # another dream made it meanwhile
                self._undone.add(("bundle", each.id))
                continue
            parent = None if root is None else root.id
            node = transaction.nodes.insert(
                each.id, NodeType.PATTERN, place, parent, each.data, each.at
            )
            if parent is not None:
                transaction.relations.insert(
                    place, parent, node.id, RelationType.CONTAINS, transaction.at
                )
            transaction.waves.put(node.key, each.wave, each.at)
        for edit in bundling.edits:
            if edit.node.key in self._moved:
                continue
            if edit.data != dict(edit.node.data):
                transaction.nodes.set_data(edit.node.key, edit.data, edit.at)
            transaction.nodes.set_status([edit.node.key], edit.status)
        for pattern, member in bundling.tied:
            if pattern in self._moved_ids or member in self._moved_ids:
                self._undone.add(("bundle", (pattern, RelationType.DERIVES_FROM.value, member)))
                continue
            transaction.relations.insert(
                place, pattern, member, RelationType.DERIVES_FROM, transaction.at, 1.0,
                {"derived": True, "dream": BUNDLE},
            )  # fmt: skip
