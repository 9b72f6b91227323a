"""What SQLite and the disk refuse, as errors that say what the caller can do about it."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from cortex.domain.errors import BusyError, ConflictError, CortexError, UnavailableError

_RESTORE: Final = "Restore a backup; the file was not changed"
_REASONS: Final[tuple[tuple[str, str, str], ...]] = (
    ("not a database", "is not a SQLite database", "Move it away, or restore a backup"),
    ("malformed", "is damaged", _RESTORE),
    ("vtable constructor", "is damaged", _RESTORE),
    ("encrypted", "is not a SQLite database", "Move it away, or restore a backup"),
    ("full", "could not grow: the disk is full", "Free some space, then call again"),
    ("readonly", "cannot be written", "Check the folder's permissions"),
    ("unable to open", "cannot be opened", "Check that the folder exists and can be written"),
    ("disk i/o", "could not be read or written", "Check the disk and its free space"),
)


def busy() -> BusyError:
    return BusyError(
        "another writer holds the memory", "", "Call again in a moment; nothing was changed"
    )


def is_busy(error: sqlite3.Error) -> bool:
    """Whether another one has the lock now, whatever it does with it (recover the log, say)."""
    return error.sqlite_errorcode & 0xFF == sqlite3.SQLITE_BUSY


def translate(error: sqlite3.Error, path: Path) -> CortexError:
    """The error of this tree that says what the caller can do about SQLite's."""
    text = str(error).lower()
    if "locked" in text or "busy" in text:
        return busy()
    if isinstance(error, sqlite3.IntegrityError):
        return ConflictError(
            f"the store refused the change ({error})", "", "Read the present state, then try again"
        )
    for sign, wrong, then in _REASONS:
        if sign in text:
            return UnavailableError(f"{path} {wrong}", "", f"{then} ({error})")
    return UnavailableError(
        f"{path} gave an error ({error})", "", "Run cortex status to look at it"
    )


REFUSED: Final = (sqlite3.Error, UnicodeDecodeError, json.JSONDecodeError, OSError)


def refusal(error: Exception, path: Path) -> CortexError:
    """The error of this tree for one of `REFUSED`."""
    if isinstance(error, sqlite3.Error):
        return translate(error, path)
    if isinstance(error, UnicodeDecodeError | json.JSONDecodeError):
        # All that is stored was written as UTF-8 and JSON; SQLite names its own broken schema so.
        return UnavailableError(f"{path} is damaged ({error})", "", _RESTORE)
    reason = error.strerror if isinstance(error, OSError) else None
    then = (
        "the folder's permissions"
        if isinstance(error, PermissionError)
        else "the disk and the path"
    )
    return UnavailableError(f"{path} cannot be opened ({reason or error})", "", f"Check {then}")


@contextmanager
def translated(path: Path) -> Iterator[None]:
    try:
        yield
    except REFUSED as error:
        raise refusal(error, path) from error
