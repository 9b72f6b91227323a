"""What any vector index can do: the protocol, and the values that cross it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

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
    chunk. `words` counts the terms of its text, for an index that ranks by them too; empty
    for one that does not.
    """

    node_id: NodeId
    workspace_id: WorkspaceId
    type: NodeType
    layer: Layer
    tags: tuple[str, ...]
    status: Status
    created_at: Instant
    vectors: NDArray[np.float32]
    words: Mapping[str, int] = field(default_factory=dict)


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


class Spread(NamedTuple):
    """Mean and standard deviation of the cosines of all chunks that the filter admits, and the
    number of their nodes."""

    mean: float
    std: float
    nodes: int


@dataclass(frozen=True, slots=True)
class ScoredPoint:
    """A hit: cosine similarity in [-1, 1] of the node's best chunk, and which chunk it was.

    An index that cannot tell the chunk says 0; the service finds it in the stored vectors.
    `chunks` is how many the node has, `spread` how the question's cosines lie in the partition,
    None where the index cannot tell; neither is part of what a hit is.
    """

    node_id: NodeId
    workspace_id: WorkspaceId
    score: float
    chunk: int
    chunks: int = field(default=1, compare=False)
    spread: Spread | None = field(default=None, compare=False)


class VectorIndex(Protocol):
    """Nearest neighbours, one partition per workspace.

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
