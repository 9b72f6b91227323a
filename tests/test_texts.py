"""Texts and places: odd queries, long and broken texts, and which workspace is meant."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client

from cortex.config import load_settings
from tests.harness import Wire, call, connected, refused, result, text_of, wired

pytestmark = pytest.mark.anyio


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The data folder of the server that this module's tests share."""
    return tmp_path_factory.mktemp("texts") / "home"


@pytest.fixture(scope="module")
async def client(place: Path, anyio_backend: str) -> AsyncIterator[Client]:
    async with connected(place) as client:
        yield client


@pytest.fixture(scope="module")
def wire(place: Path, client: Client) -> Iterator[Wire]:
    """A second server on the same folder, for bytes that a proper client does not send."""
    with wired(place) as wire:
        yield wire


def rows(home: Path, query: str, **values: Any) -> list[Any]:
    connection = sqlite3.connect(home / "cortex.db")
    try:
        return connection.execute(query, values).fetchall()
    finally:
        connection.close()


async def indexed(client: Client, tool: str, **arguments: Any) -> dict[str, Any]:
    """The answer of a search once everything is in the vector index."""
    deadline = time.monotonic() + 30
    while (found := await call(client, tool, **arguments))["pending"]:
        assert time.monotonic() < deadline, "the index never caught up"
        await anyio.sleep(0.05)
    return found


# Query text

NAMED = {
    "POL-358": "ticket POL-358 is about the printer",
    "TODO: fix": "TODO: fix the retry loop",
    "src/auth/jwt.py": "tokens are checked in src/auth/jwt.py",
    "don't": "don't restart the queue by hand",
    "user_id::bigint": "cast with user_id::bigint",
}
ODD = (
    "AND",
    "OR NOT",
    "*",
    '"',
    "NEAR(",
    "a* ^b",
    "-x",
    "(((",
    "{col}:x",
    "\\",
    "%_",
    " ",
    "é\u0301",
)


@pytest.fixture(scope="module")
async def queried(client: Client) -> Client:
    for text in NAMED.values():
        await call(client, "graph_add_node", type="note", text=text, workspace_id="queries")
    return client


@pytest.mark.parametrize("query", NAMED)
async def test_a_query_finds_what_its_colons_hyphens_and_slashes_name(
    queried: Client, query: str
) -> None:
    found = await call(queried, "graph_search", query=query, workspace_id="queries")
    assert found["hits"][0]["text"] == NAMED[query]


@pytest.mark.parametrize("query", [*ODD, "word " * 2000, "x" * 10_240, "🙂" * 3000])
@pytest.mark.parametrize("tool", ["graph_search", "vector_search"])
async def test_query_text_is_never_query_syntax(queried: Client, tool: str, query: str) -> None:
    found = await call(queried, tool, query=query, workspace_id="queries")
    assert found["degraded"] is None
    assert found["total"] == len(found["hits"])


@pytest.mark.parametrize("tool", ["graph_search", "vector_search"])
async def test_an_empty_query_has_an_empty_answer_and_none_is_refused(
    client: Client, tool: str
) -> None:
    found = await call(client, tool, query="")
    assert (found["hits"], found["total"], found["degraded"]) == ([], 0, None)
    assert (await refused(client, tool)).startswith(f"invalid: {tool} needs query")


# Long and broken text

CALL = '{"jsonrpc":"2.0","id":77,"method":"tools/call","params":{"name":"%s","arguments":{%s}}}'


async def test_the_end_of_a_long_text_is_found_by_word_and_by_meaning_and_kept_to_the_byte(
    client: Client, place: Path
) -> None:
    lines = [f"Report {n} lists the figures of region {n % 90}, as usual. " for n in range(400)]
    end = "\n\tZwölf xylographers.\r\nThe cat slept all afternoon on the windowsill by the stove.  "
    text = "".join(lines) + end
    assert len(text.encode()) > 20_000
    made = await call(client, "vector_store", text=text, workspace_id="long")
    for tool, query in (
        ("vector_search", "where does the cat sleep"),
        ("graph_search", "xylographers"),
    ):
        found = await indexed(client, tool, query=query, workspace_id="long")
        assert [hit["id"] for hit in found["hits"]] == [made["id"]]
        assert "windowsill" in found["hits"][0]["text"]
    got = await call(client, "graph_get_node", node_id=made["id"])
    assert got["node"]["text"] == text
    query = "SELECT json_extract(data, '$.text') FROM nodes WHERE id = :id"
    assert rows(place, query, id=made["id"]) == [(text,)]


