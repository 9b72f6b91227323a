"""Nodes that say nearly the same as a text, found by its words.

Idea: what repeats a text lacks few of its words, so of any few more it holds one. Word by
word, the longest first since long words are rare ones, the index is asked for the rows of
each that has few; until there are more such words than could be lacking. A text without
so many is looked for by one or two groups of its other words as well, a row having to hold
all of a group: one changed word leaves the other group as it was; where the rare words are
as many as could be lacking, one group of the rarest will do. An identifier counts once: who
changes it changes its parts. The rows found are then compared with the text by all of their
words.

Cost: up to 24 lists of 65 rows, of which those of common words are remembered
(`densities.py`), two groups of which 25,000 entries are read and 64 rows looked at, and 24
rows compared: 0.5 to 2 ms, however many rows there are. Corners: what shares frequent words
alone is found where it is among the newest rows that do; a text of which a letter of every
word is changed is not found.

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
from cortex.store.densities import BITS, Densities, Word
from cortex.store.languages import spoken
from cortex.store.tokens import STOP_WORDS, iter_tokens

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
_ASKED: Final = 24
_LACKING: Final = 3  # one word of so many may be lacking: 15 % are edited, 26 % left out
_FEWEST: Final = 8  # words, below which the parts of identifiers count as well
_GROUP: Final = 5
_READ: Final = 25_000
_SEEN: Final = 64
_COMPARED: Final = 12
_SHORTER: Final = 0.7  # than that nothing is 85 % like a text


class Alike(NamedTuple):
    """A node's key, and which share of the words of both is in both: 0 to 1."""

    key: int
    likeness: float


class _Passage(NamedTuple):
    """All tokens of a chunk, and which of them are parts of others."""

    tokens: list[str]
    parts: set[str]


def find_alike(
    connection: sqlite3.Connection, text: str, workspace: WorkspaceId, limit: int
) -> list[Alike]:
    """Active nodes that say nearly the same, at most `limit`; most alike first, then newest."""
    densities = Densities(connection)
    said = [_passage(text[piece.start : piece.end]) for piece in chunk(text)]
    tokens = _asked(said)
    lacking = len(tokens) // _LACKING
    held: dict[int, float] = {}
    common: list[Word] = []
    rare = 0
    for token in tokens:
        word = densities.word(token)
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
        lengths = {len(passage.tokens) for passage in said}
        for group in _groups(common, alone=rare == lacking):
            found = _iter_holding(connection, group, densities.last, workspace, lengths)
            for row in islice(found, _COMPARED):
                shared[row] += len(group)
        rows += [row for row in _best(shared) if row not in rows]
    return _compared(connection, rows, [set(each.tokens) for each in said], workspace)[:limit]


def _passage(text: str) -> _Passage:
    languages = spoken(text).languages
    tokens = list(iter_tokens(text, languages))
    joined = {token for token in tokens if not token.isalnum()}
    parts = {part for whole in joined for part in iter_tokens(whole, languages)} - joined
    return _Passage(tokens, parts)


def _asked(said: Sequence[_Passage]) -> list[str]:
    """The words to look by, the longest first, then by alphabet."""
    distinct = {token for passage in said for token in passage.tokens}
    chosen = distinct - STOP_WORDS or distinct
    whole = chosen.difference(*(passage.parts for passage in said))
    if len(whole) >= _FEWEST:
        chosen = whole
    return sorted(chosen, key=lambda token: (-len(token), token))[:_ASKED]


def _best(worth: Mapping[int, float]) -> list[int]:
    """The rows of most worth, then the newest."""
    return sorted(worth, key=lambda row: (-worth[row], -row))[:_COMPARED]


def _groups(common: Sequence[Word], *, alone: bool) -> list[list[Word]]:
    """The rarest of the words in two groups; in one `alone`, or where they are few."""
    chosen = sorted(common, key=lambda word: (word.density, word.token))
    if alone or len(chosen) <= _GROUP:
        return [chosen[:_GROUP]] if chosen else []
    return [chosen[: 2 * _GROUP : 2], chosen[1 : 2 * _GROUP : 2]]


def _iter_holding(
    connection: sqlite3.Connection,
    group: Sequence[Word],
    last: int,
    workspace: WorkspaceId,
    lengths: Set[int],
) -> Iterator[int]:
    """The newest rows that hold all words and are about as long as the text is."""
    nodes = int(_READ / sum(word.density for word in group))
    bound = {
        "query": " AND ".join(f'"{word.token}"' for word in group),
        "since": last - (nodes << BITS),
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
