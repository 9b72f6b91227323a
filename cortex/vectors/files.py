"""Where the files of the partitions lie, whose they are, and which of them can be used."""

from __future__ import annotations

import contextlib
import hashlib
import logging
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from cortex.domain.values import Generation, WorkspaceId
from cortex.vectors.draft import Draft
from cortex.vectors.mapped import iter_rows, living
from cortex.vectors.partition import Contents
from cortex.vectors.vector_file import (
    Identity,
    MappedFile,
    Stamp,
    Unfit,
    identity_of,
    open_file,
    read_header,
)

logger = logging.getLogger(__name__)

SMALLEST: Final = 4 << 20  # bytes of rows; what is less is quicker built than looked for
_ALL: Final = "vectors-*.bin"
_PAUSE: Final = 600.0  # seconds after which a disk that refused is tried again


@dataclass
class Files:
    """The files of one model's partitions in one folder.

    `model` names the model in the files; `said_of` gives what the log says of its row of a
    number, "" where it has none; `read_only` writes nothing; partitions with rows of less than
    `smallest` bytes have no file. Nothing here raises for what is wrong with a file or the
    disk: it is logged, once each.
    """

    folder: Path
    model: str
    dimension: int
    said_of: Callable[[int], str]
    read_only: bool = False
    smallest: int = SMALLEST
    _refused: dict[WorkspaceId, float] = field(default_factory=dict, init=False)
    _seen: dict[WorkspaceId, Identity] = field(default_factory=dict, init=False)

    def path(self, workspace: WorkspaceId) -> Path:
        digest = hashlib.sha256(f"{self.model}\0{workspace}".encode()).hexdigest()[:24]
        return self.folder / f"vectors-{digest}.bin"

    def offered(
        self, workspace: WorkspaceId, usable: Callable[[Stamp], bool], present: MappedFile | None
    ) -> MappedFile | None:
        """The workspace's file, where there is one that was not looked at before, of a state
        that is `usable` and not older than that of the `present` one."""
        path = self.path(workspace)
        try:
            identity = identity_of(path.stat())
        except OSError:
            return None
        known = self._seen.get(workspace), None if present is None else present.identity
        if identity in known:
            return None
        self._seen[workspace] = identity
        try:
            with path.open("rb") as stream:
                header = read_header(stream)
            ours = (header.model, header.workspace, header.dimension)
            if ours != (self.model, workspace, self.dimension):
                raise Unfit("it is of another model or workspace")
            if not usable(header.mark):
                raise Unfit("the log does not lead on from it")
            older = present is not None and header.is_older_than(present.header)
            return None if older else open_file(path, header)
        except (Unfit, OSError, ValueError, KeyError, TypeError) as error:
            logger.info("the vectors in %s are not used: %s", path.name, error)
            return None

    def may_write(self, workspace: WorkspaceId) -> bool:
        """Whether writing is allowed and was not refused a moment ago."""
        return not self.read_only and time.monotonic() >= self._refused.get(workspace, 0.0)

    def draft(self, workspace: WorkspaceId) -> Draft:
        """An empty draft; raises OSError."""
        return Draft(self.path(workspace), self.dimension)

    def publish(
        self, draft: Draft, contents: Contents, workspace: WorkspaceId, watermark: Generation
    ) -> MappedFile:
        """Let the draft become the workspace's file; raises OSError and Unfit."""
        said = self.said_of(watermark.seq)
        if not said:
            raise Unfit("the log was shortened meanwhile")
        mark = Stamp(watermark.epoch, watermark.seq, watermark.embeddings, said)
        mapped = draft.publish(contents, self.model, workspace, mark)
        if not draft.named:
            self.refuse(workspace, "another file has the name and keeps it")
        return mapped

    def write(
        self,
        workspace: WorkspaceId,
        parts: tuple[Contents, ...],
        watermark: Generation,
        stopped: Callable[[], bool],
    ) -> bool:
        """Write the living of these parts as the workspace's file; whether it was written."""
        try:
            draft = self.draft(workspace)
        except OSError as error:
            self.refuse(workspace, error)
            return False
        try:
            for rows in iter_rows(parts):
                if stopped():
                    return False
                draft.append(rows)
            self.publish(draft, living(parts), workspace, watermark)
        except (OSError, Unfit) as error:
            self.refuse(workspace, error)
            return False
        finally:
            draft.discard()
        return draft.named

    def refuse(self, workspace: WorkspaceId, error: Exception | str) -> None:
        """Note that its file cannot be written now, and say so once."""
        if not self.may_write(workspace):
            return
        self._refused[workspace] = time.monotonic() + _PAUSE
        logger.warning(
            "the vectors of %s are not shared with other processes: %s", ascii(workspace), error
        )

    def keep_only(self, workspaces: Collection[WorkspaceId]) -> None:
        """Remove the files of other workspaces and of other models."""
        wanted = {self.path(workspace).name for workspace in workspaces}
        for path in self.folder.glob(_ALL):
            if path.name not in wanted:
                # On Windows one that is mapped stays for the next time.
                with contextlib.suppress(OSError):
                    path.unlink()

    def bytes_on_disk(self) -> int:
        """What all files in the folder take, of whichever model."""
        total = 0
        for path in self.folder.glob(_ALL):
            with contextlib.suppress(FileNotFoundError):  # replaced or removed meanwhile
                total += path.stat().st_size
        return total

    def forget(self) -> None:
        """Look at every file anew."""
        self._seen.clear()
        self._refused.clear()
