"""Each tool's answer: complete as text and as JSON, with the fields that hosts rely on."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
from mcp import Client
from mcp.types import TextResourceContents

from cortex.tools.catalogue import DEFAULT_SETS, TOOLS
from tests.harness import call, connected, result, text_of

pytestmark = pytest.mark.anyio

NODE = (
    *("id", "type", "title", "status", "created_at", "updated_at", "workspace_id", "parent_id"),
    *("tags", "text"),
)
HIT = ("id", "type", "title", "text", "score", "status", "workspace_id")


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module")
async def client(
    tmp_path_factory: pytest.TempPathFactory, anyio_backend: str
) -> AsyncIterator[Client]:
    home = tmp_path_factory.mktemp("answers") / "home"
    async with connected(home, "--tools", f"{DEFAULT_SETS},hybrid") as client:
        yield client


@pytest.fixture(scope="module")
async def story(client: Client) -> dict[str, str]:
    """A small workspace in which every tool has something to say."""
    at = {"workspace_id": "story"}
    task = await call(client, "graph_add_node", type="task", title="Harden the login", **at)
    fact = await call(
        client,
        "graph_add_node",
        type="fact",
        text="Passwords are hashed with argon2",
        parent_id=task["id"],
        files="src/login.py:12",
        **at,
    )
    decision = await call(
        client, "graph_add_node", type="decision", text="Lock after five attempts", **at
    )
    await call(
        client, "graph_add_relation", from_id=fact["id"], to_id=decision["id"], type="leads_to"
    )
    await call(client, "graph_add_node", type="fact", text="Somebody said it", **at)
    return {"task": task["id"], "fact": fact["id"], "decision": decision["id"]}


FOUND = ["hits", "total", "degraded", "pending"]
STORY: list[tuple[str, dict[str, Any], list[str], str]] = [
    ("graph_add_node", {"type": "fact", "text": "new {n}"}, ["id", "similar"], "id"),
    ("vector_store", {"text": "stored {n}"}, ["id", "similar"], "id"),
    ("graph_decompose", {"task_id": "{task}", "subtasks": ["a", "b"]}, ["ids"], "ids"),
    (
        "graph_add_relation",
        {"from_id": "{fact}", "to_id": "{task}", "type": "related_to"},
        ["id", "created", "notes"],
        "from_id",
    ),
    ("graph_update_node", {"node_id": "{task}", "tags": "auth"}, ["id", "status", "marked"], "id"),
    ("graph_get_node", {"node_id": "{fact}"}, ["node", "relations", "nodes", "total"], "node"),
    (
        "graph_traverse",
        {"start_id": "{task}"},
        ["nodes", "relations", "truncated", "total", "next_cursor"],
        "nodes",
    ),
    ("graph_walk", {"start_id": "{fact}"}, ["path"], "path"),
    ("vector_search", {"query": "argon2"}, ["hits", "total", "degraded", "pending"], "hits"),
    (
        "graph_search",
        {"query": "password argon2"},
        ["hits", "context", "files", "total", "degraded"],
        "hits",
    ),
    (
        "recall",
        {"query": "which hash is used for passwords?"},
        ["query", "total_results", "sources", "results", "total", "degraded", "pending"],
        "results",
    ),
    (
        "extract_entities",
        {"text": "auth-service uses argon2", "store": True},
        ["entities", "relations", "total", "truncated"],
        "entities",
    ),
    ("temporal_walk", {}, ["nodes", "next_cursor"], "nodes"),
    ("session_timeline", {"limit": 5}, ["events", "next_cursor"], "events"),
    ("graph_centrality", {"limit": 5}, ["nodes", "exact", "source", "total"], "nodes"),
    ("graph_communities", {}, ["communities", "modularity", "total"], "communities"),
    ("graph_health", {}, ["score", "findings"], "findings"),
    (
        "graph_diff",
        {"from_time": "2020-01-01"},
        ["added", "changed", "removed", "totals", "truncated"],
        "added",
    ),
    ("graph_impact", {"node_id": "{task}"}, ["stale", "unsupported", "truncated"], "stale"),
    ("graph_path", {"from_id": "{fact}", "to_id": "{decision}"}, ["paths", "truncated"], "paths"),
    ("desktop_focus", {"node_id": "{fact}"}, ["node", "relations", "warnings"], "node"),
    (
        "desktop_open",
        {},
        ["session_id", "anchor", "hot", "cold", "total", "next_cursor", "archive"],
        "hot",
    ),
    ("desktop_history", {}, ["entries"], "entries"),
    (
        "graph_supersede",
        {"old_id": "{decision}", "text": "Lock after three attempts"},
        ["new_id", "old_id", "status", "left", "dependents"],
        "new_id",
    ),
    ("store_memory", {"text": "Logins are counted in redis"}, ["id", "similar", "amplitude"], "id"),
    ("search", {"query": "argon2"}, FOUND, "hits"),
    ("search_semantic", {"query": "argon2"}, FOUND, "hits"),
    ("search_keyword", {"query": "argon2"}, FOUND, "hits"),
    ("search_recent", {"query": "argon2", "hours": 24}, FOUND, "hits"),
    ("boost", {"node_id": "{fact}"}, ["id", "amplitude", "strength", "strength_before"], "id"),
    (
        "relate",
        {"from_id": "{fact}", "to_id": "{task}", "type": "supports"},
        ["id", "created", "notes"],
        "from_id",
    ),
    ("find_related", {"node_id": "{fact}"}, ["nodes", "relations", "total", "truncated"], "nodes"),
    ("get_path", {"from_id": "{fact}", "to_id": "{decision}"}, ["paths", "truncated"], "paths"),
    ("session_start", {"title": "today"}, ["session_id", "parent_id", "title"], "session_id"),
    (
        "memory_undo",
        {"dry_run": True, "actor": "*"},
        ["undone", "nodes", "relations", "reach"],
        "nodes",
    ),
    ("session_context", {"query": "argon2"}, [*FOUND, "context", "session"], "hits"),
    ("compose", {"a": "{fact}", "relation": "leads_to"}, ["answers", "patterns"], "answers"),
    (
        "forget",
        {"node_id": "{decision}", "mode": "decay"},
        ["id", "mode", "status", "strength", "back"],
        "id",
    ),
    ("graph_delete_node", {"node_id": "{task}", "dry_run": True}, ["deleted", "moved"], "deleted"),
]
# What these say is about the whole workspace: there may be no single node to name.
WHOLE = {
    "status": ["waves", "memories", "index", "neighbours", "statuses"],
    "observe": ["waves", "strength", "phase", "clusters", "strengthened", "fading", "conflicts"],
    "dream": ["changes", "mode", "depth", "steps", "order_parameter"],
}


def ids_in(value: Any) -> set[str]:
    """The ids of the nodes within a part of an answer."""
    if isinstance(value, str):
        return {value}
    if isinstance(value, list):
        return set().union(*map(ids_in, value))
    for name in ("node", "nodes", "examples"):
        if name in value:
            return ids_in(value[name])
    if value.get("entity") == "relation":
        return {value["from_id"], value["to_id"]}
    return {value["id"].removeprefix("graph:")} if value.get("id") else set()


@pytest.mark.parametrize(("tool", "arguments", "keys", "named"), STORY, ids=[s[0] for s in STORY])
async def test_an_answer_is_complete_as_text_and_as_json(
    client: Client,
    story: dict[str, str],
    tool: str,
    arguments: dict[str, Any],
    keys: list[str],
    named: str,
) -> None:
    filled = {
        name: value.format(**story, n=tool) if isinstance(value, str) else value
        for name, value in arguments.items()
    }
    done = await result(client, tool, **filled, workspace_id="story")
    text, answer = text_of(done), done.structured_content
    assert not done.is_error, text
    assert answer is not None
    assert len(done.content) == 1
    assert isinstance(answer["generation"], int)
    assert [key for key in keys if key not in answer] == []
    ids = ids_in(answer[named])
    assert ids
    assert [id_ for id_ in ids if id_[:8] not in text] == []


@pytest.mark.parametrize("tool", WHOLE)
async def test_what_is_said_of_a_whole_workspace_is_complete(client: Client, tool: str) -> None:
    done = await result(client, tool, workspace_id="story")
    assert not done.is_error
    assert "story" in text_of(done)
    assert [key for key in WHOLE[tool] if key not in done.structured_content] == []


def test_every_tool_is_in_the_story() -> None:
    told = [*(name for name, *_ in STORY), *WHOLE]
    assert sorted(told) == sorted(tool.name for tool in TOOLS)


async def test_a_node_a_hit_an_event_and_a_step_have_the_fields_that_hosts_rely_on(
    client: Client, story: dict[str, str]
) -> None:
    at = {"workspace_id": "story"}
    got = await call(client, "graph_get_node", node_id=story["fact"], **at)
    assert [key for key in NODE if key not in got["node"]] == []
    assert got["node"]["parent_id"] == story["task"]
    for node in got["nodes"]:
        assert [key for key in (*NODE, "depth") if key not in node] == []
    found = await call(client, "graph_search", query="passwords are hashed", **at)
    assert [key for key in HIT if key not in found["hits"][0]] == []
    context = found["context"][0]
    assert [key for key in ("parents", "facts", "decisions", "files") if key not in context] == []
    assert [node["id"] for node in context["parents"]] == [story["task"]]
    assert (found["files"][0]["path"], found["files"][0]["line"]) == ("src/login.py", 12)
    assert found["files"][0]["freshness"]
    events = (await call(client, "session_timeline", **at))["events"]
    assert all({"at", "kind", "id", "title", "actor"} <= event.keys() for event in events)
    walked = await call(client, "graph_walk", start_id=story["fact"], **at)
    assert [step["relation"] and step["relation"]["type"] for step in walked["path"]][:2] == [
        None,
        "leads_to",
    ]


async def test_the_generation_rises_with_a_write_and_stays_with_a_read(client: Client) -> None:
    at = {"workspace_id": "generations"}
    made = await call(client, "graph_add_node", type="task", title="x", **at)
    read = await call(client, "graph_get_node", node_id=made["id"])
    await call(client, "graph_search", query="x", **at)
    again = await call(client, "temporal_walk", **at)
    assert made["generation"] == read["generation"] == again["generation"]
    more = await call(client, "graph_add_node", type="task", title="y", **at)
    assert more["generation"] > again["generation"]


async def read(client: Client, uri: str) -> dict[str, Any]:
    content = (await client.read_resource(uri)).contents[0]
    assert isinstance(content, TextResourceContents)
    assert content.mime_type == "application/json"
    parsed: dict[str, Any] = json.loads(content.text)
    assert isinstance(parsed["generation"], int)
    return parsed


async def test_a_resource_says_what_its_tool_says(client: Client, story: dict[str, str]) -> None:
    graph = await read(client, "cortex://graph/story")
    assert story["fact"] in {node["id"] for node in graph["nodes"]}
    assert "contains" in {relation["type"] for relation in graph["relations"]}
    assert graph["total"] >= len(graph["nodes"])
    node = await read(client, f"cortex://node/{story['fact']}")
    got = await call(client, "graph_get_node", node_id=story["fact"])
    assert {k: node[k] for k in ("node", "nodes", "relations")} == {
        k: got[k] for k in ("node", "nodes", "relations")
    }
    desktop = await read(client, "cortex://desktop/story")
    opened = await call(client, "desktop_open", workspace_id="story")
    assert (desktop["session_id"], desktop["cold"]) == (opened["session_id"], opened["cold"])
    found = await read(client, "cortex://search/hashed%20with%20argon2%3F")
    assert found["hits"][0]["id"] == story["fact"]
