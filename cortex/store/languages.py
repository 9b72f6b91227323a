"""Which languages a text in Latin letters is written in: told by its function words, no model.

Function words are closed classes, so a short list of each language meets almost every
sentence. A language that is guessed beside the right one costs a few more tokens and hides
nothing, as English stems are always there: the guess is generous and may name two.
Other scripts need no guess. Cost: one look-up a word of the first 4,000 characters.
Source: Grefenstette, "Comparing two language identification schemes", JADT 1995.
"""

from __future__ import annotations

import unicodedata
from collections import Counter
from functools import lru_cache
from typing import Final, NamedTuple

from cortex.store.folding import fold
from cortex.store.function_words import AMBIGUOUS, ENGLISH, LATIN_WORDS, OTHER_WORDS

LATIN: Final = tuple(name for name in LATIN_WORDS if name != ENGLISH)
# Assumed of a question that tells no language. Of all of them, more stems of one language would
# meet unrelated words of another.
COMMON: Final = ("de", "es", "fr", "it", "pt", "nl")
# Letters that only these languages of ours write.
_LETTERS: Final = {
    "ß": ("de",),
    "ñ": ("es",),
    "¿": ("es",),
    "¡": ("es",),
    "ã": ("pt",),
    "õ": ("pt",),
    "ő": ("hu",),
    "ű": ("hu",),
    "ă": ("ro",),
    "ș": ("ro",),
    "ț": ("ro",),
    "ğ": ("tr",),
    "ı": ("tr",),
    "ş": ("tr",),
    "œ": ("fr",),
    "ø": ("da", "no"),
    "æ": ("da", "no"),
    "å": ("sv", "da", "no"),
    "ä": ("de", "sv", "fi"),
    "ö": ("de", "sv", "fi", "tr", "hu"),
    "ü": ("de", "tr", "hu"),
}
_READ: Final = 4_000
_MOST: Final = 2
_STRONG: Final = 3
_ANY: Final = ""
_EDGES: Final = ".,;:!?…()[]{}<>\"'«»„“”‚‘’*"
_ELIDED: Final = str.maketrans("'’", "  ")


class Spoken(NamedTuple):
    """What the function words tell: at most two languages beside English, surest first.

    `known` is False where no function word stood, not even an English one.
    """

    languages: tuple[str, ...]
    known: bool


@lru_cache(maxsize=1)
def _evidence() -> dict[str, dict[str, int]]:
    """What each function word, as written and without accents, weighs for its languages."""
    found: dict[str, dict[str, int]] = {}
    for language, words in LATIN_WORDS.items():
        for word in words.split():
            for form in (fold(word), word):
                found.setdefault(form, {})[language] = _STRONG
    for word, languages in found.items():
        if len(word) == 1 or word in AMBIGUOUS or (ENGLISH in languages and len(languages) > 1):
            found[word] = dict.fromkeys(languages.keys() - {ENGLISH}, 1) | {_ANY: 1}
    return found


@lru_cache(maxsize=64)
def stop_words(languages: tuple[str, ...]) -> frozenset[str]:
    """Function words of English, of the other scripts and of these languages, accents or not."""
    listed = [*OTHER_WORDS.values(), *(LATIN_WORDS[name] for name in (ENGLISH, *languages))]
    words = frozenset(" ".join(listed).split())
    return words | {fold(word) for word in words}


def _letters(sample: str) -> dict[str, int]:
    """The weight of its strongest letter for each language: a word's where it alone has it."""
    weights: dict[str, int] = {}
    for letter in _LETTERS.keys() & set(sample):
        languages = _LETTERS[letter]
        weight = _STRONG if len(languages) == 1 else 1
        for language in languages:
            weights[language] = max(weight, weights.get(language, 0))
    return weights


def spoken(text: str) -> Spoken:
    """The languages of a text in Latin letters.

    Counted are the different function words of each language, and its letters;
    a word that English has too, or a letter of several, counts a third. A language is named that
    has a word's worth (two beside English ones), at least half as much as the strongest
    (English stands in that comparison), and a word's worth in twelve different words.
    Words inside identifiers and paths do not count. Ties go by the order of the table.
    """
    sample = text[:_READ].lower()
    if not sample.isascii():
        sample = unicodedata.normalize("NFC", sample)
    counts: Counter[str] = Counter()
    evidence = _evidence()
    words = {word.strip(_EDGES) for word in sample.translate(_ELIDED).split()}
    for word in words & evidence.keys():
        counts.update(evidence[word])
    if not sample.isascii():
        counts.update(_letters(sample))
    some = counts.pop(_ANY, 0)
    if not counts:
        return Spoken((), bool(some))
    fewest = 2 * _STRONG if counts[ENGLISH] else _STRONG
    enough = max(fewest, max(counts.values()) / 2, len(words) * _STRONG / 12)
    likely = [name for name in LATIN if counts[name] >= enough]
    likely.sort(key=lambda name: -counts[name])
    return Spoken(tuple(likely[:_MOST]), bool(likely or counts[ENGLISH] or some))
