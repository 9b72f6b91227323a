"""What a client of the protocol sees: the tools, the resources, and nothing else on stdout."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Literal

import pytest
from mcp import Client, MCPError
from mcp.types import Tool

from tests.harness import call, connected, refused, wired

pytestmark = pytest.mark.anyio

ROO = [
    *("desktop_open", "desktop_focus", "desktop_history", "graph_search", "vector_search"),
    *("graph_get_node", "graph_traverse", "graph_walk", "graph_add_node", "graph_add_relation"),
    *("graph_decompose", "graph_update_node", "graph_supersede", "graph_delete_node"),
    *("vector_store", "temporal_walk", "session_timeline"),
]
FABRIC = ["recall", "extract_entities"]
ANALYTICS = [
    "graph_centrality",
    "graph_communities",
    "graph_health",
    "graph_diff",
    "graph_impact",
    "graph_path",
]


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The data folder of the server that this module's tests share."""
    return tmp_path_factory.mktemp("protocol") / "home"


@pytest.fixture(scope="module")
async def client(place: Path, anyio_backend: str) -> AsyncIterator[Client]:
    async with connected(place) as client:
        yield client


@pytest.fixture(scope="module")
async def tools(client: Client) -> list[Tool]:
    return (await client.list_tools()).tools


# The list of tools


def test_the_tools_are_the_concept_s_seventeen_the_fabric_the_analytics_and_undo(
    tools: list[Tool],
) -> None:
    assert [tool.name for tool in tools] == [*ROO, *FABRIC, *ANALYTICS, "memory_undo"]


async def test_the_set_of_the_concept_alone_is_its_seventeen(tmp_path: Path) -> None:
    async with connected(tmp_path / "home", "--tools", "roo") as client:
        assert [tool.name for tool in (await client.list_tools()).tools] == ROO


def test_the_whole_list_costs_a_model_under_six_thousand_tokens(tools: list[Tool]) -> None:
    listed = [tool.model_dump(mode="json", by_alias=True, exclude_none=True) for tool in tools]
    assert len(json.dumps(listed, ensure_ascii=False, separators=(",", ":"))) <= 24_000


def test_no_schema_has_anything_to_resolve_or_to_choose(tools: list[Tool]) -> None:
    for tool in tools:
        schema = tool.input_schema
        assert not [w for w in ("$ref", "anyOf", "oneOf", "allOf") if w in json.dumps(schema)]
        for name, about in schema["properties"].items():
            assert isinstance(about["type"], str), f"{tool.name}.{name}"
        assert schema["additionalProperties"] is False


def test_every_tool_says_all_four_hints_and_only_delete_is_destructive(tools: list[Tool]) -> None:
    for tool in tools:
        assert tool.title
        assert tool.description
        hints = tool.annotations
        assert hints is not None
        said = (hints.read_only_hint, hints.destructive_hint, hints.idempotent_hint)
        assert None not in (*said, hints.open_world_hint), tool.name
        assert hints.destructive_hint is (tool.name == "graph_delete_node")
        assert hints.open_world_hint is False


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_both_eras_of_the_protocol_list_and_serve_the_same(
    place: Path, tools: list[Tool], mode: Literal["auto", "legacy"]
) -> None:
    async with connected(place, mode=mode) as other:
        eras = {"auto": "2026-07-28", "legacy": "2025-11-25"}
        assert other.protocol_version == eras[mode]
        assert (await other.list_tools()).tools == tools
        assert (await call(other, "desktop_open"))["workspace_id"] == "w"


async def test_the_core_has_eight_to_ten_tools(place: Path) -> None:
    async with connected(place, "--tools", "core") as core:
        names = {tool.name for tool in (await core.list_tools()).tools}
        assert 8 <= len(names) <= 10
        assert {"desktop_open", "graph_search", "graph_add_node", "graph_supersede"} <= names
        line = await refused(core, "graph_delete_node", node_id="00000000")
        assert line.startswith("not_found: There is no tool 'graph_delete_node'")


async def test_a_read_only_server_reads_and_has_no_tool_that_writes(
    place: Path, client: Client
) -> None:
    made = await call(client, "graph_add_node", type="fact", text="all of it is visible")
    await call(client, "vector_search", query="visible")  # its server embeds what is owed
    node = {"node_id": made["id"]}
    async with connected(place, "--read-only") as reader:
        tools = (await reader.list_tools()).tools
        assert tools
        assert all(tool.annotations and tool.annotations.read_only_hint for tool in tools)
        assert (await call(reader, "desktop_history"))["entries"]
        for tool, arguments in (
            ("desktop_open", {}),
            ("graph_get_node", node),
            ("graph_traverse", {"start_id": made["parent_id"]}),
            ("graph_walk", {"start_id": made["id"]}),
            ("graph_search", {"query": "visible"}),
            ("vector_search", {"query": "visible"}),
            ("temporal_walk", {}),
            ("session_timeline", {}),
        ):
            assert made["id"] in json.dumps(await call(reader, tool, **arguments)), tool
        line = await refused(reader, "graph_add_node", type="task", title="x")
        assert line.startswith("not_found: ")


# Resources


async def test_there_are_four_resources(client: Client) -> None:
    templates = (await client.list_resource_templates()).resource_templates
    assert [template.uri_template for template in templates] == [
        "cortex://graph/{workspace_id}",
        "cortex://node/{node_id}",
        "cortex://desktop/{workspace_id}",
        "cortex://search/{query}",
    ]


@pytest.mark.parametrize(
    "uri",
    [
        "cortex://node/00000000-0000-4000-8000-000000000000",
        "cortex://node/nothing-like-it",
        "cortex://graph/never-written",
        "cortex://attic/x",
        "file:///etc/passwd",
    ],
)
async def test_an_unknown_resource_is_an_error_with_its_code(client: Client, uri: str) -> None:
    with pytest.raises(MCPError) as caught:
        await client.read_resource(uri)
    assert caught.value.code == -32602
    assert caught.value.message.startswith("not_found: ")
    assert "\n" not in caught.value.message


# stdout

NOISE = """
import logging, os, sqlite3, sys, warnings
real = sqlite3.connect
def connect(*args, **kwargs):
    logging.basicConfig(stream=sys.stdout, level=logging.DEBUG, force=True)
    logging.getLogger("noise").debug("noise by logging")
    warnings.warn("noise by warning")
    print("noise by print", flush=True)
    os.write(1, b"noise by write\\n")
    os.system("echo noise by a child; kill -SEGV $$")
    return real(*args, **kwargs)
sqlite3.connect = connect
"""


def test_whatever_a_library_prints_stdout_is_the_protocol_s_alone(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(NOISE)
    root = str(Path(__file__).parent.parent)
    env = {"PYTHONPATH": f"{tmp_path}:{root}", "PYTHONWARNINGS": "always", "PYTHONUNBUFFERED": "1"}
    with wired(tmp_path / "home", **env) as server:
        server.ask("tools/list")
        server.call("graph_add_node", type="fact", text="quiet please")
        server.call("vector_search", query="quiet")
        assert server.call("graph_get_node", node_id="nothing-here")["isError"]
        server.ask("resources/read", uri="cortex://attic")
        server.write(b"this is no JSON")
        server.reply()
        assert server.end() == 0
        assert server.process.stdout
        lines = [*server.heard, *server.process.stdout]
        assert all(json.loads(line)["jsonrpc"] == "2.0" for line in lines)
        for way in ("logging", "warning", "print", "write", "a child"):
            assert f"noise by {way}" in server.stderr()
