"""Stems of words: by the script where it tells the language, by the language where not.

Snowball serves Latin, Cyrillic, Greek, Arabic and Tamil letters; Hindi has a suffix stripper
after Ramanathan and Rao, "A Lightweight Stemmer for Hindi", EACL 2003: the longest suffix of
their list that leaves two letters is taken off, once.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

from py_rust_stemmers import SnowballStemmer

from cortex.store.function_words import ENGLISH

_SNOWBALL: Final = {
    "en": "english",
    "de": "german",
    "es": "spanish",
    "fr": "french",
    "it": "italian",
    "pt": "portuguese",
    "nl": "dutch",
    "sv": "swedish",
    "da": "danish",
    "no": "norwegian",
    "fi": "finnish",
    "hu": "hungarian",
    "ro": "romanian",
    "tr": "turkish",
}
_LATIN: Final = re.compile("[a-z\u00df-\u00f6\u00f8-\u024f\u1e00-\u1eff]{3,}")
# Ё and й apart, a Cyrillic word keeps its letters when folded, as the stemmer needs them.
_SCRIPTS: Final = (
    (re.compile("[\u0400-\u052f]{3,}"), "russian"),
    (re.compile("[\u0370-\u03ff\u1f00-\u1fff]{3,}"), "greek"),
    (re.compile("[\u0600-\u06ff]{3,}"), "arabic"),
    (re.compile("[\u0b80-\u0bff]{3,}"), "tamil"),
)
_DEVANAGARI: Final = re.compile("[\u0900-\u097f]{2,}")
# Spellings that Hindi uses side by side: the dot below, the moon for the dot above, a nasal
# letter before a consonant of its own for the dot (हिन्दी, हिंदी).
_NASAL: Final = re.compile("[ङञणनम]\u094d(?=[क-नप-म])")
_SUFFIXES: Final = (
    "ो े ू ु ी ि ा "
    "कर ाओ िए ाई ाए ने नी ना ते ीं ती ता ाँ ां ों ें "
    "ाकर ाइए ाईं ाया ेगी ेगा ोगी ोगे ाने ाना ाते ाती ाता तीं ाओं ाएं ुओं ुएं ुआं "
    "ाएगी ाएगा ाओगी ाओगे एंगी ेंगी एंगे ेंगे ूंगी ूंगा ातीं नाओं नाएं ताओं ताएं ियाँ ियों ियां "
    "ाएंगी ाएंगे ाऊंगी ाऊंगा ाइयाँ ाइयों ाइयां"
)
_HINDI_SUFFIXES: Final = frozenset(_SUFFIXES.split())
_VOWEL_SIGNS: Final = frozenset(suffix for suffix in _HINDI_SUFFIXES if len(suffix) == 1)
_LONGEST: Final = max(map(len, _HINDI_SUFFIXES))


@lru_cache(maxsize=32)
def _stemmer(language: str) -> SnowballStemmer:
    return SnowballStemmer(language)


def _hindi(word: str) -> tuple[str, ...]:
    """The stem, and the word without its last vowel sign alone.

    The paper's list holds the verbs' -नी, -ती and takes it off nouns as well: कंपनी would
    become कंप and its plural कंपनियाँ कंपन.
    """
    word = _NASAL.sub("\u0902", word.replace("\u093c", "").replace("\u0901", "\u0902"))
    sizes = range(min(_LONGEST, len(word) - 2), 0, -1)
    size = next((size for size in sizes if word[-size:] in _HINDI_SUFFIXES), 0)
    stem = word[: len(word) - size]
    return (stem, word[:-1]) if size > 1 and word[-1] in _VOWEL_SIGNS else (stem,)


def is_latin(word: str) -> bool:
    """Whether the word is of three or more Latin letters, so that its language matters."""
    return _LATIN.fullmatch(word) is not None


def stems(word: str, language: str = ENGLISH) -> tuple[str, ...]:
    """The stems of a lower-case word, surest first; of a script without a stemmer, the word.

    `language`, an ISO 639-1 code of `languages.py`, decides for Latin letters alone.
    """
    if is_latin(word):
        return (str(_stemmer(_SNOWBALL[language]).stem_word(word)),)
    if word.isascii():
        return (word,)
    for letters, served in _SCRIPTS:
        if letters.fullmatch(word):
            return (str(_stemmer(served).stem_word(word)),)
    return _hindi(word) if _DEVANAGARI.fullmatch(word) else (word,)


def stem(word: str, language: str = ENGLISH) -> str:
    """The surest stem of a lower-case word."""
    return stems(word, language)[0]
