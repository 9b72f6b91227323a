"""Copying a database that others may be writing, through SQLite's own backup."""

from __future__ import annotations

import os
import sqlite3
import stat
from contextlib import closing
from pathlib import Path
from typing import Final

from cortex.domain.errors import ConflictError, InvalidError, NotFoundError, UnavailableError
from cortex.store.schema import APPLICATION_ID
from cortex.store.upgrade import is_original

_MAGIC: Final = b"SQLite format 3\x00"


def is_database(path: Path) -> bool:
    """Whether the file begins as SQLite's do. Raises NotFoundError when there is none."""
    try:
        with path.open("rb") as file:
            return file.read(len(_MAGIC)) == _MAGIC
    except FileNotFoundError:
        raise NotFoundError(f"no file {path}", "", "Name another file") from None
    except OSError as error:
        raise UnavailableError(
            f"{path} cannot be read ({error.strerror})", "", "Check the path"
        ) from error


def copy_database(source: Path, target: Path) -> None:
    """Copy a memory, of this schema or the original one, to a new file of its owner's alone.

    Raises ConflictError where `target` exists, InvalidError for another program's database,
    UnavailableError for a damaged one; `source` is only read.
    """
    target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    try:
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL
        os.close(os.open(target, flags, stat.S_IRUSR | stat.S_IWUSR))
    except FileExistsError:
        raise ConflictError(f"{target} exists already", "", "Name another home") from None
    try:
        _fill(source, target)
    except BaseException:
        target.unlink()
        raise


def _fill(source: Path, target: Path) -> None:
    try:
        # immutable would miss what its log still holds; mode=ro reads it and writes nothing.
        with (
            closing(sqlite3.connect(f"{source.absolute().as_uri()}?mode=ro", uri=True)) as old,
            closing(sqlite3.connect(target)) as copy,
        ):
            ours = old.execute("PRAGMA application_id").fetchone()[0] == APPLICATION_ID
            if not ours and not is_original(old):
                raise InvalidError(
                    f"{source} is a database of another program",
                    "Valid: a file made by cortex, or one of the concept's original schema",
                    "Name another file",
                )
            old.backup(copy)
            found = copy.execute("PRAGMA quick_check(1)").fetchone()[0]
    except sqlite3.Error as error:
        raise UnavailableError(
            f"{source} cannot be read ({error})", "", "Restore a backup of it; it was not changed"
        ) from error
    if found != "ok":
        raise UnavailableError(f"{source} is damaged ({found})", "", "Restore a backup of it")
