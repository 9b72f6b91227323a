"""Files on their way: written beside their place, whole before they appear there.

A draft is called `.NAME.HOST-PID-RANDOM.part`, so that the next one in the same folder can
tell what a process that died left behind from what another is writing still.
"""

from __future__ import annotations

import os
import re
import secrets
import socket
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

_PART: Final = re.compile(r"\..+\.(?P<host>[\w-]+)-(?P<pid>\d+)-[0-9a-f]{8}\.part(?P<side>-\w+)?")
_SIDES: Final = ("", "-journal", "-wal", "-shm")
_writing: set[Path] = set()


@contextmanager
def draft_for(target: Path) -> Iterator[Path]:
    """An empty file of its owner's alone beside `target`; gone at the end, unless renamed.

    Removes first what dead processes of this machine left in that folder. Raises OSError
    where the folder cannot be made or written.
    """
    folder = target.absolute().parent
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    sweep(folder)
    draft = folder / f".{target.name}.{_host()}-{os.getpid()}-{secrets.token_hex(4)}.part"
    _writing.add(draft)
    try:
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL
        os.close(os.open(draft, flags, stat.S_IRUSR | stat.S_IWUSR))
        yield draft
    finally:
        for side in _SIDES:
            draft.with_name(draft.name + side).unlink(missing_ok=True)
        _writing.discard(draft)


def sweep(folder: Path) -> None:
    """Remove the drafts that no process of this machine is writing any more."""
    for path in folder.iterdir():
        found = _PART.fullmatch(path.name)
        if found is None or found["host"] != _host():
            continue
        side = found["side"] or ""
        if not _alive(path.with_name(path.name.removesuffix(side)), int(found["pid"])):
            path.unlink(missing_ok=True)


def put(draft: Path, target: Path) -> None:
    """Let a whole draft appear as `target`, durably and at once; replaces what is there."""
    sync(draft)
    draft.replace(target)
    if os.name == "posix":  # elsewhere a folder cannot be opened
        sync(target.absolute().parent)


def sync(path: Path) -> None:
    """Have the system write the file or folder out."""
    descriptor = os.open(path, os.O_RDONLY if path.is_dir() else os.O_RDWR)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _alive(draft: Path, pid: int) -> bool:
    import psutil

    # In a container every process may have the number that its forerunner had.
    return draft in _writing if pid == os.getpid() else bool(psutil.pid_exists(pid))


def _host() -> str:
    return re.sub(r"[^\w-]", "-", socket.gethostname()) or "host"
