"""Reading the file of the reference memory server, `memory.jsonl`, item by item.

One JSON object a line: {"type": "entity", "name", "entityType", "observations": […]} or
{"type": "relation", "from", "to", "relationType"}; entities first, though hand-made files
mix them. Its answers, and older files, are one object {"entities": […], "relations": […]}.
A line is held at a time; of the one-object form the whole, which is bounded.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, Final, Literal, Self

from cortex.domain.errors import InvalidError, NotFoundError, TooLargeError, UnavailableError
from cortex.domain.values import clean

_MAX_LINE: Final = 64 << 20
_EACH: Final = 500  # lines between two reports of progress
_BOM: Final = b"\xef\xbb\xbf"
_VALID: Final = (
    'Valid: {"type":"entity","name":…,"entityType":…,"observations":[…]} or '
    '{"type":"relation","from":…,"to":…,"relationType":…}'
)
_THEN: Final = "Nothing was imported; correct it, then import again"
Advance = Callable[[int], None]
Kind = Literal["entity", "relation"]


@dataclass(frozen=True, slots=True)
class Entity:
    """One thing and what was observed of it; `place` names it in an error."""

    place: str
    name: str
    kind: str
    observations: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Claim:
    """`source verb target`, by the names of entities."""

    place: str
    source: str
    verb: str
    target: str


class ReferenceFile:
    """An open file; both passes read what it was when it was opened, should it be replaced."""

    def __init__(self, path: Path) -> None:
        """Raises NotFoundError, UnavailableError, or InvalidError for another kind of file."""
        self.path = path
        self.strangers = 0
        try:
            self._file: BinaryIO = path.open("rb")
        except FileNotFoundError:
            raise NotFoundError(f"no file {path}", "", "Name another file") from None
        except OSError as error:
            raise UnavailableError(
                f"{path} cannot be read ({error.strerror})", "", "Check the path"
            ) from error
        try:
            self.size = path.stat().st_size
            self._whole = self._read_whole()
        except BaseException:
            self._file.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        self._file.close()

    def entities(self, advance: Advance) -> Iterator[Entity]:
        """In the order of the file; `advance` is told bytes read. Raises for a broken line."""
        for place, item in self._items("entity", advance):
            observations = item.get("observations", [])
            if not isinstance(observations, list) or not all(
                isinstance(each, str) for each in observations
            ):
                raise self._broken(place, "its observations are not a list of strings")
            yield Entity(
                place,
                self._text(place, item, "name"),
                self._text(place, item, "entityType"),
                tuple(clean(each) for each in observations),
            )

    def claims(self, advance: Advance) -> Iterator[Claim]:
        """In the order of the file."""
        for place, item in self._items("relation", advance):
            source, target = self._text(place, item, "from"), self._text(place, item, "to")
            yield Claim(place, source, self._text(place, item, "relationType"), target)

    def _items(self, kind: Kind, advance: Advance) -> Iterator[tuple[str, dict[str, Any]]]:
        if self._whole is not None:
            for number, item in enumerate(self._whole[kind], 1):
                if not isinstance(item, dict):
                    raise self._broken(f"{kind} {number}", "it is not an object")
                yield f"{kind} {number}", item
            advance(self.size)
            return
        self.strangers = 0
        for number, line in self._lines(advance):
            place = f"line {number}"
            item = self._parsed(place, line)
            found = item.get("type")
            if found == kind:
                yield place, item
            elif found not in ("entity", "relation"):
                self.strangers += 1

    def _lines(self, advance: Advance) -> Iterator[tuple[int, bytes]]:
        self._file.seek(0)
        number = 0
        while line := self._file.readline(_MAX_LINE + 1):
            number += 1
            if len(line) > _MAX_LINE:
                raise TooLargeError(
                    f"{self.path.name} line {number} is over {_MAX_LINE:,} bytes", "", _THEN
                )
            line = line.removeprefix(_BOM) if number == 1 else line
            if line.strip():
                yield number, line
            if number % _EACH == 0:
                advance(self._file.tell())
        advance(self.size)

    def _parsed(self, place: str, line: bytes) -> dict[str, Any]:
        try:
            item = json.loads(line.decode())
        except (ValueError, RecursionError) as error:
            raise self._broken(place, f"not JSON: {error}") from None
        if not isinstance(item, dict):
            raise self._broken(place, "not an object")
        return item

    def _text(self, place: str, item: dict[str, Any], name: str) -> str:
        value = item.get(name)
        if not isinstance(value, str) or not value.strip():
            raise self._broken(place, f"{name} is missing or no text")
        return clean(value)

    def _broken(self, place: str, why: str) -> InvalidError:
        return InvalidError(f"{self.path.name} {place}: {why}", _VALID, _THEN)

    def _read_whole(self) -> dict[str, list[Any]] | None:
        """The lists of the one-object form, else None: then it is read line by line."""
        first = next((line for _, line in self._lines(lambda _: None)), b"")
        try:
            item = json.loads(first.decode())
        except (ValueError, RecursionError):
            item = None
        if isinstance(item, dict) and "type" in item:
            return None
        if not first.lstrip().startswith(b"{") or self.size > _MAX_LINE:
            if item is None and not first:
                return None  # an empty file holds nothing
            if self.size > _MAX_LINE and first.strip() == b"{":
                raise TooLargeError(
                    f"{self.path.name} is one object of over {_MAX_LINE:,} bytes",
                    "Valid: memory.jsonl, one object a line, of any size",
                    "Write it line by line",
                )
            return None  # the first line will say what is wrong
        self._file.seek(0)
        try:
            found = json.loads(self._file.read().removeprefix(_BOM).decode())
        except (ValueError, RecursionError):
            return None
        lists = {"entity": found.get("entities"), "relation": found.get("relations", [])}
        if not all(isinstance(each, list) for each in lists.values()):
            raise self._broken("as a whole", "neither lines nor entities and relations")
        return lists
