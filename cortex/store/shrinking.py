"""Giving free pages back to the system: VACUUM, and the write-ahead log cut short.

Both run on a connection of their own, outside of any transaction. VACUUM in WAL mode is one
write: readers go on with what they saw, writers wait or are told that the memory is busy,
and where it fails the file is as it was. It needs a temporary copy of what is kept (in
SQLite's folder for temporary files, deleted before it is filled), then room for it in the log.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Final

from cortex.store.database import WRITE_WAIT, translate

_CUT_WAIT: Final = 2.0  # a reader ends within milliseconds, or stays
_CHECKPOINT: Final = "PRAGMA wal_checkpoint(TRUNCATE)"


def vacuum(path: Path) -> None:
    """Write the file anew without its free pages.

    Raises BusyError where another writer holds it for 10 s, UnavailableError for a full disk.
    """
    _run(path, "VACUUM", WRITE_WAIT)


def cut_wal(path: Path) -> bool:
    """Bring the write-ahead log into the file and empty it; False where a reader holds it."""
    busy, _, _ = _run(path, _CHECKPOINT, _CUT_WAIT)
    return not busy


def bytes_on_disk(path: Path) -> int:
    """The file and its write-ahead log."""
    wal = path.with_name(path.name + "-wal")
    return sum(each.stat().st_size for each in (path, wal) if each.exists())


def _run(path: Path, statement: str, wait: float) -> tuple[int, int, int]:
    try:
        with closing(sqlite3.connect(path, isolation_level=None, timeout=wait)) as own:
            own.execute("PRAGMA synchronous = FULL")  # invariant 4
            row = own.execute(statement).fetchone()
    except sqlite3.Error as error:
        raise translate(error, path) from error
    return row or (0, 0, 0)
