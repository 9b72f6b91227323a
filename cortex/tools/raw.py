"""What a raw argument can be read as; what could mean two things is `Unreadable`.

Models send "3" for 3 and a list as its JSON text. A function here reads one kind of value,
whoever it is for: it knows neither the argument's name nor its bounds.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final, NoReturn

from cortex.domain.values import clean, clean_json, shorten

MAX_DEPTH: Final = 64
MAX_DIGITS: Final = 400
MAX_EXACT: Final = (1 << 53) - 1  # the largest integer that every JSON reader keeps exact

_WHOLE: Final = re.compile(r"([+-]?[0-9]+)(\.0*)?")
_REAL: Final = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]{1,4})?")
_UNSAFE: Final = re.compile(r"[\x00-\x1f\x7f\ud800-\udfff]")
_TOO_DEEP: Final = f"is nested deeper than {MAX_DEPTH} levels"


class Unreadable(ValueError):
    """`wrong` completes "<name> …"; `place` is the index within a list, as "[2]"."""

    def __init__(self, wrong: str, place: str = "") -> None:
        super().__init__(wrong)
        self.wrong = wrong
        self.place = place


def read_text(value: Any) -> str:
    """A text as it is, save that a lone surrogate or NUL becomes U+FFFD."""
    return clean(_expect(value, str))


def read_id(value: Any) -> str:
    """An id, a path or a name: trimmed, and refused where a replacement would alter it."""
    text: str = _expect(value, str).strip()
    if _UNSAFE.search(text):
        raise Unreadable(f"{quoted(text)} holds a control character or broken Unicode")
    return text


def read_whole(value: Any) -> int:
    """3, "3", 3.0; not true, which Python counts among the integers."""
    if isinstance(value, str) and len(value) <= MAX_DIGITS:
        match = _WHOLE.fullmatch(value.strip())
        value = int(match[1]) if match else value
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, bool):
        raise Unreadable(f"is {named(value)}")
    return int(_expect(value, int))


def read_real(value: Any) -> float:
    """0.5, "0.5", 1; finite."""
    if isinstance(value, str) and len(value) <= MAX_DIGITS and _REAL.fullmatch(value.strip()):
        value = float(value.strip())
    if isinstance(value, bool) or (isinstance(value, int | float) and not _finite(value)):
        raise Unreadable(f"is {named(value)}")
    return float(_expect(value, int | float))


def read_flag(value: Any) -> bool:
    """true, "true", "False"."""
    if isinstance(value, str):
        value = {"true": True, "false": False}.get(value.strip().lower(), value)
    return bool(_expect(value, bool))


def read_texts(value: Any) -> list[str]:
    """["a", "b"], that as JSON text, or "a,b"; empty ones are dropped."""
    if isinstance(value, str):
        text = value.strip()
        if text[:1] in {"[", "{", '"'}:
            # What opens like JSON is JSON or a mistake: split at its commas, the brackets
            # would be stored.
            value = _json(text)
        else:
            value = [part.strip() for part in text.split(",")]
    texts: list[str] = []
    for place, item in enumerate(_expect(value, list)):
        if item is None or item == "":
            continue
        if not isinstance(item, str):
            raise Unreadable(f"is {named(item)}", f"[{place}]")
        texts.append(clean(item))
    return texts


def read_object(value: Any) -> dict[str, Any]:
    """An object, or its JSON text."""
    mapping = _expect(_json(value) if isinstance(value, str) else value, dict)
    if _deeper_than(mapping, MAX_DEPTH):
        raise Unreadable(_TOO_DEEP)
    cleaned: dict[str, Any] = clean_json(mapping)
    return cleaned


def read_items(value: Any) -> list[str | dict[str, Any]]:
    """A list of texts and objects, or its JSON text; one object alone is a list of one.

    A plain text is refused: "write it, then test it" may be one item or two.
    """
    value = _json(value) if isinstance(value, str) else value
    items = [value] if isinstance(value, dict) else _expect(value, list)
    return [_item(f"[{place}]", item) for place, item in enumerate(items)]


def _item(place: str, value: Any) -> str | dict[str, Any]:
    try:
        if isinstance(value, str) and not value.lstrip().startswith("{"):
            item: str | dict[str, Any] = clean(value)
        else:
            item = read_object(value)
    except Unreadable as error:
        raise Unreadable(error.wrong, place) from None
    if not item or (isinstance(item, str) and not item.strip()):
        raise Unreadable("is empty", place)
    return item


def _json(text: str) -> Any:
    """The value that the text spells; NaN and Infinity are not JSON."""
    try:
        return json.loads(text, parse_constant=_no_constant)
    except RecursionError:
        raise Unreadable(_TOO_DEEP) from None
    except ValueError:
        raise Unreadable(f"is {named(text)}, which is not JSON") from None


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def _expect(value: Any, kind: Any) -> Any:
    if not isinstance(value, kind):
        raise Unreadable(f"is {named(value)}")
    return value


def _finite(value: float) -> bool:
    try:
        return math.isfinite(value)
    except OverflowError:  # an integer beyond what a float can hold
        return False


def _deeper_than(value: Any, limit: int) -> bool:
    """Whether lists and objects lie in each other more than `limit` deep; without recursion."""
    level = [value]
    for _ in range(limit):
        level = [
            inner
            for outer in level
            for inner in (outer.values() if isinstance(outer, dict) else outer)
            if isinstance(inner, dict | list)
        ]
        if not level:
            return False
    return True


def short(number: float) -> str:
    """A number in a sentence; what has more than 16 digits is rounded."""
    if isinstance(number, int) and not _finite(number):
        return f"about 1e{int(number.bit_length() * math.log10(2))}"
    return str(number) if abs(number) <= MAX_EXACT else f"{number:.3g}"


def quoted(text: str) -> str:
    """A text in a sentence: one line, quoted, at most 60 characters."""
    return shorten(repr(clean(text[:200])), 60)


def named(value: Any) -> str:
    """What was sent: `a list`, `the number 3`, `the text 'abc'`."""
    match value:
        case bool() | None:
            return json.dumps(value)
        case int() | float():
            return f"the number {short(value)}"
        case str():
            return f"the text {quoted(value)}" if value.strip() else "an empty text"
        case dict():
            return "an object"
    return "a list"


READERS: Final[Mapping[str, Callable[[Any], Any]]] = MappingProxyType(
    {
        "string": read_text,
        "id": read_id,
        "integer": read_whole,
        "number": read_real,
        "boolean": read_flag,
        "array": read_texts,
        "object": read_object,
        "items": read_items,
    }
)
