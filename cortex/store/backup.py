"""A copy of a memory that others are writing: verified, then there at once or not at all.

SQLite's own backup, read within one transaction: the copy is the state of one moment, and in
WAL mode neither waits for a writer nor makes one wait. It is written as a draft beside its
place, checked, synced and renamed, so that a process that dies leaves at most the draft,
which the next run removes. The copy needs no other file beside it (rollback journal): by
that, a backup is told from the file of a live home (invariant 11).
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple

from cortex.domain.errors import InvalidError, NotFoundError, UnavailableError
from cortex.domain.instants import Instant
from cortex.store.database import translate
from cortex.store.drafts import draft_for, put
from cortex.store.schema import APPLICATION_ID

Progress = Callable[[int, int], None]

_MAGIC: Final = b"SQLite format 3\x00"
_HEADER: Final = 100
_PIECE: Final = 2048  # pages between two reports of progress
_CONTENTS: Final = """
SELECT (SELECT COUNT(*) FROM nodes), (SELECT COUNT(*) FROM relations),
       (SELECT COUNT(*) FROM navigation_history), (SELECT COUNT(*) FROM changes),
       (SELECT COUNT(*) FROM embeddings), (SELECT at FROM changes ORDER BY seq DESC LIMIT 1)
"""


class Header(NamedTuple):
    """What the first bytes of a SQLite file say. `live`: written ahead, as a home's file is."""

    ours: bool
    live: bool


@dataclass(frozen=True, slots=True)
class Contents:
    """How much a file holds; `newest` is the time of its last change."""

    nodes: int
    relations: int
    visits: int
    changes: int
    vectors: int
    newest: Instant | None


@dataclass(frozen=True, slots=True)
class Copied:
    """What a copy holds; `problem` is what is wrong with it, of a damaged file alone."""

    contents: Contents | None
    problem: str | None


def back_up(
    source: Path, target: Path, *, progress: Progress = lambda *_: None, as_is: bool = False
) -> Copied:
    """Copy the memory to `target`, replacing what is there, once the copy is verified.

    `progress` is told pages. With `as_is` a damaged memory is copied as it is. Raises
    NotFoundError for no memory, UnavailableError for a damaged one or a full disk: then
    nothing of `target` is changed.
    """
    with _file_errors(target), draft_for(target) as draft:
        copied = copy(source, draft, progress, called=target)
        if copied.problem is not None and not as_is:
            raise UnavailableError(
                f"{source} is damaged ({copied.problem}); no backup was made of it",
                "",
                "Restore an older backup: cortex restore FILE",
            )
        put(draft, target)
    return copied


def copy(
    source: Path, draft: Path, progress: Progress = lambda *_: None, *, called: Path | None = None
) -> Copied:
    """Fill an empty file with the memory as it is at this moment, and check it.

    Errors of the draft name it as `called`. Raises InvalidError for another program's file.
    """
    if not source.exists():
        raise NotFoundError(f"there is no memory at {source}", "", "Name its home with --home")
    name = called or draft
    try:
        with closing(_reading(source)) as old:
            old.execute("BEGIN")
            there = _contents_or_none(old, source)
            with _about(name), closing(sqlite3.connect(draft)) as new:
                # A draft is thrown away whole; put() syncs it before it appears.
                new.execute("PRAGMA synchronous = OFF")
                old.backup(
                    new, pages=_PIECE, progress=lambda _, left, total: progress(total - left, total)
                )
    except sqlite3.Error as error:
        raise translate(error, source) from error
    with _about(name), closing(sqlite3.connect(draft)) as new:
        problem, here = problem_of(new), None
        if problem is None:
            new.execute("PRAGMA journal_mode = DELETE")
            here = _contents(new, draft)
    if problem is None and here != there:
        problem = "its rows cannot be counted" if there is None else "the counts differ"
    return Copied(here, problem)


def contents_of(path: Path) -> Contents:
    """What a memory's file holds now. Raises UnavailableError for one that cannot be read."""
    try:
        with closing(_reading(path)) as connection:
            return _contents(connection, path)
    except sqlite3.Error as error:
        raise translate(error, path) from error


def problem_of(connection: sqlite3.Connection) -> str | None:
    """The first thing that is wrong with the file, None for a sound one."""
    try:
        found = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
    except sqlite3.DatabaseError as error:
        return str(error)
    return None if found == "ok" else str(found)


def header_of(path: Path) -> Header | None:
    """None for a file that is not SQLite's.

    Never of a file that this process has open: closing it here would drop its locks.
    """
    with path.open("rb") as file:
        found = file.read(_HEADER)
    if len(found) < _HEADER or not found.startswith(_MAGIC):
        return None
    return Header(int.from_bytes(found[68:72], "big") == APPLICATION_ID, found[18] == 2)


def is_backup(path: Path) -> bool:
    """Whether a file is a backup of cortex: its own, at rest, and no link to elsewhere."""
    if path.is_symlink() or not path.is_file():
        return False
    header = header_of(path)
    return header is not None and header.ours and not header.live


def _contents_or_none(connection: sqlite3.Connection, path: Path) -> Contents | None:
    """None where the file is too damaged to count."""
    try:
        return _contents(connection, path)
    except sqlite3.OperationalError:
        raise
    except sqlite3.DatabaseError:
        return None


def _contents(connection: sqlite3.Connection, path: Path) -> Contents:
    application = connection.execute("PRAGMA application_id").fetchone()[0]
    if application != APPLICATION_ID:
        raise InvalidError(
            f"{path} is no memory of cortex's present schema",
            "Valid: a file that cortex wrote",
            "One of the original schema is upgraded when it is opened; cortex import takes it in",
        )
    return Contents(*connection.execute(_CONTENTS).fetchone())


def _reading(path: Path) -> sqlite3.Connection:
    uri = f"{path.absolute().as_uri()}?mode=ro"
    return sqlite3.connect(uri, uri=True, isolation_level=None, timeout=10)


@contextmanager
def _about(path: Path) -> Iterator[None]:
    """Errors of this file's connection are about it, not about the one that is read."""
    try:
        yield
    except sqlite3.Error as error:
        raise translate(error, path) from error


@contextmanager
def _file_errors(target: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise UnavailableError(
            f"{target} cannot be written ({error.strerror or error})",
            "",
            "Check the folder and the free space of its disk; nothing was changed",
        ) from error
