"""How common a word is: its few rows, or how dense it is in the index where they are many.

A word that was found common is not asked again until the index has grown by a quarter: in a
text most words are, and asking takes as long for each as for a rare one. What is kept is of
one file, told by its epoch. Kept too long, a density makes a search less sharp; it hides no
rows, since rows are never kept.
"""

from __future__ import annotations

import sqlite3
from typing import Final, NamedTuple

from cortex.store.meta import EPOCH, Meta

_LAST: Final = "SELECT MAX(rowid) FROM keywords"
_HOLDING: Final = """
SELECT rowid FROM keywords WHERE keywords MATCH :query ORDER BY rowid DESC LIMIT :limit
"""
BITS: Final = 11  # of a row's number, for the chunk
RARE: Final = 64  # rows that hold a rare word, at most
_MOST: Final = 4096  # words kept, some hundred kilobytes
_GROWN: Final = 1.25


class Word(NamedTuple):
    """A word with the share of nodes that hold it, and its rows where they are few."""

    token: str
    density: float
    rows: list[int] | None


class _Common:
    """Common words of one state of a file, each with the index's last row when it was asked.

    Shared by threads without a lock: whoever comes too late asks again, or finds it replaced.
    """

    def __init__(self, epoch: str | None) -> None:
        self.epoch = epoch
        self._found: dict[str, tuple[Word, int]] = {}

    def find(self, token: str, last: int) -> Word | None:
        found = self._found.get(token)
        if found is None or not found[1] <= last < found[1] * _GROWN:
            return None
        return found[0]

    def keep(self, word: Word, last: int) -> None:
        if len(self._found) >= _MOST:
            self._found = {}
        self._found[word.token] = (word, last)


_common = _Common(None)


class Densities:
    """Asks one snapshot's index for words; `last` is its newest row, 0 where it is empty."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        global _common  # of the process: every snapshot has its own connection
        self._connection = connection
        self.last = int(connection.execute(_LAST).fetchone()[0] or 0)
        epoch = Meta(connection).find(EPOCH)
        kept = _common
        if kept.epoch != epoch:
            kept = _common = _Common(epoch)
        self._common = kept

    def word(self, token: str) -> Word:
        """The word as it is now, or as it was when it was last asked and found common."""
        kept = self._common.find(token, self.last)
        if kept is not None:
            return kept
        bound = {"query": f'"{token}"', "limit": RARE + 1}
        rows = [row for (row,) in self._connection.execute(_HOLDING, bound)]
        if len(rows) <= RARE:
            return Word(token, max(len(rows), 1) / max(self.last >> BITS, len(rows), 1), rows)
        # It is taken to be everywhere as dense as in its newest rows.
        word = Word(token, RARE / max((self.last - rows[-1]) >> BITS, RARE), None)
        self._common.keep(word, self.last)
        return word
