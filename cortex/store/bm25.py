"""BM25 over rows that were found: what FTS5's own bm25() cannot be told, k1 and b.

Idea: of each row the tokens are counted, those of the title doubly, and weighed by how rare
they are. In short rows a word said twice says little more than once, and length says little;
so k1 and b rise with the average length, from 0.6 and 0.3 for a line to the usual 1.2 and
0.75 for a passage of 100 tokens. Cost: the length of the rows, 15 µs for 100 tokens.
Corner: a token that no row holds adds nothing; an empty collection gives no scores.

Source: Robertson, Zaragoza, "The Probabilistic Relevance Framework: BM25 and Beyond",
Foundations and Trends in IR 3(4), 2009; the inverse frequency with 1 + inside, as Lucene
has it, so that it is never below 0.
"""

from __future__ import annotations

from collections.abc import Collection as Many
from collections.abc import Mapping, Sequence
from functools import lru_cache
from math import fsum, log, sqrt
from typing import Final, NamedTuple

_TITLE: Final = 2.0
_LONG: Final = 100.0  # tokens of an average row from which k1 and b are the usual ones
_K1: Final = (0.6, 1.2)
_B: Final = (0.3, 0.75)


class Collection(NamedTuple):
    """Number of rows, and tokens in all of their titles and bodies."""

    rows: int
    titles: int
    bodies: int

    @property
    def length(self) -> float:
        """The average length of a row, a title's tokens counted doubly; at least 1."""
        return max((_TITLE * self.titles + self.bodies) / max(self.rows, 1), 1.0)


class Row(NamedTuple):
    """A row of the index: its number, and its tokens joined by spaces."""

    number: int
    title: str
    body: str


def scored(
    rows: Sequence[Row], counts: Mapping[str, int], collection: Collection
) -> dict[int, float]:
    """The score of each row, at least 0, by its number.

    `counts` are the question's tokens, with the number of rows of the collection that hold
    each.
    """
    average = collection.length
    share = min(average / _LONG, 1.0)
    k1 = _K1[0] + share * (_K1[1] - _K1[0])
    b = _B[0] + share * (_B[1] - _B[0])
    weights = {
        token: log(1 + (max(collection.rows, held) - held + 0.5) / (held + 0.5)) * (k1 + 1)
        for token, held in counts.items()
        if held
    }
    found: dict[int, float] = {}
    for number, head, text in rows:
        title, body = head.split(), text.split()
        length = _TITLE * len(title) + len(body)
        ground = k1 * (1 - b + b * length / average)
        score = 0.0
        for token, weight in weights.items():  # in one order, so that equal rows tie exactly
            if token in text or token in head:  # as letters: much the quicker look, and most fail
                times = _TITLE * title.count(token) + body.count(token)
                score += weight * times / (times + ground)
        found[number] = score
    return found


def corrected(
    best: Mapping[int, float], counts: Mapping[int, int], scores: Many[float]
) -> dict[int, float]:
    """The best score of each text, less what as many rows bring by chance; above 0.

    The greatest of n draws of an exponential distribution lies H(n) − 1 of its standard
    deviations above its mean (H the harmonic number); the deviation is that of all scores
    above 0. A text that would fall to 0 keeps a thousandth: it holds the words all the same.
    """
    present = [score for score in scores if score > 0]
    mean = fsum(present) / max(len(present), 1)
    deviation = sqrt(fsum((score - mean) ** 2 for score in present) / max(len(present), 1))
    return {
        key: max(score - deviation * _harmonic(counts.get(key, 1)), score / 1000)
        for key, score in best.items()
    }


@lru_cache(maxsize=2048)
def _harmonic(count: int) -> float:
    return sum(1 / number for number in range(2, count + 1))


def read_averages(block: bytes) -> Collection:
    """What FTS5's record of averages says: varints of rows, then of each column's tokens.

    The form is that of SQLite's own varints (big-endian, 7 bits a byte), fixed by its file
    format; a table that never had a row has an empty record.
    """
    numbers: list[int] = []
    value = 0
    for byte in block:
        value = (value << 7) | (byte & 0x7F)
        if byte < 0x80:
            numbers.append(value)
            value = 0
    rows, titles, bodies = (*numbers, 0, 0, 0)[:3]
    return Collection(rows, titles, bodies)
