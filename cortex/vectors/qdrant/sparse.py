"""Sparse vectors for BM25 on a server that knows the document frequencies.

Idea: the document's side of BM25, term-frequency saturation with length normalisation,
goes into the values of the stored vector; the query's values are 1; the server multiplies
by the inverse document frequency (Modifier.IDF). The dot product is then BM25.

    value(t, d) = f (k + 1) / (f + k (1 − b + b · |d| / L))

with f the number of times that t occurs in d, |d| the number of tokens of d, k = 1.2,
b = 0.75, and a fixed mean length L = 256, as the mean changes with every write. Terms are
hashed to 32 bits (CRC-32): with a million different terms, about 116 pairs share a number.

Cost: linear in the terms. Corner: no terms, an empty vector.

Source: Robertson & Zaragoza, The Probabilistic Relevance Framework, 2009; the split between
client and server is that of Qdrant's own BM25.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Mapping
from typing import Final

K: Final = 1.2
B: Final = 0.75
MEAN_LENGTH: Final = 256.0

Sparse = tuple[list[int], list[float]]
"""Indices in [0, 2³²), rising, each once; and their values, positive."""


def document(words: Mapping[str, int]) -> Sparse:
    """The stored side: `words` counts each term of the text."""
    length = sum(words.values())
    norm = K * (1.0 - B + B * length / MEAN_LENGTH)
    counts: dict[int, int] = {}
    for word, count in words.items():
        index = term(word)
        counts[index] = counts.get(index, 0) + count
    order = sorted(counts)
    return order, [round(counts[at] * (K + 1.0) / (counts[at] + norm), 6) for at in order]


def question(words: Iterable[str]) -> Sparse:
    """The asking side: each term once, value 1."""
    order = sorted({term(word) for word in words})
    return order, [1.0] * len(order)


def term(word: str) -> int:
    """The 32 bits that stand for a term."""
    return zlib.crc32(word.encode("utf-8", "surrogatepass"))
