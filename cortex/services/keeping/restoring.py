"""Restoring: a backup in place of the present memory, which is copied beside it first.

Of a home's path and not of an open memory, so that a damaged one can be restored. Nothing
is changed before `run`: until then both sides are counted, for a person to decide.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from cortex.config import Settings
from cortex.domain.errors import (
    CortexError,
    InvalidError,
    NotFoundError,
    UnavailableError,
)
from cortex.domain.instants import Clock, now
from cortex.services.keeping.backing_up import stamp
from cortex.store.backup import Contents, Copied, Progress, back_up, contents_of
from cortex.store.database import Database
from cortex.store.drafts import draft_for
from cortex.store.restore import make_ready, overwrite

_NOTHING = Contents(0, 0, 0, 0, 0, None)


@dataclass(frozen=True, slots=True)
class Restored:
    """What was replaced by what. `safety` is the copy of what was there, None of nothing.

    `present` is None where it was too damaged to count.
    """

    file: str
    home: str
    present: Contents | None
    restored: Contents
    safety: str | None
    notes: list[str] = field(default_factory=list)


class Restoring:
    """A backup that is ready to go live."""

    def __init__(self, settings: Settings, file: Path, draft: Path, clock: Clock) -> None:
        self._live = settings.database
        self._file = file
        self._draft = draft
        self._clock = clock
        self.incoming = _NOTHING
        self.present: Contents | None = _NOTHING
        self.problem: str | None = None
        """Why the present memory cannot be counted."""

    def look(self, progress: Progress) -> None:
        """Count both sides; make the draft ready."""
        self.incoming = make_ready(self._file, self._draft, progress)
        if self._live.exists():
            try:
                self.present = contents_of(self._live)
            except CortexError as error:
                self.present, self.problem = None, error.message

    def run(self, progress: Progress = lambda *_: None) -> Restored:
        """Replace the memory, in one transaction; what others write until then is in the copy.

        Raises BusyError where another process writes for 10 s, UnavailableError for a full
        disk: then the memory is as it was.
        """
        live = self._live
        if not live.exists():
            Database(live).close()  # an empty memory, which is then restored as any other
        safety = live.with_name(f"before-restore-{stamp(self._clock())}.db")
        copied: list[Copied] = []

        def keep_present() -> None:
            copied.append(back_up(live, safety, as_is=True))

        try:
            overwrite(live, self._draft, held=keep_present, progress=progress)
        except CortexError:
            safety.unlink(missing_ok=True)  # nothing was replaced
            raise
        (kept,) = copied
        notes = []
        if kept.problem is not None:
            notes.append(f"what was there is damaged, and so is its copy: {kept.problem}")
        if kept.contents is not None and kept.contents.changes == kept.contents.visits == 0:
            safety.unlink()  # there was nothing
            return Restored(str(self._file), str(live.parent), _NOTHING, self.incoming, None, notes)
        return Restored(
            str(self._file), str(live.parent), kept.contents, self.incoming, str(safety), notes
        )


@contextmanager
def restoring(
    settings: Settings, file: Path, *, clock: Clock = now, progress: Progress = lambda *_: None
) -> Iterator[Restoring]:
    """The backup, verified and brought to this version; nothing is changed before its `run`.

    Raises NotFoundError for no such file, InvalidError for another kind of file or the
    memory itself, UnavailableError for a damaged one or one of a newer cortex.
    """
    if not file.is_file():
        raise NotFoundError(f"no file {file}", "", "Name a backup")
    live = settings.database
    if live.exists() and live.samefile(file):
        raise InvalidError(
            f"{file} is this memory itself", "Valid: a backup of it", "Name another file"
        )
    is_new = not live.parent.exists()
    try:
        with draft_for(live) as draft:
            ready = Restoring(settings, file, draft, clock)
            ready.look(progress)
            yield ready
        if is_new and not live.exists():
            live.parent.rmdir()  # it was only looked at
    except OSError as error:
        raise UnavailableError(
            f"{live.parent} cannot be written ({error.strerror or error})",
            "",
            "Check the folder and the free space of its disk",
        ) from error
