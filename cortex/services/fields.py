"""A node's fields as a caller gives them: checked, cleaned, and merged into its data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from cortex.domain.errors import InvalidError, TooLargeError
from cortex.domain.values import (
    MAX_DATA,
    MAX_PATH,
    MAX_TAGS,
    MAX_TEXT,
    MAX_TITLE,
    clean,
    clean_json,
    pack,
)


@dataclass(frozen=True, slots=True)
class Fields:
    """The common fields of a node; None means not given."""

    title: str | None = None
    text: str | None = None
    tags: Sequence[str] | None = None
    path: str | None = None
    pinned: bool | None = None
    data: Mapping[str, Any] | None = None

    def changes(self) -> dict[str, Any]:
        """What they set, null for what they remove; own parameters win over `data`.

        Raises InvalidError for a field of the wrong kind, TooLargeError above the bounds.
        """
        given: dict[str, Any] = dict(clean_json(dict(self.data or {})))
        own = {
            "title": self.title,
            "text": self.text,
            "tags": None if self.tags is None else list(self.tags),
            "path": self.path,
            "pinned": self.pinned,
        }
        given.update({name: clean_json(value) for name, value in own.items() if value is not None})
        for name in ("title", "text", "path"):
            _require_text(given, name)
        if given.get("tags") is not None:
            given["tags"] = _tags(given["tags"])
        pinned = given.get("pinned")
        if pinned is not None and not isinstance(pinned, bool):
            raise InvalidError(
                f"pinned {pinned!r} is not a boolean", "Valid: true, false", "Correct pinned"
            )
        beside = {name: value for name, value in given.items() if name != "text"}
        if len(pack(beside)) > MAX_DATA:
            raise TooLargeError(
                "data is too large",
                f"Valid: up to {MAX_DATA:,} characters",
                "Keep a fileref to the file instead",
            )
        return given


def _require_text(given: dict[str, Any], name: str) -> None:
    value = given.get(name)
    if value is None:
        return
    if not isinstance(value, str):
        raise InvalidError(f"{name} {value!r} is not text", "Valid: a string", f"Correct {name}")
    limit = {"title": MAX_TITLE, "path": MAX_PATH}.get(name, MAX_TEXT)
    if (len(value.encode()) if name == "text" else len(value)) > limit:
        raise TooLargeError(
            f"{name} has {len(value):,} characters",
            f"Valid: up to {limit:,}",
            "Split it over several nodes, or keep a fileref to the file",
        )


def _tags(value: Any) -> list[str]:
    items = [value] if isinstance(value, str) else value
    if not isinstance(items, list) or not all(isinstance(item, str) for item in items):
        raise InvalidError(f"tags {value!r} is not a list of strings", 'Valid: ["auth", "jwt"]')
    tags = list(dict.fromkeys(tag for tag in (item.strip() for item in items) if tag))
    if len(tags) > MAX_TAGS or any(len(tag) > 100 for tag in tags):
        raise TooLargeError(
            f"{len(tags)} tags, or one of over 100 characters",
            f"Valid: up to {MAX_TAGS} tags of up to 100 characters",
            "Keep the ones you would search by",
        )
    return tags


def merged(present: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """The data after a change: null removes a key, other values replace it."""
    data = {**present, **changes}
    return {name: value for name, value in data.items() if value is not None}


def require_content(data: Mapping[str, Any], kind: str) -> None:
    """Refuse a node that says nothing."""
    if not any(
        isinstance(data.get(name), str) and data[name].strip() for name in ("title", "text", "path")
    ):
        raise InvalidError(
            f"this {kind} says nothing",
            "Valid: a title, a text, or for a fileref a path",
            "Give at least one of them",
        )


def line_of(text: str) -> str:
    """The text cleaned, on one line."""
    return " ".join(clean(text).split())
