"""Points, filters and brute force: what the tests of every vector index share."""

from __future__ import annotations

import random
import uuid
from collections.abc import Sequence

import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray

from cortex.domain.instants import Instant
from cortex.domain.taxonomy import VECTORISED, Layer, NodeType, Status, layer_of
from cortex.domain.values import Generation, NodeId, WorkspaceId
from cortex.vectors.index import Point, ScoredPoint, VectorFilter

DIMENSION = 8
HERE = WorkspaceId("here")
THERE = WorkspaceId("there")
ALL = VectorFilter()
GENERATION = Generation("epoch", 0, 1, 1)
TYPES = sorted(VECTORISED)


def instant(day: int) -> Instant:
    return Instant(f"2026-05-{day:02}T00:00:00.000000Z")


def node(name: str) -> NodeId:
    """A UUID that spells the name, so that ids sort as names do."""
    return NodeId(str(uuid.UUID(bytes=name.encode().ljust(16, b"\0"))))


def name_of(node_id: str) -> str:
    return uuid.UUID(node_id).bytes.rstrip(b"\0").decode()


def point(
    name: str,
    vectors: Sequence[Sequence[float]] | NDArray[np.float32],
    *,
    kind: NodeType = NodeType.FACT,
    tags: tuple[str, ...] = (),
    status: Status = Status.ACTIVE,
    day: int = 1,
    workspace: WorkspaceId = HERE,
    words: str = "",
) -> Point:
    layer = layer_of(kind)
    assert layer is not None
    rows = np.asarray(vectors, np.float32)
    counted = {word: words.split().count(word) for word in words.split()}
    return Point(node(name), workspace, kind, layer, tags, status, instant(day), rows, counted)


def axis(position: int, length: float = 1.0) -> list[float]:
    return [length * (place == position) for place in range(DIMENSION)]


def query(*values: float) -> NDArray[np.float32]:
    return np.array([*values, *[0.0] * (DIMENSION - len(values))], np.float32)


def names(hits: Sequence[ScoredPoint]) -> list[str]:
    return [name_of(hit.node_id) for hit in hits]


# Vectors of few small whole numbers: many of them tie, which is where rankings go wrong.
COORDINATE = st.integers(-1, 1)
ROW = st.lists(COORDINATE, min_size=DIMENSION, max_size=DIMENSION).filter(any)
NAMES = [f"n{number}" for number in range(12)]
POINTS = st.builds(
    point,
    st.sampled_from(NAMES),
    st.lists(ROW, min_size=1, max_size=3),
    kind=st.sampled_from(TYPES),
    tags=st.lists(st.sampled_from(["a", "b", "c"]), max_size=3).map(tuple),
    status=st.sampled_from(Status),
    day=st.integers(1, 5),
)
FILTERS = st.builds(
    VectorFilter,
    types=st.frozensets(st.sampled_from(TYPES), max_size=4),
    layer=st.none() | st.sampled_from(Layer),
    tags=st.frozensets(st.sampled_from(["a", "b", "unknown"]), max_size=2),
    statuses=st.frozensets(st.sampled_from(Status)),
    created_from=st.none() | st.integers(1, 5).map(instant),
    created_to=st.none() | st.integers(1, 5).map(instant),
)
WRITES = st.lists(
    st.tuples(
        st.lists(POINTS, max_size=6),
        st.lists(st.sampled_from(NAMES).map(node), max_size=4),
    ),
    max_size=6,
)


def admits(where: VectorFilter, item: Point) -> bool:
    return (
        (not where.types or item.type in where.types)
        and (where.layer is None or item.layer == where.layer)
        and where.tags <= set(item.tags)
        and (not where.statuses or item.status in where.statuses)
        and (where.created_from is None or item.created_at >= where.created_from)
        and (where.created_to is None or item.created_at <= where.created_to)
    )


def brute_force(
    points: Sequence[Point], vector: Sequence[float], top_k: int, where: VectorFilter
) -> list[tuple[str, float, int]]:
    """Id, score to six digits, and chunk of the best nodes, best first, ties by id."""
    wanted = np.asarray(vector, np.float64)
    wanted /= np.linalg.norm(wanted)
    hits: list[tuple[str, float, int]] = []
    for item in filter(lambda item: admits(where, item), points):
        rows = item.vectors.astype(np.float64)
        scores = rows @ wanted / np.linalg.norm(rows, axis=1)
        # Six digits: below that, the reference itself rounds at random.
        rounded = [round(float(score), 6) + 0.0 for score in scores]
        best = max(rounded)
        hits.append((item.node_id, best, rounded.index(best)))
    return sorted(hits, key=lambda hit: (-hit[1], hit[0]))[:top_k]


def random_points(count: int, seed: int, dimension: int = 32) -> list[Point]:
    dice = random.Random(seed)
    noise = np.random.default_rng(seed)
    made = []
    for number in range(count):
        rows = noise.standard_normal((dice.randint(1, 3), dimension)).astype(np.float32)
        made.append(
            point(
                f"{number:05}",
                rows,
                kind=dice.choice(TYPES),
                tags=(f"t{number % 50}", "all"),
                day=dice.randint(1, 28),
            )
        )
    return made
