"""Whether the file at the path is still the one that this process has open.

On Unix a file that is removed or replaced lives on, without a name, for whoever has it open:
SQLite would go on acknowledging commits that nobody ever sees again. So each transaction
compares what the path names with what was opened, by device and inode (1.5 µs a stat). It
never opens the file: closing a second descriptor would drop this process's POSIX locks.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

from cortex.domain.errors import UnavailableError


class _Identity(NamedTuple):
    device: int
    inode: int


class Presence:
    """Watches the file, and once it is known the write-ahead log beside it."""

    def __init__(self, path: Path) -> None:
        """Begin with what lies at `path` now."""
        self._path = path
        self._log = Path(f"{path}-wal")
        self._file_identity = _identity(path)
        self._log_identity: _Identity | None = None

    def check(self) -> None:
        """Raise UnavailableError when the file was removed or replaced."""
        if _identity(self._path) != self._file_identity:
            raise _gone(self._path)

    def check_writable(self) -> None:
        """The same for the file and its log, within a write transaction or right after it.

        SQLite keeps the log as long as anyone has the file open, so its first sight is its
        identity.
        """
        self.check()
        present = _identity(self._log)
        if self._log_identity is None:
            self._log_identity = present
        elif present != self._log_identity:
            raise _gone(self._log)


def _identity(path: Path) -> _Identity | None:
    try:
        state = os.stat(path)
    except FileNotFoundError:
        return None
    return _Identity(state.st_dev, state.st_ino)


def _gone(path: Path) -> UnavailableError:
    return UnavailableError(
        f"{path} was removed or replaced while it was open",
        "",
        "Put the file back, or restore a backup, then start cortex again. Nothing since then "
        "was kept",
    )
