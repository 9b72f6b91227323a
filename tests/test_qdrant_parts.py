"""The parts of the Qdrant index: circuit, BM25 weights, settings, whose collection it is."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator
from typing import Any

import pytest
from qdrant_client import QdrantClient
from qdrant_client.http import models

from cortex.domain.errors import InvalidError, UnavailableError
from cortex.domain.qdrant_settings import QdrantSettings
from cortex.domain.values import Generation
from cortex.vectors.models import Fingerprint
from cortex.vectors.qdrant.circuit import Circuit
from cortex.vectors.qdrant.client import Server
from cortex.vectors.qdrant.errors import ConflictedError, MissingError
from cortex.vectors.qdrant.index import QdrantIndex
from cortex.vectors.qdrant.sparse import MEAN_LENGTH, B, K, document, question, term
from tests.vector_world import ALL, DIMENSION, GENERATION, HERE, axis, names, node, point, query

MODEL = Fingerprint("test/model", "1", DIMENSION, "mean", True)
OTHER = Fingerprint("test/other", "1", DIMENSION, "mean", True)
WIDER = Fingerprint("test/wider", "1", 2 * DIMENSION, "mean", True)


# The circuit


class Time:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def time() -> Time:
    return Time()


@pytest.fixture
def circuit(time: Time) -> Circuit:
    """Opens after 3 failures for 1 s, then 2 s, 4 s, at most 5."""
    return Circuit(failures=3, pause=1.0, longest=5.0, clock=time, chance=lambda: 0.5)


def test_three_failures_in_a_row_open_it_and_two_do_not(circuit: Circuit) -> None:
    for _ in range(2):
        circuit.failed("down")
    circuit.succeeded()
    for _ in range(2):
        circuit.failed("down")
    circuit.admit()
    circuit.failed("down")
    with pytest.raises(UnavailableError, match="down"):
        circuit.admit()


def test_one_timeout_opens_it(circuit: Circuit) -> None:
    circuit.failed("slow", at_once=True)
    assert (circuit.state, circuit.left()) == ("open", 1.0)


def test_after_the_pause_one_caller_probes_and_the_others_are_refused(
    circuit: Circuit, time: Time
) -> None:
    circuit.failed("slow", at_once=True)
    time.now += 1.0
    circuit.admit()
    assert circuit.state == "half-open"
    with pytest.raises(UnavailableError):
        circuit.admit()
    circuit.succeeded()
    assert (circuit.state, circuit.problem) == ("closed", None)


def test_each_probe_that_fails_doubles_the_pause_up_to_the_longest(
    circuit: Circuit, time: Time
) -> None:
    circuit.failed("slow", at_once=True)
    pauses = []
    for _ in range(4):
        pauses.append(circuit.left())
        time.now += circuit.left()
        circuit.admit()
        circuit.failed("slow")
    assert pauses == [1.0, 2.0, 4.0, 5.0]


def test_a_probe_that_is_given_up_lets_another_one_probe(circuit: Circuit, time: Time) -> None:
    circuit.failed("slow", at_once=True)
    time.now += 1.0
    circuit.admit()
    circuit.abandoned()
    circuit.admit()
    assert circuit.state == "half-open"


def test_a_call_from_before_the_opening_does_not_lengthen_the_pause(circuit: Circuit) -> None:
    circuit.failed("slow", at_once=True)
    circuit.failed("slow", at_once=True)
    assert circuit.left() == 1.0


# BM25


def test_the_stored_weights_are_those_of_the_formula() -> None:
    indices, values = document({"token": 3, "port": 1})
    norm = K * (1 - B + B * 4 / MEAN_LENGTH)
    weights = {term("token"): 3 * (K + 1) / (3 + norm), term("port"): (K + 1) / (1 + norm)}
    assert indices == sorted(weights)
    assert values == pytest.approx([weights[index] for index in indices], abs=1e-6)


def test_a_question_has_each_term_once_with_weight_one() -> None:
    assert question(["a", "b", "a"]) == (sorted({term("a"), term("b")}), [1.0, 1.0])


def test_no_words_make_an_empty_vector() -> None:
    assert document({}) == question([]) == ([], [])


# Settings


def test_no_url_means_no_qdrant() -> None:
    assert QdrantSettings.read({"CORTEX_QDRANT_API_KEY": "s3cret"}) is None


def test_the_key_is_in_no_representation() -> None:
    found = QdrantSettings.read(
        {"CORTEX_QDRANT_URL": "http://here:6333/", "CORTEX_QDRANT_API_KEY": "s3cret"}
    )
    assert found is not None
    assert (found.url, found.api_key) == ("http://here:6333", "s3cret")
    assert "s3cret" not in repr(found)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("URL", "localhost:6333"),
        ("URL", "http://user:s3cret@here:6333"),
        ("URL", "http://here:6333?api-key=s3cret"),
        ("URL", "http://here:port"),
        ("TIMEOUT", "0"),
        ("TIMEOUT", "soon"),
        ("COLLECTION", "a/b"),
    ],
)
def test_what_cannot_be_meant_is_refused_without_telling_a_secret(name: str, value: str) -> None:
    env = {"CORTEX_QDRANT_URL": "http://here:6333", f"CORTEX_QDRANT_{name}": value}
    with pytest.raises(InvalidError, match=f"CORTEX_QDRANT_{name}") as refusal:
        QdrantSettings.read(env)
    assert "s3cret" not in str(refusal.value)


# Whose collection it is


@pytest.fixture
def local() -> Iterator[QdrantClient]:
    """Qdrant's local mode; it warns that payload indexes do nothing there."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        yield QdrantClient(":memory:")


