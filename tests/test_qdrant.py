"""The product with its vectors in Qdrant: a stand-in for the server, with its faults.

`qdrant_stand_in.py` says what the stand-in is and is not.
"""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
from qdrant_client.http import models

from cortex.cli.index_screen import iter_qdrant_lines
from cortex.config import load_settings
from cortex.domain.instants import later, now
from cortex.domain.values import WorkspaceId
from cortex.memory import Memory, open_memory
from cortex.services.meaning.pushing import Parity, Pushing
from cortex.vectors.embedder import Embedder
from cortex.vectors.index import VectorFilter
from cortex.vectors.models import resolve_model
from tests.harness import call, connected
from tests.local import ask, run_cortex
from tests.qdrant_stand_in import StandIn, standing_in

W = WorkspaceId("w")
IN_STEP = Parity(frozenset(), frozenset())
TEXTS = (
    "the kettle whistles in the kitchen",
    "JWT tokens expire in 24 hours",
    "the ssh port is 2222",
    "invoices are paid within 30 days",
)


@pytest.fixture(scope="module")
def embedder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Embedder]:
    """The real offline model, loaded once for this module."""
    folder = tmp_path_factory.mktemp("models")
    made = Embedder(resolve_model("offline"), cache_dir=folder, idle_seconds=900)
    yield made
    made.close()


@pytest.fixture
def server() -> Iterator[StandIn]:
    with standing_in() as made:
        yield made


Open = Callable[..., Any]


@pytest.fixture
def opened(server: StandIn, embedder: Embedder, home: Path) -> Open:
    """Opens the memory of a folder, as one process does; environment names in lower case."""

    @contextmanager
    def open_it(folder: Path = home, **env: str) -> Iterator[Memory]:
        given = {"CORTEX_QDRANT_URL": server.url, "CORTEX_QDRANT_TIMEOUT": "2"}
        given |= {f"CORTEX_{name.upper()}": value for name, value in env.items()}
        settings = load_settings(home=folder, workspace="w", env=given)
        with closing(open_memory(settings, embedder=embedder)) as memory:
            yield memory

    return open_it


@pytest.fixture
def memory(opened: Open) -> Iterator[Memory]:
    with opened() as memory:
        yield memory


def add(memory: Memory, text: str, **more: Any) -> str:
    return str(ask(memory, "graph_add_node", **{"type": "fact", "text": text, **more})["id"])


def found(memory: Memory, query: str, **more: Any) -> list[str]:
    """Ids of the hits by meaning, from an index that is whole."""
    memory.indexing.wait(None, 30)
    answer = ask(memory, "vector_search", query=query, **more)
    assert (answer["degraded"], answer["pending"]) == (None, 0)
    return [hit["id"] for hit in answer["hits"]]


def until(true: Callable[[], bool], seconds: float = 15.0) -> None:
    """Wait for it; fail when it does not come."""
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline, "it did not come"
        time.sleep(0.05)


def healed(memory: Memory) -> None:
    until(lambda: ask(memory, "vector_search", query="kettle")["degraded"] is None)


def pushing(memory: Memory) -> Pushing:
    found = memory.semantic.pushing
    assert found is not None
    return found


# It follows


def test_what_was_just_written_is_found_by_meaning(memory: Memory) -> None:
    ids = [add(memory, text) for text in TEXTS]
    assert found(memory, "how long do tokens live")[0] == ids[1]


def test_hits_are_those_of_the_embedded_index(
    memory: Memory, embedder: Embedder, home: Path
) -> None:
    ids = [add(memory, text, tags=["t"]) for text in TEXTS]
    ids.append(add(memory, f"{'Numbers and dates. ' * 60}The boiler is serviced in May."))
    settings = load_settings(home=home, workspace="w", env={})
    with closing(open_memory(settings, embedder=embedder)) as plain:
        for query in ("when is the boiler serviced", "token lifetime", "the port of ssh"):
            here, there = (ask(each, "vector_search", query=query) for each in (memory, plain))
            # Only the embedded index tells how all cosines lie, by which it corrects long texts.
            assert [hit | {"score": 0} for hit in here["hits"]] == [
                hit | {"score": 0} for hit in there["hits"]
            ]
            assert here["hits"]


