"""What the embedded index owes beyond the contract: exactness at scale, ties, memory, threads."""

from __future__ import annotations

import random
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from cortex.vectors.embedded import EmbeddedIndex
from cortex.vectors.index import VectorFilter
from tests.vector_world import (
    ALL,
    DIMENSION,
    GENERATION,
    HERE,
    TYPES,
    axis,
    brute_force,
    instant,
    names,
    node,
    point,
    query,
    random_points,
)


@pytest.fixture
def index() -> Iterator[EmbeddedIndex]:
    made = EmbeddedIndex(DIMENSION)
    yield made
    made.close()


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


def test_ten_thousand_upserts_of_one_node_take_no_more_memory_than_two(
    index: EmbeddedIndex,
) -> None:
    for number in range(10_000):
        index.apply(HERE, [point("a", [axis(number % 8)], tags=("t",))], [], GENERATION)
    assert index.memory_bytes() <= 2 * (DIMENSION * 4 + 64)


def test_searches_beside_writes_see_only_whole_states(index: EmbeddedIndex) -> None:
    """The anchor scores 1 and is always there; a moving crowd scores 0.6 and below."""
    index.rebuild(HERE, [point("anchor", [axis(0)])], GENERATION)

    def write(worker: int) -> None:
        for number in range(300):
            ids = [f"{worker}-{number % 40}-{copy}" for copy in range(5)]
            crowd = [point(name, [[3, 4, *[0] * 6]] * 2) for name in ids]
            index.apply(HERE, crowd, [], GENERATION)
            index.apply(HERE, [], [node(name) for name in ids[:3]], GENERATION)

    def read(_: int) -> None:
        for _ in range(300):
            hits = index.search([HERE], query(1), 4, ALL)
            assert hits[0].node_id == node("anchor")
            assert all(hit.score == pytest.approx(0.6) for hit in hits[1:])

    with ThreadPoolExecutor(4) as threads:
        jobs = [threads.submit(job, nr) for nr, job in enumerate([write, write, read, read])]
    assert [job.exception() for job in jobs] == [None] * 4
