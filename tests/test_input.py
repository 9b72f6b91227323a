"""What models really send: lists as text, empty optionals, odd words, broken Unicode, retries."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client

from cortex.domain.taxonomy import NodeType, RelationType
from tests.harness import call, connected, refused, result, text_of

pytestmark = pytest.mark.anyio


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The data folder of the server that this module's tests share."""
    return tmp_path_factory.mktemp("input") / "home"


@pytest.fixture(scope="module")
async def client(place: Path, anyio_backend: str) -> AsyncIterator[Client]:
    async with connected(place) as client:
        yield client


def rows(home: Path, query: str, **values: Any) -> list[Any]:
    connection = sqlite3.connect(home / "cortex.db")
    try:
        return connection.execute(query, values).fetchall()
    finally:
        connection.close()


def count(home: Path, workspace: str) -> int:
    query = "SELECT count(*) FROM nodes WHERE workspace_id = :w AND type <> 'session'"
    return int(rows(home, query, w=workspace)[0][0])


@contextmanager
def unchanged(home: Path) -> Iterator[None]:
    """No node and no relation is written meanwhile."""
    query = "SELECT (SELECT max(seq) FROM changes), (SELECT count(*) FROM nodes)"
    before = rows(home, query)
    yield
    assert rows(home, query) == before


# Arrays and objects as strings


async def test_lists_and_objects_that_arrive_as_json_text_are_read(client: Client) -> None:
    made = await call(
        client,
        "graph_add_node",
        type="task",
        title="ship it",
        tags='["a,b", "c"]',
        data='{"owner": {"team": 3}}',
        workspace_id="strings",
    )
    done = await call(
        client, "graph_decompose", task_id=made["id"], subtasks='["one", {"title": "two"}]'
    )
    got = (await call(client, "graph_get_node", node_id=made["id"]))["node"]
    assert (got["tags"], got["data"]) == (["a,b", "c"], {"owner": {"team": 3}})
    got = await call(client, "graph_get_node", node_id=json.dumps(done["ids"]), depth=0)
    assert [node["title"] for node in got["starts"]] == ["one", "two"]


async def test_plain_words_with_commas_are_tags(client: Client) -> None:
    made = await call(
        client, "graph_add_node", type="task", title="t", tags="net, ssh", workspace_id="strings"
    )
    got = await call(client, "graph_get_node", node_id=made["id"])
    assert got["node"]["tags"] == ["net", "ssh"]


@pytest.mark.parametrize(
    ("tool", "field", "value"),
    [
        ("graph_decompose", "subtasks", "write it, then test it"),
        ("graph_decompose", "subtasks", "[]"),
        ("graph_decompose", "subtasks", '["a", ""]'),
        ("graph_add_node", "tags", "[a, b]"),
        ("graph_add_node", "data", "owner=me"),
        ("graph_add_node", "data", "[1]"),
        ("graph_update_node", "data", '"text"'),
        ("graph_supersede", "new_data", "port 2222"),
    ],
)
async def test_text_that_could_mean_two_things_is_refused_by_its_field_and_writes_nothing(
    client: Client, place: Path, tool: str, field: str, value: str
) -> None:
    made = await call(client, "graph_add_node", type="task", title="t", workspace_id="strings")
    target = {"decompose": "task_id", "update_node": "node_id", "supersede": "old_id"}
    name = target.get(tool.removeprefix("graph_"))
    base = {name: made["id"]} if name else {"type": "task", "title": "t"}
    with unchanged(place):
        line = await refused(client, tool, **base, **{field: value})
    assert line.startswith(f"invalid: {field}")


@pytest.mark.parametrize("fields", [{}, {"title": "", "text": ""}, {"title": " "}, {"data": "{}"}])
async def test_a_node_that_says_nothing_is_never_written(
    client: Client, place: Path, fields: dict[str, Any]
) -> None:
    with unchanged(place):
        assert (await refused(client, "graph_add_node", type="fact", **fields)).startswith(
            "invalid: this fact says nothing"
        )


# Empty optionals


@pytest.mark.parametrize("empty", ["", None])
async def test_empty_text_and_null_are_as_if_absent(client: Client, empty: Any) -> None:
    names = ("title", "tags", "data", "parent_id", "path", "relations", "files", "pinned")
    others = dict.fromkeys((*names, "workspace_id", "idempotency_key"), empty)
    made = await call(client, "graph_add_node", type="task", text="empty optionals", **others)
    assert made["workspace_id"] == "w"
    got = (await call(client, "graph_get_node", node_id=made["id"], cursor=empty))["node"]
    assert (got["tags"], got.get("data")) == ([], None)
    window = {"from_time": empty, "to_time": empty, "cursor": empty, "limit": empty}
    walked = await call(client, "temporal_walk", relation_type=empty, start_id=empty, **window)
    assert made["id"] in {node["id"] for node in walked["nodes"]}
    found = await call(
        client, "vector_search", query="empty", time_from=empty, layer=empty, types=empty, top_k=""
    )
    assert found["degraded"] is None


