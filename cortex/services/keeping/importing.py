"""First memories from elsewhere: the reference memory server's file into a workspace.

An entity becomes a node, each observation a fact below it, a relation ours where it is one
of ours and legal, else a labelled `related_to`. Ids follow from workspace, name and text, so
that a second import finds what the first one wrote, at the cost of one look-up by key. What
is gone from the file stays in memory and is reported (invariant 8). One transaction: a
broken line leaves nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from cortex.domain.errors import CortexError, InvalidError
from cortex.domain.instants import later
from cortex.domain.taxonomy import SYMMETRIC, NodeType, RelationType, Status, parse_kind
from cortex.domain.values import MAX_TITLE, Node, NodeId, WorkspaceId, id_from, shorten
from cortex.domain.verbs import with_verb
from cortex.services.engine import Engine
from cortex.services.fields import Fields
from cortex.services.keeping.merging import Merged, merge_file
from cortex.services.keeping.reference_file import Claim, Entity, ReferenceFile
from cortex.services.keeping.rehearsing import rehearsal
from cortex.services.linking import ensure_root, link, refuse_cycle
from cortex.services.reach import forget_ingested
from cortex.services.screening import kinds_in
from cortex.store.database import Transaction

Progress = Callable[[int, int], None]
_SHOWN: Final = 100
_TITLE: Final = 120
SOURCE: Final = "server-memory"


@dataclass(slots=True)
class Imported:
    """What an import did, or with `dry_run` would do; lists are cut at 100, counts are not.

    `kept` counts observations that are gone from the file and stay in memory; `dangling`
    relations that name no entity of the file or of memory.
    """

    workspace_id: str
    file: str
    dry_run: bool
    entities: int = 0
    observations: int = 0
    relations: int = 0
    updated: int = 0
    unchanged: int = 0
    labelled: int = 0
    kept: int = 0
    dangling: int = 0
    skipped: int = 0
    notes: list[str] = field(default_factory=list)

    def note(self, text: str) -> None:
        if len(self.notes) < _SHOWN:
            self.notes.append(text)


class Importing:
    """Takes in what other memories hold."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def import_memory(
        self,
        path: Path,
        *,
        workspace: str | None = None,
        dry_run: bool = False,
        progress: Progress = lambda *_: None,
    ) -> Imported:
        """Read a memory.jsonl into the workspace, whole or not at all.

        `progress` is told bytes of both passes. Raises NotFoundError for no such file and
        InvalidError or TooLargeError naming the broken line.
        """
        place = self._engine.workspace(workspace)
        report = Imported(place, str(path), dry_run)
        with ReferenceFile(path) as file, rehearsal(self._engine, dry_run) as transaction:
            writer = _Writer(transaction, place, report, strict=self._engine.settings.no_secrets)
            for entity in file.entities(lambda done: progress(done, 2 * file.size)):
                with _naming(file, entity.place):
                    writer.write_entity(entity)
            for claim in file.claims(lambda done: progress(file.size + done, 2 * file.size)):
                with _naming(file, claim.place):
                    writer.write_claim(claim)
            writer.report_kept()
            report.skipped += file.strangers
        return report

    def forget_origin(self) -> None:
        """Of a file that was copied from elsewhere: where its owner let it look is not ours."""
        with self._engine.write() as transaction:
            forget_ingested(transaction)

    def merge_database(
        self, path: Path, *, workspace: str | None = None, dry_run: bool = False
    ) -> Merged:
        """Take in the workspaces of another database, or the one named; never overwrites."""
        with rehearsal(self._engine, dry_run) as transaction:
            return merge_file(transaction, self._engine.settings.home, path, workspace, dry_run)


@contextmanager
def _naming(file: ReferenceFile, place: str) -> Iterator[None]:
    try:
        yield
    except CortexError as error:
        raise type(error)(
            f"{file.path.name} {place}: {error.message}", "", "Nothing was imported"
        ) from error


