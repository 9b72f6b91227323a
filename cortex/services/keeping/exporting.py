"""Exports: a memory as JSON Lines, equal for equal memories, byte for byte.

A header, the rows kind by kind (`store/exports.py` has their columns and order), a footer with
their counts and the SHA-256 of every byte before it. A JSON text of the store is said as the
value that it is where that gives the very text back, else as a string, in a field called
`…_text`. Vectors, keyword index and outbox are not in it: they are made again. Nor are
idempotency keys: they serve retries of requests to the very memory, for a week.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Final

from cortex.domain.errors import InvalidError, NotFoundError, UnavailableError
from cortex.domain.values import WorkspaceId, workspace_name
from cortex.services.engine import Engine
from cortex.services.keeping.export_file import FORMAT, VERSION, dumped, is_export
from cortex.services.keeping.reading_export import ReadExport, read_export
from cortex.store.database import Snapshot
from cortex.store.drafts import draft_for, put
from cortex.store.exports import KEY, KINDS, Kind

_EACH: Final = 500
Progress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class Exported:
    """What was written: rows by kind, bytes, and the checksum that the footer says."""

    workspaces: list[str]
    counts: dict[str, int]
    bytes: int
    sha256: str
    log: bool


class Exporting:
    """Writes a memory as lines, and takes such lines in."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def export_file(
        self,
        path: Path,
        *,
        workspace: str | None = None,
        log: bool = False,
        progress: Progress = lambda *_: None,
    ) -> Exported:
        """As `export`, to a file that appears, or replaces an older one, when it is whole.

        Raises InvalidError where the file is no export, UnavailableError where it cannot be
        written.
        """
        try:
            if path.exists() and not _is_replaceable(path, self._engine.database.path):
                raise InvalidError(
                    f"{path} exists and is no export",
                    "Valid: a new name, or an older export to replace",
                    "Name another file; it was not touched",
                )
            with draft_for(path) as draft:
                with draft.open("wb") as out:
                    done = self.export(out, workspace=workspace, log=log, progress=progress)
                put(draft, path)
        except OSError as error:
            raise UnavailableError(
                f"{path} cannot be written ({error.strerror or error})",
                "",
                "Check the folder and the free space of its disk",
            ) from error
        return done

    def export(
        self,
        out: BinaryIO,
        *,
        workspace: str | None = None,
        log: bool = False,
        progress: Progress = lambda *_: None,
    ) -> Exported:
        """Write every workspace, or the one named, as it stands at one moment.

        With `log` the log of changes too, so that as-of, diff and undo still reach back where
        it is imported; it is of the whole memory. `progress` is told rows. Raises
        NotFoundError for an unknown workspace, InvalidError for a log of one alone.
        """
        if log and workspace is not None:
            raise InvalidError(
                "the log is of the whole memory: a change may span workspaces",
                "Valid: log without workspace, or workspace without log",
                "Leave one of them out",
            )
        with self._engine.database.read() as snapshot:
            places = _places(snapshot, workspace)
            lines = _Lines(out)
            lines.write(_header(snapshot, places, log))
            counts: Counter[str] = Counter({kind.name: 0 for kind in KINDS})
            total = sum(
                snapshot.nodes.count(place) + snapshot.relations.count(place) for place in places
            ) + (snapshot.generation().seq - snapshot.generation().floor if log else 0)
            for kind in KINDS:
                if kind.logged and not log:
                    continue
                if not kind.placed and workspace is not None:
                    continue
                for row in _iter_rows(snapshot, kind, places):
                    lines.write(said(kind, row, keys=log))
                    counts[kind.name] += 1
                    if lines.count % _EACH == 0:
                        progress(min(lines.count, total), total)
            digest = lines.digest.hexdigest()
            lines.write({"kind": "end", "counts": dict(counts), "sha256": digest})
        return Exported(list(places), dict(counts), lines.bytes, digest, log)

    def import_file(
        self,
        path: Path,
        *,
        workspace: str | None = None,
        log: bool = True,
        dry_run: bool = False,
        progress: Progress = lambda *_: None,
    ) -> ReadExport:
        """Take an export in, whole or not at all: see `reading_export.py`."""
        return read_export(
            self._engine, path, workspace=workspace, log=log, dry_run=dry_run, progress=progress
        )


def said(kind: Kind, row: Sequence[Any], *, keys: bool) -> dict[str, Any]:
    """The line of a row; the key of a node or relation is in it with the log alone."""
    line: dict[str, Any] = {"kind": kind.name}
    for column, value in zip(kind.columns, row, strict=True):
        if column == KEY and not keys:
            continue
        if column == kind.text and value is not None:
            exact = _value(value)
            if exact is None:
                line[f"{column}_text"] = value
            else:
                line[column] = exact[0]
        else:
            line[column] = value
    return line


def _value(text: str) -> tuple[Any] | None:
    """The value of a JSON text, where dumping it gives that very text."""
    try:
        value = json.loads(text)
        return (value,) if dumped(value) == text else None
    except (ValueError, RecursionError):
        return None


class _Lines:
    """Writes lines and knows their sum."""

    def __init__(self, out: BinaryIO) -> None:
        self._out = out
        self.digest = hashlib.sha256()
        self.bytes = 0
        self.count = 0

    def write(self, value: dict[str, Any]) -> None:
        line = (dumped(value) + "\n").encode()
        self._out.write(line)
        self.digest.update(line)
        self.bytes += len(line)
        self.count += 1


def _iter_rows(
    snapshot: Snapshot, kind: Kind, places: Sequence[WorkspaceId]
) -> Iterator[Sequence[Any]]:
    if not kind.placed:
        yield from snapshot.exports.iter_rows(kind)
        return
    for place in places:
        yield from snapshot.exports.iter_rows(kind, place)


def _places(snapshot: Snapshot, workspace: str | None) -> list[WorkspaceId]:
    known = snapshot.exports.places()
    if workspace is None:
        return known
    place = workspace_name(workspace)
    if place not in known:
        raise NotFoundError(
            f"there is no workspace {place!r}",
            f"Known: {', '.join(known[:20]) or 'none yet'}",
            "Name one of these, or none for all",
        )
    return [place]


def _header(snapshot: Snapshot, places: Sequence[WorkspaceId], log: bool) -> dict[str, Any]:
    history = None
    if log:
        history = {"floor": snapshot.generation().floor, **snapshot.exports.counters()}
    return {
        "format": FORMAT,
        "version": VERSION,
        "workspaces": list(places),
        "log": history,
    }


def _is_replaceable(path: Path, database: Path) -> bool:
    """Whether a file is an export, or empty.

    The memory's own files are not looked into: closing one would drop this process's locks.
    """
    if not path.is_file() or path.resolve().name.startswith(database.name):
        return False
    return path.stat().st_size == 0 or is_export(path)
