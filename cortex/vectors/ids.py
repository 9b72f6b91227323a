"""The ids of a file's slots: 16 bytes each where they are UUIDs, found by bisection.

The ids lie sorted, with the slot of each and the place of each slot among them: 24 bytes a
slot, none of which is read before an id is asked for. Ids that are no UUIDs, as an original file
may have, are kept as text of the longest one's width.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final, NamedTuple, overload

import numpy as np
from numpy.typing import NDArray

from cortex.domain.values import NodeId, is_id

_UUID: Final = 16


class Packed(NamedTuple):
    """Ids by slot as they are written: `sorted` (slots,) of bytes; `slots` of them; `places` of
    the slots in it."""

    uuids: bool
    sorted: NDArray[np.bytes_]
    slots: NDArray[np.uint32]
    places: NDArray[np.uint32]


def pack(ids: Sequence[NodeId]) -> Packed:
    """The ids of slots 0, 1, …, as they are written."""
    uuids = all(map(is_id, ids))
    form = f"S{_UUID}" if uuids else f"S{max(len(each.encode()) for each in ids)}"
    named = np.array([_bytes(each, uuids) for each in ids], form)
    slots = np.argsort(named, kind="stable").astype(np.uint32)
    places = np.empty_like(slots)
    places[slots] = np.arange(len(slots), dtype=np.uint32)
    return Packed(uuids, named[slots], slots, places)


class IdTable(Sequence[NodeId]):
    """The ids by slot, read from their packed form as they are asked for."""

    def __init__(self, packed: Packed) -> None:
        self._packed = packed

    def __len__(self) -> int:
        return len(self._packed.slots)

    @overload
    def __getitem__(self, slot: int) -> NodeId: ...
    @overload
    def __getitem__(self, slot: slice) -> list[NodeId]: ...
    def __getitem__(self, slot: int | slice) -> NodeId | list[NodeId]:
        if isinstance(slot, slice):
            return list(self.of(np.arange(len(self))[slot]))
        return self._text(self._packed.sorted[self._packed.places[slot]])

    def of(self, slots: Iterable[Any]) -> Iterator[NodeId]:
        """The ids of these slots, in their order."""
        for place in self._packed.places[np.asarray(slots, np.int64)]:
            yield self._text(self._packed.sorted[place])

    def find(self, node_id: NodeId) -> Iterator[int]:
        """The slots that have this id; more than one where the file holds its older selves."""
        if self._packed.uuids and not is_id(node_id):
            return
        ids = self._packed.sorted
        wanted = np.array(_bytes(node_id, self._packed.uuids))
        place = int(np.searchsorted(ids, wanted))
        while place < len(ids) and ids[place] == wanted:
            yield int(self._packed.slots[place])
            place += 1

    def _text(self, raw: bytes) -> NodeId:
        if not self._packed.uuids:
            return NodeId(raw.decode())
        # numpy leaves out the zeros at an end.
        text = raw.hex().ljust(2 * _UUID, "0")
        return NodeId(f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}")


def _bytes(node_id: NodeId, uuids: bool) -> bytes:
    return bytes.fromhex(node_id.replace("-", "")) if uuids else node_id.encode()
