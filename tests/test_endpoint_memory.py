"""A memory whose model is an endpoint's: down, up again, another one, and who was asked."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import anyio
import pytest

from cortex.config import load_settings
from cortex.domain.errors import UnavailableError
from cortex.memory import Memory, open_memory
from tests.endpoint_stand_in import Endpoint, free_endpoint, serving
from tests.harness import call, connected
from tests.local import ask, run_cortex, start_cortex, told

KEY = "sk-a-key-of-some-length"
ZEPPELIN = "the zeppelin lands at noon"


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def endpoint() -> Endpoint:
    """One that is down, until a test has it served."""
    return free_endpoint()


def variables(endpoint: Endpoint, model: str = "all-minilm", **more: str) -> dict[str, str]:
    return {"CORTEX_EMBED_URL": endpoint.url, "CORTEX_EMBED_MODEL": model, **more}


def opened(home: Path, env: dict[str, str]) -> Memory:
    return open_memory(load_settings(home=home, workspace="w", env=env))


@pytest.fixture
def memory(home: Path, endpoint: Endpoint) -> Iterator[Memory]:
    """A memory set to the endpoint that is down."""
    with closing(opened(home, variables(endpoint))) as made:
        yield made


def until(true: Callable[[], bool], seconds: float = 20.0) -> None:
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline, "it did not come"
        time.sleep(0.02)


def index_of(memory: Memory, node: str) -> str:
    return str(ask(memory, "graph_get_node", node_id=node, depth=0)["index"])


def fact(memory: Memory, text: str) -> str:
    return str(ask(memory, "graph_add_node", type="fact", text=text)["id"])


# Down, and up again


def test_writes_while_it_is_down_stand_and_are_visibly_pending(
    memory: Memory, endpoint: Endpoint
) -> None:
    nodes = [fact(memory, ZEPPELIN), ask(memory, "vector_store", text="the kettle whistles")["id"]]
    until(lambda: memory.indexing.problem is not None)
    assert [index_of(memory, node) for node in nodes] == ["pending", "pending"]
    status = memory.status()
    assert (status["index"]["pending"], status["index"]["failed"]) == (2, 0)
    assert f"{endpoint.url} cannot be reached" in status["index_problem"]


def test_a_search_while_it_is_down_answers_by_keyword_and_says_why(
    memory: Memory, endpoint: Endpoint
) -> None:
    fact(memory, ZEPPELIN)
    for tool in ("vector_search", "graph_search"):
        found = ask(memory, tool, query="zeppelin")
        assert [hit["title"] for hit in found["hits"]] == [ZEPPELIN]
        assert f"{endpoint.url} cannot be reached" in found["degraded"]
        assert found["pending"] == 1
    assert told(memory, "vector_search", query="zeppelin").startswith("degraded:")


def test_once_it_is_up_meaning_is_back_without_a_restart(
    memory: Memory, endpoint: Endpoint
) -> None:
    node = fact(memory, ZEPPELIN)
    assert ask(memory, "vector_search", query="airship arrival")["degraded"]
    with serving(endpoint):
        ask(memory, "vector_search", query="airship arrival")
        until(lambda: index_of(memory, node) == "ready")
        found = ask(memory, "vector_search", query="when does the airship arrive")
    assert found["degraded"] is None
    assert [hit["id"] for hit in found["hits"]] == [node]


def test_what_is_pending_is_embedded_by_itself_once_it_is_up(
    memory: Memory, endpoint: Endpoint
) -> None:
    node = fact(memory, ZEPPELIN)
    until(lambda: memory.indexing.problem is not None)
    with serving(endpoint):
        until(lambda: index_of(memory, node) == "ready")
    assert memory.indexing.problem is None


def test_an_endpoint_that_goes_down_later_loses_nothing(memory: Memory, endpoint: Endpoint) -> None:
    with serving(endpoint):
        fact(memory, ZEPPELIN)
        assert memory.indexing.wait(None, 20) == 0
    node = ask(memory, "vector_store", text="the kettle whistles in the morning")["id"]
    until(lambda: memory.indexing.problem is not None)
    assert index_of(memory, node) == "pending"
    with serving(endpoint):
        until(lambda: index_of(memory, node) == "ready")


def test_several_nodes_are_embedded_by_one_request(home: Path, endpoint: Endpoint) -> None:
    with closing(opened(home, variables(endpoint))) as memory:
        for number in range(16):
            fact(memory, f"fact number {number}")
    with serving(endpoint), closing(opened(home, variables(endpoint))) as memory:
        assert memory.indexing.wait(None, 20) == 0
    assert max(len(texts) for texts in endpoint.texts()) == 16


def test_an_endpoint_that_hangs_holds_up_neither_graph_nor_writes(
    memory: Memory, endpoint: Endpoint
) -> None:
    endpoint.fault = "hang"
    with serving(endpoint):
        node = fact(memory, ZEPPELIN)
        until(lambda: bool(endpoint.seen))
        ask(memory, "vector_store", text="the kettle whistles")
        ask(memory, "graph_traverse", start_id=node, relation="contains")
        ask(memory, "desktop_open")
        assert not endpoint.answered.is_set()
        endpoint.release.set()


# One text that it refuses


def test_a_text_that_it_refuses_does_not_hold_up_the_others(
    memory: Memory, endpoint: Endpoint
) -> None:
    endpoint.poison = "plutonium"
    bad = fact(memory, "a text of plutonium")
    good = [fact(memory, f"fact number {number}") for number in range(9)]
    until(lambda: memory.indexing.problem is not None)
    with serving(endpoint):
        ask(memory, "vector_search", query="anything")
        until(lambda: {index_of(memory, node) for node in good} == {"ready"})
        until(lambda: index_of(memory, bad) == "failed")
    shown = ask(memory, "graph_get_node", node_id=bad)
    assert "the input is longer than the context" in shown["index_problem"]


# Another model


@pytest.fixture
def stored(home: Path, endpoint: Endpoint) -> Path:
    """A memory with one fact in the endpoint's vectors."""
    with serving(endpoint), closing(opened(home, variables(endpoint))) as memory:
        fact(memory, ZEPPELIN)
        assert memory.indexing.wait(None, 20) == 0
    return home


