"""Reading an export line by line: its header at once, its footer and checksum at the end."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, Final, Self

from cortex.domain.errors import InvalidError, NotFoundError, TooLargeError, UnavailableError
from cortex.store.exports import KINDS, Kind

FORMAT: Final = "cortex-export"
VERSION: Final = 1
_START: Final = f'{{"format":"{FORMAT}"'.encode()
_MAX_LINE: Final = 1 << 30
_EACH: Final = 500  # lines between two reports of progress
_THEN: Final = "Nothing was imported"
_BY_NAME: Final = {kind.name: kind for kind in KINDS}
Advance = Callable[[int], None]


def dumped(value: Any) -> str:
    """JSON as cortex stores and exports it: on one line, no spaces, letters as they are."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def is_export(path: Path) -> bool:
    """Whether the file begins as exports do; never of a file that this process has open."""
    with path.open("rb") as file:
        return file.read(len(_START)) == _START


class ExportFile:
    """An open export. `log` is None where it has none, else its floor and highest keys."""

    def __init__(self, path: Path) -> None:
        """Raises NotFoundError, UnavailableError, or InvalidError for a header of another kind."""
        self.path = path
        self._number = 0
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
            self._digest = hashlib.sha256()
            self.workspaces, self.log = self._header()
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

    def iter_rows(self, advance: Advance) -> Iterator[tuple[Kind, dict[str, Any]]]:
        """Each row with its kind; `advance` is told bytes read.

        Raises InvalidError, naming the line, for what is no row, for a footer that is
        missing, and for a checksum or counts that do not fit.
        """
        counts: Counter[str] = Counter({kind.name: 0 for kind in KINDS})
        while True:
            digest = self._digest.hexdigest()
            record = self._next()
            if record is None:
                raise self.broken("it has no footer: the file was cut off")
            name = record.pop("kind", None)
            if name == "end":
                break
            kind = _BY_NAME.get(str(name))
            if kind is None:
                raise self.broken(f"kind {name!r} is unknown; valid: {', '.join(_BY_NAME)}, end")
            counts[kind.name] += 1
            yield kind, record
            if self._number % _EACH == 0:
                advance(self._file.tell())
        if record.get("counts") != dict(counts):
            raise self.broken("the footer counts other rows than the file has")
        if record.get("sha256") != digest:
            raise self.broken("the checksum does not fit: the file was changed or damaged")
        if self._next() is not None:
            raise self.broken("something follows the footer")
        advance(self.size)

    def broken(self, why: str, line: int | None = None) -> InvalidError:
        """The error of a line, the one read last unless said otherwise."""
        where = f"{self.path.name} line {line or self._number}"
        return InvalidError(f"{where}: {why}", "Valid: what cortex export wrote", _THEN)

    def line_of(self, node_id: str) -> int | None:
        """The line of a node, looked for from the start of the file."""
        wanted = json.dumps(node_id, ensure_ascii=False).encode()
        with self.path.open("rb") as file:
            for number, line in enumerate(file, 1):
                if line.startswith(b'{"kind":"node"') and b'"id":' + wanted in line:
                    return number
        return None

    def _header(self) -> tuple[list[str], dict[str, int] | None]:
        header = self._next()
        if header is None or header.get("format") != FORMAT:
            raise self.broken("it is no export of cortex")
        version = header.get("version")
        if version != VERSION:
            raise InvalidError(
                f"{self.path.name} is of export version {version}",
                f"This cortex reads version {VERSION}",
                "Upgrade mcp-cortex",
            )
        places, log = header.get("workspaces"), header.get("log")
        if not isinstance(places, list) or not all(isinstance(each, str) for each in places):
            raise self.broken("its workspaces are no list of names")
        if log is not None and not (
            isinstance(log, dict)
            and set(log) == {"floor", "nodes", "relations"}
            and all(type(each) is int and 0 <= each < 1 << 62 for each in log.values())
        ):
            raise self.broken("its log is not described by floor, nodes and relations")
        return places, log

    def _next(self) -> dict[str, Any] | None:
        line = self._file.readline(_MAX_LINE + 1)
        if not line:
            return None
        self._number += 1
        if len(line) > _MAX_LINE:
            raise TooLargeError(
                f"{self.path.name} line {self._number} is over {_MAX_LINE:,} bytes", "", _THEN
            )
        self._digest.update(line)
        try:
            record = json.loads(line.decode())
        except (ValueError, RecursionError) as error:
            why = "it is cut off" if not line.endswith(b"\n") else f"not JSON: {error}"
            raise self.broken(why) from None
        if not isinstance(record, dict):
            raise self.broken("not an object")
        return record
