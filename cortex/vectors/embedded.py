"""The embedded vector index: exact nearest neighbours in memory, with numpy.

A search takes its views of the partitions under the lock and ranks outside of it, so that
a write never waits for a multiplication. The rankings queue for a lock of their own: one
uses every core through BLAS already, and four at once took twice the CPU (42 ms a query
instead of 20 at 100,000 × 384 on 2 cores, as BLAS's threads wait by spinning). What a
partition is, what it costs and how ties go is told in `partition.py`.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from cortex.domain.errors import InvalidError, UnavailableError
from cortex.domain.values import Generation, NodeId, WorkspaceId
from cortex.vectors.index import Point, ScoredPoint, Vector, VectorFilter
from cortex.vectors.partition import Partition, Rows

_PIECE: Final = 2048  # points checked at a time while a partition is rebuilt


class EmbeddedIndex:
    """`VectorIndex` in memory, for vectors of one dimension; safe to use from threads."""

    def __init__(self, dimension: int) -> None:
        self.dimension = dimension
        self._lock = threading.Lock()
        self._ranking = threading.Lock()
        self._partitions: dict[WorkspaceId, Partition] = {}
        self._closed = False

    def watermark(self, workspace: WorkspaceId) -> Generation | None:
        with self._lock:
            partition = self._open().get(workspace)
            return None if partition is None else partition.watermark

    def rebuild(
        self, workspace: WorkspaceId, points: Iterable[Point], watermark: Generation
    ) -> None:
        """Replace the partition; searches go on with the old one until the new is whole."""
        fresh = Partition(self.dimension)
        # Pieces, so that a stream of points is never held beside the matrix.
        for piece in _pieces(points):
            for point, rows in self._checked(workspace, piece):
                fresh.put(point, rows)
        fresh.compact_if_worth()
        fresh.watermark = watermark
        with self._lock:
            self._open()[workspace] = fresh

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
        with self._ranking:
            hits = [
                ScoredPoint(hit.node_id, workspace, hit.score, hit.chunk, hit.chunks, spread)
                for workspace, view in views
                for hit, spread in view.best(query, top_k)
            ]
        return sorted(hits, key=lambda hit: (-hit.score, hit.node_id, hit.workspace_id))[:top_k]

    def ids(self, workspace: WorkspaceId) -> frozenset[NodeId]:
        with self._lock:
            partition = self._open().get(workspace)
            return frozenset() if partition is None else frozenset(partition.slot_of)

    def memory_bytes(self, workspace: WorkspaceId | None = None) -> int:
        """Bytes of the rows and columns in use, tombstones included; of one workspace or all.

        The ids and tags (Python objects) are not counted, nor the reserve for growth,
        which the system does not back with memory before it is written.
        """
        with self._lock:
            return sum(
                partition.memory_bytes()
                for name, partition in self._open().items()
                if workspace is None or name == workspace
            )

    def close(self) -> None:
        """Let go of all partitions; whatever is called later raises UnavailableError."""
        with self._lock:
            self._closed = True
            self._partitions.clear()

    def _open(self) -> dict[WorkspaceId, Partition]:
        if self._closed:
            raise UnavailableError("the vector index is closed", then="Start the server again")
        return self._partitions

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