@pytest.mark.parametrize("up", [True, False], ids=["up", "down"])
def test_another_model_of_the_endpoint_is_refused_with_the_repair(
    stored: Path, endpoint: Endpoint, up: bool
) -> None:
    repair = f"cortex reindex --model {endpoint.url}#half-minilm"
    if up:
        with serving(endpoint):
            said = refusal(stored, variables(endpoint, "half-minilm"))
    else:
        said = refusal(stored, variables(endpoint, "half-minilm"))
    assert all("http:all-minilm (384" in each and repair in each for each in said)


def refusal(home: Path, env: dict[str, str]) -> list[str]:
    """What a semantic write and a search by meaning say."""
    with closing(opened(home, env)) as memory:
        with pytest.raises(UnavailableError) as refused:
            ask(memory, "vector_store", text="a new text")
        return [str(refused.value), ask(memory, "vector_search", query="zeppelin")["degraded"]]


def test_the_repair_migrates_and_a_process_without_settings_goes_on_with_it(
    stored: Path, endpoint: Endpoint
) -> None:
    source = f"{endpoint.url}#half-minilm"
    with serving(endpoint):
        done = json.loads(run_cortex(stored, "reindex", "--model", source, "--json"))
        assert (done["migrated"], done["embedded"]) == (True, 1)
        with closing(opened(stored, {})) as memory:
            found = ask(memory, "vector_search", query="when does the airship arrive")
            assert memory.status()["model"]["name"] == "http:half-minilm"
    assert found["degraded"] is None
    assert [hit["title"] for hit in found["hits"]] == [ZEPPELIN]


def test_another_passage_prefix_makes_other_vectors(stored: Path, endpoint: Endpoint) -> None:
    said = refusal(stored, variables(endpoint, CORTEX_EMBED_PASSAGE_PREFIX="passage: "))
    assert all("cortex reindex --model" in each for each in said)


def test_a_file_that_names_another_machine_sends_it_nothing_by_itself(
    stored: Path, endpoint: Endpoint
) -> None:
    from cortex.store.meta import MODEL

    with closing(opened(stored, {})) as memory:
        with memory.engine.database.write("test") as transaction:
            transaction.meta.set(MODEL, "https://collector.invalid/v1#all-minilm")
        found = ask(memory, "vector_search", query="zeppelin")
    assert "no setting of this process" in found["degraded"]
    assert [hit["title"] for hit in found["hits"]] == [ZEPPELIN]


# The whole product


@pytest.mark.anyio
async def test_a_server_starts_works_and_heals_while_the_endpoint_comes_and_goes(
    home: Path, endpoint: Endpoint
) -> None:
    endpoint.key = KEY
    env = variables(endpoint, CORTEX_EMBED_KEY=KEY, CORTEX_LOG="debug")
    async with connected(home, **env) as client:
        node = (await call(client, "graph_add_node", type="fact", text=ZEPPELIN))["id"]
        found = await call(client, "vector_search", query="zeppelin")
        assert "cannot be reached" in found["degraded"]
        with serving(endpoint):
            with anyio.fail_after(20):
                while found["degraded"] or found["pending"]:
                    found = await call(client, "vector_search", query="airship arrival")
        assert [hit["id"] for hit in found["hits"]] == [node]
    written = [path.read_bytes() for path in home.rglob("*") if path.is_file()]
    assert written
    assert not any(KEY.encode() in content for content in written)


def test_a_wrong_setting_ends_the_start_with_its_reason(home: Path) -> None:
    with start_cortex(home, "status", CORTEX_EMBED_URL="http://me:secret@host/v1") as process:
        _, err = process.communicate(timeout=60)
    assert process.returncode == 2
    assert "holds a user name or password" in err
    assert "secret" not in err
