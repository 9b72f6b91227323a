"""Embedders over HTTP: both protocols, their faults, and who sees the key."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from cortex.config import load_settings
from cortex.domain.endpoints import EndpointSettings, parse_source, parse_url
from cortex.domain.errors import InvalidError, UnavailableError
from cortex.vectors import http_embedding
from cortex.vectors.embedder import Embedder
from cortex.vectors.http_embedding import EndpointSource
from cortex.vectors.models import resolve_model
from cortex.vectors.protocols import routes_of
from tests.endpoint_stand_in import DIGEST, Endpoint, free_endpoint, serving

KEY = "sk-a-key-of-some-length"


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    with serving() as made:
        yield made


@pytest.fixture(scope="module")
def offline(tmp_path_factory: pytest.TempPathFactory) -> Embedder:
    cache = tmp_path_factory.mktemp("cache")
    return Embedder(resolve_model("offline"), cache_dir=cache, idle_seconds=600)


def embedder(source: str, named: bool = True, **settings: object) -> Embedder:
    return Embedder(
        resolve_model(source),
        cache_dir=Path("/nonexistent"),
        idle_seconds=600,
        endpoints=EndpointSettings(**settings),  # type: ignore[arg-type]  # a test's shorthand
        named=named,
    )


# What is asked and answered


@pytest.mark.parametrize("dialect", ["openai", "ollama"])
def test_both_protocols_give_the_model_s_own_vectors_in_the_order_of_the_texts(
    endpoint: Endpoint, offline: Embedder, dialect: str
) -> None:
    endpoint.protocols = (dialect,)
    texts = ["SSH port is 22", "the cat sat on the mat", "tokens last a day"]
    with_http = embedder(f"{endpoint.url}#all-minilm").embed_passages(texts)
    assert with_http.dtype == np.float32
    assert np.allclose(with_http, offline.embed_passages(texts), atol=1e-6)


def test_long_lists_are_asked_for_32_at_a_time(endpoint: Endpoint) -> None:
    made = embedder(f"{endpoint.url}#all-minilm")
    assert made.embed_passages([f"fact {number}" for number in range(70)]).shape == (70, 384)
    assert [len(texts) for texts in endpoint.texts()] == [1, 32, 32, 6]


def test_the_protocol_is_found_out_once(endpoint: Endpoint) -> None:
    endpoint.protocols = ("ollama",)
    made = embedder(f"{endpoint.url}#all-minilm")
    for question in "abc":
        made.embed_query(question)
    assert endpoint.paths().count("/v1/embeddings") == 1
    assert endpoint.paths().count("/api/embed") == 4


@pytest.mark.parametrize(
    ("url", "dialect", "asked"),
    [
        ("https://h/v1", None, ["openai https://h/v1/embeddings"]),
        ("https://h/proxy/v1", None, ["openai https://h/proxy/v1/embeddings"]),
        ("https://h/x/embeddings", None, ["openai https://h/x/embeddings"]),
        ("http://h:11434", None, ["ollama http://h:11434/api/embed"]),
        ("http://h/api/embed", None, ["ollama http://h/api/embed"]),
        ("http://h", None, ["openai http://h/v1/embeddings", "ollama http://h/api/embed"]),
        ("http://h:11434", "openai", ["openai http://h:11434/v1/embeddings"]),
        ("http://h/v1", "ollama", ["ollama http://h/api/embed"]),
        (
            "http://h/x",
            None,
            [
                "openai http://h/x/v1/embeddings",
                "ollama http://h/x/api/embed",
                "openai http://h/x/embeddings",
            ],
        ),
    ],
)
def test_the_url_says_which_ways_are_tried(url: str, dialect: str, asked: list[str]) -> None:
    found = routes_of(url, dialect)  # type: ignore[arg-type]  # parameters are plain text
    assert [f"{route.dialect} {route.url}" for route in found] == asked


# What the vectors are


def test_ollama_s_digest_is_the_revision_and_openai_has_none(endpoint: Endpoint) -> None:
    ollama = embedder(f"{endpoint.url}#all-minilm", dialect="ollama").fingerprint
    openai = embedder(f"{endpoint.url}/v1#all-minilm").fingerprint
    assert (ollama.name, ollama.revision, ollama.dimension) == (
        "http:all-minilm",
        DIGEST[:12],
        384,
    )
    assert (openai.revision, openai.pooling, openai.normalised) == ("", "endpoint", True)


def test_questions_and_texts_get_the_prefixes_of_the_model_s_name(endpoint: Endpoint) -> None:
    made = embedder(f"{endpoint.url}#nomic-embed-text")
    with pytest.raises(UnavailableError, match="ollama pull nomic-embed-text"):
        made.embed_query("who?")
    assert endpoint.texts()[-1] == ["search_document: dimension"]


def test_prefixes_that_are_set_overrule_the_name_and_the_passage_s_is_in_the_fingerprint(
    endpoint: Endpoint,
) -> None:
    source = f"{endpoint.url}#all-minilm"
    made = embedder(source, query_prefix="Q: ", passage_prefix="P: ")
    made.embed_query("who?")
    made.embed_passages(["I"])
    assert endpoint.texts()[-2:] == [["Q: who?"], ["P: I"]]
    assert made.fingerprint != embedder(source).fingerprint
    assert made.fingerprint == embedder(source, passage_prefix="P: ").fingerprint


def test_another_model_behind_the_same_name_is_refused(
    endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http_embedding, "_RECHECK", 0.0)
    made = embedder(f"{endpoint.url}#all-minilm", dialect="ollama")
    made.warm()
    endpoint.digest = "f" * 64
    with pytest.raises(UnavailableError, match=r"revision ffffffffffff.*cortex reindex"):
        made.embed_passages(["text"])


# Faults


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        ("html", "answered 502 with text/html that is no JSON"),
        ("html 200", "answered 200 with text/html that is no JSON"),
        ("redirect", "redirect, which is not followed"),
        ("busy", "answered 503: loading"),
        ("busy long", "answered 429: slow down"),
        ("huge", "more than"),
        ("few", "0 vectors for 1 texts"),
        ("nan", "NaN, infinity or length 0"),
        ("zero", "NaN, infinity or length 0"),
        ("text", "not rows"),
        ("deep", "no JSON"),
        ("cut", "cannot be reached"),
    ],
)
def test_a_wrong_answer_is_unavailable_and_says_what_was_wrong(
    endpoint: Endpoint, fault: str, said: str
) -> None:
    endpoint.fault = fault
    with pytest.raises(UnavailableError, match=said) as refused:
        embedder(f"{endpoint.url}/v1#all-minilm").warm()
    assert endpoint.url in str(refused.value)
    endpoint.fault = None
    embedder(f"{endpoint.url}/v1#all-minilm").warm()


def test_vectors_of_one_place_twice_or_of_two_lengths_are_no_answer(endpoint: Endpoint) -> None:
    made = embedder(f"{endpoint.url}/v1#all-minilm")
    made.warm()
    for fault, said in (("twice", "indexes"), ("ragged", "equally many numbers")):
        endpoint.fault = fault
        with pytest.raises(UnavailableError, match=said):
            made.embed_passages(["a", "b"])


def test_a_change_of_dimension_is_unavailable(endpoint: Endpoint) -> None:
    made = embedder(f"{endpoint.url}/v1#all-minilm")
    made.warm()
    endpoint.fault = "two numbers"
    with pytest.raises(UnavailableError, match=r"2 dimensions.*384 dimensions"):
        made.embed_query("other")


def test_a_busy_endpoint_is_asked_once_more(endpoint: Endpoint) -> None:
    endpoint.fault, endpoint.faults_left = "busy", 1
    embedder(f"{endpoint.url}/v1#all-minilm").warm()
    assert endpoint.texts()[:2] == [["dimension"], ["dimension"]]


def test_a_long_retry_after_is_left_to_the_outbox(endpoint: Endpoint) -> None:
    endpoint.fault, endpoint.faults_left = "busy long", 1
    with pytest.raises(UnavailableError, match="429"):
        embedder(f"{endpoint.url}/v1#all-minilm").warm()
    assert len(endpoint.seen) == 1


@pytest.mark.parametrize("fault", ["slow", "drip"])
def test_an_answer_that_does_not_end_in_time_is_unavailable(
    endpoint: Endpoint, fault: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http_embedding, "_QUERY_SECONDS", 0.3)
    monkeypatch.setattr(http_embedding, "_PASSAGE_SECONDS", 0.4)
    endpoint.fault = fault
    with pytest.raises(UnavailableError, match="in time"):
        embedder(f"{endpoint.url}/v1#all-minilm").embed_query("who?")


def test_while_an_endpoint_is_too_slow_others_are_refused_without_asking_it(
    endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http_embedding, "_QUERY_SECONDS", 0.3)
    endpoint.fault, endpoint.faults_left = "slow", 2
    made = embedder(f"{endpoint.url}/v1#all-minilm")
    for question in ("who?", "where?", "when?"):
        with pytest.raises(UnavailableError, match="in time"):
            made.embed_query(question)
    assert len(endpoint.seen) <= 2, "the first question, and the thread that waits"


def test_a_model_that_took_too_long_for_one_question_is_there_for_the_next(
    endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http_embedding, "_QUERY_SECONDS", 0.3)
    endpoint.fault, endpoint.faults_left = "slow", 1
    source = EndpointSource(parse_source(f"{endpoint.url}/v1#all-minilm"), EndpointSettings())
    with pytest.raises(UnavailableError, match="in time"):
        source.ask_soon(["who?"])
    assert source.patient is not None
    source.patient.join(20)
    monkeypatch.setattr(http_embedding, "_QUERY_SECONDS", 5.0)
    assert source.ask_soon(["who?"]).shape == (1, 384)


def test_nothing_listens_and_nothing_serves_are_told_apart(endpoint: Endpoint) -> None:
    down = free_endpoint()
    with pytest.raises(UnavailableError, match="cannot be reached"):
        embedder(f"{down.url}#all-minilm").warm()
    endpoint.protocols = ()
    with pytest.raises(UnavailableError, match=r"serves no embeddings .*CORTEX_EMBED_PROTOCOL"):
        embedder(f"{endpoint.url}#all-minilm").warm()


def test_a_model_that_it_does_not_have_is_named_with_the_repair(endpoint: Endpoint) -> None:
    with pytest.raises(UnavailableError, match=r"has no model bge-m3 .*ollama pull bge-m3"):
        embedder(f"{endpoint.url}#bge-m3", dialect="ollama").warm()


# The key


def test_the_key_opens_the_endpoint_and_is_shown_nowhere(
    endpoint: Endpoint, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    endpoint.key = KEY
    settings = load_settings(
        env={
            "CORTEX_EMBED_URL": f"{endpoint.url}/v1",
            "CORTEX_EMBED_MODEL": "all-minilm",
            "CORTEX_EMBED_KEY": KEY,
        }
    )
    assert settings.model == f"{endpoint.url}/v1#all-minilm"
    made = embedder(settings.model, key=KEY, url=settings.endpoints.url)
    made.warm()
    assert KEY not in repr(settings) + made.fingerprint.text + repr(made.spec) + caplog.text


def test_a_wrong_key_is_said_without_the_key(endpoint: Endpoint) -> None:
    endpoint.key = KEY
    wrong = "sk-another-key-of-length"
    with pytest.raises(UnavailableError, match=r"does not accept the key \(401\)") as refused:
        embedder(f"{endpoint.url}/v1#all-minilm", key=wrong).warm()
    assert wrong not in str(refused.value)
    with pytest.raises(UnavailableError, match="wants a key"):
        embedder(f"{endpoint.url}/v1#all-minilm").warm()


@pytest.mark.parametrize(
    ("asked", "settings", "sent"),
    [
        ("https://a.example/v1", {"key": "k"}, "k"),
        ("https://a.example/v1", {"key": "k", "url": "https://a.example"}, "k"),
        ("https://b.example/v1", {"key": "k", "url": "https://a.example"}, ""),
        ("http://a.example/v1", {"key": "k"}, ""),
        ("http://a.example/v1", {"key": "k", "insecure": True}, "k"),
        ("http://[::1]:8080", {"key": "k"}, "k"),
        ("https://a.example/v1", {"openai_key": "o"}, ""),
        ("https://api.openai.com/v1", {"openai_key": "o"}, "o"),
        ("https://api.openai.com/v1", {"openai_key": "o", "key": "k"}, "k"),
        ("https://api.openai.com.evil.example/v1", {"openai_key": "o"}, ""),
        ("http://api.openai.com/v1", {"openai_key": "o", "insecure": True}, ""),
    ],
)
def test_who_sees_which_key(asked: str, settings: dict[str, str], sent: str) -> None:
    made = EndpointSettings(**settings)  # type: ignore[arg-type]  # a test's shorthand
    assert made.key_for(parse_source(f"{asked}#m")) == sent


def test_texts_go_to_another_machine_only_where_a_setting_names_it() -> None:
    made = embedder("https://collector.example/v1#m", named=False)
    with pytest.raises(UnavailableError, match=r"no setting .*CORTEX_EMBED_URL=https://collector"):
        made.embed_query("a secret")


# Settings


@pytest.mark.parametrize(
    "url",
    [
        "http://me:secret@host/v1",
        "http://secret@host",
        "https://host/v1?api-key=secret",
        "https://host/v1#secret",
        "ftp://host/secret",
        "host/secret",
        "http://",
        "http://host:port",
        "http://ho st",
    ],
)
def test_a_url_that_cannot_be_meant_is_refused_without_repeating_it(url: str) -> None:
    with pytest.raises(InvalidError) as refused:
        parse_url(url)
    assert "secret" not in str(refused.value)


@pytest.mark.parametrize(
    ("env", "said"),
    [
        ({"CORTEX_EMBED_URL": "http://h"}, "without CORTEX_EMBED_MODEL"),
        ({"CORTEX_EMBED_MODEL": "m"}, "without CORTEX_EMBED_URL"),
        ({"CORTEX_EMBED_PROTOCOL": "grpc"}, "Valid: openai, ollama"),
        ({"CORTEX_MODEL": "http://u:p@h#m"}, "user name or password"),
        ({"CORTEX_MODEL": "http://h"}, "is no name"),
    ],
)
def test_half_a_setting_ends_the_start_with_its_reason(env: dict[str, str], said: str) -> None:
    with pytest.raises(InvalidError, match=said):
        load_settings(env=env)


def test_a_model_that_is_set_goes_before_the_endpoint() -> None:
    env = {"CORTEX_EMBED_URL": "HTTP://Host:80/v1/", "CORTEX_EMBED_MODEL": "m"}
    assert load_settings(env=env).model == "http://host:80/v1#m"
    assert load_settings(env={**env, "CORTEX_MODEL": "offline"}).model == "offline"


def test_a_source_comes_back_from_the_form_that_is_stored() -> None:
    spec = resolve_model("http://localhost:11434/#hf.co/Qwen/Qwen3-Embedding-0.6B-GGUF:Q8_0")
    assert spec.endpoint is not None
    assert resolve_model(spec.endpoint.source) == spec
    assert spec.name == "http:hf.co/Qwen/Qwen3-Embedding-0.6B-GGUF:Q8_0"
