"""The embedded index agrees with brute force, whatever was written before."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from cortex.domain.errors import InvalidError, UnavailableError
from cortex.domain.instants import Instant
from cortex.domain.taxonomy import VECTORISED, Layer, NodeType, Status, layer_of
from cortex.domain.values import Generation, NodeId, WorkspaceId
from cortex.vectors.embedded import EmbeddedIndex
from cortex.vectors.index import Point, ScoredPoint, VectorFilter, VectorIndex

DIMENSION = 8
HERE = WorkspaceId("here")
THERE = WorkspaceId("there")
ALL = VectorFilter()
GENERATION = Generation("epoch", 0, 1, 1)
TYPES = sorted(VECTORISED)


def instant(day: int) -> Instant:
    return Instant(f"2026-05-{day:02}T00:00:00.000000Z")


def point(
    name: str,
    vectors: Sequence[Sequence[float]] | NDArray[np.float32],
    *,
    kind: NodeType = NodeType.FACT,
    tags: tuple[str, ...] = (),
    status: Status = Status.ACTIVE,
    day: int = 1,
    workspace: WorkspaceId = HERE,
) -> Point:
    layer = layer_of(kind)
    assert layer is not None
    rows = np.asarray(vectors, np.float32)
    return Point(NodeId(name), workspace, kind, layer, tags, status, instant(day), rows)


def axis(position: int, length: float = 1.0) -> list[float]:
    return [length * (place == position) for place in range(DIMENSION)]


def query(*values: float) -> NDArray[np.float32]:
    return np.array([*values, *[0.0] * (DIMENSION - len(values))], np.float32)


def names(hits: Sequence[ScoredPoint]) -> list[str]:
    return [hit.node_id for hit in hits]


@pytest.fixture
def index() -> Iterator[EmbeddedIndex]:
    made = EmbeddedIndex(DIMENSION)
    yield made
    made.close()


# Vectors of few small whole numbers: many of them tie, which is where rankings go wrong.
COORDINATE = st.integers(-1, 1)
ROW = st.lists(COORDINATE, min_size=DIMENSION, max_size=DIMENSION).filter(any)
POINTS = st.builds(
    point,
    st.sampled_from([f"n{number}" for number in range(12)]),
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
        st.lists(st.sampled_from([f"n{number}" for number in range(12)]), max_size=4),
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


@settings(max_examples=300, deadline=None)
@given(WRITES, ROW, st.integers(1, 15), FILTERS)
def test_any_history_of_writes_answers_as_brute_force_does(
    writes: list[tuple[list[Point], list[str]]],
    vector: list[float],
    top_k: int,
    where: VectorFilter,
) -> None:
    index = EmbeddedIndex(DIMENSION)
    held: dict[str, Point] = {}
    for upserts, deletes in writes:
        index.apply(HERE, upserts, [NodeId(name) for name in deletes], GENERATION)
        for name in deletes:
            held.pop(name, None)
        held |= {item.node_id: item for item in upserts}
    found = index.search([HERE], np.array(vector, np.float32), top_k, where)
    expected = brute_force(list(held.values()), vector, top_k, where)
    assert [(hit.node_id, hit.chunk) for hit in found] == [(name, nth) for name, _, nth in expected]
    assert [hit.score for hit in found] == pytest.approx([hit[1] for hit in expected], abs=2e-6)
    assert index.ids(HERE) == held.keys()


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


@pytest.mark.parametrize(
    "where",
    [
        ALL,
        VectorFilter(tags=frozenset({"t7"})),
        VectorFilter(types=frozenset(TYPES[:10])),
        VectorFilter(created_from=instant(3), created_to=instant(20)),
    ],
    ids=["all", "gathered", "most types", "window"],
)
def test_thousands_of_points_answer_as_brute_force_does(where: VectorFilter) -> None:
    points = random_points(5_000, seed=11)
    index = EmbeddedIndex(32)
    index.rebuild(HERE, points, GENERATION)
    noise = np.random.default_rng(12)
    for vector in noise.standard_normal((5, 32)).astype(np.float32):
        found = index.search([HERE], vector, 20, where)
        expected = brute_force(points, list(vector), 20, where)
        assert [(hit.node_id, hit.chunk) for hit in found] == [
            (name, nth) for name, _, nth in expected
        ]
        assert [hit.score for hit in found] == pytest.approx([hit[1] for hit in expected], abs=1e-6)


def test_two_orders_of_writing_give_the_same_answer_to_the_last_bit() -> None:
    points = random_points(700, seed=5)
    points += [point(f"twin{nr:03}", points[nr % 7].vectors) for nr in range(300)]
    random.Random(2).shuffle(points)
    first, second = EmbeddedIndex(32), EmbeddedIndex(32)
    first.rebuild(HERE, points, GENERATION)
    for item in reversed(points):
        second.apply(HERE, [item, item], [], GENERATION)
    for number in range(20):
        vector = points[number].vectors[0]
        for where in (ALL, VectorFilter(tags=frozenset({"t3"}))):
            answers = [made.search([HERE], vector, 25, where) for made in (first, second)]
            assert answers[0] == answers[1]


def test_equal_vectors_tie_although_the_matrix_product_rounds_them_apart() -> None:
    noise = np.random.default_rng(9)
    twin, *others = noise.standard_normal((801, 384)).astype(np.float32)
    points = [point(f"other{number:03}", row[None]) for number, row in enumerate(others)]
    points += [point(f"twin{number:03}", twin[None]) for number in range(400)]
    random.Random(9).shuffle(points)
    index = EmbeddedIndex(384)
    index.rebuild(HERE, points, GENERATION)
    for near in noise.standard_normal((20, 384)).astype(np.float32):
        hits = index.search([HERE], twin + near, 5, ALL)
        assert names(hits) == [f"twin{number:03}" for number in range(5)]


def test_among_a_thousand_equal_vectors_the_smallest_ids_win(index: EmbeddedIndex) -> None:
    crowd = [point(f"{number:04}", [axis(0)]) for number in range(1_000)]
    random.Random(3).shuffle(crowd)
    index.rebuild(HERE, crowd, GENERATION)
    assert names(index.search([HERE], query(1), 3, ALL)) == ["0000", "0001", "0002"]


def test_a_node_scores_by_its_best_chunk_and_says_which(index: EmbeddedIndex) -> None:
    index.rebuild(HERE, [point("a", [axis(1), axis(0), axis(0)])], GENERATION)
    (hit,) = index.search([HERE], query(1), 5, ALL)
    assert (hit.score, hit.chunk) == (1.0, 1)


def test_scores_are_cosines_whatever_the_lengths(index: EmbeddedIndex) -> None:
    index.rebuild(HERE, [point("a", [axis(0, 3.0)]), point("b", [axis(0, -0.5)])], GENERATION)
    hits = index.search([HERE], query(7), 5, ALL)
    assert [hit.score for hit in hits] == [1.0, -1.0]


def test_a_search_over_two_workspaces_merges_them_by_score(index: EmbeddedIndex) -> None:
    index.rebuild(HERE, [point("a", [[3, 1, *[0] * 6]]), point("c", [axis(1)])], GENERATION)
    index.rebuild(THERE, [point("b", [axis(0)], workspace=THERE)], GENERATION)
    hits = index.search([HERE, THERE, HERE], query(1), 2, ALL)
    assert [(hit.node_id, hit.workspace_id) for hit in hits] == [("b", THERE), ("a", HERE)]


def test_one_workspace_does_not_answer_for_another(index: EmbeddedIndex) -> None:
    index.rebuild(HERE, [point("a", [axis(0)])], GENERATION)
    assert index.search([THERE], query(1), 5, ALL) == []


def test_an_empty_and_a_missing_partition_find_nothing(index: EmbeddedIndex) -> None:
    index.rebuild(HERE, [], GENERATION)
    assert index.search([HERE, THERE], query(1), 5, ALL) == []
    assert index.search([], query(1), 5, ALL) == []


def test_the_watermark_is_none_until_built_and_then_the_last_given(index: EmbeddedIndex) -> None:
    assert index.watermark(HERE) is None
    index.rebuild(HERE, [], GENERATION)
    later = Generation("epoch", 0, 9, 4)
    index.apply(HERE, [], [], later)
    assert index.watermark(HERE) == later


def test_a_deleted_node_is_not_found_again(index: EmbeddedIndex) -> None:
    index.rebuild(HERE, [point("a", [axis(0)]), point("b", [axis(0)])], GENERATION)
    index.apply(HERE, [], [NodeId("a"), NodeId("never there")], GENERATION)
    assert names(index.search([HERE], query(1), 5, ALL)) == ["b"]


def test_an_upsert_replaces_all_chunks_and_the_payload(index: EmbeddedIndex) -> None:
    index.rebuild(HERE, [point("a", [axis(0), axis(1)], tags=("old",))], GENERATION)
    index.apply(HERE, [point("a", [axis(2)], tags=("new",))], [], GENERATION)
    assert index.search([HERE], query(1), 5, VectorFilter(tags=frozenset({"old"}))) == []
    (hit,) = index.search([HERE], query(1), 5, VectorFilter(tags=frozenset({"new"})))
    assert (hit.score, hit.chunk) == (0.0, 0)


def test_ten_thousand_upserts_of_one_node_take_no_more_memory_than_two(
    index: EmbeddedIndex,
) -> None:
    for number in range(10_000):
        index.apply(HERE, [point("a", [axis(number % 8)], tags=("t",))], [], GENERATION)
    assert index.memory_bytes() <= 2 * (DIMENSION * 4 + 64)


@pytest.mark.parametrize("size", [4, 9])
def test_another_dimension_is_refused_with_both_numbers(index: EmbeddedIndex, size: int) -> None:
    index.rebuild(HERE, [point("a", [axis(0)])], GENERATION)
    with pytest.raises(InvalidError, match=f"dimension {size}, the index has 8"):
        index.search([HERE], np.ones(size, np.float32), 5, ALL)
    with pytest.raises(InvalidError, match=f"point b .* dimension {size}, the index has 8"):
        index.apply(HERE, [point("b", [[1.0] * size])], [], GENERATION)


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), 0.0])
def test_nan_infinity_and_length_zero_are_refused(index: EmbeddedIndex, bad: float) -> None:
    with pytest.raises(InvalidError, match="NaN, infinity or length 0"):
        index.search([HERE], np.full(8, bad, np.float32), 5, ALL)
    with pytest.raises(InvalidError, match="NaN, infinity or length 0"):
        index.apply(HERE, [point("b", [axis(0), [bad] * 8])], [], GENERATION)


def test_a_node_without_any_vector_is_refused(index: EmbeddedIndex) -> None:
    with pytest.raises(InvalidError, match="point b"):
        index.apply(HERE, [point("b", np.empty((0, 8), np.float32))], [], GENERATION)


def test_a_point_of_another_workspace_is_refused(index: EmbeddedIndex) -> None:
    with pytest.raises(InvalidError, match="workspace 'there'"):
        index.apply(HERE, [point("b", [axis(0)], workspace=THERE)], [], GENERATION)


def test_a_refused_batch_changes_nothing(index: EmbeddedIndex) -> None:
    index.rebuild(HERE, [point("a", [axis(0)])], GENERATION)
    bad = [point("b", [axis(0)]), point("c", [[0.0] * 8])]
    later = Generation("epoch", 0, 2, 2)
    with pytest.raises(InvalidError):
        index.apply(HERE, bad, [NodeId("a")], later)
    with pytest.raises(InvalidError):
        index.rebuild(HERE, bad, later)
    assert index.ids(HERE) == {"a"}
    assert index.watermark(HERE) == GENERATION


def test_top_k_below_one_is_refused(index: EmbeddedIndex) -> None:
    with pytest.raises(InvalidError, match="top_k 0"):
        index.search([HERE], query(1), 0, ALL)


def test_a_closed_index_is_unavailable_not_empty(index: EmbeddedIndex) -> None:
    index.rebuild(HERE, [point("a", [axis(0)])], GENERATION)
    index.close()
    with pytest.raises(UnavailableError):
        index.search([HERE], query(1), 5, ALL)
    with pytest.raises(UnavailableError):
        index.watermark(HERE)


def test_searches_beside_writes_see_only_whole_states(index: EmbeddedIndex) -> None:
    """The anchor scores 1 and is always there; a moving crowd scores 0.6 and below."""
    index.rebuild(HERE, [point("anchor", [axis(0)])], GENERATION)

    def write(worker: int) -> None:
        for number in range(300):
            ids = [f"{worker}-{number % 40}-{copy}" for copy in range(5)]
            crowd = [point(name, [[3, 4, *[0] * 6]] * 2) for name in ids]
            index.apply(HERE, crowd, [], GENERATION)
            index.apply(HERE, [], [NodeId(name) for name in ids[:3]], GENERATION)

    def read(_: int) -> None:
        for _ in range(300):
            hits = index.search([HERE], query(1), 4, ALL)
            assert hits[0].node_id == "anchor"
            assert all(hit.score == pytest.approx(0.6) for hit in hits[1:])

    with ThreadPoolExecutor(4) as threads:
        jobs = [threads.submit(job, nr) for nr, job in enumerate([write, write, read, read])]
    assert [job.exception() for job in jobs] == [None] * 4


def test_it_is_a_vector_index() -> None:
    index: VectorIndex = EmbeddedIndex(DIMENSION)
    assert index.ids(HERE) == frozenset()
