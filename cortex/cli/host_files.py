"""A server's entry put into a host's own configuration text, JSON or TOML."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal

import tomlkit
from tomlkit.items import InlineTable, Table

from cortex.cli import json_editing
from cortex.domain.errors import ConflictError, InvalidError

Syntax = Literal["json", "jsonc", "json5", "toml"]

# A server of this name that is reached over the network was meant so by somebody.
_REMOTE: Final = ("url", "httpUrl", "serverUrl")


@dataclass(frozen=True, slots=True)
class Entry:
    """What a host's file is to say of a server.

    `fixed` is ours and is corrected when it differs; `defaults` are added when missing, and
    what the owner has changed there stays.
    """

    fixed: Mapping[str, Any]
    defaults: Mapping[str, Any] = field(default_factory=dict)

    def whole(self) -> dict[str, Any]:
        return {**self.fixed, **self.defaults}


def snippet(path: Sequence[str], entry: Entry, syntax: Syntax) -> str:
    """The entry alone, as a file that holds nothing else would say it."""
    return with_entry("", path, entry, syntax)


def with_entry(text: str, path: Sequence[str], entry: Entry, syntax: Syntax) -> str:
    """The configuration with this entry under `path`, the rest as it was; the same text when
    it says so already.

    Raises InvalidError, with line and column, for a text that is broken, and ConflictError
    for an entry that means another server.
    """
    document = _parse(text, syntax)
    changes = _changes(document, path, entry)
    expected: dict[str, Any] = document
    for place, value in changes:
        text = _set(text, place, value, syntax)
        expected = json_editing.merged(expected, place, value)
    if changes and not _says(text, expected, syntax):
        raise InvalidError(
            "this file has a form that cannot be edited without harm",
            "Valid: to put the snippet in by hand",
            "Run without --write to see it; nothing was changed",
        )
    return text


def _says(text: str, expected: Mapping[str, Any], syntax: Syntax) -> bool:
    """Whether an edited text is what was meant: asked of each one before it is written."""
    try:
        return _parse(text, syntax) == expected
    except InvalidError:
        return False


def _changes(
    document: Mapping[str, Any], path: Sequence[str], entry: Entry
) -> list[tuple[tuple[str, ...], Any]]:
    present: Any = document
    for key in path:
        present = present.get(key) if isinstance(present, Mapping) else None
    place = tuple(path)
    if not isinstance(present, Mapping):
        return [(place, entry.whole())]
    if remote := next((key for key in _REMOTE if key in present), None):
        raise ConflictError(
            f"{'.'.join(path)} is a remote server ({remote}) in this file",
            "Valid: a server that is started by a command",
            "Remove or rename that entry first; nothing was changed",
        )
    wrong = {key: value for key, value in entry.fixed.items() if present.get(key) != value}
    missing = {key: value for key, value in entry.defaults.items() if key not in present}
    return [((*place, key), value) for key, value in {**wrong, **missing}.items()]


def _parse(text: str, syntax: Syntax) -> dict[str, Any]:
    if syntax != "toml":
        return json_editing.parse(text, syntax)
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:  # its message ends with line and column
        raise InvalidError(
            f"the file is broken: {error}", "Valid: TOML", "Correct it there; nothing was changed"
        ) from error


def _set(text: str, place: Sequence[str], value: Any, syntax: Syntax) -> str:
    if syntax != "toml":
        return json_editing.with_value(text, place, value)
    document = tomlkit.parse(text)
    table: Any = document
    for key in place[:-1]:
        if key not in table:
            inline = isinstance(table, InlineTable)
            table[key] = tomlkit.inline_table() if inline else tomlkit.table(is_super_table=True)
        table = table[key]
        if not isinstance(table, Mapping):
            raise InvalidError(
                f"{key} is no table in this file", "Valid: a table", "Correct it there"
            )
    table[place[-1]] = _item(value, inline=isinstance(table, InlineTable))
    if isinstance(table[place[-1]], Table) and list(document)[-1] != place[0]:
        table[place[-1]].add(tomlkit.nl())  # an empty line before the table that follows
    dumped = tomlkit.dumps(document)
    return dumped.replace("\r\n", "\n").replace("\n", "\r\n") if "\r\n" in text else dumped


def _item(value: Any, *, inline: bool) -> Any:
    if not (inline and isinstance(value, Mapping)):
        return tomlkit.item(value)
    made = tomlkit.inline_table()
    made.update(value)
    return made
