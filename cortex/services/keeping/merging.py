"""Another database's workspaces into this memory: what is there already stays as it is.

The other file is copied first, whatever writes to it, and the copy upgraded where it is of
the original schema. A node is the same when id, type and time of creation are; an id that
means another node here gets a new one, which follows from both. Its session root becomes
this memory's, where the workspace has one. Done again, it changes nothing.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from cortex.domain.errors import InvalidError, NotFoundError
from cortex.domain.taxonomy import SYMMETRIC, RelationType
from cortex.domain.values import Node, NodeId, Relation, RelationId, WorkspaceId, id_from, new_id
from cortex.services.linking import refuse_cycle
from cortex.store.copying import copy_database
from cortex.store.database import Database, Snapshot, Transaction
from cortex.store.exports import ACCESS, WAVE
from cortex.store.meta import UPGRADE_REPORT

_ALL: Final = -1


@dataclass(slots=True)
class Merged:
    """What came in, or with `dry_run` would; `present` was here already, `refused` broke a rule.

    `upgrade` says what was repaired in a file of the original schema.
    """

    file: str
    workspaces: list[str]
    dry_run: bool
    nodes: int = 0
    relations: int = 0
    history: int = 0
    present: int = 0
    refused: int = 0
    upgrade: dict[str, Any] | None = None


def merge_file(
    transaction: Transaction, home: Path, path: Path, workspace: str | None, dry_run: bool
) -> Merged:
    """Merge every workspace of the file, or the one named, within the caller's transaction."""
    with _opened_copy(path, home) as source:
        places = source.nodes.workspaces()
        if workspace is not None:
            if workspace not in places:
                raise NotFoundError(
                    f"{path.name} has no workspace {workspace!r}",
                    f"It has: {', '.join(places) or 'none'}",
                    "Name one of these, or none to take all",
                )
            places = [WorkspaceId(workspace)]
        report = Merged(str(path), list(places), dry_run)
        upgrade = source.meta.find(UPGRADE_REPORT)
        report.upgrade = None if upgrade is None else json.loads(upgrade)
        for place in places:
            _Merge(transaction, source, place, report).run()
        return report


@contextmanager
def _opened_copy(path: Path, home: Path) -> Iterator[Snapshot]:
    with tempfile.TemporaryDirectory(dir=home, prefix="import-") as folder:
        copy = Path(folder) / "cortex.db"
        copy_database(path, copy)
        with closing(Database(copy)) as database, database.read() as snapshot:
            yield snapshot


class _Merge:
    """One workspace on its way in."""

    def __init__(
        self, transaction: Transaction, source: Snapshot, place: WorkspaceId, report: Merged
    ) -> None:
        self._transaction = transaction
        self._source = source
        self._place = place
        self._report = report
        self._new: set[NodeId] = set()
        self._renamed: dict[NodeId, NodeId] = {}

    def run(self) -> None:
        theirs, ours = self._source.nodes.root(self._place), None
        if theirs is not None:
            ours = self._transaction.nodes.root(self._place)
            if ours is not None and ours.id != theirs.id:
                self._renamed[theirs.id] = ours.id
        wanted = [node for node in self._source.nodes.iter_all(self._place) if self._lacks(node)]
        for node in wanted:
            self._transaction.nodes.restore(
                node._replace(
                    id=self._here(node.id),
                    parent_id=None if node.parent_id is None else self._here(node.parent_id),
                )
            )
        self._report.nodes += len(wanted)
        for relation in self._source.relations.iter_all(self._place):
            self._join(relation)
        self._visits()
        self._beside()

    def _here(self, node: NodeId) -> NodeId:
        return self._renamed.get(node, node)

    def _lacks(self, node: Node) -> bool:
        """Whether the node is not here yet; notes the id that it will have."""
        if node.id in self._renamed:  # their root
            self._report.present += 1
            return False
        here = self._transaction.nodes.find(node.id)
        if here is not None and not _same(here, node):
            self._renamed[node.id] = id_from(self._place, node.id, node.type, node.created_at)
            here = self._transaction.nodes.find(self._renamed[node.id])
        if here is not None:
            self._report.present += 1
            return False
        self._new.add(self._here(node.id))
        return True

    def _join(self, relation: Relation) -> None:
        store = self._transaction.relations
        source, target = self._here(relation.from_id), self._here(relation.to_id)
        if relation.type in SYMMETRIC and source > target:
            source, target = target, source
        if store.find(source, target, relation.type) is not None:
            self._report.present += 1
        elif not self._may_join(source, target, relation.type):
            self._report.refused += 1
        else:
            own = RelationId(new_id()) if store.holds(relation.id) else relation.id
            store.restore(relation._replace(id=own, from_id=source, to_id=target))
            self._report.relations += 1

    def _may_join(self, source: NodeId, target: NodeId, kind: RelationType) -> bool:
        """Whether a relation keeps the rules here: those of its file it kept."""
        if source == target:
            return False  # both were session roots
        if kind is RelationType.CONTAINS:
            return target in self._new  # what was here keeps its parent
        if kind is RelationType.SUPERSEDES:
            ends = self._transaction.nodes.by_ids([source, target])
            try:
                refuse_cycle(self._transaction, ends[0], ends[1], kind)
            except InvalidError:
                return False
        return True

    def _visits(self) -> None:
        navigation = self._transaction.navigation
        for visit in reversed(self._source.navigation.newest(self._place, _ALL)):
            own = visit.__class__(
                visit.workspace_id, self._here(visit.node_id), visit.action, visit.context, visit.at
            )
            if not navigation.holds(own):
                navigation.add(own)
                self._report.history += 1

    def _beside(self) -> None:
        """Waves and access counts of the nodes that came in; those that were here keep theirs."""
        for kind in (WAVE, ACCESS):
            for row in self._source.exports.iter_rows(kind, self._place):
                values = dict(zip(kind.columns, row, strict=True))
                values["node_id"] = self._here(values["node_id"])
                if values["node_id"] in self._new:
                    self._transaction.exports.put(kind, values)


def _same(here: Node, node: Node) -> bool:
    same = (here.workspace_id, here.type, here.created_at)
    return same == (node.workspace_id, node.type, node.created_at)
