"""A file of vectors on its way: written beside its place, whole on the disk before it has its name.

The rows go first, as they come; columns, ids and tags follow, the header comes last, so that
what a process left behind on the way is no file of vectors. Where the disk refuses, OSError
leaves, and the rows that were taken can be read back.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import stat
import sys
import time
import uuid
import zlib
from pathlib import Path
from typing import Final

import numpy as np

from cortex.domain.errors import BusyError
from cortex.vectors.columns import codes_digest
from cortex.vectors.ids import pack
from cortex.vectors.partition import Contents
from cortex.vectors.vector_file import (
    ALIGNED,
    BEGIN,
    FORMAT,
    Header,
    MappedFile,
    Stamp,
    Unfit,
    open_file,
)
from cortex.vectors.view import Rows

_SUFFIX: Final = ".part"
_ABANDONED: Final = 86_400.0  # seconds; a draft is written within minutes
_WIDEST_ID: Final = 256


class Draft:
    """One file being written; `append` rows, then `publish`, or `discard`.

    `rows` counts what was appended; `named` is whether it took its name.
    """

    def __init__(self, target: Path, dimension: int) -> None:
        """An empty file of its owner's alone, in a folder of the same kind.

        Removes first what processes that died left there. Raises OSError.
        """
        self.rows = 0
        self.named = False
        self._target = target
        self._dimension = dimension
        target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        _sweep(target.parent)
        self._path = target.with_name(f".{target.name}.{uuid.uuid4().hex}{_SUFFIX}")
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
        descriptor = os.open(self._path, flags, stat.S_IRUSR | stat.S_IWUSR)
        self._stream = io.FileIO(descriptor, "r+")
        self._end = BEGIN
        self._sum = 0
        self._stream.seek(BEGIN)

    def append(self, rows: Rows) -> None:
        """Write rows, shape (n, dimension), behind those before."""
        if not len(rows):
            return  # memoryview casts nothing of length 0
        raw = np.ascontiguousarray(rows).data.cast("B")
        self._write(raw)
        self._sum = zlib.crc32(raw, self._sum)
        self.rows += len(rows)

    def rows_back(self) -> Rows:
        """All rows that were appended, read into memory."""
        found = np.empty((self.rows, self._dimension), np.float32)
        target = found.reshape(-1).view(np.uint8).data
        self._stream.seek(BEGIN)
        while len(target):
            taken = self._stream.readinto(target)
            if not taken:
                raise OSError("the draft is shorter than what was written")
            target = target[taken:]
        return found

    def publish(self, contents: Contents, model: str, workspace: str, mark: Stamp) -> MappedFile:
        """Write the rest, have it lie on the disk, let it take its name, and map it.

        Where the name cannot be taken, as on Windows while somebody maps the file that has it,
        the mapping is of a file without that name. Raises OSError, Unfit for contents that do
        not fit, and where an open file cannot be renamed, BusyError when another process took
        the name in between.
        """
        header = self._finish(contents, model, workspace, mark)
        if os.name != "posix":  # an open file cannot be renamed there, nor one that is mapped
            self._stream.close()
            self._take_name()
            try:
                return open_file(self._target if self.named else self._path, header)
            except Unfit as error:
                raise BusyError(
                    "another process wrote the vectors at the same moment", "", "Call again"
                ) from error
        mapped = MappedFile(self._stream, header, checked=True)
        self._stream.close()
        self._take_name()
        if not self.named:
            self._path.unlink(missing_ok=True)
        return mapped

    def discard(self) -> None:
        """Close and remove it; nothing happens to one that was published."""
        self._stream.close()
        with contextlib.suppress(OSError):  # swept later
            self._path.unlink(missing_ok=True)

    def _finish(self, contents: Contents, model: str, workspace: str, mark: Stamp) -> Header:
        columns = contents.part.columns
        packed = pack(contents.part.names[: len(columns)])
        if packed.sorted.itemsize > _WIDEST_ID:
            raise Unfit(f"an id has more than {_WIDEST_ID} bytes")
        tags = contents.postings
        ends = np.cumsum([len(slots) for slots in tags.values()], dtype=np.int64)
        sections = {"matrix": (BEGIN, self._end - BEGIN)}
        matrix_sum, self._sum = self._sum, 0
        for name, raw in {
            "columns": columns.tobytes(),
            "ids": packed.sorted.tobytes(),
            "slots": packed.slots.tobytes(),
            "places": packed.places.tobytes(),
            "ends": ends.tobytes(),
            "postings": b"".join(slots.astype(np.uint32).tobytes() for slots in tags.values()),
            "tags": json.dumps(list(tags)).encode(),
        }.items():
            self._write_summed(bytes(-self._end % ALIGNED))
            sections[name] = (self._end, len(raw))
            self._write_summed(raw)
        header = Header(
            format=FORMAT,
            codes=codes_digest(),
            byteorder=sys.byteorder,
            model=model,
            workspace=workspace,
            dimension=self._dimension,
            rows=self.rows,
            slots=len(columns),
            stamp=mark,
            uuids=packed.uuids,
            id_width=packed.sorted.itemsize,
            sections=sections,
            size=self._end,
            sums=(self._sum, matrix_sum),
        )
        self._stream.seek(0)
        self._write(memoryview(header.packed()))
        os.fsync(self._stream.fileno())
        return header

    def _take_name(self) -> None:
        try:
            self._path.replace(self._target)
            self.named = True
            if os.name == "posix":  # elsewhere a folder cannot be opened
                descriptor = os.open(self._target.parent, os.O_RDONLY)
                try:
                    os.fsync(descriptor)
                finally:
                    os.close(descriptor)
        except OSError:
            return  # `named` tells

    def _write_summed(self, raw: bytes) -> None:
        self._write(memoryview(raw))
        self._sum = zlib.crc32(raw, self._sum)

    def _write(self, raw: memoryview) -> None:
        while len(raw):
            taken = self._stream.write(raw) or 0
            self._end += taken
            raw = raw[taken:]


def _sweep(folder: Path) -> None:
    """Remove the drafts of processes that died."""
    for path in folder.glob(f".*{_SUFFIX}"):
        # Another process may do the same; on Windows a mapped one stays.
        with contextlib.suppress(OSError):
            if time.time() - path.stat().st_mtime > _ABANDONED:
                path.unlink()
