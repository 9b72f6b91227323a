"""Files that memory knows and the disk has no more: gone, or under another name.

Gone means that a folder which can be read says so; what cannot be read stays as it is. A
gone file is noted as missing and nothing else: its knowledge stays, and views call it
unverified until the file is back, or is read under its new name.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path, PurePosixPath
from typing import Final

from cortex.domain.values import Node, WorkspaceId
from cortex.services.engine import Engine
from cortex.services.files import is_gone, path_of
from cortex.services.ingest.filing import MISSING, FileChange
from cortex.services.ingest.pieces import SourceFile

_BATCH: Final = 200


class Homeless:
    """Filerefs whose file is gone, by hash, so that a renamed file is known again.

    Looked for once, when a new path first asks. Cost: one stat per fileref of the
    workspace; holds only those that are gone.
    """

    def __init__(self, engine: Engine, place: WorkspaceId) -> None:
        self._engine = engine
        self._place = place
        self._found: dict[str, list[Node]] | None = None

    def take(self, source: SourceFile) -> Node | None:
        """The gone fileref that had these very bytes: one of the same name first, then by id."""
        if self._found is None:
            self._found = {}
            for file in _iter_known(self._engine, self._place, ""):
                digest = file.data.get("hash")
                if isinstance(digest, str) and is_gone(file):
                    self._found.setdefault(digest, []).append(file)
        known = self._found.get(source.sha256, [])
        if not known:
            return None
        best = min(known, key=lambda file: (_name(file) != source.path.name, file.id))
        known.remove(best)
        return best


def iter_gone(
    engine: Engine, place: WorkspaceId, stored: Sequence[str], base: Path
) -> Iterator[Node]:
    """Ingested files at or below these stored paths, inside `base`, that went since."""
    for path in stored:
        for file in _iter_known(engine, place, path):
            where = path_of(file)
            inside = where is not None and where.is_relative_to(base)
            noted = MISSING in file.data or file.data.get("ingested") is not True
            if inside and not noted and is_gone(file):
                yield file


def note_missing(engine: Engine, files: Iterator[Node]) -> Iterator[FileChange]:
    """Mark them, some at a time, where nobody has changed them meanwhile."""
    while batch := list(islice(files, _BATCH)):
        seen = {file.key: file for file in batch}
        with engine.write() as transaction:
            present = transaction.nodes.by_keys(list(seen))
            going = [node for node in present if node.data == seen[node.key].data]
            for node in going:
                data = {**node.data, MISSING: True}
                transaction.nodes.set_data(node.key, data, transaction.at)
        yield from map(missing_change, going)


def missing_change(file: Node) -> FileChange:
    return FileChange(str(file.data["path"]), "missing")


def is_known(engine: Engine, place: WorkspaceId, stored: str) -> bool:
    """Whether memory knows a file at or below this stored path."""
    return next(_iter_known(engine, place, stored), None) is not None


def _iter_known(engine: Engine, place: WorkspaceId, stored: str) -> Iterator[Node]:
    """Filerefs at and below a stored path, in short transactions; "" and "." are above all."""
    if stored in ("", "."):
        stored = ""
    else:
        with engine.database.read() as snapshot:
            yield from snapshot.nodes.by_path(place, stored)
    after: Node | None = None
    while True:
        with engine.database.read() as snapshot:
            page = snapshot.filerefs.page_below(place, stored.rstrip("/"), after)
        if not page:
            return
        yield from page
        after = page[-1]


def _name(file: Node) -> str:
    return PurePosixPath(str(file.data.get("path"))).name
