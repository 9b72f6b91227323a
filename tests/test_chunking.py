"""Chunks hold the whole text, in order, and end where a reader would pause."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cortex.domain.chunking import (
    CHUNK_SIZE,
    MAX_CHUNKS,
    Chunk,
    chunk,
    embedding_text_hash,
)
from cortex.domain.errors import InvalidError
from cortex.domain.values import MAX_TEXT, shorten

TEXTS = st.text(st.sampled_from("ab .!?\n。é\u0301\u200d👩💻🏽字"), max_size=400)


@given(TEXTS, st.text(max_size=20), st.integers(16, 80))
def test_the_spans_follow_each_other_and_give_the_whole_text(
    text: str, title: str, size: int
) -> None:
    chunks = chunk(text, title, size)
    assert "".join(text[piece.start : piece.end] for piece in chunks) == text
    ends = [0, *(piece.end for piece in chunks)]
    assert [piece.start for piece in chunks] == ends[:-1]


@given(TEXTS, st.text(max_size=20), st.integers(16, 80))
def test_each_chunk_ends_with_its_own_span(text: str, title: str, size: int) -> None:
    for piece in chunk(text, title, size):
        assert piece.text.endswith(text[piece.start : piece.end])


@given(TEXTS, st.text(max_size=8), st.integers(20, 80))
def test_a_chunk_with_its_short_title_is_never_longer_than_the_size(
    text: str, title: str, size: int
) -> None:
    assert all(len(piece.text) <= size for piece in chunk(text, title, size))


@given(TEXTS, st.integers(16, 80))
def test_no_chunk_of_a_long_text_is_a_crumb(text: str, size: int) -> None:
    chunks = chunk(text, "", size)
    assert len(chunks) == 1 or min(len(piece.text) for piece in chunks) >= size // 4


def test_an_empty_text_is_the_title_alone() -> None:
    assert chunk("", "Token lifetime") == [Chunk(0, 0, "Token lifetime")]


def test_without_text_and_title_there_is_still_one_chunk() -> None:
    assert chunk("") == [Chunk(0, 0, "")]


def test_a_short_text_is_one_chunk_behind_its_title() -> None:
    assert [piece.text for piece in chunk("They expire.", "JWT")] == ["JWT: They expire."]


def test_a_title_that_begins_the_text_is_not_repeated_in_the_first_chunk() -> None:
    text = "JWT tokens. " * 100
    first, second, *_ = chunk(text, "JWT tokens")
    assert first.text.startswith("JWT tokens. JWT")
    assert second.text.startswith("JWT tokens: ")


@given(st.text(st.sampled_from("ab é\n\t\u3000"), max_size=120), st.integers(1, 40))
def test_a_shortened_text_is_the_words_of_its_line_cut_at_the_limit(text: str, limit: int) -> None:
    line = " ".join(text[: limit * 4].split())
    cut = line if len(line) <= limit else line[: limit - 1].rstrip() + "…"
    assert shorten(text, limit) == cut


def test_a_title_that_is_the_shortened_text_is_not_repeated() -> None:
    text = "The service\nretries with exponential backoff. " * 30
    assert chunk(text, shorten(text, 80))[0].text.startswith("The service\nretries")


def test_a_paragraph_end_is_taken_before_a_later_sentence_end() -> None:
    text = "a" * 380 + ".\n\n" + "b" * 100 + ". " + "c" * 400
    assert chunk(text)[0].end == 383


def test_a_sentence_end_is_taken_before_a_later_word_end() -> None:
    text = "a" * 380 + ". " + "b " * 300
    assert chunk(text)[0].end == 382


def test_a_japanese_sentence_ends_without_a_space() -> None:
    text = "字" * 400 + "。" + "語" * 500
    assert chunk(text)[0].end == 401


def test_a_word_longer_than_the_size_is_cut_hard() -> None:
    assert [len(piece.text) for piece in chunk("x" * 1500)] == [600, 600, 300]


def test_a_hard_cut_does_not_part_a_letter_from_its_accent() -> None:
    text = "e\u0301" * 599 + "x"
    assert all(not piece.text.startswith("\u0301") for piece in chunk(text, size=601))


def test_a_hard_cut_does_not_part_a_joined_emoji() -> None:
    text = "👩🏽\u200d💻" * 400
    assert all(piece.text.startswith("👩") for piece in chunk(text))


@pytest.mark.parametrize("text", ["a. " * (MAX_TEXT // 3), "x" * MAX_TEXT, "\n" * MAX_TEXT])
def test_a_text_of_one_mebibyte_has_at_most_2000_chunks_of_the_size(text: str) -> None:
    start = time.process_time()
    chunks = chunk(text)
    assert len(chunks) <= MAX_CHUNKS
    assert max(len(piece.text) for piece in chunks) <= CHUNK_SIZE
    assert time.process_time() - start < 2


def test_a_longer_text_gets_longer_chunks_not_more() -> None:
    chunks = chunk("word " * 600_000)
    assert len(chunks) <= MAX_CHUNKS
    assert chunks[-1].end == 3_000_000


def test_a_long_title_leaves_half_of_the_chunk_to_the_text() -> None:
    chunks = chunk("word " * 1000, "t" * 500)
    assert max(piece.end - piece.start for piece in chunks) == 300


def test_a_size_below_16_is_refused() -> None:
    with pytest.raises(InvalidError, match="chunk size 15"):
        chunk("text", size=15)


def test_the_hash_moves_with_the_title_and_with_the_border_between_title_and_text() -> None:
    hashes = {
        embedding_text_hash("a", "b"),
        embedding_text_hash("ab", ""),
        embedding_text_hash("", "ab"),
        embedding_text_hash("a", "B"),
    }
    assert len(hashes) == 4
    assert all(len(found) == 32 for found in hashes)


def test_the_hash_of_a_text_is_the_same_in_every_process() -> None:
    assert embedding_text_hash("JWT", "24 hours") == "a045db46faf648642c8e4701be3d9110"
