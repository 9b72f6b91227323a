"""One workspace's columns as a file: derived, checked whole, or not used at all.

Layout, little-endian: 8 bytes that name the format, the length and the CRC-32 of the head,
the head (JSON: of what file, workspace and moment this is, how many rows, the CRC-32 of the
body), the body: the columns one after another. Cost: 22 bytes a node, 16 a relation, 16 more
where its weight is not 1.0; at a million nodes and three million relations 80 MB, written or
read in 0.1 s from the system's cache.

Corner: whatever is not as expected raises Unfit, and the graph is built from the store: a file
that is torn, of another version, or of another order of types.
"""

from __future__ import annotations

import json
import struct
import zlib
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any, BinaryIO, Final

import numpy as np
from numpy.typing import NDArray

from cortex.domain.taxonomy import NODE_TYPES, RELATION_TYPES, STATUSES
from cortex.graph.codes import CODES
from cortex.graph.columns import Columns

_MAGIC: Final = b"cxgraph1"
_PREFIX: Final = struct.Struct("<8sII")
_LONGEST_HEAD: Final = 1 << 20
_ALIGN: Final = 8
# The widest first, so that each is aligned.
_LAYOUT: Final = (
    ("key", "<i8", "nodes"),
    ("rank", "<i8", "nodes"),
    ("payload", "<i8", "relations"),
    ("light", "<i8", "light"),
    ("weight", "<f8", "light"),
    ("mark", "<u4", "nodes"),
    ("near", "<i4", "relations"),
    ("far", "<i4", "relations"),
    ("kind", "u1", "nodes"),
    ("status", "u1", "nodes"),
)
# Codes are positions in these lists: a file of another order would be read as other types.
_NAMES: Final = [[*map(str, NODE_TYPES)], [*map(str, RELATION_TYPES)], [*map(str, STATUSES)]]
_TAXONOMY: Final = zlib.crc32(json.dumps([CODES, *_NAMES]).encode())


class Unfit(Exception):
    """The file is not what it should be; the reason is for the log."""


class Outdated(Unfit):
    """The file is whole, and of another version of cortex."""


@dataclass(frozen=True, slots=True)
class Head:
    """Of what a file holds the graph: the workspace, after change `seq` of a store's `epoch`.

    `moment` is the digest of that very row of the log: a file that was put back to an older
    state, and then written again, has another row of the same number.
    """

    workspace: str
    epoch: str
    seq: int
    moment: str
    nodes: int
    relations: int
    light: int
    newest: str
    top: int
    dangling: bool
    taxonomy: int = _TAXONOMY
    body: int = 0

    def size(self) -> int:
        """Nodes and relations together."""
        return self.nodes + self.relations


def head_of(columns: Columns, workspace: str, epoch: str, seq: int, moment: str) -> Head:
    """The head of these columns, but for the checksum."""
    return Head(
        workspace=workspace,
        epoch=epoch,
        seq=seq,
        moment=moment,
        nodes=len(columns.key),
        relations=len(columns.payload),
        light=len(columns.light),
        newest=columns.newest,
        top=columns.top,
        dangling=columns.dangling,
    )


_FIELDS: Final = {each.name for each in fields(Head)}


def write(path: Path, head: Head, columns: Columns) -> None:
    """Fill an empty file. Raises OSError, for one for a full disk."""
    parts = [np.ascontiguousarray(getattr(columns, name), form) for name, form, _ in _LAYOUT]
    body = 0
    for part in parts:
        body = zlib.crc32(part.data, body)
    said = json.dumps(asdict(replace(head, body=body))).encode()
    said += b" " * (-len(said) % _ALIGN)
    with path.open("r+b") as file:
        file.write(_PREFIX.pack(_MAGIC, len(said), zlib.crc32(said)))
        file.write(said)
        for part in parts:
            file.write(part.data)


def read_head(file: BinaryIO) -> Head:
    """What an open file says of itself. Raises Unfit, OSError."""
    prefix = file.read(_PREFIX.size)
    if len(prefix) < _PREFIX.size:
        raise Unfit("it is torn")
    magic, length, check = _PREFIX.unpack(prefix)
    if magic != _MAGIC:
        raise Unfit("it is of another format")
    if length > _LONGEST_HEAD:
        raise Unfit("its head is damaged")
    said = file.read(length)
    if zlib.crc32(said) != check:
        raise Unfit("its head is damaged")
    values = json.loads(said)
    if values.keys() != _FIELDS:
        raise Outdated("it is of another format")
    head = Head(**values)
    if head.taxonomy != _TAXONOMY:
        raise Outdated("it knows other types")
    return head


def read_columns(file: BinaryIO, head: Head) -> Columns:
    """The columns that follow the head. Raises Unfit, OSError."""
    body = file.read()
    if zlib.crc32(body) != head.body:
        raise Unfit("it is torn or damaged")
    parts: dict[str, NDArray[Any]] = {}
    at = 0
    for name, form, rows in _LAYOUT:
        parts[name] = np.frombuffer(body, form, getattr(head, rows), at)
        at += parts[name].nbytes
    return Columns(**parts, newest=head.newest, top=head.top, dangling=head.dangling)