class _Writer:
    """One file's nodes and relations within one transaction."""

    def __init__(
        self, transaction: Transaction, place: WorkspaceId, report: Imported, *, strict: bool
    ) -> None:
        self._strict = strict
        self._transaction = transaction
        self._place = place
        self._report = report
        self._seen: set[NodeId] = set()
        self._left: dict[NodeId, set[NodeId]] = {}
        self._count = 0

    def _find(self, *parts: str) -> tuple[NodeId, Node | None]:
        """The id that belongs to the parts here, and its node where there is one."""
        attempt = 0
        while True:
            node_id = id_from(SOURCE, self._place, *parts, *(("again",) * attempt))
            node = self._transaction.nodes.find(node_id)
            if node is None or node.workspace_id == self._place:
                return node_id, node
            attempt += 1  # it was moved to another workspace since

    def _is_left_out(self, place: str, *texts: str) -> bool:
        """Whether these look like they hold a key, and none is to be kept; told either way."""
        kinds = kinds_in(texts)
        if kinds:
            left = ", left out" if self._strict else ""
            self._report.note(f"{place}: looks like {kinds}{left}")
            self._report.skipped += self._strict
        return bool(kinds) and self._strict

    def write_entity(self, entity: Entity) -> None:
        if self._is_left_out(entity.place, entity.name, entity.kind):
            return
        node_id, node = self._find(entity.name)
        if node is None:
            root, _ = ensure_root(self._transaction, self._place)
            node = self._insert(node_id, *_entity_data(entity), root)
            self._report.entities += 1
        elif node_id not in self._seen:
            self._retype(node, entity)
        present = self._left.get(node_id)
        if present is None:
            children = [] if node_id in self._seen else self._transaction.nodes.children(node.id)
            present = {child.id for child in children if _is_observation(child)}
        self._seen.add(node_id)
        for text in entity.observations:
            if self._is_left_out(entity.place, text):
                continue
            if text.strip():
                present.discard(self._observe(node, entity.name, text))
            else:
                self._report.skipped += 1
        if present:  # a later line of the same entity may still name them
            self._left[node_id] = present
        else:
            self._left.pop(node_id, None)

    def _observe(self, node: Node, name: str, text: str) -> NodeId:
        fact_id, fact = self._find(name, text)
        if fact is None:
            # The name makes "Prefers tabs" a sentence with a subject, for meaning and lists.
            fields = Fields(title=shorten(f"{name}: {text}", _TITLE), text=text)
            data = {**fields.changes(), "imported": {"from": SOURCE, "observation": True}}
            self._insert(fact_id, NodeType.FACT, data, node)
            self._report.observations += 1
        else:
            self._report.unchanged += 1
        return fact_id

    def _insert(self, node_id: NodeId, kind: NodeType, data: dict[str, Any], parent: Node) -> Node:
        transaction = self._transaction
        # A microsecond apart, so that lists by creation keep the order of the file.
        at = later(transaction.at, microseconds=self._count)
        self._count += 1
        node = transaction.nodes.insert(node_id, kind, self._place, parent.id, data, at)
        transaction.relations.insert(
            self._place, parent.id, node_id, RelationType.CONTAINS, transaction.at
        )
        return node

    def _retype(self, node: Node, entity: Entity) -> None:
        """An entity's type changed in the file: the kind follows, our type stays."""
        mark = node.data.get("imported")
        if not isinstance(mark, dict) or mark.get("type") == entity.kind:
            self._report.unchanged += 1
            return
        changed = {**node.data, "imported": {**mark, "type": entity.kind}}
        if node.type is NodeType.ENTITY:
            changed["kind"] = entity.kind
        self._transaction.nodes.set_data(node.key, changed, self._transaction.at)
        self._report.updated += 1

    def report_kept(self) -> None:
        """Count what the file no longer says and memory keeps."""
        for node_id, children in self._left.items():
            self._report.kept += len(children)
            node = self._transaction.nodes.find(node_id)
            title = "" if node is None else shorten(node.title, 60)
            self._report.note(f"{title}: {len(children)} observations gone from the file, kept")

    def write_claim(self, claim: Claim) -> None:
        if self._is_left_out(claim.place, claim.verb):
            return
        _, source = self._find(claim.source)
        _, target = self._find(claim.target)
        said = shorten(f"{claim.source} {claim.verb} {claim.target}", 120)
        if source is None or target is None:
            missing = claim.source if source is None else claim.target
            self._report.dangling += 1
            self._report.note(f"{claim.place}: {said}: no entity {shorten(missing, 60)!r}")
        elif source.id == target.id:
            self._report.skipped += 1
            self._report.note(f"{claim.place}: {said}: nothing is related to itself")
        elif not self._join(source, target, claim.verb):
            self._label(source, target, claim.verb)

    def _join(self, source: Node, target: Node, verb: str) -> bool:
        """Write the relation as one of ours; False where it is none or breaks a rule."""
        try:
            kind = parse_kind(RelationType, verb, "relationType")
        except InvalidError:
            return False
        transaction = self._transaction
        ends = (source.id, target.id)
        if kind in SYMMETRIC:
            ends = (min(ends), max(ends))
        present = transaction.relations.find(*ends, kind)
        if present is not None and not present.derived:
            self._report.unchanged += 1
            return True
        try:
            refuse_cycle(transaction, source, target, kind)
        except InvalidError:
            return False
        if kind is RelationType.CONTAINS:
            return self._move(source, target)
        # What was derived from likeness is said now: derived no more.
        link(transaction, source, target, kind, data={"derived": False} if present else None)
        self._report.relations += 1
        return True

    def _move(self, parent: Node, child: Node) -> bool:
        """Put a node that hangs at the root below its parent; another parent stays."""
        transaction = self._transaction
        root, _ = ensure_root(transaction, self._place)
        if child.parent_id != root.id:
            return False
        old = transaction.relations.incoming(child.id, (RelationType.CONTAINS,))
        transaction.relations.delete([relation.key for relation in old])
        transaction.relations.insert(
            self._place, parent.id, child.id, RelationType.CONTAINS, transaction.at
        )
        self._report.relations += 1
        return True

    def _label(self, source: Node, target: Node, verb: str) -> None:
        relations = self._transaction.relations
        ends = sorted((source.id, target.id))
        present = relations.find(ends[0], ends[1], RelationType.RELATED_TO)
        known = {} if present is None else dict(present.data)
        data = with_verb(known, verb, source.id, target.id)
        if present is not None and data == known:
            self._report.unchanged += 1
            return
        if present is None:
            relations.insert(
                self._place, ends[0], ends[1], RelationType.RELATED_TO, self._transaction.at,
                data=data,
            )  # fmt: skip
        else:
            data.pop("derived", None)
            relations.refresh(present.key, present.weight, data, self._transaction.at)
        self._report.relations += 1
        self._report.labelled += 1


def _entity_data(entity: Entity) -> tuple[NodeType, dict[str, Any]]:
    data: dict[str, Any] = {"imported": {"from": SOURCE, "type": entity.kind}}
    try:
        kind = parse_kind(NodeType, entity.kind, "entityType")
    except InvalidError:
        kind, data["kind"] = NodeType.ENTITY, entity.kind
    long = len(entity.name) > MAX_TITLE
    title = shorten(entity.name, MAX_TITLE) if long else entity.name
    path = entity.name if kind is NodeType.FILEREF else None
    fields = Fields(title=title, text=entity.name if long else None, path=path, data=data)
    return kind, fields.changes()


def _is_observation(node: Node) -> bool:
    mark = node.data.get("imported")
    return isinstance(mark, dict) and "observation" in mark and node.status is not Status.STALE