def opened(local: QdrantClient, model: Fingerprint = MODEL, memory: str = "mine") -> QdrantIndex:
    return QdrantIndex(Server(lambda: local, "here", Circuit()), "memories", model, lambda: memory)


@pytest.fixture
def filled(local: QdrantClient) -> QdrantIndex:
    """An index with one point."""
    index = opened(local)
    index.prepare()
    index.rebuild(HERE, [point("a", [axis(0)], words="jwt token")], GENERATION)
    return index


def test_a_collection_that_is_not_there_is_not_an_empty_result(local: QdrantClient) -> None:
    with pytest.raises(MissingError):
        opened(local).search([HERE], query(1), 5, ALL)


@pytest.mark.parametrize("model", [OTHER, WIDER])
def test_vectors_of_another_model_are_refused_with_the_repair(
    local: QdrantClient, filled: QdrantIndex, model: Fingerprint
) -> None:
    with pytest.raises(ConflictedError, match=r"of test/model .* `cortex reindex`"):
        opened(local, model).prepare()
    assert filled.ids(HERE) == {node("a")}


def test_another_memory_is_refused_with_the_repair(
    local: QdrantClient, filled: QdrantIndex
) -> None:
    with pytest.raises(ConflictedError, match=r"another memory's .* CORTEX_QDRANT_COLLECTION"):
        opened(local, memory="theirs").prepare()


def test_a_reindex_makes_a_collection_beside_and_drops_nothing(
    local: QdrantClient, filled: QdrantIndex
) -> None:
    migrated = opened(local, WIDER)
    migrated.prepare(beside=True)
    migrated.rebuild(HERE, [], GENERATION)
    assert migrated.name() == opened(local, WIDER).name() != filled.name()
    assert opened(local).ids(HERE) == {node("a")}


def test_a_collection_of_someone_else_is_not_written_into(local: QdrantClient) -> None:
    local.create_collection(
        "memories", vectors_config=models.VectorParams(size=8, distance=models.Distance.DOT)
    )
    with pytest.raises(ConflictedError, match="points that cortex did not write"):
        opened(local).prepare()


def test_a_collection_whose_maker_died_before_signing_it_is_taken_up(local: QdrantClient) -> None:
    Server(lambda: local, "here", Circuit()).create("memories", DIMENSION)
    index = opened(local)
    index.prepare()
    assert index.name() == "memories"


def test_a_collection_that_is_signed_while_it_is_looked_at_is_not_anothers(
    monkeypatch: pytest.MonkeyPatch, local: QdrantClient
) -> None:
    """Seen unsigned, then signed by another process before the next question."""
    maker, index = opened(local), opened(local)
    Server(lambda: local, "here", Circuit()).create("memories", DIMENSION)
    retrieve = local.retrieve

    def then_sign(*args: Any, **named: Any) -> list[models.Record]:
        found = retrieve(*args, **named)
        monkeypatch.setattr(local, "retrieve", retrieve)
        maker.prepare()
        return found

    monkeypatch.setattr(local, "retrieve", then_sign)
    assert not index.exists()
    assert index.exists()


def test_the_payload_is_the_concepts_and_holds_no_text(
    local: QdrantClient, filled: QdrantIndex
) -> None:
    (record,) = local.retrieve("memories", [node("a")])
    assert record.payload is not None
    fields = {"node_id", "workspace_id", "node_type", "layer", "tags", "status", "created_at"}
    assert set(record.payload) == fields | {"epoch", "seq"}


# Two writers


def test_a_late_write_of_an_older_state_changes_nothing(filled: QdrantIndex) -> None:
    newer = Generation("epoch", 0, 9, 4)
    filled.apply(HERE, [point("a", [axis(1)])], [], newer)
    filled.apply(HERE, [point("a", [axis(0)])], [], Generation("epoch", 0, 7, 3))
    (hit,) = filled.search([HERE], query(0, 1), 5, ALL)
    assert hit.score == pytest.approx(1.0)
    assert filled.watermark(HERE) == newer


# Hybrid


def test_the_fused_ranking_finds_by_word_what_meaning_ranks_last(filled: QdrantIndex) -> None:
    crowd = [point(f"c{nr}", [[3, nr / 10, *[0] * 6]], words="port ssh") for nr in range(9)]
    filled.apply(HERE, [*crowd, point("z", [axis(0, -1)], words="quartz crystal")], [], GENERATION)
    assert names(filled.search([HERE], query(1), 20, ALL))[-1] == "z"
    fused = filled.hybrid([HERE], query(1), ["quartz"], 3, ALL)
    assert "z" in names(fused)[:2]
    assert max(hit.score for hit in fused) <= 2 / 60


def test_the_server_weighs_a_word_by_its_inverse_document_frequency(
    local: QdrantClient, filled: QdrantIndex
) -> None:
    crowd = [point(f"c{nr}", [axis(0)], words="port") for nr in range(9)]
    filled.apply(HERE, [*crowd, point("z", [axis(0)], words="quartz")], [], GENERATION)
    (hit,) = local.query_points(
        "memories",
        query=models.SparseVector(indices=[term("quartz")], values=[1.0]),
        using="words",
    ).points
    idf = math.log((11 - 1 + 0.5) / (1 + 0.5) + 1)
    assert hit.score == pytest.approx(idf * document({"quartz": 1})[1][0], rel=1e-3)
