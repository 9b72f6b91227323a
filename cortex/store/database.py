"""The file: opening, migrating, and the two kinds of transaction.

A write is one IMMEDIATE transaction, opened once, by a service: it takes the lock before it
reads, since an upgrade from a read would fail at once, whatever the timeout. Reads run on
connections of their own and, in WAL mode, wait for nobody (invariant 7). Errors of SQLite
are translated by `refusals.py` and nowhere else.
"""

from __future__ import annotations

import os
import sqlite3
import stat
import threading
import time
from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final

from cortex.domain.errors import UnavailableError
from cortex.domain.instants import Clock, now
from cortex.domain.values import new_id
from cortex.store.filesystems import MOUNTS, refuse_network
from cortex.store.keywords import TERMS_TABLE
from cortex.store.meta import EPOCH, LOG_FLOOR, Meta
from cortex.store.presence import Presence
from cortex.store.refusals import REFUSED, is_busy, refusal, translate, translated
from cortex.store.schema import APPLICATION_ID, MIGRATIONS
from cortex.store.transaction import Snapshot, Transaction
from cortex.store.upgrade import is_original, upgrade_original
from cortex.store.writing import Writing

_TABLE_NAMES: Final = "SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name"

__all__ = ["WRITE_WAIT", "Database", "Snapshot", "Transaction", "translate"]

ORIGINAL: Final = -1
WRITE_WAIT: Final = 10.0
_READERS: Final = 16


