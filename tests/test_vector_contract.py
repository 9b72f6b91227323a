"""What every vector index owes, whatever it is made of.

The suite runs on the embedded index in memory and from files, on qdrant-client's local mode,
over HTTP on a stand-in for a server (`qdrant_stand_in.py`), and on a live server when
CORTEX_TEST_QDRANT_URL names one; there it makes collections of its own and drops them.
"""

from __future__ import annotations

import os
import secrets
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from qdrant_client import QdrantClient

from cortex.domain.errors import InvalidError, UnavailableError
from cortex.domain.values import Generation, NodeId, new_id
from cortex.vectors.embedded import EmbeddedIndex
from cortex.vectors.index import Point, ScoredPoint, VectorFilter, VectorIndex
from cortex.vectors.models import Fingerprint
from cortex.vectors.qdrant.circuit import Circuit
from cortex.vectors.qdrant.client import Server, connector
from cortex.vectors.qdrant.index import QdrantIndex
from tests.qdrant_stand_in import standing_in
from tests.vector_file_world import FromFiles, files_in
from tests.vector_world import (
    ALL,
    DIMENSION,
    FILTERS,
    GENERATION,
    HERE,
    ROW,
    THERE,
    WRITES,
    axis,
    brute_force,
    instant,
    name_of,
    names,
    node,
    point,
    query,
    random_points,
)

LATER = Generation("epoch", 0, 9, 4)


@dataclass(frozen=True)
class Kind:
    """An implementation: `fresh` opens an empty index of a dimension.

    `exact` ones choose among ties at the cut by id and say which chunk matched; `examples`
    is how many histories it is asked for.
    """

    fresh: Callable[[int], VectorIndex]
    exact: bool
    examples: int


def on(connect: Callable[[], QdrantClient], dimension: int) -> QdrantIndex:
    """An index in a collection of its own."""
    model = Fingerprint("test/model", "1", dimension, "mean", True)
    name = f"cortex_test_{secrets.token_hex(6)}"
    index = QdrantIndex(Server(connect, "the test's", Circuit()), name, model, lambda: "memory")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # local mode has no payload indexes
        index.prepare()
    return index


@contextmanager
def kind_of(which: str) -> Iterator[Kind]:
    with ExitStack() as stack:
        if which == "embedded":
            yield Kind(EmbeddedIndex, True, 150)
            return
        if which == "from files":
            folder = Path(stack.enter_context(TemporaryDirectory()))
            yield Kind(
                lambda dimension: FromFiles(files_in(folder / new_id(), dimension)), True, 40
            )
            return
        if which == "local":
            local = QdrantClient(":memory:")
            yield Kind(lambda dimension: on(lambda: local, dimension), False, 25)
            return
        url = os.environ.get("CORTEX_TEST_QDRANT_URL", "")
        if which == "stand-in":
            url = stack.enter_context(standing_in()).url
        elif not url:
            pytest.skip("no live server: CORTEX_TEST_QDRANT_URL is not set")
        key = os.environ.get("CORTEX_TEST_QDRANT_API_KEY")
        made: list[QdrantIndex] = []

        def fresh(dimension: int) -> QdrantIndex:
            made.append(on(connector(url, key, 10.0), dimension))
            return made[-1]

        yield Kind(fresh, False, 10)
        if which == "live":
            client = connector(url, key, 10.0)()
            for index in made:
                client.delete_collection(index.collection)


@pytest.fixture(scope="module", params=["embedded", "from files", "local", "stand-in", "live"])
def kind(request: pytest.FixtureRequest) -> Iterator[Kind]:
    with kind_of(request.param) as kind:
        yield kind


@pytest.fixture
def index(kind: Kind) -> VectorIndex:
    return kind.fresh(DIMENSION)


def agree(
    kind: Kind,
    found: Sequence[ScoredPoint],
    points: Sequence[Point],
    vector: Sequence[float],
    top_k: int,
    where: VectorFilter,
) -> None:
    """The hits are those of brute force; inexact ones may differ among ties at the cut."""
    expected = brute_force(points, vector, top_k, where)
    assert [hit.score for hit in found] == pytest.approx([hit[1] for hit in expected], abs=2e-6)
    if kind.exact:
        assert [(hit.node_id, hit.chunk) for hit in found] == [(one, nr) for one, _, nr in expected]
    scores = {one: score for one, score, _ in brute_force(points, vector, len(points), where)}
    assert all(hit.score == pytest.approx(scores[hit.node_id], abs=2e-6) for hit in found)
    assert len({hit.node_id for hit in found}) == len(found)


