"""The objects of a verb: the search to its right.

Over articles and at most two further words to the nearest mention, and the list that it
begins. A mention that a verb follows begins the next clause and is none. Cost: the words of
the list.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from cortex.services.fabric.grammar import (
    ADVERBS,
    ARTICLES,
    AUX,
    BE,
    DOUBT,
    FUNCTION,
    HEADS,
    Token,
)
from cortex.services.fabric.mentions import Mention
from cortex.services.fabric.verbs import FORMS

_USING: Final = frozenset({"using", "adopting", "introducing"})


def objects_of(tokens: Sequence[Token], at: int) -> tuple[list[Mention], int]:
    """The mentions listed from `at` on, over articles and at most two further words; and where
    the list ends."""
    skipped = 0
    while at < len(tokens) and not isinstance(tokens[at], Mention):
        token = tokens[at]
        assert isinstance(token, str)
        if token not in ARTICLES | _USING | ADVERBS:
            skipped += 1
        if (token in FUNCTION and token not in ARTICLES) or skipped > 2:
            return [], at
        at += 1
    found: list[Mention] = []
    while at < len(tokens):
        token = tokens[at]
        if not isinstance(token, Mention):
            break
        after = _past_heads(tokens, at + 1)
        if after < len(tokens) and tokens[after] == "'s":
            break  # what belongs to it is meant
        if found and _acts(tokens, after):
            break
        found.append(token)
        at = after
        joint = at
        while joint < len(tokens) and tokens[joint] in (",", "and", "both", "the", "a", "an"):
            joint += 1
        if joint == at or tokens[at] not in (",", "and"):
            break
        if not (joint < len(tokens) and isinstance(tokens[joint], Mention)):
            break
        if _acts(tokens, _past_heads(tokens, joint + 1)):
            break
        at = joint
    return found, at


def _past_heads(tokens: Sequence[Token], at: int) -> int:
    while at < len(tokens):
        token = tokens[at]
        if not isinstance(token, str) or not (token in HEADS or token[:1].isdigit()):
            break
        at += 1
    return at


def _acts(tokens: Sequence[Token], at: int) -> bool:
    """Whether a new clause's verb stands here, past adverbs."""
    while at < len(tokens) and tokens[at] in ADVERBS:
        at += 1
    token = tokens[at] if at < len(tokens) else ""
    if not isinstance(token, str):
        return False
    form = FORMS.get(token)
    return token in BE | AUX | DOUBT or (
        form is not None and (form.third == token or (form.past and not form.done))
    )
