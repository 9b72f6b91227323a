"""Words for the keyword index: identifiers whole and split, words stemmed.

A text becomes words (letters, digits and marks of any script). Where `_ - . / : @ # +` join
words (`POL-358`, `src/auth/jwt.py`, `graph_search`), the whole is a token and so is each
part; camelCase is split as well. Accents are dropped and Latin and Cyrillic words stemmed by
the Snowball stemmers, so that "tokens" finds "token". Cost: linear in the text.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from functools import lru_cache
from typing import Final

from py_rust_stemmers import SnowballStemmer

_CHUNK: Final = re.compile(r"[\w\u0300-\u036f@#+](?:[\w\u0300-\u036f@#+./:\-]*[\w+#])?")
_PART: Final = re.compile(r"[^\W_]+")
_CAMEL: Final = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|\d+")
_MARKS: Final = re.compile("[\u0300-\u036f]")
_LATIN: Final = re.compile(r"[a-z]{3,}")
_CYRILLIC: Final = re.compile("[\u0400-\u04ff]{3,}")
MAX_TOKEN: Final = 80

# The most common English words; in a question they name nothing.
_STOP_WORDS: Final = (
    "a an and are as at be been but by can could did do does for from had has have how i if in "
    "into is it its me my no not of on or our shall should so than that the their them then "
    "there these they this those to us was we were what when where which who whom whose why "
    "will with would you your about"
)
STOP_WORDS: Final = frozenset(_STOP_WORDS.split())


@lru_cache(maxsize=1)
def _stemmers() -> tuple[SnowballStemmer, SnowballStemmer]:
    return SnowballStemmer("english"), SnowballStemmer("russian")


@lru_cache(maxsize=65536)
def stem(word: str) -> str:
    """The stem of a folded word; a word of another script as it is."""
    english, russian = _stemmers()
    if _LATIN.fullmatch(word):
        return str(english.stem_word(word))
    if _CYRILLIC.fullmatch(word):
        return str(russian.stem_word(word))
    return word


def fold(text: str) -> str:
    """Compatibility form, lower case, without accents."""
    if text.isascii():
        return text.lower()
    return _MARKS.sub("", unicodedata.normalize("NFKD", text.casefold()))


def iter_tokens(text: str) -> Iterator[str]:
    """Tokens in order; a joined identifier first whole, then its parts."""
    for match in _CHUNK.finditer(text):
        chunk = match.group()
        parts = _PART.findall(chunk)
        if len(parts) > 1 and len(chunk) <= MAX_TOKEN:
            yield fold(chunk)
        for part in parts:
            pieces = _CAMEL.findall(part) if part.isascii() and not part.islower() else ()
            folded = fold(part)[:MAX_TOKEN]
            yield stem(folded)
            if len(pieces) > 1:
                for piece in pieces:
                    yield stem(piece.lower()[:MAX_TOKEN])


def indexed(text: str) -> str:
    """The text as the keyword index holds it: tokens joined by spaces."""
    return " ".join(iter_tokens(text))


def query_tokens(text: str, limit: int = 64) -> list[str]:
    """Distinct tokens of a question without stop words; all of them when only those stand.

    At most `limit`, first come first: a pasted page costs no more than a paragraph.
    """
    tokens = dict.fromkeys(iter_tokens(text))
    rare = [token for token in tokens if token not in STOP_WORDS]
    return (rare or list(tokens))[:limit]
