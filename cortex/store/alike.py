"""Nodes that say nearly the same as a text, found by its words.

Idea: what repeats a text lacks few of its words, so of any few more it holds one. Word by
word, the longest first since long words are rare ones, the index is asked for the rows of
each that has few; until there are more such words than could be lacking. A text without
so many is looked for by two groups of its other words as well, a row having to hold all of
a group: one changed word leaves the other group as it was. The rows found are then
compared with the text by all of their words.

Cost: 24 lists of 33 rows, two groups of which 25,000 entries are read and 64 rows looked at,
and 24 rows compared: 1 to 3 ms, however many rows there are. Corners: what shares
frequent words alone is found where it is among the newest rows that do; a text of which
a letter of every word is changed is not found.

Source: prefix filtering: Chaudhuri, Ganti, Kaushik, ICDE 2006; Bayardo, Ma, Srikant, WWW 2007;
groups of which one is left whole: Arasu, Ganti, Kaushik, VLDB 2006.
"""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence, Set
from itertools import islice
from math import log
from typing import Final, NamedTuple

from cortex.domain.chunking import chunk
from cortex.domain.values import WorkspaceId
from cortex.store.tokens import STOP_WORDS, iter_tokens

_LAST: Final = "SELECT MAX(rowid) FROM keywords"
_HOLDING: Final = """
SELECT rowid FROM keywords WHERE keywords MATCH :query ORDER BY rowid DESC LIMIT :limit
"""
_MORE: Final = """
SELECT rowid FROM keywords WHERE keywords MATCH :query ORDER BY rowid DESC LIMIT 1 OFFSET :limit
"""
# Unranked: for a score FTS5 reads the whole list of every word. It keeps sizes of rows apart.
_HOLDING_ALL: Final = """
SELECT k.rowid, d.sz
  FROM keywords AS k
 CROSS JOIN nodes AS n ON n.rowkey = k.rowid >> 11
 CROSS JOIN keywords_docsize AS d ON d.id = k.rowid
 WHERE keywords MATCH :query AND k.rowid >= :since
   AND n.workspace_id = :workspace AND n.status = 'active'
 ORDER BY k.rowid DESC LIMIT :limit
"""
_SAYING: Final = """
SELECT n.rowkey, k.title, k.body
  FROM json_each(:rows) AS wanted
 CROSS JOIN nodes AS n ON n.rowkey = wanted.value >> 11
 CROSS JOIN keywords AS k ON k.rowid = wanted.value
 WHERE n.workspace_id = :workspace AND n.status = 'active'
"""
_BITS: Final = 11  # of a row's number, for the chunk
_ASKED: Final = 24
_RARE: Final = 32  # rows that hold a rare word, at most
_LACKING: Final = 4  # one word of so many may be lacking: 15 % are edited, 26 % left out
_GROUP: Final = 4
_READ: Final = 25_000
_SEEN: Final = 64
_COMPARED: Final = 12
_SHORTER: Final = 0.7  # than that nothing is 85 % like a text


class Alike(NamedTuple):
    """A node's key, and which share of the words of both is in both: 0 to 1."""

    key: int
    likeness: float


class _Word(NamedTuple):
    """A word with the share of nodes that hold it, and its rows where they are few."""

    token: str
    density: float
    rows: list[int] | None


def find_alike(
    connection: sqlite3.Connection, text: str, workspace: WorkspaceId, limit: int
) -> list[Alike]:
    """Active nodes that say nearly the same, at most `limit`; most alike first, then newest."""
    last = connection.execute(_LAST).fetchone()[0] or 0
    said = [list(iter_tokens(text[piece.start : piece.end])) for piece in chunk(text)]
    distinct = {token for tokens in said for token in tokens}
    tokens = sorted(distinct - STOP_WORDS or distinct, key=lambda token: (-len(token), token))[
        :_ASKED
    ]
    lacking = len(tokens) // _LACKING
    held: dict[int, float] = {}
    common: list[_Word] = []
    rare = 0
    for token in tokens:
        word = _word(connection, token, last)
        if word.rows is None:
            common.append(word)
            continue
        for row in word.rows:
            held[row] = held.get(row, 0.0) - log(word.density)
        rare += 1
        if rare > lacking:
            break
    rows = _best(held)
    if rare <= lacking:
        shared = Counter[int]()
        lengths = {len(tokens) for tokens in said}
        for group in _groups(common):
            found = _iter_holding(connection, group, last, workspace, lengths)
            for row in islice(found, _COMPARED):
                shared[row] += len(group)
        rows += [row for row in _best(shared) if row not in rows]
    return _compared(connection, rows, [set(tokens) for tokens in said], workspace)[:limit]


def _best(worth: Mapping[int, float]) -> list[int]:
    """The rows of most worth, then the newest."""
    return sorted(worth, key=lambda row: (-worth[row], -row))[:_COMPARED]


def _word(connection: sqlite3.Connection, token: str, last: int) -> _Word:
    bound = {"query": f'"{token}"', "limit": _RARE}
    more = connection.execute(_MORE, bound).fetchone()
    if more:  # it is taken to be everywhere as dense as in its newest rows
        return _Word(token, _RARE / max((last - more[0]) >> _BITS, _RARE), None)
    rows = [row for (row,) in connection.execute(_HOLDING, bound)]
    return _Word(token, max(len(rows), 1) / max(last >> _BITS, len(rows), 1), rows)


def _groups(common: Sequence[_Word]) -> list[list[_Word]]:
    """The rarest of the words in two groups, or one where they are few."""
    chosen = sorted(common, key=lambda word: (word.density, word.token))[: 2 * _GROUP]
    groups = [chosen[::2], chosen[1::2]] if len(chosen) > _GROUP else [chosen]
    return [group for group in groups if group]


def _iter_holding(
    connection: sqlite3.Connection,
    group: Sequence[_Word],
    last: int,
    workspace: WorkspaceId,
    lengths: Set[int],
) -> Iterator[int]:
    """The newest rows that hold all words and are about as long as the text is."""
    nodes = int(_READ / sum(word.density for word in group))
    bound = {
        "query": " AND ".join(f'"{word.token}"' for word in group),
        "since": last - (nodes << _BITS),
        "workspace": workspace,
        "limit": _SEEN,
    }
    for row, sizes in connection.execute(_HOLDING_ALL, bound):
        length = _length(sizes)
        if any(_SHORTER * own <= length <= own / _SHORTER for own in lengths):
            yield row


def _length(sizes: bytes) -> int:
    """Tokens of a row's body, of its title where that is all; `sizes` are SQLite's varints."""
    numbers, value = [0], 0
    for byte in sizes:
        value = (value << 7) | (byte & 0x7F)
        if byte < 0x80:
            numbers.append(value)
            value = 0
    return numbers[-1] or max(numbers)


def _compared(
    connection: sqlite3.Connection,
    rows: Sequence[int],
    said: Sequence[Set[str]],
    workspace: WorkspaceId,
) -> list[Alike]:
    """The nodes of the rows, most alike first, then newest."""
    bound = {"rows": json.dumps(rows), "workspace": workspace}
    best: dict[int, float] = {}
    for key, title, body in connection.execute(_SAYING, bound):
        words = set((body or title).split())
        likeness = max(2 * len(own & words) / max(len(own) + len(words), 1) for own in said)
        best[key] = max(likeness, best.get(key, 0.0))
    found = [Alike(key, likeness) for key, likeness in best.items()]
    return sorted(found, key=lambda each: (-each.likeness, -each.key))
