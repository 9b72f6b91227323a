"""What a row of the concept's original schema says, whatever form it says it in.

Those files were written by hand-made SQL: times in any ISO form, data that is no JSON,
weights as words. Each function reads one value; what it cannot read as it stands it says
how it repaired, and the caller keeps the original beside it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from typing import Any, Final, TypeVar

from cortex.domain.errors import InvalidError
from cortex.domain.instants import Instant, parse_instant, render
from cortex.domain.taxonomy import Action, NodeType, RelationType, Status
from cortex.domain.values import WorkspaceId, clean, clean_json

_EPOCH_TIME: Final = re.compile(r"\d{9,10}(\.\d+)?|\d{12,13}")
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f\ud800-\udfff]+")
_LONGEST_NAME: Final = 200
_DEEPEST: Final = 200  # SQLite stops at 1,000, Python at a stack of 1,000
_UNNAMED: Final = WorkspaceId("default")
_START: Final = datetime(1970, 1, 1, tzinfo=UTC)

K = TypeVar("K", NodeType, RelationType, Status, Action)


def lenient(raw: bytes) -> str:
    """A text factory for sqlite3: broken UTF-8 is shown as such, and stops nobody."""
    return raw.decode("utf-8", "replace")


def as_json(value: Any) -> Any:
    """A column's value as JSON keeps it: bytes as text, infinities as their names."""
    if isinstance(value, bytes):
        return clean(lenient(value))
    if isinstance(value, float) and not abs(value) < float("inf"):
        return str(value)
    return clean(value) if isinstance(value, str) else value


def as_text(value: Any) -> str:
    """A column's value as text; "" for NULL."""
    return "" if value is None else str(as_json(value))


def read_time(value: Any) -> Instant | None:
    """An ISO form, or seconds or milliseconds since 1970; None for anything else."""
    text = as_text(value).strip()
    try:
        if _EPOCH_TIME.fullmatch(text):
            seconds = float(text) / (1000 if len(text.partition(".")[0]) > 10 else 1)
            return render(_START + timedelta(seconds=seconds))
        return parse_instant(text, "created_at")
    except InvalidError:
        return None


def read_kind(kinds: type[K], value: Any) -> K | None:
    """The member that is meant, in any case; None for an unknown one."""
    try:
        return kinds(as_text(value).strip().lower().replace("-", "_").replace(" ", "_"))
    except ValueError:
        return None


def read_weight(value: Any) -> float:
    """The nearest weight in [0, 1]; 1 where there is none to read."""
    if value is None:
        return 1.0
    try:
        weight = float(as_json(value))
    except (ValueError, TypeError):
        return 1.0
    return min(max(weight, 0.0), 1.0) if weight == weight else 1.0


def read_workspace(value: Any) -> WorkspaceId:
    """The name as callers can say it: trimmed, without control characters, at most 200."""
    name = _CONTROL.sub(" ", as_text(value)).strip()
    if len(name) > _LONGEST_NAME:
        # Two long names that differ at their ends stay two workspaces.
        name = f"{name[:180]}-{sha256(name.encode()).hexdigest()[:16]}"
    return WorkspaceId(name) if name else _UNNAMED


def read_data(value: Any) -> tuple[dict[str, Any], bool]:
    """A JSON object, and whether it had to be made one.

    What is no JSON is a text; a JSON string as well; another value is kept as
    `original_data`.
    """
    text = as_text(value)
    if value is None or not text.strip():
        return {}, False
    odd: list[str] = []

    def name_of(constant: str) -> str:
        odd.append(constant)
        return constant

    try:
        found = json.loads(text, parse_constant=name_of)
        deep = _is_deep(found)
    except RecursionError:
        deep = True
    except ValueError:
        return {"text": text}, True
    if deep:
        return {"original_data": text}, True
    found = clean_json(found)
    match found:
        case dict():
            return found, bool(odd)
        case str():
            return {"text": found}, True
        case None:
            return {}, True
        case _:
            return {"original_data": found}, True


def _is_deep(value: Any) -> bool:
    level = [value]
    for _ in range(_DEEPEST):
        below: list[Any] = []
        for item in level:
            if isinstance(item, dict):
                below += item.values()
            elif isinstance(item, list):
                below += item
        if not below:
            return False
        level = below
    return True


def extras(row: Mapping[str, Any], known: frozenset[str]) -> dict[str, Any]:
    """The columns that the concept's schema has not, where they hold something."""
    return {
        name: as_json(value)
        for name, value in row.items()
        if name not in known and value is not None
    }
