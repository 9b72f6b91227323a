"""Files into memory: each a fileref, its pieces nodes, again and again without doubles.

A file is found by its path, or by its hash where it was renamed; a piece by its key within
the file. An unchanged file is not even read; a changed one updates the nodes whose words
changed; a piece that is gone turns stale, a file that is gone is noted as missing, since
nothing is deleted unasked (invariant 8). One transaction a file, which looks before it
writes: two ingests of one folder end as one, and a killed one goes on where it stopped.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection
from dataclasses import dataclass, field, replace
from pathlib import Path

from cortex.domain.errors import CortexError, NotFoundError
from cortex.domain.taxonomy import NodeType
from cortex.domain.values import Node, NodeId, WorkspaceId
from cortex.services.adding import insert_child
from cortex.services.engine import Engine
from cortex.services.files import canonical
from cortex.services.ingest.absence import (
    Homeless,
    is_known,
    iter_gone,
    missing_change,
    note_missing,
)
from cortex.services.ingest.filing import (
    MISSING,
    FileChange,
    FileRead,
    FileWriter,
    change_of,
    is_same,
    known_file,
)
from cortex.services.ingest.parse import parse
from cortex.services.ingest.pieces import Piece, SourceFile
from cortex.services.ingest.sources import Survey, read_source, survey_sources
from cortex.services.linking import ensure_root
from cortex.services.reach import ingested_roots, note_ingested
from cortex.services.screening import kinds_in

Progress = Callable[[int, int], None]


@dataclass(slots=True)
class Ingested:
    """What an ingest did, or with `dry_run` would do.

    Of pieces: `nodes` were added, `updated` changed, `gone` turned stale. Of files: `files`
    were read, `renamed` found under a new path, `missing` noted as gone from the disk,
    `returned` found again. `changes` names each file of a dry run; `secrets`
    each piece that looks like it holds a key, and says where it was left out.
    """

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
    secrets: list[str] = field(default_factory=list)
    renamed: int = 0
    missing: int = 0
    returned: int = 0
    dry_run: bool = False
    stopped: bool = False
    changes: list[FileChange] = field(default_factory=list)

    def count(self, change: FileChange) -> None:
        """Add one file's change."""
        self.files += change.action != "missing"
        self.nodes += change.added
        self.updated += change.updated
        self.gone += change.stale
        self.renamed += change.action == "rename"
        self.missing += change.action == "missing"
        self.returned += change.action == "return"
        if self.dry_run:
            self.changes.append(change)


