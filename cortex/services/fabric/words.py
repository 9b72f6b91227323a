"""A text as words: what stands before and after each, and where sentences end.

A word is a run without spaces, freed of the punctuation around it: `Node.js,` is the word
`Node.js` with a comma after it. So names keep their own dots, slashes and hyphens. Cost:
linear in the text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

_RUN: Final = re.compile(r"\S+")
_LEAD: Final = re.compile(r"^[(\[{\"'`“‘«*_<>-]+(?=.)")
_TRAIL: Final = re.compile(r"(?:[)\]}\"`”’»*>,;:!?…]|\.(?!\w)|'(?!\w)|—|–)+$")
_POSSESSIVE: Final = re.compile(r"['’]s$")
_ENDS: Final = re.compile(r"[.!?…]")
_ABBREVIATED: Final = frozenset(
    {"e.g", "i.e", "dr", "mr", "mrs", "ms", "vs", "etc", "st", "no", "inc", "corp", "ltd", "co"}
)
_GAP: Final = re.compile(r"[-_\s]+")
_JOINTS: Final = frozenset({"&", "+"})


def listed(words: str) -> frozenset[str]:
    """A set of words written as a text."""
    return frozenset(words.split())


class Word(NamedTuple):
    """One word. `lead` and `trail` are the punctuation that stood around it."""

    text: str
    lead: str
    trail: str
    possessive: bool

    @property
    def low(self) -> str:
        return self.text.lower()

    @property
    def capital(self) -> bool:
        return self.text[:1].isupper()

    @property
    def quoted(self) -> bool:
        """Whether it stands alone between backticks."""
        return "`" in self.lead and "`" in self.trail


class Sentence(NamedTuple):
    """Words of one sentence; `asks` where it ends with a question mark."""

    words: tuple[Word, ...]
    asks: bool


def iter_sentences(text: str) -> Iterator[Sentence]:
    """Sentences in order; a line of its own, as in a list, is one."""
    for line in text.splitlines():
        words: list[Word] = []
        for match in _RUN.finditer(line):
            word = _word(match.group())
            if word is None:
                if words:  # a mark of its own, as "·" or "-": what follows begins anew
                    words[-1] = words[-1]._replace(trail=words[-1].trail + ";")
                continue
            words.append(word)
            if _ENDS.search(word.trail) and word.low not in _ABBREVIATED:
                yield Sentence(tuple(words), "?" in word.trail)
                words = []
        if words:
            yield Sentence(tuple(words), False)


def _word(run: str) -> Word | None:
    if run in _JOINTS:
        return Word(run, "", "", False)
    lead = _LEAD.match(run)
    start = lead.end() if lead else 0
    trail = _TRAIL.search(run, start)
    end = trail.start() if trail and trail.start() > start else len(run)
    core = run[start:end]
    if core.endswith("(") and run[end:].startswith(")"):  # a call: `parse()`
        core, end = core + ")", end + 1
    elif "(" in core and ")" not in core:  # the arguments are gone with the spaces in them
        core = core.partition("(")[0] or core
    owner = _POSSESSIVE.search(core)
    if owner and owner.start() > 0:
        core = core[: owner.start()]
    if not any(letter.isalnum() for letter in core):
        return None
    return Word(core, run[:start], run[end:], owner is not None)


def fold_name(name: str) -> str:
    """The form in which names are compared: lower case, single spaces, hyphens and underscores
    as spaces, without quotes, a call's brackets, or an article."""
    low = _GAP.sub(" ", name.lower().replace("()", "")).strip(" `\"'@.,;:!?")
    return low.lstrip("#").removeprefix("the ")


def joined(words: Sequence[Word]) -> bool:
    """Whether nothing but a space stands between them."""
    return not any(word.trail or word.possessive for word in words[:-1]) and not any(
        word.lead for word in words[1:]
    )