# Types


@pytest.mark.parametrize("name", ["Decision", " decision ", "DECISION"])
async def test_the_case_and_spaces_of_a_type_do_not_matter(client: Client, name: str) -> None:
    made = await call(client, "graph_add_node", type=name, title="x", workspace_id="types")
    assert made["type"] == "decision"


@pytest.mark.parametrize("name", ["depends on", "Depends-On", " DEPENDS_ON"])
async def test_the_spelling_of_a_relation_type_does_not_matter(client: Client, name: str) -> None:
    a, b = [
        (await call(client, "graph_add_node", type="task", title=t, workspace_id="types"))["id"]
        for t in "ab"
    ]
    made = await call(client, "graph_add_relation", from_id=a, to_id=b, type=name)
    assert made["type"] == "depends_on"


async def test_unknown_types_are_refused_with_all_valid_ones(client: Client, place: Path) -> None:
    root = (await call(client, "desktop_open"))["session_id"]
    with unchanged(place):
        line = await refused(client, "graph_add_node", type="foo", title="x")
        assert all(kind.value in line for kind in NodeType)
        line = await refused(client, "graph_add_relation", from_id=root, to_id=root, type="likes")
        assert all(kind.value in line for kind in RelationType)
        assert "data.label" in line
        for tool, field, value in (
            ("temporal_walk", "node_types", "fact,foo"),
            ("graph_traverse", "relation", ["contains", "foo"]),
            ("vector_search", "layer", "attic"),
            ("session_timeline", "session", "yesterday"),
        ):
            needed = {"start_id": root} if tool == "graph_traverse" else {}
            needed |= {"query": "x"} if tool == "vector_search" else {}
            line = await refused(client, tool, **needed, **{field: value})
            assert line.startswith(f"invalid: {field}")


# Retries


async def test_a_write_that_is_sent_again_is_done_once(client: Client, place: Path) -> None:
    said = {"type": "fact", "text": "once", "workspace_id": "retry", "idempotency_key": "k1"}
    first, again = [await call(client, "graph_add_node", **said) for _ in range(2)]
    assert first["id"] == again["id"]
    assert count(place, "retry") == 1
    line = await refused(client, "graph_add_node", **{**said, "text": "another"})
    assert line.startswith("conflict: idempotency_key 'k1' was used for another request")
    other = await call(client, "graph_add_node", **{**said, "workspace_id": "retry2"})
    assert other["id"] != first["id"], "the key belongs to its workspace"


async def test_two_servers_that_are_sent_the_same_write_at_once_do_it_once(
    client: Client, place: Path
) -> None:
    said = {"type": "task", "title": "race", "workspace_id": "race", "idempotency_key": "k"}
    ids: list[str] = []

    async def add(sender: Client) -> None:
        ids.append((await call(sender, "graph_add_node", **said))["id"])

    async with connected(place) as other, anyio.create_task_group() as group:
        for sender in (client, other) * 8:
            group.start_soon(add, sender)
    assert len(ids) == 16
    assert len(set(ids)) == 1
    assert count(place, "race") == 1


async def test_every_writing_tool_repeats_its_answer_under_its_key(
    client: Client, place: Path
) -> None:
    task, fact, other = [
        (await call(client, "graph_add_node", type=kind, title=kind, workspace_id="keys"))["id"]
        for kind in ("task", "fact", "decision")
    ]
    for tool, arguments in (
        ("graph_add_relation", {"from_id": task, "to_id": fact, "type": "related_to"}),
        ("graph_decompose", {"task_id": task, "subtasks": ["a", "b"]}),
        ("graph_update_node", {"node_id": task, "text": "more"}),
        ("graph_supersede", {"old_id": fact, "text": "newer"}),
        ("graph_delete_node", {"node_id": other}),
        ("vector_store", {"text": "kept"}),
    ):
        said = {**arguments, "workspace_id": "keys", "idempotency_key": tool}
        first = await call(client, tool, **said)
        with unchanged(place):
            again = await call(client, tool, **said)
        assert {**again, "generation": 0} == {**first, "generation": 0}