def test_edits_and_deletions_are_followed(memory: Memory) -> None:
    kettle, token, *_ = [add(memory, text) for text in TEXTS]
    assert found(memory, "kettle") == [kettle]
    ask(memory, "graph_update_node", node_id=kettle, text="bicycles have two wheels")
    ask(memory, "graph_delete_node", node_id=token)
    assert found(memory, "bicycle wheels") == [kettle]
    assert token not in found(memory, "token lifetime in hours")
    assert pushing(memory).parity(W) == IN_STEP


def test_a_change_of_tags_alone_reaches_the_filter(memory: Memory) -> None:
    kettle = add(memory, TEXTS[0], tags=["old"])
    assert found(memory, "kettle", tags=["old"]) == [kettle]
    ask(memory, "graph_update_node", node_id=kettle, tags=["new"])
    assert found(memory, "kettle", tags=["new"]) == [kettle]
    assert found(memory, "kettle", tags=["old"]) == []


def test_a_superseded_wording_finds_its_head(memory: Memory) -> None:
    old = add(memory, "the ssh port is 22")
    new = ask(memory, "graph_supersede", old_id=old, new_data={"text": "use gate 2222 now"})
    assert found(memory, "ssh port")[:1] == [new["new_id"]]


def test_what_a_foreign_shell_deletes_is_not_found(memory: Memory, home: Path) -> None:
    kettle = add(memory, TEXTS[0])
    assert found(memory, "kettle") == [kettle]
    with closing(sqlite3.connect(home / "cortex.db")) as shell, shell:
        shell.execute("DELETE FROM nodes WHERE id = ?", (kettle,))
    assert found(memory, "kettle") == []
    until(lambda: pushing(memory).parity(W) == IN_STEP)


def test_a_renamed_workspace_takes_its_points_along(memory: Memory) -> None:
    kettle = add(memory, TEXTS[0])
    assert found(memory, "kettle") == [kettle]
    memory.workspaces.rename("w", "moved")
    assert found(memory, "kettle", workspace_id="moved") == [kettle]
    until(lambda: pushing(memory).parity(WorkspaceId("moved")) == IN_STEP)


def test_another_process_sees_what_this_one_wrote(memory: Memory, opened: Open) -> None:
    with opened() as other:
        kettle = add(memory, TEXTS[0])
        assert found(other, "kettle") == [kettle]
        ask(other, "graph_update_node", node_id=kettle, text=TEXTS[1])
        assert found(memory, "token lifetime") == [kettle]


def test_while_another_process_holds_the_lease_the_answer_says_what_is_pending(
    opened: Open,
) -> None:
    with opened(search_wait="0.2") as memory:
        add(memory, TEXTS[0])
        assert memory.indexing.wait(None, 30) == 0
        with memory.engine.database.write("test") as transaction:
            transaction.meta.set("pusher", f"{later(now(), seconds=60)} someone")
        add(memory, TEXTS[1])
        assert memory.indexing.wait(None, 0.5) == 1
        assert ask(memory, "vector_search", query="kettle")["pending"] == 1
        with memory.engine.database.write("test") as transaction:
            transaction.meta.set("pusher", "")
        until(lambda: memory.indexing.wait(None, 0.0) == 0)


def test_a_memory_that_had_no_qdrant_before_is_pushed_whole(
    opened: Open, embedder: Embedder, home: Path
) -> None:
    settings = load_settings(home=home, workspace="w", env={})
    with closing(open_memory(settings, embedder=embedder)) as plain:
        ids = [add(plain, text) for text in TEXTS]
        assert plain.indexing.wait(None, 30) == 0
    with opened() as memory:
        assert found(memory, "kettle") == ids[:1]
        assert pushing(memory).parity(W) == IN_STEP


def test_a_restored_file_replaces_what_the_server_holds(
    opened: Open, home: Path, tmp_path: Path
) -> None:
    with opened() as memory:
        add(memory, TEXTS[0])
        assert memory.indexing.wait(None, 30) == 0
    with closing(sqlite3.connect(home / "cortex.db")) as shell, shell:
        shell.execute("DELETE FROM nodes WHERE type = 'fact'")
        shell.execute("DELETE FROM changes")
        shell.execute("UPDATE meta SET value = 'another' WHERE key = 'epoch'")
    with opened() as memory:
        assert found(memory, "kettle") == []
        until(lambda: pushing(memory).parity(W) == IN_STEP)


