"""Verbs of one's own: what `related_to`, which has no direction, keeps of them in its data."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

_VERB: Final = ("label", "from", "to")


def with_verb(data: Mapping[str, Any], label: str, source: str, target: str) -> dict[str, Any]:
    """The data of a `related_to` that also says `source label target`.

    The first verb stands in `label`, `from` and `to`; where two nodes are joined by several,
    all of them are listed in `labels`. Saying one again changes nothing.
    """
    verb = {"label": label, "from": source, "to": target}
    if "label" not in data:
        return {**data, **verb}
    first = {name: data[name] for name in _VERB if name in data}
    known = data["labels"] if isinstance(data.get("labels"), list) else [first]
    if verb in known:
        return dict(data)
    return {**data, "labels": [*known, verb]}
