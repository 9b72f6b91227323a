"""What any vector index can do: the protocol, and the values that cross it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from cortex.domain.instants import Instant
from cortex.domain.taxonomy import Layer, NodeType, Status
from cortex.domain.values import Generation, NodeId, WorkspaceId

Vector = NDArray[np.float32]
"""Shape (dimension,), length 1."""


@dataclass(frozen=True, slots=True)
class Point:
    """A node as the index holds it: its chunks' vectors and the concept's payload.

    `vectors` has shape (chunks, dimension), rows of length 1; a node scores by its best
    chunk.
    """

    node_id: NodeId
    workspace_id: WorkspaceId
    type: NodeType
    layer: Layer
    tags: tuple[str, ...]
    status: Status
    created_at: Instant
    vectors: NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class VectorFilter:
    """Exact conditions, applied before the ranking; an empty or None field admits all.

    `tags`: a point must hold every one. `created_from` and `created_to` are inclusive.
    """

    types: frozenset[NodeType] = frozenset()
    layer: Layer | None = None
    tags: frozenset[str] = frozenset()
    statuses: frozenset[Status] = frozenset()
    created_from: Instant | None = None
    created_to: Instant | None = None


@dataclass(frozen=True, slots=True)
class ScoredPoint:
    """A hit: cosine similarity in [-1, 1] of the node's best chunk, and which chunk it was."""

    node_id: NodeId
    workspace_id: WorkspaceId
    score: float
    chunk: int


class VectorIndex(Protocol):
    """Exact nearest neighbours, one partition per workspace.

    Every method raises UnavailableError when the index cannot be reached: an outage is
    never an empty result.
    """

    def watermark(self, workspace: WorkspaceId) -> Generation | None:
        """What the workspace's partition reflects; None when it was never built."""

    def rebuild(
        self, workspace: WorkspaceId, points: Iterable[Point], watermark: Generation
    ) -> None:
        """Replace the partition by these points."""

    def apply(
        self,
        workspace: WorkspaceId,
        upserts: Sequence[Point],
        deletes: Sequence[NodeId],
        watermark: Generation,
    ) -> None:
        """Replace and remove single nodes; an id that is absent is ignored."""

    def search(
        self,
        workspaces: Sequence[WorkspaceId],
        vector: Vector,
        top_k: int,
        where: VectorFilter,
    ) -> list[ScoredPoint]:
        """The best nodes of these partitions, best first; ties go by node id."""

    def ids(self, workspace: WorkspaceId) -> frozenset[NodeId]:
        """Every node id that the partition holds."""

    def close(self) -> None:
        """Let go of memory and connections."""
