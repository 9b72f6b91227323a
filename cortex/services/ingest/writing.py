"""Files into memory: each a fileref, its pieces nodes, again and again without doubles.

A file is found by its path, a piece by its key within the file. An unchanged file is not
even read; a changed one updates the nodes whose words changed; a piece that is gone turns
stale, since nothing is deleted unasked (invariant 8). One transaction a file, which looks
before it writes: two ingests of one folder end as one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from cortex.domain.errors import CortexError
from cortex.domain.taxonomy import FILE_RELATIONS, NodeType, RelationType, Status, file_relation
from cortex.domain.values import Node, NodeId, Relation, WorkspaceId
from cortex.services.adding import insert_child
from cortex.services.engine import Engine
from cortex.services.files import canonical
from cortex.services.ingest.parse import parse
from cortex.services.ingest.pieces import Piece, SourceFile
from cortex.services.ingest.sources import read_source, survey_sources
from cortex.services.linking import ensure_root
from cortex.services.resolving import head_of
from cortex.store.database import Snapshot, Transaction

KEY: Final = "key"
Progress = Callable[[int, int], None]


@dataclass(slots=True)
class Ingested:
    """What an ingest did. `nodes` were added, `updated` changed, `gone` turned stale."""

    workspace_id: str
    root: str
    files: int = 0
    unchanged: int = 0
    nodes: int = 0
    updated: int = 0
    gone: int = 0
    skipped: dict[str, int] = field(default_factory=dict)
    unreadable: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)


class Ingest:
    """Reads folders into a workspace."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def ingest(
        self, path: Path, *, workspace: str | None = None, progress: Progress = lambda *_: None
    ) -> Ingested:
        """Read every Markdown, text and Python file below `path`, or the one file.

        Raises NotFoundError when there is no such path. A file that cannot be read or
        parsed is reported, and what memory holds of it stays.
        """
        place = self._engine.workspace(workspace)
        survey = survey_sources(path)
        base = survey.root.absolute()
        folder = base if base.is_dir() else base.parent
        # Inside the project a path is told from there, as agents name files; else whole.
        project = self._engine.settings.project
        inside = project is not None and folder.is_relative_to(project)
        anchor = project if inside and project else folder
        report = Ingested(place, str(base))
        report.skipped = {str(reason): count for reason, count in survey.skipped.items()}
        report.unreadable = [str(each.path) for each in survey.unreadable]
        files = survey.paths
        parent: NodeId | None = None
        for done, file in enumerate(files):
            progress(done, len(files))
            stored = self._stored(file, project)
            if self._is_unchanged(place, file, stored):
                report.unchanged += 1
                continue
            try:
                source, text = read_source(file, folder)
            except CortexError as error:
                report.unreadable.append(f"{file}: {error.message}")
                continue
            if parent is None:
                parent = self._folder(place, folder, project)
            self._write(place, parent, source, text, stored, anchor, report)
        progress(len(files), len(files))
        return report

    def _stored(self, file: Path, project: Path | None) -> str:
        return canonical(str(file), project)[0] if project else file.as_posix()

    def _is_unchanged(self, place: WorkspaceId, file: Path, stored: str) -> bool:
        with self._engine.database.read() as snapshot:
            known = snapshot.nodes.by_path(place, stored)
        if not known or known[0].data.get("ingested") is not True:
            return False
        try:
            state = file.stat()
        except OSError:
            return False  # reading it will say why
        data = known[0].data
        return (data.get("size"), data.get("modified_ns")) == (state.st_size, state.st_mtime_ns)

    def _folder(self, place: WorkspaceId, folder: Path, project: Path | None) -> NodeId:
        """The fileref of the ingested folder, which holds those of its files."""
        stored = self._stored(folder, project)
        with self._engine.write() as transaction:
            known = transaction.nodes.by_path(place, stored)
            if known:
                return known[0].id
            root, _ = ensure_root(transaction, place)
            data = {"title": folder.name, "path": stored, "root": str(folder), "kind": "folder"}
            return insert_child(transaction, NodeType.FILEREF, place, root, data).id

    def _write(
        self,
        place: WorkspaceId,
        parent: NodeId,
        source: SourceFile,
        text: str,
        stored: str,
        anchor: Path,
        report: Ingested,
    ) -> None:
        with self._engine.database.read() as snapshot:
            known = snapshot.nodes.by_path(place, stored)
        if known and known[0].data.get("hash") == source.sha256 and "ingested" in known[0].data:
            report.unchanged += 1
            return
        parsed = parse(source, text)
        if parsed.problem:
            report.problems.append(parsed.problem)
            if known:
                return  # what was known of it stands until it can be read again
        facts = {
            "path": stored,
            "root": str(anchor),
            "file_type": source.language,
            "size": source.size,
            "modified_ns": source.modified_ns,
            "hash": source.sha256,
            "ingested": True,
        }
        with self._engine.write() as transaction:
            _FileWriter(transaction, place, report).write(parent, facts, parsed.pieces)
        report.files += 1