class Database:
    """One SQLite file, shared by the threads of this process and by other processes."""

    def __init__(
        self,
        path: Path,
        *,
        clock: Clock = now,
        read_only: bool = False,
        mounts: Path = MOUNTS,
    ) -> None:
        """Open, creating and migrating as needed.

        Raises UnavailableError for a folder that cannot be written or that `mounts`, the
        system's table, shows on a network filesystem, for a file that is damaged or that
        another program made; the file is left as it was.
        """
        self.path = path
        self.clock = clock
        self._read_only = read_only
        self._lock = threading.Lock()
        self._idle: deque[Snapshot] = deque()  # the one used last is the first again
        self._closed = False
        self.upgraded: Mapping[str, Any] | None = None
        """What was done to a file of the original schema, where this opening upgraded one."""
        with translated(path):
            refuse_network(path, mounts)
            if read_only and not path.exists():
                raise UnavailableError(
                    f"there is no memory at {path} yet",
                    "",
                    "Write to it first, without --read-only",
                )
            if not read_only:
                _prepare(path)
            self._presence = Presence(path)
            self._writer = self._connect(query_only=read_only)
            try:
                self._migrate()
            except BaseException:
                self._writer.close()
                raise
            self._writing = Writing(path, self._writer, self._presence, clock)

    def _connect(self, *, query_only: bool) -> sqlite3.Connection:
        connection = sqlite3.connect(
            self.path, isolation_level=None, check_same_thread=False, cached_statements=256
        )
        connection.execute("PRAGMA busy_timeout = 10000")
        connection.execute("PRAGMA foreign_keys = ON")
        connection.execute("PRAGMA synchronous = FULL")  # invariant 4
        connection.execute("PRAGMA cache_size = -32000")
        connection.execute("PRAGMA temp_store = MEMORY")
        connection.execute(TERMS_TABLE)
        if query_only:
            connection.execute("PRAGMA query_only = ON")
        return connection

    def _migrate(self) -> None:
        writer = self._writer
        writer.execute("BEGIN")  # its version and its tables as they were at one moment
        try:
            version = _identify(writer, self.path)
        finally:
            if writer.in_transaction:
                writer.execute("ROLLBACK")
        if version == ORIGINAL and self._read_only:
            raise UnavailableError(
                f"{self.path} is a file of the original schema, not upgraded yet",
                "",
                "Open it once without --read-only: it is copied, then upgraded",
            )
        if version == len(MIGRATIONS):
            return
        if self._read_only:
            raise UnavailableError(
                f"{self.path} is of schema {version}; this cortex reads schema {len(MIGRATIONS)}",
                "",
                "Open it once without --read-only, which brings it up to date",
            )
        _use_wal(writer)
        # Old tables are renamed and dropped; no foreign key follows them. No-op in a transaction.
        writer.execute("PRAGMA foreign_keys = OFF")
        writer.execute("BEGIN IMMEDIATE")
        try:
            # Another process may have migrated while this one waited for the lock.
            version = _identify(writer, self.path)
            if version == ORIGINAL:
                self.upgraded = upgrade_original(
                    writer, self.path, self.clock(), lambda: _apply(writer, 0)
                )
            else:
                _apply(writer, version)
            writer.execute("COMMIT")
        except BaseException:
            if writer.in_transaction:
                writer.execute("ROLLBACK")
            raise
        writer.execute("PRAGMA foreign_keys = ON")

    @contextmanager
    def read(self) -> Iterator[Snapshot]:
        """A read transaction; it sees one moment and waits for no writer."""
        try:
            snapshot = self._reader()
            try:
                snapshot.begin()
                try:
                    self._presence.check()
                    yield snapshot
                finally:
                    snapshot.connection.execute("ROLLBACK")
            except sqlite3.Error:
                snapshot.connection.close()
                raise
            except BaseException:
                self._keep(snapshot)
                raise
            self._keep(snapshot)
        except REFUSED as error:
            raise refusal(error, self.path) from error

    def _reader(self) -> Snapshot:
        if self._closed:
            raise UnavailableError("the memory is closed", "", "Open it again")
        try:
            return self._idle.pop()
        except IndexError:
            return Snapshot(self._connect(query_only=True))

    def _keep(self, snapshot: Snapshot) -> None:
        if self._closed or len(self._idle) >= _READERS:
            snapshot.connection.close()
        else:
            self._idle.append(snapshot)

    @contextmanager
    def write(
        self, actor: str, *, wait: float = WRITE_WAIT, short: bool = False
    ) -> Iterator[Transaction]:
        """A write transaction: committed whole when the block ends, else undone whole.

        With `short` other short ones of this process may share its commit (`writing.py`). Such
        a block takes some milliseconds at most, waits for no lock of another writer, and
        brings no cache up to what it reads, since others' rows in it may yet be undone.

        Raises BusyError when the lock is not had within `wait` seconds.
        """
        if self._read_only:
            raise UnavailableError("the memory is open for reading only", "", "Open it to write")
        with self._writing.write(actor, wait, short=short) as transaction:
            yield transaction

    def idle_seconds(self) -> float:
        """How long no other thread of this process has written; 0 while one does or waits to."""
        return self._writing.idle_seconds()

    def close(self) -> None:
        """Close every connection; a running read ends first on its own connection."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
            with suppress(IndexError):  # a reader on its way may take the last one itself
                while True:
                    self._idle.pop().connection.close()
        self._writing.close()


def _identify(connection: sqlite3.Connection, path: Path) -> int:
    """The schema version of the file; 0 for a new one, ORIGINAL for one of the concept's own.

    Refuses a foreign file.
    """
    application = connection.execute("PRAGMA application_id").fetchone()[0]
    version = int(connection.execute("PRAGMA user_version").fetchone()[0])
    if application == APPLICATION_ID:
        if version > len(MIGRATIONS):
            raise UnavailableError(
                f"{path} was written by a newer cortex (schema {version})",
                f"This one knows schema {len(MIGRATIONS)}",
                "Upgrade mcp-cortex",
            )
        return version
    if application == 0 and is_original(connection):
        return ORIGINAL
    tables = [name for (name,) in connection.execute(_TABLE_NAMES)]
    if application != 0 or tables:
        raise UnavailableError(
            f"{path} is a database of another program (tables: {', '.join(tables[:5]) or 'none'})",
            "Valid: a file made by cortex, or none",
            "Point --home or CORTEX_HOME to another folder; the file was not touched",
        )
    return 0


def _apply(writer: sqlite3.Connection, version: int) -> None:
    """Run the migrations that the file has not had yet."""
    for number, statements in enumerate(MIGRATIONS[version:], version + 1):
        for statement in statements:
            writer.execute(statement)
        writer.execute(f"PRAGMA user_version = {number:d}")
    if version == 0:
        writer.execute(f"PRAGMA application_id = {APPLICATION_ID:d}")
        meta = Meta(writer)
        meta.set(EPOCH, new_id())
        meta.set(LOG_FLOOR, "0")


def _use_wal(connection: sqlite3.Connection) -> None:
    """Switch to WAL; SQLite itself does not wait here for others who open the file."""
    deadline = time.monotonic() + WRITE_WAIT
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError as error:
            if not is_busy(error) or time.monotonic() >= deadline:
                raise
            time.sleep(0.005)
        else:
            return


def _prepare(path: Path) -> None:
    """Make the folder (0700) and the file (0600) that is not there yet."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    try:
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL
        descriptor = os.open(path, flags, stat.S_IRUSR | stat.S_IWUSR)
    except FileExistsError:
        return  # closing a descriptor of a live file would drop this process's locks on it
    os.close(descriptor)
