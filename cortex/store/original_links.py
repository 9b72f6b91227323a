"""Which relations of an original file may stay as they are, and what becomes of the others.

Original files know no rules. Here a node gets one parent (what its `parent_id` names, else
the oldest `contains`), contains and supersedes stay without cycles, and two nodes have one
relation of a type. What breaks a rule becomes a labelled `related_to`, or where not even
that can be, an entry in a node's data: nothing is dropped.

Cycles of contains are told by union-find: a node without parent is the root of its tree, so
a new parent closes a cycle exactly when it lies in that tree. Near linear in the relations.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from cortex.domain.instants import Instant
from cortex.domain.taxonomy import SYMMETRIC, NodeType, RelationType, Status
from cortex.domain.values import NodeId, RelationId, WorkspaceId, new_id
from cortex.domain.verbs import with_verb
from cortex.store.original import as_json, as_text, extras, read_data, read_kind, read_weight

Key = tuple[NodeId, NodeId, RelationType]

_COLUMNS: Final = frozenset(
    ["rowid", "id", "from_id", "to_id", "type", "weight", "data", "created_at", "updated_at"]
)
RELATIONS: Final = "original_relations"
DUPLICATES: Final = "original_duplicates"


@dataclass(slots=True)
class Draft:
    """A node to be: `row` is its rowid in the old table, `extra` what joins its data."""

    row: int
    id: NodeId
    type: NodeType
    workspace: WorkspaceId
    status: Status
    created: Instant
    wanted_parent: Any = None
    parent: NodeId | None = None
    extra: dict[str, Any] = field(default_factory=dict)


@dataclass(slots=True)
class Link:
    """A relation to be."""

    id: RelationId
    workspace: WorkspaceId
    weight: float
    data: dict[str, Any]
    created: Instant
    updated: Instant


@dataclass(slots=True)
class OldRelation:
    """A row of the old table with its times read."""

    row: Mapping[str, Any]
    created: Instant
    updated: Instant
    extra: dict[str, Any]


class Forest:
    """Who is whose parent, without cycles."""

    def __init__(self) -> None:
        self._top: dict[NodeId, NodeId] = {}

    def _root(self, node: NodeId) -> NodeId:
        path = []
        while (above := self._top.get(node, node)) != node:
            path.append(node)
            node = above
        for each in path:
            self._top[each] = node
        return node

    def put_below(self, child: NodeId, parent: NodeId) -> bool:
        """Give a node without parent one; False where that would close a cycle."""
        if self._root(parent) == child:
            return False
        self._top[child] = parent
        return True


class Links:
    """Plans the relations of one file; `repairs` counts what was done, by kind."""

    def __init__(self, drafts: Mapping[str, Draft], repairs: Counter[str]) -> None:
        """`drafts` by the text of their old id, in order of creation."""
        self._drafts = drafts
        self._repairs = repairs
        self._forest = Forest()
        self._ids: set[str] = set()
        self._newer: dict[NodeId, set[NodeId]] = {}
        self.planned: dict[Key, Link] = {}
        self.leftovers: list[dict[str, Any]] = []

    def plan(self, rows: Iterable[OldRelation]) -> None:
        """Decide on every relation; `rows` in order of creation."""
        self._parents_by_column()
        for old in rows:
            self._place(old)
        self._one_root_each()
        self._complete_contains()

    def _parents_by_column(self) -> None:
        for draft in self._drafts.values():
            wanted = as_text(draft.wanted_parent)
            if not wanted:
                continue
            above = self._drafts.get(wanted)
            if (
                above is not None
                and above.workspace == draft.workspace
                and above is not draft
                and self._forest.put_below(draft.id, above.id)
            ):
                draft.parent = above.id
            else:
                draft.extra["original_parent_id"] = as_json(draft.wanted_parent)
                self._repairs["parent"] += 1

    def _place(self, old: OldRelation) -> None:
        row = old.row
        source = self._drafts.get(as_text(row.get("from_id")))
        target = self._drafts.get(as_text(row.get("to_id")))
        if source is None or target is None:
            self._keep_beside(source or target, old, "dangling")
        elif source is target:
            self._keep_beside(source, old, "self_loop")
        elif source.workspace != target.workspace:
            self._keep_beside(source, old, "cross_workspace")
        else:
            kind = read_kind(RelationType, row.get("type"))
            broken = "relation_type" if kind is None else self._broken_rule(kind, source, target)
            if kind is None or broken:
                self._repairs[broken or "relation_type"] += 1
                self._label(old, source, target)
            else:
                self._join(kind, source, target, old)

    def _broken_rule(self, kind: RelationType, source: Draft, target: Draft) -> str | None:
        if kind is RelationType.CONTAINS:
            if target.parent is None and self._forest.put_below(target.id, source.id):
                target.parent = source.id
            if target.parent == source.id:
                return None
            return "cycle" if target.parent is None else "second_parent"
        if kind is RelationType.SUPERSEDES:
            if self._supersedes(target.id, source.id):
                return "cycle"
            self._newer.setdefault(target.id, set()).add(source.id)
            if target.status is Status.ACTIVE:  # invariant 6
                target.status = Status.STALE
                target.extra["original_status"] = "active"
                self._repairs["superseded_active"] += 1
        return None

    def _supersedes(self, new: NodeId, old: NodeId) -> bool:
        """Whether `new` stands above `old` already. A head, the usual case, has none above."""
        queue, seen = [old], {old}
        while queue:
            for newer in self._newer.get(queue.pop(), ()):
                if newer == new:
                    return True
                if newer not in seen:
                    seen.add(newer)
                    queue.append(newer)
        return False

    def _join(self, kind: RelationType, source: Draft, target: Draft, old: OldRelation) -> None:
        ends = (source.id, target.id)
        if kind in SYMMETRIC:
            ends = (min(ends), max(ends))
        key = (*ends, kind)
        link = self._link(old, source.workspace)
        present = self.planned.get(key)
        if present is None:
            self.planned[key] = link
            return
        # The later row refreshes, as adding a relation again does; the earlier is kept whole.
        self._repairs["duplicate"] += 1
        label = link.data.pop("label", None)
        kept = {**present.data, **link.data}
        if isinstance(label, str):
            kept = with_verb(kept, label, source.id, target.id)
        earlier = {"id": present.id, "weight": present.weight, "created_at": present.created}
        said = {name: value for name, value in present.data.items() if name != DUPLICATES}
        kept[DUPLICATES] = [*present.data.get(DUPLICATES, ()), {**earlier, "data": said}]
        present.id, present.weight, present.data = link.id, link.weight, kept
        present.updated = max(present.updated, link.updated)

    def _label(self, old: OldRelation, source: Draft, target: Draft) -> None:
        """Keep the row as a `related_to` that says its verb and direction."""
        key = (min(source.id, target.id), max(source.id, target.id), RelationType.RELATED_TO)
        link = self._link(old, source.workspace)
        present = self.planned.get(key)
        if present is None:
            own = link.data.pop("label", None)
            link.data = with_verb(link.data, as_text(old.row.get("type")), source.id, target.id)
            if own is not None:
                link.data["original_label"] = own
            self.planned[key] = link
            return
        kept = with_verb(present.data, as_text(old.row.get("type")), source.id, target.id)
        present.data = {**kept, RELATIONS: [*kept.get(RELATIONS, ()), _entry(old)]}
        present.weight = max(present.weight, link.weight)

    def _link(self, old: OldRelation, workspace: WorkspaceId) -> Link:
        row = old.row
        data, mended = read_data(row.get("data"))
        if mended:
            self._repairs["data"] += 1
        weight = read_weight(row.get("weight"))
        raw = row.get("weight")
        if raw is not None and raw != weight:
            data["original_weight"] = as_json(raw)
            self._repairs["weight"] += 1
        if beside := extras(row, _COLUMNS):
            data["original_columns"] = beside
        relation = as_text(row.get("id"))
        if not relation or relation in self._ids:
            data["original_id"] = relation
            relation = new_id()
            self._repairs["id"] += 1
        self._ids.add(relation)
        return Link(
            RelationId(relation), workspace, weight, {**data, **old.extra}, old.created, old.updated
        )

    def _keep_beside(self, node: Draft | None, old: OldRelation, why: str) -> None:
        self._repairs[why] += 1
        kept = self.leftovers if node is None else node.extra.setdefault(RELATIONS, [])
        kept.append({"why": why, **_entry(old)})

    def _one_root_each(self) -> None:
        """A workspace's oldest session is its root; further ones come below it."""
        roots: dict[WorkspaceId, Draft] = {}
        for draft in self._drafts.values():
            if draft.type is not NodeType.SESSION or draft.parent is not None:
                continue
            root = roots.setdefault(draft.workspace, draft)
            if root is not draft:
                self._forest.put_below(draft.id, root.id)
                draft.parent = root.id
                self._repairs["session_root"] += 1

    def _complete_contains(self) -> None:
        """parent_id and contains say the same of every node."""
        for draft in self._drafts.values():
            if draft.parent is None:
                continue
            key = (draft.parent, draft.id, RelationType.CONTAINS)
            if key not in self.planned:
                at = draft.created
                made = Link(RelationId(new_id()), draft.workspace, 1.0, {}, at, at)
                self.planned[key] = made
                self._repairs["contains_added"] += 1


def _entry(old: OldRelation) -> dict[str, Any]:
    return {name: as_json(value) for name, value in old.row.items() if name != "rowid"}


def iter_links(planned: Mapping[Key, Link]) -> Iterator[tuple[Key, Link]]:
    """By creation, then the ends: the same file gives the same order."""
    yield from sorted(planned.items(), key=lambda item: (item[1].created, item[0]))