def test_a_read_only_process_searches_and_pushes_nothing(
    memory: Memory, opened: Open, embedder: Embedder, server: StandIn, home: Path
) -> None:
    kettle = add(memory, TEXTS[0])
    assert found(memory, "kettle") == [kettle]
    writes = server.calls.count("PUT /points")
    env = {"CORTEX_QDRANT_URL": server.url}
    settings = load_settings(home=home, workspace="w", read_only=True, env=env)
    with closing(open_memory(settings, embedder=embedder)) as reader:
        assert found(reader, "kettle") == [kettle]
        reader.indexing.resume()
    assert server.calls.count("PUT /points") == writes


# It fails, and heals


def refuse(server: StandIn) -> None:
    server.api_key = "another"


def fail(server: StandIn) -> None:
    server.failing = 503


def cut(server: StandIn) -> None:
    server.cut = True


def delay(server: StandIn) -> None:
    server.delay = 2.5  # the memory waits 2 s


def stop(server: StandIn) -> None:
    server.stop()


FAULTS = {
    "refuses the API key": refuse,
    "answered 503": fail,
    "broke off": cut,
    "did not answer in time": delay,
    "cannot be reached": stop,
}


@pytest.mark.parametrize("sign", FAULTS)
def test_a_fault_is_said_answered_by_keyword_and_healed_without_a_restart(
    memory: Memory, server: StandIn, sign: str
) -> None:
    kettle = add(memory, TEXTS[0])
    assert found(memory, "kettle") == [kettle]
    FAULTS[sign](server)
    for tool in ("vector_search", "graph_search"):
        answer = ask(memory, tool, query="kettle")
        assert [hit["id"] for hit in answer["hits"]] == [kettle]
        assert sign in answer["degraded"]
    written = add(memory, TEXTS[1])
    server.well()
    server.api_key = None
    if sign == "cannot be reached":
        server.start()
    healed(memory)
    assert found(memory, "token lifetime") == [written]


def test_while_it_does_not_answer_no_graph_tool_asks_it_and_searches_ask_once(
    memory: Memory, server: StandIn
) -> None:
    kettle = add(memory, TEXTS[0])
    assert found(memory, "kettle") == [kettle]
    delay(server)
    assert "in time" in ask(memory, "vector_search", query="kettle")["degraded"]
    circuit = pushing(memory).target().index.circuit
    assert circuit.state != "closed"
    asked = len(server.calls)
    for tool, arguments in (
        ("desktop_open", {}),
        ("graph_traverse", {"start_id": kettle}),
        ("graph_get_node", {"node_id": kettle}),
        ("desktop_focus", {"node_id": kettle}),
    ):
        ask(memory, tool, **arguments)
    for _ in range(5):
        assert ask(memory, "vector_search", query="kettle")["degraded"]
    assert len(server.calls) - asked <= 1  # the probe in the background


def test_a_burst_of_errors_shorter_than_the_retries_loses_nothing(
    memory: Memory, server: StandIn
) -> None:
    add(memory, TEXTS[0])
    healed(memory)
    server.failures_left, server.failing = 2, 500
    token = add(memory, TEXTS[1])
    until(lambda: not server.failing and pushing(memory).parity(W) == IN_STEP)
    healed(memory)
    assert found(memory, "token lifetime") == [token]


def test_what_was_written_while_it_was_down_is_pushed_by_a_later_process(
    opened: Open, server: StandIn
) -> None:
    with opened() as memory:
        add(memory, TEXTS[0])
        healed(memory)
        server.stop()
        token = add(memory, TEXTS[1])
        until(lambda: not memory.status()["index"]["pending"])
    server.start()
    with opened() as memory:
        assert found(memory, "token lifetime") == [token]


def test_a_collection_that_was_dropped_is_filled_again(memory: Memory, server: StandIn) -> None:
    kettle = add(memory, TEXTS[0])
    assert found(memory, "kettle") == [kettle]
    server.local.delete_collection("cortex_memory")
    assert "no " in ask(memory, "vector_search", query="kettle")["degraded"]
    healed(memory)
    assert found(memory, "kettle") == [kettle]


