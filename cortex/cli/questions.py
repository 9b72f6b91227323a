"""A question instead of a command: `cortex "what do we know about src/auth/jwt.py?"`."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Final

_ALIKE: Final = 75.0


def with_search(arguments: Sequence[str], commands: Collection[str]) -> list[str]:
    """The arguments, with `search` before them where they begin with a question.

    A question is whatever is no command and no option. A single word that is nearly a
    command is a slip of the pen, and left to be refused with the command it resembles.
    """
    given = list(arguments)
    if not given or given[0].startswith("-") or given[0] in commands:
        return given
    alone = len(given) == 1 or given[1].startswith("-")
    if alone and given[0].isascii() and given[0].replace("-", "").isalpha():
        from rapidfuzz import fuzz, process

        near = process.extractOne(given[0].lower(), commands, scorer=fuzz.ratio)
        if near is not None and near[1] >= _ALIKE:
            return given
    return ["search", *given]
