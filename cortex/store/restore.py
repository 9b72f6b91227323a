"""A backup into the file that processes have open, through SQLite's backup API (invariant 11).

First a copy of the backup is made ready: verified, brought to this schema, given a new epoch.
Then its pages go into the live file as one transaction: other processes read the old
content until it commits, wait to write, and rebuild whatever they derived at their next look,
since the epoch is another one (invariant 3). A process that dies on the way leaves the old
content.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path
from typing import Final

from cortex.domain.errors import BusyError, InvalidError, UnavailableError
from cortex.domain.values import new_id
from cortex.store.backup import Contents, Progress, contents_of, copy, header_of
from cortex.store.database import WRITE_WAIT, Database, translate
from cortex.store.meta import EPOCH, INGESTED_ROOTS, MEMORY_ID, PUSHER, Meta
from cortex.store.schema import MIGRATIONS
from cortex.store.shrinking import cut_wal

# Whoever held these is not at work on the restored content.
_NO_WRITER: Final = "UPDATE writer SET at = NULL, actor = NULL, tx = NULL"
_NO_LEASES: Final = "UPDATE index_state SET leased_until = '' WHERE leased_until <> ''"
_LOST: Final = 'SELECT "table", parent FROM pragma_foreign_key_check LIMIT 1'


def make_ready(source: Path, draft: Path, progress: Progress = lambda *_: None) -> Contents:
    """Fill `draft` with the backup as it will go live; what it holds.

    Raises InvalidError for another kind of file, UnavailableError for one that is damaged or
    of a newer schema.
    """
    _refuse_strangers(source)
    copied = copy(source, draft, progress)
    if copied.problem is not None:
        raise UnavailableError(
            f"{source} is damaged ({copied.problem})",
            "",
            "Name another backup; nothing was changed",
        )
    try:
        with closing(sqlite3.connect(draft, isolation_level=None)) as connection:
            _refuse_newer(connection, source)
        Database(draft).close()  # migrates it, where it is of an older schema
        with closing(sqlite3.connect(draft, isolation_level=None)) as connection:
            connection.execute("PRAGMA journal_mode = DELETE")
            lost = connection.execute(_LOST).fetchone()
            if lost is not None:
                raise UnavailableError(
                    f"{source} is damaged (a row of {lost[0]} points to a row of {lost[1]} that "
                    "is gone)",
                    "",
                    "Name another backup; nothing was changed",
                )
            connection.execute("BEGIN IMMEDIATE")
            meta = Meta(connection)
            meta.set(EPOCH, new_id())
            if meta.find(PUSHER):
                meta.set(PUSHER, "")
            connection.execute(_NO_WRITER)
            connection.execute(_NO_LEASES)
            connection.execute("COMMIT")
    except sqlite3.Error as error:
        raise translate(error, draft) from error
    return contents_of(draft)


def overwrite(
    live: Path,
    draft: Path,
    *,
    held: Callable[[], None] = lambda: None,
    progress: Progress = lambda *_: None,
    wait: float = WRITE_WAIT,
) -> None:
    """Put the content of `draft` into `live`, which other processes may have open.

    `held` is called once nobody else can write and nothing is written yet: what it reads
    of `live` is what will be replaced; an error of it leaves everything as it was. Raises
    BusyError when another writer holds the file for `wait` seconds, UnavailableError for a
    full disk or a file that is no SQLite file any more.
    """
    deadline = time.monotonic() + wait
    begun = False

    def step(code: int, left: int, total: int) -> None:
        nonlocal begun
        if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
            if time.monotonic() >= deadline:  # Python's loop would try for ever
                raise BusyError(
                    "another writer holds the memory", "", "Call again; nothing was changed"
                )
        elif not begun:
            begun = True
            held()
        progress(total - left, total)

    try:
        with (
            closing(sqlite3.connect(draft, isolation_level=None)) as new,
            closing(sqlite3.connect(live, isolation_level=None, timeout=0)) as present,
        ):
            _refuse_newer(present, live)
            _set_up(present)
            _match(new, present)
            new.execute("BEGIN")
            new.execute("SELECT COUNT(*) FROM meta").fetchone()  # holds the lock between pages
            # One page a step: the first one takes the write lock, and a small file would
            # otherwise be through before `held` is asked.
            new.backup(present, pages=1, progress=step, sleep=0.01)
    except sqlite3.Error as error:
        raise _explained(error, live) from error
    with suppress(BusyError):  # who holds it checkpoints later; what was restored is durable
        cut_wal(live)  # else the log stays as long as the whole file meanwhile


def _set_up(present: sqlite3.Connection) -> None:
    """Write ahead, or nobody could read meanwhile; synced as invariant 4 says."""
    try:
        present.execute("PRAGMA journal_mode = WAL")
        present.execute("PRAGMA synchronous = FULL")
    except sqlite3.OperationalError:
        raise
    except sqlite3.DatabaseError as error:
        # Where the damage is in the schema, the file stays in its mode, which is a home's
        # already, and syncs as SQLite does by default: full.
        if "malformed" not in str(error):
            raise


def _match(new: sqlite3.Connection, present: sqlite3.Connection) -> None:
    """Make the draft fit the file and its home.

    A file that is written ahead takes pages of its own size alone. Two things are the home's
    to say and not the backup's, which may come from elsewhere: whose collection a Qdrant
    server holds, and how far this memory may look at the disk.
    """
    size = present.execute("PRAGMA page_size").fetchone()[0]
    if new.execute("PRAGMA page_size").fetchone()[0] != size:
        new.execute(f"PRAGMA page_size = {int(size):d}")
        new.execute("VACUUM")
    try:
        owner, roots = (Meta(present).find(key) for key in (MEMORY_ID, INGESTED_ROOTS))
    except sqlite3.DatabaseError:  # too damaged to say
        owner, roots = None, None
    if owner is not None:
        Meta(new).set(MEMORY_ID, owner)
    Meta(new).set(INGESTED_ROOTS, roots or "[]")


def _refuse_strangers(source: Path) -> None:
    """Of a SQLite file its tables tell more: the newest header may stand in its log."""
    try:
        header = header_of(source)
    except OSError as error:
        raise UnavailableError(
            f"{source} cannot be read ({error.strerror})", "", "Check the path"
        ) from error
    if header is None:
        raise InvalidError(
            f"{source} is no backup of cortex",
            "Valid: what cortex backup wrote, or another home's cortex.db",
            "cortex import takes in exports, memory.jsonl and files of the original schema",
        )


def _refuse_newer(connection: sqlite3.Connection, source: Path) -> None:
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    if version > len(MIGRATIONS):
        raise UnavailableError(
            f"{source} was written by a newer cortex (schema {version})",
            f"This one knows schema {len(MIGRATIONS)}",
            "Upgrade mcp-cortex; nothing was changed",
        )


def _explained(error: sqlite3.Error, live: Path) -> Exception:
    if "not a database" in str(error):
        return UnavailableError(
            f"{live} is no SQLite file any more, so nothing can be restored into it",
            "",
            f"Stop every cortex, move {live.name}, {live.name}-wal and {live.name}-shm away, and "
            "restore again",
        )
    return translate(error, live)