def test_a_point_lost_behind_our_back_shows_in_parity_and_a_reindex_brings_it_back(
    memory: Memory, server: StandIn
) -> None:
    kettle, token = (add(memory, text) for text in TEXTS[:2])
    assert found(memory, "kettle") == [kettle]
    server.local.delete("cortex_memory", models.PointIdsList(points=[kettle]))
    lost = pushing(memory).parity(W)
    assert [*lost.missing, *lost.extra] == [kettle]
    memory.indexing.reindex(None, lambda done, total: None)
    assert pushing(memory).parity(W) == IN_STEP
    assert found(memory, "token lifetime") == [token]


# Whose it is


def test_the_collection_of_another_memory_is_refused_then_left_beside(
    memory: Memory, opened: Open, tmp_path: Path
) -> None:
    kettle = add(memory, TEXTS[0])
    assert found(memory, "kettle") == [kettle]
    with opened(tmp_path / "other") as other:
        token = add(other, TEXTS[1])
        until(lambda: "another memory's" in str(other.status()["index_problem"]))
        answer = ask(other, "vector_search", query="token lifetime")
        assert "`cortex reindex`" in answer["degraded"]
        other.indexing.reindex(None, lambda done, total: None)
        assert found(other, "token lifetime") == [token]
    assert found(memory, "kettle") == [kettle]


def test_the_key_is_asked_for_and_never_shown(opened: Open, server: StandIn) -> None:
    server.api_key = "s3cret"
    with opened(qdrant_api_key="s3cret") as memory:
        kettle = add(memory, TEXTS[0])
        assert found(memory, "kettle") == [kettle]
        server.api_key = "renewed"
        degraded = ask(memory, "vector_search", query="kettle")["degraded"]
        assert "CORTEX_QDRANT_API_KEY" in degraded
        shown = json.dumps([memory.status(), degraded, repr(memory.settings)])
        assert "s3cret" not in shown


# What is shown


def test_status_counts_both_sides(memory: Memory, home: Path, server: StandIn) -> None:
    for text in TEXTS:
        add(memory, text)
    assert memory.indexing.wait(None, 30) == 0
    shown = run_cortex(home, "status", "--json", CORTEX_QDRANT_URL=server.url)
    index = json.loads(shown)["index"]
    assert (index["backend"], index["collection"]) == ("qdrant", "cortex_memory")
    assert (index["circuit"], index["problem"]) == ("closed", None)
    assert index["workspaces"] == {"w": {"stored": 4, "indexed": 4, "lag": 0}}


def test_a_person_sees_both_sides_too(memory: Memory, home: Path, server: StandIn) -> None:
    add(memory, TEXTS[0])
    assert memory.indexing.wait(None, 30) == 0
    lines = list(iter_qdrant_lines(memory.status()["index"]))
    assert lines[0].endswith("collection cortex_memory, circuit closed")
    assert lines[1].strip() == "w: 1 of 1 indexed, 0 to be pushed"


def test_status_answers_while_it_is_down(memory: Memory, server: StandIn) -> None:
    add(memory, TEXTS[0])
    healed(memory)
    server.stop()
    index = memory.status()["index"]
    assert "cannot be reached" in index["problem"]
    assert index["workspaces"] == {"w": {"stored": 1, "indexed": None, "lag": None}}


@pytest.mark.anyio
async def test_a_server_started_by_a_host_searches_there(home: Path, server: StandIn) -> None:
    async with connected(home, CORTEX_QDRANT_URL=server.url) as client:
        made = await call(client, "graph_add_node", type="fact", text=TEXTS[0])
        answer = await call(client, "vector_search", query="kettle")
    assert (answer["degraded"], [hit["id"] for hit in answer["hits"]]) == (None, [made["id"]])
    assert "POST /points/query" in server.calls


def test_hybrid_is_an_option_of_the_service(memory: Memory) -> None:
    ids = [add(memory, text) for text in TEXTS]
    assert memory.indexing.wait(None, 30) == 0
    meaning = memory.semantic.meaning()
    vector = meaning.embedder.embed_query("how long do logins last")
    hits = memory.semantic.hybrid("invoices", vector, meaning, W, 4, VectorFilter())
    assert ids[3] in [hit.node_id for hit in hits[:2]]