class Ingest:
    """Reads folders into a workspace."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def ingest(
        self,
        path: Path,
        *,
        workspace: str | None = None,
        progress: Progress = lambda *_: None,
        dry_run: bool = False,
        only: Collection[Path] = (),
        stopped: Callable[[], bool] = lambda: False,
    ) -> Ingested:
        """Read every Markdown, text and Python file below `path`, or the one file.

        `only` restricts it to what lies at or below these absolute paths; `stopped` is asked
        before each file. Raises NotFoundError when there is no such path, and never was. A
        file that cannot be read or parsed is reported, and what memory holds of it stays.
        """
        root = Path(os.path.normpath(path.absolute()))
        run = _Run(self._engine, self._engine.workspace(workspace), root, dry_run)
        try:
            survey = survey_sources(root, only)
        except NotFoundError:
            if not run.knows_root():
                raise
            survey = Survey(root, (), {}, ())
        run.note_root()
        report = run.report
        report.skipped = {str(reason): count for reason, count in survey.skipped.items()}
        report.unreadable = [str(each.path) for each in survey.unreadable]
        files = survey.paths
        for done, file in enumerate(files):
            progress(done, len(files))
            if stopped():
                report.stopped = True
                return report
            run.take(file)
        progress(len(files), len(files))
        run.note_missing(only)
        return report


class _Run:
    """One ingest of one root."""

    def __init__(self, engine: Engine, place: WorkspaceId, root: Path, dry_run: bool) -> None:
        self._engine = engine
        self._place = place
        self._root = root
        self._folder = root if os.path.isdir(root) else root.parent
        # Inside the project a path is told from there, as agents name files; else whole.
        self._project = engine.settings.project
        inside = self._project is not None and self._folder.is_relative_to(self._project)
        self._anchor = self._project if inside and self._project else self._folder
        self._homeless = Homeless(engine, place)
        self._parent: NodeId | None = None
        self.report = Ingested(place, str(root), dry_run=dry_run)

    def knows_root(self) -> bool:
        return is_known(self._engine, self._place, self._stored(self._root))

    def note_root(self) -> None:
        """Remember that a person named this root: views may ask whether its files changed."""
        if self.report.dry_run:
            return
        with self._engine.database.read() as snapshot:
            known = str(self._root) in ingested_roots(snapshot)
        if not known:
            with self._engine.write() as transaction:
                note_ingested(transaction, self._root)

    def take(self, file: Path) -> None:
        """Read one file, unless nothing of it changed since."""
        report = self.report
        stored = self._stored(file)
        with self._engine.database.read() as snapshot:
            known = next(iter(snapshot.nodes.by_path(self._place, stored)), None)
        if known is not None and _is_unchanged(known, file):
            report.unchanged += 1
            return
        try:
            source, text = read_source(file, self._folder)
        except CortexError as error:
            report.unreadable.append(f"{file}: {error.message}")
            return
        if known is not None and is_same(known, source.sha256):
            report.unchanged += 1
            return
        reading = self._reading(source, text, stored, known)
        if reading is None:
            return
        change = self._would_write(reading) if report.dry_run else self._write(reading)
        if change is None:
            report.unchanged += 1
        else:
            report.count(change)

    def note_missing(self, only: Collection[Path]) -> None:
        """Note the ingested files that are gone from below the root."""
        stored = [self._stored(path) for path in only or (self._root,)]
        gone = iter_gone(self._engine, self._place, stored, self._root)
        taken = {change.was for change in self.report.changes}
        changes = (
            (each for file in gone if (each := missing_change(file)).path not in taken)
            if self.report.dry_run
            else note_missing(self._engine, gone)
        )
        for change in changes:
            self.report.count(change)

    def _reading(
        self, source: SourceFile, text: str, stored: str, known: Node | None
    ) -> FileRead | None:
        """What to write of the file; None when it cannot be parsed and was known before."""
        facts = {
            "path": stored,
            "root": str(self._anchor),
            "file_type": source.language,
            "size": source.size,
            "modified_ns": source.modified_ns,
            "hash": source.sha256,
            "ingested": True,
        }
        moved = self._homeless.take(source) if known is None else None
        before = known or moved
        if before is not None and "ingested" in before.data:
            same = ("hash", "file_type")
            if all(before.data.get(name) == facts[name] for name in same):
                return FileRead(facts, None, moved)
        parsed = parse(source, text)
        if parsed.problem:
            self.report.problems.append(parsed.problem)
            if known is not None:
                return None  # what was known of it stands until it can be read again
        return FileRead(facts, self._screened(stored, parsed.pieces), moved)

    def _screened(self, stored: str, pieces: tuple[Piece, ...]) -> tuple[Piece, ...]:
        """The pieces without those that must not be stored; what lies below them moves up."""
        strict = self._engine.settings.no_secrets
        above: dict[str, str | None] = {}
        kept = []
        for piece in pieces:
            kinds = kinds_in((piece.title, piece.text, piece.tags, piece.data))
            if kinds:
                left = ", left out" if strict else ""
                self.report.secrets.append(f"{stored}:{piece.line} looks like {kinds}{left}")
            parent = piece.parent_key
            parent = above.get(parent, parent) if parent is not None else None
            if kinds and strict:
                above[piece.key] = parent
            else:
                kept.append(replace(piece, parent_key=parent))
        return tuple(kept)

    def _would_write(self, reading: FileRead) -> FileChange:
        with self._engine.database.read() as snapshot:
            return change_of(snapshot, known_file(snapshot, self._place, reading), reading)

    def _write(self, reading: FileRead) -> FileChange | None:
        if self._parent is None:
            self._parent = self._folder_node()
        with self._engine.write() as transaction:
            return FileWriter(transaction, self._place).write(self._parent, reading)

    def _stored(self, file: Path) -> str:
        return canonical(str(file), self._project)[0] if self._project else file.as_posix()

    def _folder_node(self) -> NodeId:
        """The fileref of the ingested folder, which holds those of its files."""
        stored = self._stored(self._folder)
        with self._engine.write() as transaction:
            known = transaction.nodes.by_path(self._place, stored)
            if known:
                return known[0].id
            root, _ = ensure_root(transaction, self._place)
            data = {
                "title": self._folder.name,
                "path": stored,
                "root": str(self._folder),
                "kind": "folder",
            }
            return insert_child(transaction, NodeType.FILEREF, self._place, root, data).id


def _is_unchanged(known: Node, file: Path) -> bool:
    data = known.data
    if data.get("ingested") is not True or MISSING in data:
        return False
    try:
        state = file.stat()
    except OSError:
        return False  # reading it will say why
    return (data.get("size"), data.get("modified_ns")) == (state.st_size, state.st_mtime_ns)