def test_any_history_of_writes_answers_as_brute_force_does(kind: Kind) -> None:
    @settings(max_examples=kind.examples, deadline=None)
    @given(WRITES, ROW, st.integers(1, 15), FILTERS)
    def law(
        writes: list[tuple[list[Point], list[NodeId]]],
        vector: list[float],
        top_k: int,
        where: VectorFilter,
    ) -> None:
        index = kind.fresh(DIMENSION)
        held: dict[NodeId, Point] = {}
        for upserts, deletes in writes:
            index.apply(HERE, upserts, deletes, GENERATION)
            for name in deletes:
                held.pop(name, None)
            held |= {item.node_id: item for item in upserts}
        found = index.search([HERE], np.array(vector, np.float32), top_k, where)
        agree(kind, found, list(held.values()), vector, top_k, where)
        assert index.ids(HERE) == held.keys()

    law()


@pytest.mark.parametrize(
    "where",
    [
        ALL,
        VectorFilter(tags=frozenset({"t7"})),
        VectorFilter(created_from=instant(3), created_to=instant(20)),
    ],
    ids=["all", "a tag", "window"],
)
def test_hundreds_of_points_in_batches_answer_as_brute_force_does(
    kind: Kind, where: VectorFilter
) -> None:
    points = random_points(400, seed=11)
    index = kind.fresh(32)
    index.rebuild(HERE, points, GENERATION)
    noise = np.random.default_rng(12)
    for vector in noise.standard_normal((3, 32)).astype(np.float32):
        found = index.search([HERE], vector, 20, where)
        agree(kind, found, points, list(vector), 20, where)


def test_scores_are_cosines_whatever_the_lengths(index: VectorIndex) -> None:
    index.rebuild(HERE, [point("a", [axis(0, 3.0)]), point("b", [axis(0, -0.5)])], GENERATION)
    hits = index.search([HERE], query(7), 5, ALL)
    assert [hit.score for hit in hits] == pytest.approx([1.0, -1.0])


def test_a_node_scores_by_its_best_chunk(index: VectorIndex) -> None:
    index.rebuild(HERE, [point("a", [axis(1), axis(0), axis(0)])], GENERATION)
    (hit,) = index.search([HERE], query(1), 5, ALL)
    assert hit.score == pytest.approx(1.0)


def test_ties_within_the_answer_go_by_id(index: VectorIndex) -> None:
    crowd = [point(name, [axis(0)]) for name in ("d", "a", "c", "b")]
    index.rebuild(HERE, crowd, GENERATION)
    assert names(index.search([HERE], query(1), 9, ALL)) == ["a", "b", "c", "d"]


def test_a_search_over_two_workspaces_merges_them_by_score(index: VectorIndex) -> None:
    index.rebuild(HERE, [point("a", [[3, 1, *[0] * 6]]), point("c", [axis(1)])], GENERATION)
    index.rebuild(THERE, [point("b", [axis(0)], workspace=THERE)], GENERATION)
    hits = index.search([HERE, THERE, HERE], query(1), 2, ALL)
    assert [(name_of(hit.node_id), hit.workspace_id) for hit in hits] == [("b", THERE), ("a", HERE)]


def test_one_workspace_does_not_answer_for_another(index: VectorIndex) -> None:
    index.rebuild(HERE, [point("a", [axis(0)])], GENERATION)
    assert index.search([THERE], query(1), 5, ALL) == []


def test_an_empty_and_a_missing_partition_find_nothing(index: VectorIndex) -> None:
    index.rebuild(HERE, [], GENERATION)
    assert index.search([HERE, THERE], query(1), 5, ALL) == []
    assert index.search([], query(1), 5, ALL) == []


def test_the_watermark_is_none_until_built_and_then_the_last_given(index: VectorIndex) -> None:
    assert index.watermark(HERE) is None
    index.rebuild(HERE, [], GENERATION)
    index.apply(HERE, [], [], LATER)
    assert index.watermark(HERE) == LATER
    assert index.watermark(THERE) is None


def test_a_new_epoch_replaces_the_watermark_though_its_log_is_shorter(index: VectorIndex) -> None:
    index.rebuild(HERE, [point("a", [axis(0)])], LATER)
    restored = Generation("restored", 0, 2, 1)
    index.rebuild(HERE, [point("b", [axis(0)])], restored)
    assert index.watermark(HERE) == restored
    assert names(index.search([HERE], query(1), 5, ALL)) == ["b"]


