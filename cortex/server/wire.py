"""The protocol's own pipe: stdin and stdout moved to where no stray print can reach them.

While claimed, descriptor 0 reads the null device and descriptor 1 writes to stderr, for this
process and for its children.
"""

from __future__ import annotations

import functools
import os
import sys
import threading
from dataclasses import dataclass, field
from typing import Final

CHUNK: Final = 1 << 16


@dataclass(frozen=True)
class Wire:
    """Private duplicates of the client's pipe."""

    source: int
    sink: int
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def read(self) -> bytes:
        """The next bytes, at most CHUNK; none at the end. Blocks."""
        return os.read(self.source, CHUNK)

    def write(self, data: bytes) -> None:
        """All of the bytes, in one piece among those of other threads. Blocks.

        Raises BrokenPipeError when the client has closed its end.
        """
        with self._lock:
            view = memoryview(data)
            while view:
                view = view[os.write(self.sink, view) :]


@functools.cache
def claim() -> Wire:
    """Take stdin and stdout for the protocol, for the rest of the process's life.

    Asked again, it is the same wire.
    """
    _fill_standard_descriptors()
    wire = Wire(source=os.dup(0), sink=os.dup(1))
    if sys.platform != "win32":
        # A parent may hand over pipes that do not block; a read would then look like an end.
        os.set_blocking(wire.source, True)
        os.set_blocking(wire.sink, True)
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.close(null)
    os.dup2(2, 1)
    return wire


def _fill_standard_descriptors() -> None:
    """Open the null device where 0, 1 or 2 is closed, lest a duplicate of the wire land there."""
    while (descriptor := os.open(os.devnull, os.O_RDWR)) <= 2:
        os.set_inheritable(descriptor, True)
    os.close(descriptor)
