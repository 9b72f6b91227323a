"""One value set in a JSON, JSONC or JSON5 text; every other byte stays as it was.

A host's file is its owner's: comments, order, indentation, trailing commas and number forms
are not ours to change. So nothing is dumped anew: a scanner finds the offsets, and text is put
in there. The grammar is judged by `json` and `json5`; the scanner reads only what they accepted.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

import json5

from cortex.domain.errors import InvalidError

Syntax = Literal["json", "jsonc", "json5"]

_TOKEN: Final = re.compile(
    r"""(?P<skip>[\s\ufeff]+|//[^\r\n\u2028\u2029]*|/\*.*?\*/)
      | (?P<string>"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*')
      | (?P<mark>[{}\[\]:,])
      | (?P<word>[^\s{}\[\]:,"'/]+)""",
    re.X | re.S,
)
_JSON5_PLACE: Final = re.compile(r"^<string>:(\d+) (.*) at column (\d+)$", re.S)
_INDENT: Final = re.compile(r"^([ \t]+)\S", re.M)


@dataclass(frozen=True, slots=True)
class _Token:
    text: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class _Member:
    """A member of an object: its key, and the indexes of its value's first and last token."""

    key: str
    at: int
    first: int
    last: int


def parse(text: str, syntax: Syntax) -> dict[str, Any]:
    """The object that the text says; an empty text is an empty object.

    Raises InvalidError with line and column.
    """
    if not text.strip("\ufeff \t\r\n"):
        return {}
    try:
        value = json.loads(text.removeprefix("\ufeff"))
    except json.JSONDecodeError as error:
        if syntax == "json":
            raise _broken(error.lineno, error.colno, error.msg, "plain JSON") from error
        value = _parse_json5(text.removeprefix("\ufeff"))
    if not isinstance(value, dict):
        raise _broken(1, 1, "the document is no object", "an object in braces")
    return value


def _parse_json5(text: str) -> Any:
    try:
        return json5.loads(text)
    except RecursionError as error:
        raise _broken(1, 1, "it is nested too deep", "JSON with comments") from error
    except ValueError as error:
        place = _JSON5_PLACE.match(str(error))
        line, what, column = place.groups() if place else ("1", str(error), "1")
        raise _broken(int(line), int(column), what, "JSON with comments") from error


def _broken(line: int, column: int, what: str, valid: str) -> InvalidError:
    return InvalidError(
        f"the file is broken at line {line}, column {column}: {what}",
        f"Valid: {valid}",
        "Correct it there; nothing was changed",
    )


def with_value(text: str, path: Sequence[str], value: Any) -> str:
    """The text with this value under these keys; objects on the way are made when missing.

    The text must have been accepted by `parse`. Raises InvalidError where a key on the way
    holds no object.
    """
    if not text.strip("\ufeff \t\r\n"):
        return json.dumps(_nested(path, value), indent=2, ensure_ascii=False) + "\n"
    tokens = [
        _Token(match.group(), match.start(), match.end())
        for match in _TOKEN.finditer(text)
        if match.lastgroup != "skip"
    ]
    at, member = 0, _Member("", 0, 0, len(tokens) - 1)
    for depth, key in enumerate(path):
        if tokens[at].text != "{":
            raise InvalidError(
                f"{'.'.join(path[:depth])} is no object in this file",
                "Valid: an object in braces",
                "Correct it, or put the snippet in by hand",
            )
        members, close = _members(tokens, at)
        # Of a key that stands twice the last one counts, for every reader that we know.
        same = [each for each in members if each.key == key]
        if not same:
            below = _nested(path[depth + 1 :], value)
            return _inserted(text, tokens, at, close, members, key, below)
        member = same[-1]
        at = member.first
    start, end = tokens[member.first].start, tokens[member.last].end
    shown = _shown(value, _line_indent(text, tokens[member.at].start), text)
    return text[:start] + shown + text[end:]


def _members(tokens: Sequence[_Token], at: int) -> tuple[list[_Member], int]:
    """The members of the object whose brace is token `at`, and the index of its other brace."""
    members = []
    index = at + 1
    while tokens[index].text != "}":
        last = _last(tokens, index + 2)
        members.append(_Member(_key(tokens[index].text), index, index + 2, last))
        index = last + 2 if tokens[last + 1].text == "," else last + 1
    return members, index


def _last(tokens: Sequence[_Token], first: int) -> int:
    """The last token of the value that begins with token `first`."""
    depth = 0
    for index in range(first, len(tokens)):
        depth += (tokens[index].text in "{[") - (tokens[index].text in "}]")
        if depth == 0:
            return index
    raise AssertionError("a value that parsed ends")


def _key(text: str) -> str:
    return str(json5.loads(text)) if text[0] in "\"'" else text


def _inserted(
    text: str,
    tokens: Sequence[_Token],
    at: int,
    close: int,
    members: Sequence[_Member],
    key: str,
    value: Any,
) -> str:
    """The text with a new last member, on a line of its own, after what comments there are."""
    newline = "\r\n" if "\r\n" in text else "\n"
    outer = _line_indent(text, tokens[at].start)
    inner = outer + _unit(text)
    if members and not text[: tokens[members[0].at].start].rpartition("\n")[2].strip():
        inner = _line_indent(text, tokens[members[0].at].start)
    closing = tokens[close].start
    body = len(text[:closing].rstrip())
    shown = f"{newline}{inner}{json.dumps(key, ensure_ascii=False)}: {_shown(value, inner, text)}"
    if "\n" not in text[body:closing]:
        shown += newline + outer
    text = text[:body] + shown + (text[body:] if "\n" in text[body:closing] else text[closing:])
    if members and tokens[members[-1].last + 1].text != ",":
        end = tokens[members[-1].last].end
        text = f"{text[:end]},{text[end:]}"
    return text


def _shown(value: Any, indent: str, text: str) -> str:
    """The value as JSON, its further lines indented as the place asks."""
    newline = "\r\n" if "\r\n" in text else "\n"
    dumped = json.dumps(value, indent=_unit(text), ensure_ascii=False)
    return dumped.replace("\n", newline + indent)


def _line_indent(text: str, offset: int) -> str:
    line = text[text.rfind("\n", 0, offset) + 1 : offset]
    return line[: len(line) - len(line.lstrip(" \t"))]


def _unit(text: str) -> str:
    """One step of indentation as this file has it: its first indented line's, else two spaces."""
    found = _INDENT.search(text)
    return found.group(1) if found else "  "


def _nested(path: Sequence[str], value: Any) -> Any:
    for key in reversed(path):
        value = {key: value}
    return value


def merged(document: Mapping[str, Any], path: Sequence[str], value: Any) -> dict[str, Any]:
    """The same change on the parsed document: what the edited text must say."""
    head, *rest = path
    inner = document.get(head)
    below = merged(inner if isinstance(inner, Mapping) else {}, rest, value) if rest else value
    return {**document, head: below}
