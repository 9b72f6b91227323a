"""How many texts go through the model together: bounded by their tokens, not by their number."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cortex.domain.chunking import chunk
from cortex.vectors.batching import MOST_TEXTS, MOST_TOKENS, batches
from cortex.vectors.loading import Session, load
from cortex.vectors.models import resolve_model

JAPANESE = "記憶とは過去の出来事を覚えておき必要なときに思い出す心の働きである。" * 100
ENGLISH = "The gateway drops idle sockets after a minute, and the agent opens them anew. " * 40


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Session:
    return load(resolve_model("offline"), tmp_path_factory.mktemp("models"), 1)


def chunks(text: str) -> list[str]:
    return [piece.text for piece in chunk(text, "")]


@given(st.lists(st.integers(1, 1_000), max_size=30))
def test_runs_keep_the_order_and_the_bounds(tokens: list[int]) -> None:
    made = list(batches(list(enumerate(tokens)), tokens))
    assert [one for run in made for one in run] == list(enumerate(tokens))
    for run in made:
        assert 1 <= len(run) <= MOST_TEXTS
        assert len(run) == 1 or len(run) * max(count for _, count in run) <= MOST_TOKENS


def test_a_run_that_has_room_for_the_next_text_takes_it() -> None:
    assert list(batches("abcdefgh", [192] * 4 + [300, 300, 512, 100])) == [
        ["a", "b", "c", "d"],
        ["e", "f"],
        ["g"],
        ["h"],
    ]


def test_chunks_full_of_tokens_go_through_the_model_alone(session: Session) -> None:
    texts = chunks(JAPANESE)
    assert min(session.model.token_count(text) for text in texts[:-1]) > MOST_TOKENS // 2
    assert [len(run) for run in session.runs(texts[:4])] == [1, 1, 1, 1]


def test_usual_chunks_go_through_the_model_by_fours(session: Session) -> None:
    assert [len(run) for run in session.runs(chunks(ENGLISH)[:5])] == [4, 1]


def test_vectors_come_in_the_order_of_texts_of_several_runs(session: Session) -> None:
    texts = [*chunks(JAPANESE)[:2], *chunks(ENGLISH)[:3]]
    assert len(session.runs(texts)) > 2
    rows = session.embed_passages(texts)
    for text, row in zip(texts, rows, strict=True):
        assert row @ session.embed_passages([text])[0] > 0.98
