"""The embedded vector index: exact nearest neighbours with numpy, in memory or in mapped files.

A search takes its views of the partitions under the lock and ranks outside of it, so that
a write never waits for a multiplication. A ranking takes one core, and several at once take as
many (on 2 cores 110 a second one by one, 190 four at once, at 100,000 × 384). What a
partition is, what it costs and how ties go is told in `partition.py`, `mapped.py`, `view.py`.

With `Files` a partition of 4 MB and more has a file, which processes share. A rebuild writes
its rows straight into it; what comes since is this process's own until it is worth a new file,
which a thread writes beside everything else. `take_file` has a later search use it.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from cortex.domain.errors import CortexError, InvalidError, UnavailableError
from cortex.domain.values import Generation, NodeId, WorkspaceId
from cortex.vectors.files import Files
from cortex.vectors.index import Point, ScoredPoint, Vector, VectorFilter
from cortex.vectors.mapped import MappedPartition
from cortex.vectors.partition import Partition
from cortex.vectors.returning import return_memory
from cortex.vectors.spool import SpooledRows
from cortex.vectors.vector_file import Stamp
from cortex.vectors.view import Rows

logger = logging.getLogger(__name__)

_PIECE: Final = 2048  # points checked at a time while a partition is rebuilt
_LAST_WAIT: Final = 2.0  # seconds that closing gives a file being written


class EmbeddedIndex:
    """`VectorIndex` in this process, for vectors of one dimension; safe to use from threads."""

    def __init__(self, dimension: int, files: Files | None = None) -> None:
        self.dimension = dimension
        self.files = files
        self._lock = threading.Lock()
        self._partitions: dict[WorkspaceId, Partition | MappedPartition] = {}
        self._writing: dict[WorkspaceId, threading.Thread] = {}
        self._closed = False

    def watermark(self, workspace: WorkspaceId) -> Generation | None:
        with self._lock:
            partition = self._open().get(workspace)
            return None if partition is None else partition.watermark

    def take_file(self, workspace: WorkspaceId, usable: Callable[[Stamp], bool]) -> None:
        """Use the workspace's file where there is one of a state that the caller finds usable.

        Its watermark is then the partition's, and may be older than the one before: whoever
        calls this catches up afterwards. One `stat` where nothing is new.
        """
        if self.files is None:
            return
        with self._lock:
            present = self._open().get(workspace)
        mapped = present.file if isinstance(present, MappedPartition) else None
        file = self.files.offered(workspace, usable, mapped)
        if file is not None:
            with self._lock:
                self._open()[workspace] = MappedPartition(file)

    def rebuild(
        self, workspace: WorkspaceId, points: Iterable[Point], watermark: Generation
    ) -> None:
        """Replace the partition; searches go on with the old one until the new is whole."""
        spool = None if self.files is None else SpooledRows(self.files, workspace)
        built = Partition(self.dimension, spool)
        file = None
        try:
            # Pieces, so that a stream of points is never held beside the matrix.
            for piece in _pieces(points):
                for point, rows in self._checked(workspace, piece):
                    built.put(point, rows)
            if spool is not None:
                file = spool.published(built.bare(), watermark)
        finally:
            if spool is not None:
                spool.discard()
        if file is None:
            built.compact_if_worth()
        fresh = built if file is None else MappedPartition(file)
        fresh.watermark = watermark
        with self._lock:
            self._open()[workspace] = fresh
        if file is not None:
            del built
            return_memory()  # half of what the stream took: 66 MB at 100,000 nodes

    def apply(
        self,
        workspace: WorkspaceId,
        upserts: Sequence[Point],
        deletes: Sequence[NodeId],
        watermark: Generation,
    ) -> None:
        """Delete, then upsert: an id that is in both stays. A bad point changes nothing."""
        checked = self._checked(workspace, upserts)
        with self._lock:
            partition = self._open().setdefault(workspace, Partition(self.dimension))
            for node_id in deletes:
                partition.remove(node_id)
            for point, rows in checked:
                partition.put(point, rows)
            partition.compact_if_worth()
            partition.watermark = watermark
        if upserts or deletes:
            self._write_if_worth(workspace)

    def search(
        self,
        workspaces: Sequence[WorkspaceId],
        vector: Vector,
        top_k: int,
        where: VectorFilter,
    ) -> list[ScoredPoint]:
        """The best nodes, best first; a partition that is empty or absent adds none.

        Raises InvalidError for top_k below 1, and for a vector of another dimension, of
        length 0 or with NaN.
        """
        if top_k < 1:
            raise InvalidError(f"top_k {top_k} is too small", "Valid: 1 and more", "Raise it")
        query = unit_rows(np.asarray(vector)[None], self.dimension, "the query")[0]
        with self._lock:
            partitions = self._open()
            views = [
                (workspace, partitions[workspace].view(where))
                for workspace in dict.fromkeys(workspaces)
                if workspace in partitions
            ]
        hits = [
            ScoredPoint(hit.node_id, workspace, hit.score, hit.chunk, hit.chunks, spread)
            for workspace, view in views
            for hit, spread in view.best(query, top_k)
        ]
        return sorted(hits, key=lambda hit: (-hit.score, hit.node_id, hit.workspace_id))[:top_k]

    def ids(self, workspace: WorkspaceId) -> frozenset[NodeId]:
        with self._lock:
            partition = self._open().get(workspace)
            return frozenset() if partition is None else frozenset(partition.ids())

    def memory_bytes(self, workspace: WorkspaceId | None = None) -> int:
        """Bytes of this process alone: rows and columns in use, tombstones included; of one
        workspace or all.

        The ids (Python objects) are not counted, nor the reserve for growth, which the system
        does not back with memory before it is written.
        """
        return sum(partition.memory_bytes() for partition in self._of(workspace))

    def mapped_bytes(self, workspace: WorkspaceId | None = None) -> int:
        """Bytes of the files in use, whose pages all processes share; of one workspace or all."""
        return sum(partition.mapped_bytes() for partition in self._of(workspace))

    def file_is_whole(self, workspace: WorkspaceId) -> bool:
        """Whether the rows in the workspace's file are those that were written; reads them all.

        True where it has no file.
        """
        with self._lock:
            partition = self._open().get(workspace)
        return not isinstance(partition, MappedPartition) or partition.file.matrix_is_whole()

    def write_file(self, workspace: WorkspaceId) -> bool:
        """Write the partition as it is now to its file, which `take_file` then offers; whether
        it was written."""
        files = self.files
        with self._lock:
            partition = self._open().get(workspace)
            mark = None if partition is None else partition.watermark
            if files is None or files.read_only or partition is None or mark is None:
                return False
            parts = partition.contents()
        return files.write(workspace, parts, mark, lambda: self._closed)

    def wait_written(self, seconds: float) -> None:
        """Wait for the files that are being written, for each at most so long."""
        with self._lock:
            writing = list(self._writing.values())
        for thread in writing:
            thread.join(seconds)

    def drop(self) -> None:
        """Forget all partitions: each is taken from its file or rebuilt when it is needed."""
        with self._lock:
            self._open().clear()
        if self.files is not None:
            self.files.forget()

    def close(self) -> None:
        """Let go of all partitions; whatever is called later raises UnavailableError."""
        with self._lock:
            self._closed = True
            self._partitions.clear()
        self.wait_written(_LAST_WAIT)

    def _of(self, workspace: WorkspaceId | None) -> list[Partition | MappedPartition]:
        with self._lock:
            held = self._open().items()
            return [each for name, each in held if workspace is None or name == workspace]

    def _open(self) -> dict[WorkspaceId, Partition | MappedPartition]:
        if self._closed:
            raise UnavailableError("the vector index is closed", then="Start the server again")
        return self._partitions

    def _write_if_worth(self, workspace: WorkspaceId) -> None:
        """Have a thread write a new file, where so much came since the last that it pays."""
        files = self.files
        with self._lock:
            partition = self._partitions.get(workspace)
            if files is None or partition is None or workspace in self._writing:
                return
            if not self._worth_writing(files, partition) or not files.may_write(workspace):
                return
            thread = threading.Thread(
                target=self._write, args=(workspace,), name="vector file", daemon=True
            )
            self._writing[workspace] = thread
            thread.start()

    def _worth_writing(self, files: Files, partition: Partition | MappedPartition) -> bool:
        if isinstance(partition, MappedPartition):
            return partition.worth_writing()
        return partition.rows.array.nbytes >= max(files.smallest, 1)

    def _write(self, workspace: WorkspaceId) -> None:
        try:
            self.write_file(workspace)
        except CortexError as error:  # it was closed, or the store was
            logger.info("the vectors of %s were not written: %s", ascii(workspace), error)
        finally:
            with self._lock:
                self._writing.pop(workspace, None)

    def _checked(self, workspace: WorkspaceId, points: Sequence[Point]) -> list[tuple[Point, Rows]]:
        for point in points:
            if point.workspace_id != workspace:
                raise InvalidError(
                    f"point {point.node_id} is of workspace {point.workspace_id!r}",
                    f"Valid: points of {workspace!r}",
                    "Put it into its own partition",
                )
        return [
            (point, unit_rows(point.vectors, self.dimension, f"point {point.node_id}"))
            for point in points
        ]


def unit_rows(vectors: NDArray[np.floating[Any]], dimension: int, whose: str) -> Rows:
    """The rows as float32 (n, dimension) of length 1, n ≥ 1.

    Raises InvalidError, naming both dimensions when they differ, and for NaN, infinities
    and rows of length 0.
    """
    rows = np.ascontiguousarray(vectors, dtype=np.float32)
    if rows.ndim != 2 or rows.shape[1] != dimension or not len(rows):
        given = rows.shape[-1] if rows.ndim > 1 and len(rows) else f"shape {rows.shape}"
        raise InvalidError(
            f"{whose} has a vector of dimension {given}, the index has {dimension}",
            f"Valid: {dimension}",
            "Embed it with the model of the index, or run `cortex reindex --model`",
        )
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    if not np.isfinite(lengths).all() or not lengths.all():
        raise InvalidError(
            f"{whose} has a vector with NaN, infinity or length 0",
            "Valid: finite vectors of length 1",
            "Embed it again",
        )
    unit: Rows = rows / lengths
    return unit


def _pieces(points: Iterable[Point]) -> Iterator[list[Point]]:
    stream = iter(points)
    while piece := list(islice(stream, _PIECE)):
        yield piece
