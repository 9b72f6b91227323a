"""Following a folder: a whole ingest, then one round for each burst of changes.

The system's events begin before the first ingest does, so that nothing falls between. A
round waits until no event has come for a moment: an editor's atomic save (write beside,
rename over) and a branch switch are one round each. Only what lies at or below the changed
paths is looked at; after an ignore file changed, or so many paths that events may have
been lost, the whole folder is. A round that finds the memory busy is taken up again.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

from watchfiles import watch

from cortex.domain.errors import BusyError, CortexError, UnavailableError
from cortex.services.ingest.ignoring import IGNORE_FILES
from cortex.services.ingest.sources import GENERATED, SUFFIXES
from cortex.services.ingest.writing import Ingest, Ingested

_QUIET: Final = 100  # milliseconds without an event that end a burst
_LONGEST: Final = 2_000  # … and after which a burst that goes on is read all the same
_TICK: Final = 500
_MANY: Final = 1_000

Told = Callable[[Ingested | CortexError], None]


def follow(
    ingest: Ingest,
    path: Path,
    stop: threading.Event,
    told: Told,
    *,
    workspace: str | None = None,
    first: Callable[[], Ingested] | None = None,
) -> None:
    """Ingest now and after every change until `stop` is set; `told` hears of each round.

    `first` is how the whole ingest at the start is run. A round that fails is told, and
    the next change goes on. Raises what the first ingest raises, and UnavailableError where
    the system does not let this process watch.
    """
    root = Path(os.path.normpath(path.absolute()))
    events = _events(root, stop)
    next(events, None)  # the system watches from here on
    told(first() if first else ingest.ingest(root, workspace=workspace, stopped=stop.is_set))
    waiting: set[Path] = set()
    for changed in events:
        waiting |= changed
        if not waiting or stop.is_set():
            continue
        try:
            report = ingest.ingest(
                root, workspace=workspace, only=_scope(root, waiting), stopped=stop.is_set
            )
        except CortexError as error:
            told(error)
            if not isinstance(error, BusyError):
                waiting = set()
            continue
        waiting = set()
        told(report)


def _events(root: Path, stop: threading.Event) -> Iterator[set[Path]]:
    """Bursts of changed paths that may matter; an empty set at every tick without one."""
    folder = os.path.isdir(root)
    try:
        # A lone file is watched from its folder: an atomic save replaces the file itself.
        for burst in watch(
            root if folder else root.parent,
            watch_filter=None,  # it would keep silent, without ticks, where only noise happens
            debounce=_LONGEST,
            step=_QUIET,
            rust_timeout=_TICK,
            yield_on_timeout=True,
            stop_event=stop,
            raise_interrupt=False,
            recursive=folder,
            ignore_permission_denied=True,
        ):
            yield {path for _, name in burst if _may_matter(root, path := Path(name))}
    except OSError as error:
        raise UnavailableError(
            f"{str(root)!r} cannot be watched ({error})",
            "Valid: a folder that this process may read, within the system's limit of watches",
            "Raise the limit (fs.inotify.max_user_watches), watch a smaller folder, or set "
            "WATCHFILES_FORCE_POLLING=1",
        ) from error


def _may_matter(root: Path, path: Path) -> bool:
    """Whether a change there can change the memory; the walk decides in the end."""
    if path == root:
        return True
    if not path.is_relative_to(root):
        return False
    *folders, name = path.relative_to(root).parts
    if any(part.startswith(".") or part in GENERATED for part in folders):
        return False
    if name in IGNORE_FILES or path.suffix.lower() in SUFFIXES:
        return True
    # A folder: renamed, made or removed with all below it, without an event for each file.
    return not name.startswith(".") and name not in GENERATED and not os.path.isfile(path)


def _scope(root: Path, changed: set[Path]) -> frozenset[Path]:
    """The paths to look at; empty for all."""
    everything = len(changed) > _MANY or root in changed
    if everything or any(path.name in IGNORE_FILES for path in changed):
        return frozenset()
    return frozenset(changed)
