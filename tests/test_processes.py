"""Several servers on one memory: real processes, a real client each."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client

from tests.harness import call, connected, refused

pytestmark = pytest.mark.anyio

Pair = tuple[Client, Client]


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One data folder for the module; each test has a workspace of its own."""
    return tmp_path_factory.mktemp("processes") / "home"


@pytest.fixture(scope="module")
async def pair(shared: Path) -> AsyncIterator[Pair]:
    """Clients of two servers on that folder."""
    async with connected(shared) as first, connected(shared) as second:
        yield first, second


async def gather(work: Sequence[Callable[[], Awaitable[Any]]]) -> list[Any]:
    """Run all at once; the results in order."""
    results: list[Any] = [None] * len(work)

    async def keep(place: int) -> None:
        results[place] = await work[place]()

    async with anyio.create_task_group() as group:
        for place in range(len(work)):
            group.start_soon(keep, place)
    return results


def count(home: Path, query: str, workspace: str) -> int:
    """One number, read from the file by a process that is none of the servers."""
    connection = sqlite3.connect(f"file:{home / 'cortex.db'}?mode=ro", uri=True)
    try:
        return int(connection.execute(query, {"workspace": workspace}).fetchone()[0])
    finally:
        connection.close()


async def fact(client: Client, workspace: str, text: str) -> str:
    """The id of a new fact."""
    made = await call(client, "graph_add_node", type="fact", text=text, workspace_id=workspace)
    return str(made["id"])


async def test_two_servers_writing_interleaved_lose_nothing(pair: Pair, shared: Path) -> None:
    hub = await fact(pair[0], "hub", "the hub of all")

    async def write(number: int) -> None:
        server = pair[number]
        nodes = [await fact(server, "hub", f"server {number} learnt {i}") for i in range(20)]
        for node in nodes:
            await call(server, "graph_add_relation", from_id=node, to_id=hub, type="supports")

    await gather([partial(write, 0), partial(write, 1)])
    degrees = [(await call(server, "graph_get_node", node_id=hub))["degree"] for server in pair]
    facts = "SELECT COUNT(*) FROM nodes WHERE type = 'fact' AND workspace_id = :workspace"
    links = "SELECT COUNT(*) FROM relations WHERE type = 'supports' AND workspace_id = :workspace"
    assert (count(shared, facts, "hub"), count(shared, links, "hub")) == (41, 40)
    assert degrees == [41, 41], "40 that support it, and the session that contains it"


async def test_two_servers_writing_one_relation_at_once_make_one(pair: Pair) -> None:
    x, y = await fact(pair[0], "one", "x"), await fact(pair[1], "one", "y")

    async def relate(server: Client) -> dict[str, Any]:
        return await call(server, "graph_add_relation", from_id=x, to_id=y, type="supports")

    made = await gather([partial(relate, server) for server in pair * 5])
    assert sum(each["created"] for each in made) == 1
    assert len({each["id"] for each in made}) == 1


async def test_the_next_traversal_shows_what_another_server_changed(pair: Pair) -> None:
    reader, writer = pair
    x, y, z, w = [await fact(reader, "warm", f"fact {name} of the graph") for name in "xyzw"]
    for other in (z, w):
        await call(reader, "graph_add_relation", from_id=x, to_id=other, type="leads_to")
    warm = await call(reader, "graph_traverse", start_id=x)
    assert {node["id"] for node in warm["nodes"]} == {z, w}

    await call(writer, "graph_add_relation", from_id=x, to_id=y, type="leads_to")
    await call(writer, "graph_delete_node", node_id=z)
    await call(writer, "graph_supersede", old_id=w, new_data={"text": "w, revised"})

    after = await call(reader, "graph_traverse", start_id=x)
    assert {node["id"]: node["status"] for node in after["nodes"]} == {y: "active", w: "stale"}
    assert after["generation"] > warm["generation"]


async def test_the_next_search_by_meaning_shows_what_another_server_changed(pair: Pair) -> None:
    reader, writer = pair
    gone = await fact(reader, "sense", "the kettle is in the kitchen")
    query = {"query": "where is the kettle", "workspace_id": "sense"}
    warm = await call(reader, "vector_search", **query)
    assert [hit["id"] for hit in warm["hits"]] == [gone]

    await call(writer, "graph_delete_node", node_id=gone)
    made = await fact(writer, "sense", "the tea kettle stands on the balcony")

    after = await call(reader, "vector_search", **query)
    assert [hit["id"] for hit in after["hits"]] == [made]


async def test_a_focus_of_one_server_is_the_anchor_of_another(pair: Pair) -> None:
    node = await fact(pair[0], "anchor", "what is worked on")
    await call(pair[0], "desktop_focus", node_id=node, workspace_id="anchor")
    desktop = await call(pair[1], "desktop_open", workspace_id="anchor")
    assert desktop["anchor"]["node_id"] == node


async def test_a_fact_superseded_through_one_server_cannot_be_superseded_through_another(
    pair: Pair,
) -> None:
    old = await fact(pair[0], "ports", "the port is 22")
    new = await call(pair[0], "graph_supersede", old_id=old, new_data={"text": "the port is 23"})
    said = await refused(pair[1], "graph_supersede", old_id=old, new_data={"text": "port 24"})
    assert said.startswith("stale_target")
    assert new["new_id"] in said


async def test_eight_servers_opening_a_new_desktop_at_once_make_one_session_root(
    pair: Pair, shared: Path
) -> None:
    started: list[Client] = list(pair)
    all_started = anyio.Event()

    async def open_with(client: Client) -> dict[str, Any]:
        await all_started.wait()
        return await call(client, "desktop_open", workspace_id="new")

    async def start_and_open() -> dict[str, Any]:
        async with connected(shared) as client:
            started.append(client)
            if len(started) == 8:
                all_started.set()
            return await open_with(client)

    own = [partial(open_with, client) for client in pair]
    opened = await gather([*own, *[start_and_open] * 6])
    roots = "SELECT COUNT(*) FROM nodes WHERE type = 'session' AND workspace_id = :workspace"
    assert count(shared, roots, "new") == 1
    assert len({desktop["session_id"] for desktop in opened}) == 1
    assert sorted(desktop["graph"] for desktop in opened) == ["empty"] + ["loaded"] * 7
