"""Words for the keyword index: identifiers whole and split, words stemmed by their language.

A text becomes words (letters, digits and marks of any script). Where `_ - . / : @ # +` join
words (`POL-358`, `src/auth/jwt.py`, `graph_search`), the whole is a token and so is each
part; camelCase is split as well. Latin words become their English stem and those of the
languages that the text is written in: an English question about a German text with English
terms meets it, and so does a German one. Scripts that set no spaces become pairs of letters.
Accents are dropped after stemming. Cost: linear in the text.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import islice, pairwise
from typing import Final

from cortex.store.folding import fold
from cortex.store.languages import COMMON, spoken, stop_words
from cortex.store.stemming import is_latin, stem, stems

__all__ = ["MAX_TOKEN", "STOP_WORDS", "fold", "indexed", "iter_tokens", "query_tokens", "stem"]

MAX_TOKEN: Final = 80
# Of a question no more is read, so that a pasted page costs no more than a paragraph.
_ASKED: Final = 20_000
_ASKED_WORDS: Final = 1_000
STOP_WORDS: Final = stop_words(())

_ASCII_CHUNK: Final = re.compile(r"[\w@#+](?:[\w@#+./:\-]*[\w+#])?", re.ASCII)
_JOINERS: Final = re.compile(r"[_@#+./:\-]+")
_CAMEL: Final = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|\d+")
# Han, kana, Hangul, Thai, Lao, Burmese, Khmer: no spaces, or (Hangul) particles set on.
_HAN: Final = "\u3005-\u3007\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
_HANGUL: Final = "\u1100-\u11ff\u3131-\u318e\ua960-\ua97f\uac00-\ud7ff\uffa0-\uffdc"
_KANA: Final = "\u3041-\u3096\u3099\u309a\u309d-\u309f\u30a1-\u30fa\u30fc-\u30ff\u31f0-\u31ff"
_HALF_KANA: Final = "\uff66-\uff9f"
_ASIAN: Final = (
    "\u0e01-\u0e3a\u0e40-\u0e4e\u0e81-\u0ebd\u0ec0-\u0ece\u0edc-\u0edf"
    "\u1000-\u103f\u1050-\u108f\u1780-\u17d3"
)
_UNSPACED: Final = re.compile(f"([{_HAN}{_HANGUL}{_KANA}{_HALF_KANA}{_ASIAN}]+)")
# One sign of Han or Hangul is a word, or the root of one; one of the others is a sound.
_SIGN: Final = re.compile(f"[{_HAN}\uac00-\ud7a3]")
_MARKED: Final = re.compile("[\u0e31-\u0e4e\u0eb1-\u0ece\u102b-\u108f\u17b4-\u17d3\u3099\u309a]")
# Pairs that Japanese builds its particles, copulas and endings of.
_ENDING_PAIRS: Final = (
    "です ます まし ませ せん した して てい いる いた った って なっ ある あり ない なか "
    "され れた れて れる する こと もの には では とは への から まで より ので この その "
    "あの どの これ それ どこ いつ だれ なに なぜ どう すか たか のか"
)
_ENDINGS: Final = frozenset(_ENDING_PAIRS.split())


@lru_cache(maxsize=1)
def _patterns() -> tuple[re.Pattern[str], re.Pattern[str]]:
    """Words of any script, and a letter with its marks; made once, when first needed.

    `\\w` leaves out the vowel signs of the Indic scripts, which are marks (Mn, Mc).
    """
    points = [point for point in range(0x300, 0x20000) if _is_mark(chr(point))]
    ranges: list[list[int]] = []
    for point in points:
        if ranges and ranges[-1][1] == point - 1:
            ranges[-1][1] = point
        else:
            ranges.append([point, point])
    marks = "".join(f"{chr(first)}-{chr(last)}" for first, last in ranges)
    letter = rf"\w{marks}\u200c\u200d\u00ad"
    chunk = re.compile(rf"[{letter}@#+](?:[{letter}@#+./:\-]*[{letter}+#])?")
    return chunk, re.compile(f"[^{marks}][{marks}]*")


def _is_mark(character: str) -> bool:
    return unicodedata.category(character) in ("Mn", "Mc")


@lru_cache(maxsize=32768)
def _stems(word: str, languages: tuple[str, ...]) -> tuple[str, ...]:
    """The English stem, then those of the languages that differ.

    Where a word has accents, it is stemmed with and without, as a question may leave them out.
    """
    plain = fold(word)[:MAX_TOKEN]
    found = dict.fromkeys(stems(plain))
    if languages and is_latin(plain):
        written = unicodedata.normalize("NFC", word.casefold())[:MAX_TOKEN]
        for language in languages:
            found[stem(plain, language)] = None
            if written != plain:
                found[fold(stem(written, language))] = None
    return tuple(each[:MAX_TOKEN] for each in found if each.strip())


_Word = tuple[str, tuple[str, ...]]


def _words(chunk: str, languages: tuple[str, ...]) -> Iterator[_Word]:
    """The words of letters that joiners hold together, each folded and with its tokens."""
    parts = [part[:MAX_TOKEN] for part in _JOINERS.split(chunk) if part]
    if len(parts) > 1 and len(chunk) <= MAX_TOKEN:
        whole = fold(chunk)[:MAX_TOKEN]
        yield whole, (whole,)
    for part in parts:
        yield fold(part), _stems(part, languages)
        if part.isascii() and not part.islower():
            pieces = _CAMEL.findall(part)
            if len(pieces) > 1:
                yield from ((piece.lower(), _stems(piece, languages)) for piece in pieces)


@lru_cache(maxsize=32768)
def _known(chunk: str, languages: tuple[str, ...]) -> tuple[_Word, ...]:
    return tuple(_words(chunk, languages))


def _signs(run: str) -> list[str]:
    """The signs of a run without spaces that are words, and the pairs of neighbouring signs.

    Source: pairs with single signs beside them are what Chinese retrieval found best without
    a dictionary: Nie, Gao, Zhang, Zhou, IRAL 2000.
    """
    folded = fold(run)
    units: Sequence[str] = folded
    if _MARKED.search(folded):  # Thai, Burmese, Khmer: a letter keeps its marks
        units = [unit[: MAX_TOKEN // 2] for unit in _patterns()[1].findall(folded)]
    if len(units) == 1:
        return [units[0]]
    return [*_SIGN.findall(folded), *(first + second for first, second in pairwise(units))]


def _read(text: str, languages: tuple[str, ...]) -> Iterator[_Word]:
    """Each word of a text in order, folded, with its tokens; a pair of signs is a word."""
    if text.isascii():
        pieces, chunks = [text], _ASCII_CHUNK
    else:
        pieces, chunks = _UNSPACED.split(text), _patterns()[0]
    for place, piece in enumerate(pieces):
        if place % 2:
            yield from ((sign, (sign,)) for sign in _signs(piece))
            continue
        for chunk in chunks.findall(piece):
            # What is as long as a file (base64, minified code) shall not stay in the cache.
            read = _known if len(chunk) <= MAX_TOKEN else _words
            yield from read(chunk, languages)


def iter_tokens(text: str, languages: tuple[str, ...] | None = None) -> Iterator[str]:
    """Tokens in order; a joined identifier first whole, then its parts.

    `languages` are codes of languages beside English, whose stems are always there; None finds
    them by the text itself.
    """
    found = spoken(text).languages if languages is None else languages
    for _, tokens in _read(text, found):
        yield from tokens


def indexed(text: str, languages: tuple[str, ...] | None = None) -> str:
    """The text as the keyword index holds it: tokens joined by spaces."""
    return " ".join(iter_tokens(text, languages))


def query_tokens(text: str, limit: int = 64) -> list[str]:
    """Distinct tokens of a question without stop words; all of them when only those stand.

    A question without a function word tells no language: its words are stemmed by the common
    ones. At most `limit`, the English stems in order before the others.
    """
    text = text[:_ASKED]
    languages, known = spoken(text)
    words = list(islice(_read(text, languages if known else COMMON), _ASKED_WORDS))
    stops = stop_words(languages)
    rare = [tokens for word, tokens in words if word not in stops and word not in _ENDINGS]
    groups = rare or [tokens for _, tokens in words]
    chosen = dict.fromkeys(tokens[0] for tokens in groups if tokens)
    for tokens in groups:
        chosen.update(dict.fromkeys(token for token in tokens[1:] if token not in stops))
    return list(chosen)[:limit]