@pytest.mark.parametrize("escape", ["\\ud800", "\\u0000"])
def test_broken_unicode_in_text_is_replaced_and_the_server_lives(wire: Wire, escape: str) -> None:
    said = f'"type":"task","title":"t","text":"a{escape}b","workspace_id":"broken"'
    wire.write((CALL % ("graph_add_node", said)).encode())
    made = wire.reply()["result"]["structuredContent"]
    got = wire.call("graph_get_node", node_id=made["id"])["structuredContent"]
    assert got["node"]["text"] == "a\ufffdb"


@pytest.mark.parametrize("escape", ["\\ud800", "\\u0000"])
@pytest.mark.parametrize("tool", ["graph_get_node", "desktop_focus", "graph_delete_node"])
def test_broken_unicode_in_an_id_is_an_error_and_the_server_lives(
    wire: Wire, tool: str, escape: str
) -> None:
    wire.write((CALL % (tool, f'"node_id":"abcdef12{escape}"')).encode())
    reply = wire.reply()["result"]
    assert reply["isError"]
    assert reply["content"][0]["text"].split(":")[0] in ("invalid", "not_found")
    assert not wire.call("desktop_open")["isError"]


def test_broken_unicode_in_a_workspace_is_refused_or_replaced(wire: Wire) -> None:
    wire.write((CALL % ("desktop_open", '"workspace_id":"a\\u0000"')).encode())
    refusal = wire.reply()["result"]
    assert refusal["content"][0]["text"].startswith("invalid: workspace_id ")
    wire.write((CALL % ("desktop_open", '"workspace_id":"a\\ud800"')).encode())
    assert wire.reply()["result"]["structuredContent"]["workspace_id"] == "a\ufffd"


# Workspaces


async def test_a_write_to_a_new_workspace_makes_exactly_that_one(
    client: Client, place: Path
) -> None:
    before = {name for (name,) in rows(place, "SELECT DISTINCT workspace_id FROM nodes")}
    text = "the ferry leaves from pier nine"
    await call(client, "graph_add_node", type="fact", text=text, workspace_id="brand-new")
    after = {name for (name,) in rows(place, "SELECT DISTINCT workspace_id FROM nodes")}
    assert after - before == {"brand-new"}
    found = await indexed(client, "graph_search", query="pier nine ferry")
    assert found["hits"][0]["workspace_id"] == "brand-new"
    assert "[brand-new]" in text_of(await result(client, "graph_search", query="pier nine ferry"))
    opened = await call(client, "desktop_open")
    assert opened["workspace_id"] == "w"


async def test_the_caller_s_own_workspace_comes_first_and_the_scope_can_end_there(
    client: Client, place: Path
) -> None:
    text = "the lighthouse is painted every spring"
    for name in ("other-place", "w"):
        await call(client, "graph_add_node", type="fact", text=text, workspace_id=name)
    for tool in ("graph_search", "vector_search"):
        found = await indexed(client, tool, query="painted lighthouse", top_k=2)
        assert [hit["workspace_id"] for hit in found["hits"]] == ["w", "other-place"]
    async with connected(place, "--search-scope", "workspace") as narrow:
        for tool in ("graph_search", "vector_search"):
            found = await call(narrow, tool, query="painted lighthouse")
            assert {hit["workspace_id"] for hit in found["hits"]} == {"w"}


async def test_a_server_without_a_name_serves_the_folder_s_workspace(tmp_path: Path) -> None:
    project = tmp_path / "shop"
    (project / ".git").mkdir(parents=True)
    (project / "src").mkdir()
    home = tmp_path / "home"
    async with connected(home, workspace=None, cwd=project / "src") as client:
        assert (await call(client, "desktop_open"))["workspace_id"] == "shop"
        made = await call(client, "graph_add_node", type="task", title="x", workspace_id=" named ")
        assert made["workspace_id"] == "named"


def test_a_workspace_is_argument_then_environment_then_folder_then_default(
    tmp_path: Path,
) -> None:
    (tmp_path / ".git").mkdir()
    env = {"CORTEX_WORKSPACE_ID": "env"}
    assert load_settings(workspace="arg", env=env, cwd=tmp_path).workspace == "arg"
    assert load_settings(workspace="", env=env, cwd=tmp_path).workspace == "env"
    assert load_settings(env={"CORTEX_WORKSPACE_ID": " "}, cwd=tmp_path).workspace == tmp_path.name
    assert load_settings(env={}, cwd=Path("/")).workspace == "default"
    assert load_settings(env={}, cwd=Path.home()).workspace == "default"