# One edge


async def test_the_same_edge_fifty_times_is_one_that_is_refreshed(
    client: Client, place: Path
) -> None:
    a, b = [
        (await call(client, "graph_add_node", type="task", title=t, workspace_id="edge"))["id"]
        for t in "ab"
    ]
    ends = {"from_id": a, "to_id": b}
    first = await call(client, "graph_add_relation", **ends, type="depends_on", weight=0.1)
    for number in range(1, 50):
        last = await call(
            client, "graph_add_relation", **ends, type="depends_on", weight=number / 50
        )
        assert (last["id"], last["created"]) == (first["id"], False)
    await call(client, "graph_add_relation", **ends, type="blocks")
    got = await call(client, "graph_traverse", start_id=a, depth=1)
    assert {(r["type"], r["weight"]) for r in got["relations"]} == {
        ("depends_on", 0.98),
        ("blocks", 1.0),
    }
    assert len(got["relations"]) == 2
    kept = next(r for r in got["relations"] if r["type"] == "depends_on")
    assert kept["updated_at"] > kept["created_at"]


@pytest.mark.parametrize("kind", ["contradicts", "related_to"])
async def test_a_relation_without_direction_is_stored_once_and_walked_both_ways(
    client: Client, kind: str
) -> None:
    a, b = [
        (await call(client, "graph_add_node", type="task", title=t, workspace_id=kind))["id"]
        for t in "ab"
    ]
    ends = [
        await call(client, "graph_add_relation", from_id=x, to_id=y, type=kind)
        for x, y in ((a, b), (b, a))
    ]
    assert ends[0]["id"] == ends[1]["id"]
    assert ends[0]["from_id"] == min(a, b)
    for start, end in ((a, b), (b, a)):
        got = await call(client, "graph_traverse", start_id=start, relation=kind)
        assert [node["id"] for node in got["nodes"]] == [end]


# Errors


async def test_what_is_not_there_is_an_error_with_a_code_and_a_next_step(client: Client) -> None:
    made = await call(client, "graph_add_node", type="task", title="x", workspace_id="elsewhere")
    gone = await call(client, "graph_add_node", type="task", title="y")
    await call(client, "graph_delete_node", node_id=gone["id"])
    for tool, arguments, said in (
        ("graph_get_node", {"node_id": "not-a-uuid"}, "graph_search"),
        ("graph_get_node", {"node_id": "00000000-0000-4000-8000-000000000000"}, "graph_search"),
        ("desktop_focus", {"node_id": made["id"]}, "workspace_id='elsewhere'"),
        ("graph_delete_node", {"node_id": gone["id"]}, "graph_search"),
        ("graph_supersede", {"old_id": gone["id"], "text": "z"}, "graph_search"),
    ):
        done = await result(client, tool, **arguments)
        line = text_of(done)
        assert done.is_error
        assert line.startswith("not_found: ")
        assert said in line
        assert "\n" not in line
        assert done.structured_content["error"]["code"] == "not_found"


@pytest.mark.parametrize(
    ("tool", "arguments", "said"),
    [
        ("graph_traverse", {}, "needs start_id"),
        ("graph_add_relation", {}, "needs from_id and to_id and type"),
        ("graph_get_node", {"id": "x"}, "no argument 'id'"),
        ("graph_traverse", {"start_id": "00000000", "depth": -1}, "depth -1 is below 1"),
        ("desktop_history", {"limit": 0}, "limit 0 is below 1"),
        ("desktop_history", {"limit": "many"}, "limit is the text 'many'"),
        (
            "graph_add_relation",
            {"from_id": "a", "to_id": "b", "type": "blocks", "weight": -0.1},
            "w",
        ),
        ("graph_get_node", {"node_id": "1234567"}, "too short"),
    ],
)
async def test_wrong_arguments_are_one_line_that_names_them(
    client: Client, tool: str, arguments: dict[str, Any], said: str
) -> None:
    line = await refused(client, tool, **arguments)
    assert line.startswith("invalid: ")
    assert said in line
    assert "Traceback" not in line


async def test_a_number_as_text_is_read_and_one_too_large_is_clamped_and_said(
    client: Client,
) -> None:
    root = (await call(client, "desktop_open"))["session_id"]
    got = await call(client, "graph_traverse", start_id=root, depth="3", limit=10**9)
    assert got["notes"] == ["limit 1000000000 was clamped to 1000"]
    done = await result(client, "session_timeline", limit=10**9)
    assert "note: limit 1000000000 was clamped to 200" in text_of(done)