class _FileWriter:
    """One file's nodes within one transaction."""

    def __init__(self, transaction: Transaction, place: WorkspaceId, report: Ingested) -> None:
        self._transaction = transaction
        self._place = place
        self._report = report

    def write(self, parent: NodeId, facts: Mapping[str, Any], pieces: Sequence[Piece]) -> None:
        transaction = self._transaction
        known = transaction.nodes.by_path(self._place, str(facts["path"]))
        if known:
            file = known[0]
            if file.data.get("hash") == facts["hash"] and "ingested" in file.data:
                return  # another ingest was here first
            transaction.nodes.set_data(file.key, {**file.data, **facts}, transaction.at)
        else:
            above = transaction.nodes.find(parent)
            assert above is not None
            file = insert_child(transaction, NodeType.FILEREF, self._place, above, facts)
        present = _pieces_of(transaction, file)
        nodes: dict[str, Node] = {}
        for piece in pieces:
            above = nodes[piece.parent_key] if piece.parent_key else file
            found = present.pop((piece.key, piece.type), None)
            nodes[piece.key] = (
                self._insert(file, above, piece)
                if found is None
                else self._update(found[0], found[1], above, piece)
            )
        self._retire([node for node, _ in present.values()])

    def _insert(self, file: Node, above: Node, piece: Piece) -> Node:
        transaction = self._transaction
        node = insert_child(transaction, piece.type, self._place, above, _data(piece))
        transaction.relations.insert(
            self._place,
            node.id,
            file.id,
            file_relation(piece.type),
            transaction.at,
            data=_lines(piece),
        )
        self._report.nodes += 1
        return node

    def _update(self, node: Node, link: Relation, above: Node, piece: Piece) -> Node:
        transaction = self._transaction
        data = {**node.data, **_data(piece)}
        if data != node.data:
            transaction.nodes.set_data(node.key, data, transaction.at)
            self._report.updated += 1
        if node.status is Status.STALE and head_of(transaction, node).id == node.id:
            transaction.nodes.set_status([node.key], Status.ACTIVE, transaction.at)
        if link.data != _lines(piece):
            transaction.relations.refresh(link.key, link.weight, _lines(piece), transaction.at)
        if node.parent_id != above.id:
            self._move(node, above)
        return node

    def _move(self, node: Node, above: Node) -> None:
        transaction = self._transaction
        old = transaction.relations.incoming(node.id, (RelationType.CONTAINS,))
        transaction.relations.delete([relation.key for relation in old])
        transaction.relations.insert(
            self._place, above.id, node.id, RelationType.CONTAINS, transaction.at
        )

    def _retire(self, nodes: Sequence[Node]) -> None:
        going = [node.key for node in nodes if node.status is Status.ACTIVE]
        if going:
            self._transaction.nodes.set_status(going, Status.STALE, self._transaction.at)
            self._report.gone += len(going)


def _pieces_of(snapshot: Snapshot, file: Node) -> dict[tuple[str, NodeType], tuple[Node, Relation]]:
    """The nodes that an earlier ingest made of this file, by key and type."""
    links = snapshot.relations.incoming(file.id, FILE_RELATIONS)
    nodes = {node.id: node for node in snapshot.nodes.by_ids([link.from_id for link in links])}
    return {
        (str(nodes[link.from_id].data[KEY]), nodes[link.from_id].type): (nodes[link.from_id], link)
        for link in links
        if KEY in nodes[link.from_id].data
    }


def _data(piece: Piece) -> dict[str, Any]:
    data: dict[str, Any] = {"title": piece.title[:500], "text": piece.text, KEY: piece.key}
    if piece.tags:
        data["tags"] = list(piece.tags)
    return {**data, **piece.data}


def _lines(piece: Piece) -> dict[str, Any]:
    return {"line": piece.line, "end_line": piece.end_line}