def test_a_deleted_node_is_not_found_again(index: VectorIndex) -> None:
    index.rebuild(HERE, [point("a", [axis(0)]), point("b", [axis(0)])], GENERATION)
    index.apply(HERE, [], [node("a"), node("never there")], GENERATION)
    assert names(index.search([HERE], query(1), 5, ALL)) == ["b"]


def test_an_id_that_is_deleted_and_put_at_once_stays(index: VectorIndex) -> None:
    index.apply(HERE, [point("a", [axis(0)])], [node("a")], GENERATION)
    assert index.ids(HERE) == {node("a")}


def test_deleting_from_one_workspace_spares_a_node_that_moved_to_another(
    index: VectorIndex,
) -> None:
    index.rebuild(HERE, [point("a", [axis(0)])], GENERATION)
    index.apply(THERE, [point("a", [axis(0)], workspace=THERE)], [], GENERATION)
    index.apply(HERE, [], [node("a")], GENERATION)
    assert not index.ids(HERE)
    assert index.ids(THERE) == {node("a")}


def test_a_rebuild_leaves_nothing_of_what_was_there(index: VectorIndex) -> None:
    index.rebuild(HERE, [point("a", [axis(0)]), point("b", [axis(0)])], GENERATION)
    index.rebuild(HERE, iter([point("b", [axis(1)])]), LATER)
    assert index.ids(HERE) == {node("b")}


def test_an_upsert_replaces_all_chunks_and_the_payload(index: VectorIndex) -> None:
    index.rebuild(HERE, [point("a", [axis(0), axis(1)], tags=("old",))], GENERATION)
    index.apply(HERE, [point("a", [axis(2)], tags=("new",))], [], GENERATION)
    assert index.search([HERE], query(1), 5, VectorFilter(tags=frozenset({"old"}))) == []
    (hit,) = index.search([HERE], query(1), 5, VectorFilter(tags=frozenset({"new"})))
    assert (hit.score, hit.chunk) == (0.0, 0)


@pytest.mark.parametrize("size", [4, 9])
def test_another_dimension_is_refused_with_both_numbers(index: VectorIndex, size: int) -> None:
    index.rebuild(HERE, [point("a", [axis(0)])], GENERATION)
    with pytest.raises(InvalidError, match=f"dimension {size}, the index has 8"):
        index.search([HERE], np.ones(size, np.float32), 5, ALL)
    with pytest.raises(InvalidError, match=f"point .* dimension {size}, the index has 8"):
        index.apply(HERE, [point("b", [[1.0] * size])], [], GENERATION)


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), 0.0])
def test_nan_infinity_and_length_zero_are_refused(index: VectorIndex, bad: float) -> None:
    with pytest.raises(InvalidError, match="NaN, infinity or length 0"):
        index.search([HERE], np.full(8, bad, np.float32), 5, ALL)
    with pytest.raises(InvalidError, match="NaN, infinity or length 0"):
        index.apply(HERE, [point("b", [axis(0), [bad] * 8])], [], GENERATION)


def test_a_node_without_any_vector_is_refused(index: VectorIndex) -> None:
    with pytest.raises(InvalidError, match=f"point {node('b')}"):
        index.apply(HERE, [point("b", np.empty((0, 8), np.float32))], [], GENERATION)


def test_a_point_of_another_workspace_is_refused(index: VectorIndex) -> None:
    with pytest.raises(InvalidError, match="workspace 'there'"):
        index.apply(HERE, [point("b", [axis(0)], workspace=THERE)], [], GENERATION)


def test_a_refused_batch_changes_nothing(index: VectorIndex) -> None:
    index.rebuild(HERE, [point("a", [axis(0)])], GENERATION)
    bad = [point("b", [axis(0)]), point("c", [[0.0] * 8])]
    with pytest.raises(InvalidError):
        index.apply(HERE, bad, [node("a")], LATER)
    with pytest.raises(InvalidError):
        index.rebuild(HERE, bad, LATER)
    assert index.ids(HERE) == {node("a")}
    assert index.watermark(HERE) == GENERATION


def test_top_k_below_one_is_refused(index: VectorIndex) -> None:
    with pytest.raises(InvalidError, match="top_k 0"):
        index.search([HERE], query(1), 0, ALL)


def test_a_closed_index_is_unavailable_not_empty(kind: Kind) -> None:
    with kind_of("embedded" if kind.exact else "stand-in") as own:  # closing closes its client
        index = own.fresh(DIMENSION)
        index.rebuild(HERE, [point("a", [axis(0)])], GENERATION)
        index.close()
        with pytest.raises(UnavailableError):
            index.search([HERE], query(1), 5, ALL)
        with pytest.raises(UnavailableError):
            index.watermark(HERE)
