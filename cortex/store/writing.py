"""The writes of this process: short ones that wait for each other share one COMMIT.

Idea: a thread that ends a short block hands the open transaction to the next in line, if that
one is short too, which works in a savepoint; whoever finds nobody to hand it to commits for
all. Each has its own number, time and actor in the log, and is let go once the commit is
durable (invariant 4). Nobody waits for others to come: a lone writer commits at once.

Corners: a block that fails takes back its own part alone. Where the commit fails, or SQLite
undid the transaction by itself (a full disk), every member gets that error and nothing of
any stays. A long write stands in line like the others, and shares with nobody.

Source: group commit: DeWitt et al., Implementation techniques for main memory database
systems, SIGMOD 1984.
"""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from cortex.domain.errors import CortexError
from cortex.domain.instants import Clock
from cortex.store.changes import Changes
from cortex.store.presence import Presence
from cortex.store.refusals import busy, is_busy, translate, translated
from cortex.store.transaction import Transaction
from cortex.store.turns import Turns
from cortex.store.turnstile import Turnstile

_BEGIN_WRITER: Final = "UPDATE writer SET at = :at, actor = :actor, tx = :tx WHERE one = 1"
_END_WRITER: Final = "UPDATE writer SET at = NULL, actor = NULL, tx = NULL WHERE one = 1"
_BEGIN_MEMBER: Final = "SAVEPOINT member"
_UNDO_MEMBER: Final = "ROLLBACK TO member"
_END_MEMBER: Final = "RELEASE member"

# Pages of the log, 16 MB: a write dirties 40, and one write in 25 would copy them back to the file.
_CHECKPOINT: Final = "PRAGMA wal_autocheckpoint = 4000"

MOST_MEMBERS: Final = 32
_SPAN: Final = 0.02  # seconds from BEGIN within which one may join
_ORDERLY: Final = 0.05  # seconds at the turnstile after which SQLite itself is asked


class _Group:
    """Those whose rows are in the open transaction, and what became of it."""

    def __init__(self, *, short: bool) -> None:
        self.short = short
        self.members = 0
        self.within = False  # a savepoint is open
        self.began = time.monotonic()
        self.ended = threading.Event()
        self.error: sqlite3.Error | CortexError | None = None

    @property
    def open(self) -> bool:
        """Whether one more may join."""
        return self.short and self.members < MOST_MEMBERS and time.monotonic() - self.began < _SPAN


