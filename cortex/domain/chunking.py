"""Cutting a long text into the chunks by which it is found, by meaning and by keyword.

Idea: walk through the text; each chunk ends at the last paragraph, line, sentence or word
boundary between half of the size and the size, in this order of preference, else inside
the word. The spans follow each other without gap or overlap, so every character is in
exactly one chunk and a hit can show its passage as `text[start:end]`.

Cost: linear; 1 MiB takes about 20 ms.

Corner: no more than 2,000 chunks. As long as 2,000 × the size hold the text, the chunks
are merely filled better near its end; a longer text gets longer chunks. An empty text is
one chunk, the title alone, so that every node has a vector.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from dataclasses import dataclass
from typing import Final

from cortex.domain.errors import InvalidError
from cortex.domain.values import shorten

CHUNK_SIZE: Final = 600
MAX_CHUNKS: Final = 2_000

_SMALLEST: Final = 16
_FORM: Final = "2"  # a new form of chunks makes every stored hash, hence every vector, stale

_BOUNDARIES: Final = (
    re.compile(r"\n[ \t\r]*\n\s*"),
    re.compile(r"\n\s*"),
    re.compile(r"[.!?…]+[\"'”’»)\]]*\s+|[。！？｡]+[」』”’）]*\s*"),
    re.compile(r"\s+"),
)
_JOINER: Final = "\u200d"


@dataclass(frozen=True, slots=True)
class Chunk:
    """`text` is what is embedded: the title, a colon, and the span [start, end).

    Models of sentences do not see a line break: with one, "Ann" before what Ann said is one
    more word; with a colon it is who says it.
    """

    start: int
    end: int
    text: str


def chunk(text: str, title: str = "", size: int = CHUNK_SIZE) -> list[Chunk]:
    """The chunks of a node, 1 to 2,000, in the order of the text.

    A chunk has at most `size` characters, its title included, unless the title takes more
    than half of them or the text is above 2,000 chunks. The first chunk goes without the
    title when the text begins with it. Raises InvalidError for a size below 16.
    """
    if size < _SMALLEST:
        raise InvalidError(
            f"chunk size {size} is too small", f"Valid: {_SMALLEST} and more", "Raise it"
        )
    if not text:
        return [Chunk(0, 0, title)]
    prefix = f"{title}: " if title else ""
    room = max(size - len(prefix), size // 2, -(-len(text) // MAX_CHUNKS))
    chunks: list[Chunk] = []
    start = 0
    while start < len(text):
        end = _cut(text, start, room, MAX_CHUNKS - len(chunks) - 1)
        lead = "" if start == 0 and _begins_with(text, title) else prefix
        chunks.append(Chunk(start, end, lead + text[start:end]))
        start = end
    return chunks


def embedding_text_hash(title: str, text: str) -> str:
    """32 hex characters that change whenever the chunks of (title, text) would."""
    whole = f"{_FORM}\0{title}\0{text}".encode("utf-8", "surrogatepass")
    return hashlib.sha256(whole).hexdigest()[:32]


def _begins_with(text: str, title: str) -> bool:
    # A node without a title of its own is titled by the start of its text, shortened.
    return text.startswith(title) or shorten(text, len(title)) == title


def _cut(text: str, start: int, room: int, later: int) -> int:
    """Where the chunk from `start` ends, when at most `later` chunks may follow it."""
    rest = len(text) - start
    if rest <= room:
        return len(text)
    # What follows should be more than a crumb, and must fit into the later chunks.
    lowest = start + max(room // 2, rest - later * room)
    highest = start + max(min(room, rest - room // 4), lowest - start)
    for boundary in _BOUNDARIES:
        ends = [found.end() for found in boundary.finditer(text, lowest - 1, highest)]
        ends = [end for end in ends if end >= lowest]
        if ends:
            return ends[-1]
    end = highest
    while end > lowest and _inside_grapheme(text, end):
        end -= 1
    return end if end > lowest else highest


def _inside_grapheme(text: str, cut: int) -> bool:
    """Whether a cut here parts a mark, a joiner or a skin tone from what it belongs to."""
    after = text[cut]
    return (
        text[cut - 1] == _JOINER
        or after == _JOINER
        or "\U0001f3fb" <= after <= "\U0001f3ff"
        or "\udc00" <= after <= "\udfff"
        or unicodedata.category(after) in {"Mn", "Me", "Mc"}
    )
