"""Folding the log: what lies below a floor goes, in the transaction that raises the floor.

The newest row always stays: the log's end, its time and the numbers of transactions are
read from it, and none of them may ever go back (invariants 3 and 5).
"""

from __future__ import annotations

import sqlite3
from typing import Final, NamedTuple

from cortex.store.meta import DERIVED_SEQ, LOG_FLOOR, Meta

_ROWS: Final = "SELECT COUNT(*) FROM changes WHERE seq <= :upto"
_NEXT: Final = """
SELECT MAX(seq) FROM (SELECT seq FROM changes WHERE seq <= :upto ORDER BY seq LIMIT :limit)
"""
_FOLD: Final = "DELETE FROM changes WHERE seq <= :upto"
# As long as a key is kept whose request may have been undone, so is the knowledge of it.
_FOLD_REVERSALS: Final = """
DELETE FROM reversals
 WHERE by_tx <= :upto AND NOT EXISTS (SELECT 1 FROM idempotency WHERE tx <= :upto)
"""
_MERGE: Final = "INSERT INTO keywords(keywords, rank) VALUES ('merge', :pages)"
_PAGES: Final = """
SELECT page_count, freelist_count, page_size
  FROM pragma_page_count, pragma_freelist_count, pragma_page_size
"""


class Pages(NamedTuple):
    """The file's pages, how many of them are free, and the bytes of one."""

    total: int
    free: int
    size: int


class LogFolding:
    """Shortens the log within one transaction."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def rows(self, upto: int) -> int:
        """How many rows of the log there are up to this change."""
        return int(self._connection.execute(_ROWS, {"upto": upto}).fetchone()[0])

    def fold(self, upto: int, limit: int) -> int:
        """Delete the oldest rows up to a change, at most `limit`, and raise the floor to match.

        Only what the keyword index and the outbox have followed goes (they follow at the end
        of each write). Returns how many rows went.
        """
        meta = Meta(self._connection)
        followed = min(upto, int(meta.find(DERIVED_SEQ) or 0))
        bound = {"upto": followed, "limit": limit}
        (end,) = self._connection.execute(_NEXT, bound).fetchone()
        if end is None:
            return 0
        gone = self._connection.execute(_FOLD, {"upto": end}).rowcount
        self._connection.execute(_FOLD_REVERSALS, {"upto": end})
        meta.set(LOG_FLOOR, str(end))
        return gone

    def merge_keywords(self, pages: int) -> bool:
        """Write up to this many pages of the keyword index anew; whether more is to do.

        A negative number begins: it takes every segment in. Source: SQLite, FTS5, 7.8.
        """
        before = self._connection.total_changes
        self._connection.execute(_MERGE, {"pages": pages})
        return self._connection.total_changes - before >= 2  # so FTS5 says that it did something

    def pages(self) -> Pages:
        return Pages(*self._connection.execute(_PAGES).fetchone())
