"""The file of a partition: its form, and reading it by mapping.

    0       magic, length and sum of the header, the header as JSON, zeros
    4096    the matrix: float32 rows, aligned to the page and so to 64 bytes
    …       columns, ids, slots, places, posting ends, postings, tags: each aligned to 64

The header says what the file reflects: epoch, seq and embeddings of the log (invariant 3), and
what the log says of that very row, so that another history of the same numbers is told apart.
A sum covers header and columns and is checked when the file is opened. The matrix has a sum
too, which only `cortex doctor` checks: it would take every page in, which is what mapping
saves, and a file appears under its name only when it lies whole on the disk.

Whoever maps a file keeps it, whatever takes its name: files are replaced, never changed.
"""

from __future__ import annotations

import json
import mmap
import os
import sys
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from cortex.domain.values import Generation
from cortex.vectors.columns import COLUMNS, Index, codes_digest
from cortex.vectors.ids import IdTable, Packed
from cortex.vectors.view import Rows

Identity = tuple[int, int, int]
"""Of a file as `stat` shows it: changes whenever another one takes its name."""

FORMAT: Final = 1
BEGIN: Final = 4096
ALIGNED: Final = 64
_MAGIC: Final = b"cortex\0v"
_FIXED: Final = len(_MAGIC) + 8


class Stream(Protocol):
    """An open file, buffered or not."""

    def read(self, size: int, /) -> bytes: ...

    def fileno(self) -> int: ...


class Unfit(Exception):
    """The file is none, or none that can be used; says why."""


class Stamp(NamedTuple):
    """Which state of which store: `said` is what its log says of row `seq`."""

    epoch: str
    seq: int
    embeddings: int
    said: str

    @property
    def watermark(self) -> Generation:
        """As the index knows it; of a floor the file knows nothing."""
        return Generation(self.epoch, 0, self.seq, self.embeddings)


@dataclass(frozen=True, slots=True)
class Header:
    """What stands at the beginning. `sections` are (offset, bytes) by name; `sums` those of the
    columns and of the matrix."""

    format: int
    codes: int
    byteorder: str
    model: str
    workspace: str
    dimension: int
    rows: int
    slots: int
    stamp: tuple[str, int, int, str]  # of `mark`
    uuids: bool
    id_width: int
    sections: dict[str, tuple[int, int]]
    size: int
    sums: tuple[int, int]

    @property
    def mark(self) -> Stamp:
        return Stamp(*self.stamp)

    def is_older_than(self, other: Header) -> bool:
        """Whether it reflects an earlier state of the same store."""
        return self.mark.epoch == other.mark.epoch and self.mark[1:3] < other.mark[1:3]

    def packed(self) -> bytes:
        """The first bytes of the file; raises Unfit for a header that does not fit there."""
        text = json.dumps(asdict(self), ensure_ascii=False).encode()
        if len(text) > BEGIN - _FIXED:
            raise Unfit("its header is too long")
        numbers = np.array([len(text), zlib.crc32(text)], "<u4").tobytes()
        return (_MAGIC + numbers + text).ljust(BEGIN, b"\0")


def identity_of(found: os.stat_result) -> Identity:
    return (found.st_ino, found.st_size, found.st_mtime_ns)


def read_header(stream: Stream) -> Header:
    """The header of a file that was opened; raises Unfit, and OSError where it cannot be read."""
    raw = stream.read(BEGIN)
    if len(raw) < BEGIN or not raw.startswith(_MAGIC):
        raise Unfit("it is torn, or no file of vectors")
    length, found = np.frombuffer(raw, "<u4", 2, len(_MAGIC)).tolist()
    text = raw[_FIXED : _FIXED + length]
    if zlib.crc32(text) != found:
        raise Unfit("its header is damaged")
    header: dict[str, Any] = json.loads(text)
    if header.get("format") != FORMAT:
        raise Unfit(f"it is of format {header.get('format')}")
    if (header["codes"], header["byteorder"]) != (codes_digest(), sys.byteorder):
        raise Unfit("it is of another version or machine")
    if os.fstat(stream.fileno()).st_size != header["size"]:
        raise Unfit("it is torn")
    return Header(**header)


class Postings(Mapping[str, Index]):
    """The slots of each tag, ascending, dead ones included; read as they are asked for."""

    def __init__(self, tags: Sequence[str], ends: Index, slots: NDArray[np.uint32]) -> None:
        self._places = {tag: place for place, tag in enumerate(tags)}
        self._ends = ends
        self._slots = slots

    def __getitem__(self, tag: str) -> Index:
        place = self._places[tag]
        begin = int(self._ends[place - 1]) if place else 0
        return self._slots[begin : int(self._ends[place])].astype(np.int64)

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)


class MappedFile:
    """A file of vectors, mapped read-only: arrays whose pages all processes share."""

    def __init__(self, stream: Stream, header: Header, *, checked: bool = False) -> None:
        """Map the file; raises Unfit where the sum of the columns is not the header's, OSError
        where it cannot be mapped. The stream may be closed afterwards."""
        self.header = header
        self.identity = identity_of(os.fstat(stream.fileno()))
        self._map = mmap.mmap(stream.fileno(), header.size, access=mmap.ACCESS_READ)
        if not checked and _sum(self._map, self._columns_begin(), header.size) != header.sums[0]:
            raise Unfit("its columns are damaged")
        rows = (header.rows, header.dimension)
        self.matrix: Rows = self._array("matrix", np.float32).reshape(rows)
        self.columns: NDArray[np.void] = self._array("columns", COLUMNS)
        self.ids = IdTable(
            Packed(
                header.uuids,
                self._array("ids", f"S{header.id_width}"),
                self._array("slots", np.uint32),
                self._array("places", np.uint32),
            )
        )
        begin, length = header.sections["tags"]
        self.postings = Postings(
            json.loads(self._map[begin : begin + length]),
            self._array("ends", np.int64),
            self._array("postings", np.uint32),
        )

    @property
    def size(self) -> int:
        """Bytes of the mapping."""
        return self.header.size

    def holders(self, tag: str) -> Index:
        """The slots that hold a tag, ascending; none for a tag that nobody holds."""
        return self.postings.get(tag, np.empty(0, np.int64))

    def matrix_is_whole(self) -> bool:
        """Whether the matrix has the sum that was written; reads all of it."""
        begin, length = self.header.sections["matrix"]
        return _sum(self._map, begin, begin + length) == self.header.sums[1]

    def _columns_begin(self) -> int:
        begin, length = self.header.sections["matrix"]
        return begin + length

    def _array(self, name: str, form: Any) -> NDArray[Any]:
        begin, length = self.header.sections[name]
        kind = np.dtype(form)
        return np.frombuffer(self._map, kind, length // kind.itemsize, begin)


def open_file(path: Path, header: Header | None = None) -> MappedFile:
    """Map the file of that name. Raises Unfit, also where its header is not the one that was
    read before, and OSError."""
    with path.open("rb") as stream:
        found = read_header(stream)
        if header is not None and found.packed() != header.packed():
            raise Unfit("another one took its place meanwhile")
        return MappedFile(stream, found)


def _sum(mapped: mmap.mmap, begin: int, end: int) -> int:
    with memoryview(mapped) as whole:
        return zlib.crc32(whole[begin:end])
