"""Partitions in files: what the tests of the mapped form share."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from cortex.domain.values import Generation, NodeId, WorkspaceId
from cortex.vectors.embedded import EmbeddedIndex
from cortex.vectors.files import Files
from cortex.vectors.index import Point
from cortex.vectors.vector_file import Stamp

MODEL = "0123456789abcdef"


def files_in(folder: Path, dimension: int, *, model: str = MODEL, smallest: int = 1) -> Files:
    """Files for partitions of any size; the log is one of tests, and says its own numbers."""
    return Files(folder, model, dimension, str, smallest=smallest)


def any_state(_: Stamp) -> bool:
    return True


class FromFiles(EmbeddedIndex):
    """An index whose partitions are what their files gave after every other write."""

    def __init__(self, files: Files) -> None:
        super().__init__(files.dimension, files)
        self._writes = 0

    def rebuild(
        self, workspace: WorkspaceId, points: Iterable[Point], watermark: Generation
    ) -> None:
        super().rebuild(workspace, points, watermark)
        self._reload(workspace)

    def apply(
        self,
        workspace: WorkspaceId,
        upserts: Sequence[Point],
        deletes: Sequence[NodeId],
        watermark: Generation,
    ) -> None:
        super().apply(workspace, upserts, deletes, watermark)
        self._writes += 1
        if self._writes % 2:
            self._reload(workspace)

    def _reload(self, workspace: WorkspaceId) -> None:
        floor = self.watermark(workspace)
        assert floor is not None
        self.wait_written(10.0)  # tests give all states one number, so the last file must be ours
        assert self.write_file(workspace)
        self.take_file(workspace, any_state)
        assert self.mapped_bytes(workspace)
        assert self.watermark(workspace) == floor._replace(floor=0)
