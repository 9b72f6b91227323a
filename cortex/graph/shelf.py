"""Where the graphs of one database are kept as files, and which of them may be used.

One file a workspace, `graph-<digest of its name>.bin`, in the folder of derived files beside
the database, as long as the workspace holds a node: 0600, written as a draft and renamed, so
that a process that dies leaves the old one or none, and of several the last one wins. Anybody
may delete them (invariant 1).

A file is used where the log leads from it to the present (invariant 3): same epoch, not below
the floor, and the row of the log that it ends with is still that row, which a file that was
put back to an older state and written again has otherwise. Anything else is one line in the
log, and the graph is built from the store.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Iterable
from pathlib import Path
from typing import BinaryIO, Final

from cortex.domain.values import Generation, WorkspaceId
from cortex.graph.columns import Columns
from cortex.graph.saved import Head, Unfit, read_columns, read_head, write
from cortex.store.database import Snapshot
from cortex.store.drafts import draft_for, put

logger = logging.getLogger(__name__)

LEAST_REBUILD: Final = 64


def can_follow(epoch: str, seq: int, size: int, generation: Generation) -> bool:
    """Whether the log leads from a graph of this state and size to the present.

    A snapshot older than the graph cannot be followed to: the log only goes forward.
    Reading a log longer than twice the graph costs more than reading the graph.
    """
    end = max(generation.seq, generation.floor)
    return (
        epoch == generation.epoch
        and generation.floor <= seq <= end
        and end - seq <= max(LEAST_REBUILD, 2 * size)
    )


class Shelf:
    """The files of one database's graphs; `writable` until writing one has failed."""

    def __init__(self, database: Path, *, writable: bool) -> None:
        self._folder = database.with_name(database.name + ".derived")
        self.writable = writable

    def path(self, workspace: WorkspaceId) -> Path:
        digest = hashlib.sha256(workspace.encode("utf-8", "surrogatepass")).hexdigest()
        return self._folder / f"graph-{digest[:16]}.bin"

    def find_head(self, snapshot: Snapshot, workspace: WorkspaceId) -> Head | None:
        """What the file that is there says of itself, None where it is of no use."""
        found = self._read(snapshot, workspace, whole=False)
        return None if found is None else found[0]

    def load(self, snapshot: Snapshot, workspace: WorkspaceId) -> tuple[Head, Columns] | None:
        """The graph from its file, None where that is of no use."""
        found = self._read(snapshot, workspace, whole=True)
        if found is None or found[1] is None:
            return None
        return found[0], found[1]

    def _read(
        self, snapshot: Snapshot, workspace: WorkspaceId, *, whole: bool
    ) -> tuple[Head, Columns | None] | None:
        path = self.path(workspace)
        try:
            with path.open("rb") as file:
                head = _fitting(file, snapshot, workspace)
                return head, read_columns(file, head) if whole else None
        except FileNotFoundError:
            return None
        except (Unfit, OSError) as error:
            logger.info("%s is not used, the graph is built from the store: %s", path.name, error)
            return None

    def save(self, head: Head, columns: Columns) -> None:
        """Let this be the file of its workspace. A failure is told once, and is the last."""
        target = self.path(WorkspaceId(head.workspace))
        try:
            with draft_for(target) as draft:
                write(draft, head, columns)
                put(draft, target)
        except OSError as error:
            self.writable = False
            logger.warning("graphs are not saved any more, starts take longer: %s", error)

    def files(self) -> list[Path]:
        """Every file of a graph that is there, by name."""
        return sorted(self._folder.glob("graph-*.bin"))

    def remove(self, files: Iterable[Path]) -> None:
        """Remove these. One that cannot be removed is told in the log."""
        for path in files:
            try:
                path.unlink(missing_ok=True)
            except OSError as error:
                logger.warning("a saved graph cannot be removed: %s", error)

    def clear(self) -> None:
        """Remove every file of a graph."""
        self.remove(self.files())


def _fitting(file: BinaryIO, snapshot: Snapshot, workspace: WorkspaceId) -> Head:
    head = read_head(file)
    if head.workspace != workspace:
        raise Unfit("it is of another workspace")
    if not can_follow(head.epoch, head.seq, head.size(), snapshot.generation()):
        raise Unfit("the log does not lead on from it")
    if snapshot.changes.moment(head.seq) != head.moment:
        raise Unfit("the log has become another one")
    return head
