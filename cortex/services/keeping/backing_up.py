"""Backups: a verified copy of a memory in use, to a file or into a folder that keeps the newest.

Of a home's path and not of an open memory: a backup migrates nothing and makes none where
there is none.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from cortex.config import Settings
from cortex.domain.errors import ConflictError, InvalidError, UnavailableError
from cortex.domain.instants import Clock, Instant, now
from cortex.store.backup import Contents, Progress, back_up, is_backup

_NAME: Final = re.compile(r"cortex-\d{8}T\d{6}\.\d{6}Z\.db")


@dataclass(frozen=True, slots=True)
class BackedUp:
    """A verified backup: where it is, what it holds, and which older ones went for it."""

    file: str
    bytes: int
    contents: Contents
    removed: list[str]


class BackingUp:
    """Copies the memory of one home."""

    def __init__(self, settings: Settings, clock: Clock = now) -> None:
        self._source = settings.database
        self._clock = clock

    def back_up(
        self, target: Path, *, keep: int | None = None, progress: Progress = lambda *_: None
    ) -> BackedUp:
        """Write `target`, or in a folder a file named by the time; then keep the newest `keep`.

        A path that ends in a separator, or comes with `keep`, is a folder and is made. An
        older backup of that very name is replaced, anything else refused with ConflictError.
        Raises InvalidError for a `keep` below 1, NotFoundError for no memory,
        UnavailableError for a damaged one or a full disk; then nothing is changed.
        """
        if keep is not None and keep < 1:
            raise InvalidError(f"keep {keep} keeps no backup", "Valid: 1 and more", "Raise it")
        folder = target.is_dir() or keep is not None
        if folder and target.exists() and not target.is_dir():
            raise InvalidError(
                f"{target} is a file, and keep counts those of a folder",
                "Valid: a folder with keep, or a file without",
                "Name the folder",
            )
        file = target / f"cortex-{stamp(self._clock())}.db" if folder else target
        _refuse_others(file, self._source)
        copied = back_up(self._source, file, progress=progress)
        assert copied.contents is not None  # a damaged memory was refused
        removed = _rotate(target, file, keep) if keep is not None else []
        return BackedUp(str(file), file.stat().st_size, copied.contents, removed)


def stamp(instant: Instant) -> str:
    """The instant as it stands in names of files: 20261130T170000.000000Z."""
    return instant.replace("-", "").replace(":", "")


def _refuse_others(file: Path, source: Path) -> None:
    if not file.exists() and not file.is_symlink():
        return
    # The same file first: to look into one that is open here would drop its locks.
    if (file.exists() and source.exists() and file.samefile(source)) or not is_backup(file):
        raise ConflictError(
            f"{file} exists and is no backup of cortex at rest",
            "Valid: a new name, a folder, or an older backup to replace",
            "Name another file; it was not touched",
        )


def _rotate(folder: Path, newest: Path, keep: int) -> list[str]:
    """Remove all but the newest; only what has such a name and is a backup of cortex."""
    try:
        ours = [path for path in folder.iterdir() if _NAME.fullmatch(path.name) and is_backup(path)]
        older = sorted((path for path in ours if path != newest), key=lambda path: path.name)
        doomed = older[: max(len(older) - (keep - 1), 0)]
        for path in doomed:
            path.unlink()
    except OSError as error:
        raise UnavailableError(
            f"{newest} is written and verified, but an older backup could not be removed "
            f"({error.strerror})",
            "",
            "Check the folder's permissions",
        ) from error
    return [str(path) for path in doomed]
