"""The subjects of a verb: the search to its left.

Over auxiliaries, adverbs and relative words to the nearest mention, and the list that it
ends; "it" and a verb after "and" take the subjects of the verb before. Cost: the words to the
left, at most once each. Corners: a subject inside "nobody in X", one that belongs to another
thing ("X's cache"), and an object of the verb before are no subjects.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from cortex.services.fabric.grammar import (
    ADVERBS,
    AUX,
    BE,
    DOUBT,
    FUNCTION,
    HEADS,
    NOT,
    Token,
)
from cortex.services.fabric.mentions import Mention
from cortex.services.fabric.words import listed

_ANYONE: Final = frozenset({"we", "i", "they", "you", "everyone"})
_WITHIN: Final = listed("in of from with at on by to for into inside like")


class Left(NamedTuple):
    """What stands before a verb."""

    subjects: tuple[Mention, ...]
    be: bool
    helped: bool
    denied: bool
    anyone: bool
    where: int


def left_of(
    tokens: Sequence[Token],
    verb: int,
    before: tuple[Mention, ...],
    objects: set[Mention],
) -> Left:
    """Look back from a verb for its subjects."""
    be = helped = denied = relative = anyone = False
    subjects: tuple[Mention, ...] = ()
    at = verb - 1
    while at >= 0:
        token = tokens[at]
        if isinstance(token, Mention):
            subjects = _coordinated(tokens, at, objects)
            break
        if token in BE or token.removesuffix("n't") in BE:
            be = True
        elif token in AUX or token.removesuffix("n't") in AUX:
            helped = True
        elif token in {"which", "that", "who"}:
            relative = True
        elif token == ")":
            while at > 0 and tokens[at] != "(":
                at -= 1
        elif token in {"it", "they"} or token in {"and", "but", "then", "while"}:
            subjects = before
            anyone = token in _ANYONE and not before
            break
        elif token == "," and not relative:
            subjects = before if not be else ()
            break
        elif token in _ANYONE:
            anyone = True
            break
        elif token not in ADVERBS | HEADS | DOUBT | NOT and not (
            token == "," or token.endswith(("ly", "n't")) or token[:1].isdigit()
        ):
            break
        denied = denied or token in DOUBT | NOT or token.endswith("n't")
        at -= 1
    if subjects and at >= 0 and isinstance(tokens[at], Mention):
        first = _first_of(tokens, at, subjects)
        if not relative and _is_within(tokens, first):
            subjects = ()
        denied = denied or _doubted(tokens, first)
    return Left(subjects, be, helped, denied, anyone, at)


def _coordinated(tokens: Sequence[Token], at: int, objects: set[Mention]) -> tuple[Mention, ...]:
    """The mention at `at` and those listed before it: "X, Y and Z"."""
    token = tokens[at]
    assert isinstance(token, Mention)
    found = [token]
    while at >= 2:
        joint, other = tokens[at - 1], tokens[at - 2]
        comma = joint == "and" and other == "," and at >= 3
        other = tokens[at - 3] if comma else other
        listed = joint == "and" or (joint == "," and len(found) > 1)
        if not listed or not isinstance(other, Mention) or other in objects:
            break
        found.append(other)
        at -= 3 if comma else 2
    return tuple(reversed(found))


def _first_of(tokens: Sequence[Token], at: int, subjects: tuple[Mention, ...]) -> int:
    while at > 0 and tokens[at] is not subjects[0] and tokens[at] != subjects[0]:
        at -= 1
    return at


def _is_within(tokens: Sequence[Token], at: int) -> bool:
    """Whether the mention only says where something else is: "nobody in X approved"."""
    at -= 1
    skipped = 0
    while at > 0 and skipped < 3:
        token = tokens[at]
        if isinstance(token, Mention) or token in {",", ";"}:
            return False
        if token in _WITHIN or token == "'s":
            return True
        if token in FUNCTION:
            return False
        skipped += 1
        at -= 1
    return False


def _doubted(tokens: Sequence[Token], at: int) -> bool:
    """Whether the clause before its subject says that it is not so, or only if."""
    for token in reversed(tokens[:at]):
        if token in {",", ";", "but", "and"}:
            return False
        if isinstance(token, str) and token in DOUBT | {"nobody", "neither", "no", "not"}:
            return True
    return False