class Writing:
    """The one connection that writes, and whose turn it is.

    What follows "turn held" is touched by the thread that has the turn alone.
    """

    def __init__(
        self, path: Path, connection: sqlite3.Connection, presence: Presence, clock: Clock
    ) -> None:
        self._path = path
        self._connection = connection
        connection.execute(_CHECKPOINT)
        self._presence = presence
        self._clock = clock
        self._turns = Turns()
        self._turnstile = Turnstile(path.with_name(path.name + ".derived"))
        self._group: _Group | None = None  # turn held
        # When a thread last wrote, and when one before it. Who opens a memory is about to write.
        self._latest = self._before = (0, time.monotonic())

    def idle_seconds(self) -> float:
        """How long no other thread of this process has written; 0 while one does."""
        if self._turns.taken:
            return 0.0
        latest, before = self._latest, self._before
        return time.monotonic() - (before if latest[0] == threading.get_ident() else latest)[1]

    @contextmanager
    def write(self, actor: str, wait: float, *, short: bool) -> Iterator[Transaction]:
        """As Database.write."""
        group = self._enter(time.monotonic() + wait, short=short)
        try:
            with translated(self._path):
                transaction = self._begin(actor)
                yield transaction
                transaction.derive()
                self._connection.execute(_END_WRITER)
                if group.within:
                    # First: an interrupt after RELEASE must not ask for what is no more.
                    group.within = False
                    self._connection.execute(_END_MEMBER)
        except BaseException as error:
            self._take_back(group, error)
            raise
        try:
            group.members += 1
            self._pass_on(group)
        except BaseException:
            if self._turns.mine:
                self._finish(group)
            raise
        group.ended.wait()
        if isinstance(group.error, sqlite3.Error):
            raise translate(group.error, self._path) from group.error
        if group.error is not None:
            raise group.error

    def close(self) -> None:
        """Wait for whoever writes, then close the connection."""
        if not self._turns.take(None, short=False):
            raise busy()
        try:
            self._connection.close()
            self._turnstile.close()
        finally:
            self._turns.release()

    def _enter(self, deadline: float, *, short: bool) -> _Group:
        """Wait for the turn, then begin a transaction, or a savepoint in the one handed over."""
        if self._turns.mine:
            raise busy()  # by this very thread, within its own write
        try:
            if not self._turns.take(deadline - time.monotonic(), short=short):
                raise busy()
        except BaseException:
            if self._turns.mine:  # given to one who was interrupted and leaves
                if self._group is None:
                    self._turns.release()
                else:
                    self._finish(self._group)
            raise
        group = self._group
        try:
            with translated(self._path):
                if group is not None:
                    self._connection.execute(_BEGIN_MEMBER)
                    group.within = True
                    return group
                self._lock_file(deadline)
                self._group = group = _Group(short=short)
                self._presence.check_writable()
                return group
        except BaseException as error:
            if group is not None:
                self._take_back(group, error)
                raise
            self._group = None
            try:
                self._roll_back()  # an interrupt may come right after BEGIN
            finally:
                self._turnstile.leave()
                self._turns.release()
            raise

    def _lock_file(self, deadline: float) -> None:
        """BEGIN IMMEDIATE, in the order of the processes where there is one."""
        while True:
            left = max(deadline - time.monotonic(), 0.0)
            inside = self._turnstile.pass_within(min(left, _ORDERLY))
            left = max(deadline - time.monotonic(), 0.0)
            patience = int(left * 1000) if inside else 0
            self._connection.execute(f"PRAGMA busy_timeout = {patience:d}")
            try:
                self._connection.execute("BEGIN IMMEDIATE")
            except sqlite3.OperationalError as error:
                if inside or left <= 0 or not is_busy(error):
                    raise
            else:
                return

    def _begin(self, actor: str) -> Transaction:
        last = Changes(self._connection).last()
        at = self._clock()
        seq = 0
        if last is not None:
            seq, newest = last
            at = max(at, newest)  # invariant 5: the log's time never decreases
        self._connection.execute(_BEGIN_WRITER, {"at": at, "actor": actor, "tx": seq + 1})
        return Transaction(self._connection, at, seq + 1, actor)

    def _take_back(self, group: _Group, error: BaseException) -> None:
        """Undo what the present member did, and leave the others' part to be committed."""
        if group.within and self._connection.in_transaction:
            try:
                self._connection.execute(_UNDO_MEMBER)
                self._connection.execute(_END_MEMBER)
            except sqlite3.Error as worse:  # then nothing of anybody may stay
                error = worse
                self._roll_back()
        group.within = False
        if group.members and not self._connection.in_transaction:
            group.error = _as_sqlite(error)
        if group.members:
            self._pass_on(group)
        else:
            self._finish(group)

    def _pass_on(self, group: _Group) -> None:
        """Hand the transaction to the next in line if it may join, else end it for all."""
        if group.error is None and group.open and self._turns.hand_to_short():
            return
        self._finish(group)

    def _finish(self, group: _Group) -> None:
        """Commit for all members, let them go, and give the turn to the next in line."""
        try:
            if group.members and group.error is None:
                self._connection.execute("COMMIT")
                # Invariant 4: durable in the file, not in limbo. Asked while the turn is held,
                # for closing takes the log's file away.
                self._presence.check_writable()
        except (CortexError, sqlite3.Error) as error:
            group.error = error
        except BaseException as error:
            if self._connection.in_transaction:
                group.error = _as_sqlite(error)
            raise
        finally:
            self._group = None
            me = threading.get_ident()
            if self._latest[0] != me:
                self._before = self._latest
            self._latest = (me, time.monotonic())
            try:
                self._roll_back()
            finally:
                self._turnstile.leave()
                self._turns.release()
                group.ended.set()

    def _roll_back(self) -> None:
        if self._connection.in_transaction:  # a full disk has rolled back by itself
            self._connection.execute("ROLLBACK")


def _as_sqlite(error: BaseException) -> sqlite3.Error:
    """What undid the transaction: SQLite's own error, or the one that it was translated from."""
    for cause in (error, error.__cause__):
        if isinstance(cause, sqlite3.Error):
            return cause
    return sqlite3.OperationalError("disk I/O error: SQLite undid the transaction")
