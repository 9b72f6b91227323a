"""Secrets on their way into memory: said in the answer, or refused where that is set.

Every write of text passes here before its transaction. What is named is the field and the
kind, never the value: answers, logs and histories are read by more people than memory.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from cortex.config import Settings
from cortex.domain.errors import InvalidError
from cortex.domain.secrets import find_secrets, iter_secrets

_SHOWN: Final = 5
HIDDEN: Final = "(left out: it looks like it holds a key)"


def screened(settings: Settings, fields: Mapping[str, Any], what: str = "") -> list[str]:
    """A note for each field of these that looks like it holds a secret; `what` says of what.

    Raises InvalidError in their place where `settings.no_secrets` is set.
    """
    found = list(dict.fromkeys(iter_secrets(fields)))
    if not found:
        return []
    of = f" of {what}" if what else ""
    if settings.no_secrets:
        listed = ", ".join(f"{name}{of}: {kind}" for name, kind in found[:_SHOWN])
        raise InvalidError(
            f"it looks like it holds a secret ({listed}), and this cortex keeps none",
            "Valid: texts without keys, tokens and passwords",
            "Leave it out, and say where it is kept instead",
        )
    return [
        f"{name}{of} looks like it holds {kind}: whoever reads this memory reads it. Take it out, "
        "and renew it: the log keeps old texts until cortex compact"
        for name, kind in found[:_SHOWN]
    ]


def screened_query(query: str) -> str:
    """A query as the history may keep it."""
    return HIDDEN if find_secrets(query) else query


def kinds_in(texts: Iterable[Any]) -> str:
    """The kinds in these values, as a report names them; "" for none."""
    kinds = [kind for text in texts for _, kind in iter_secrets(text)]
    return ", ".join(dict.fromkeys(kinds))
