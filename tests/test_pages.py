"""Large answers: each within its budget, with totals, and cursors that miss and repeat nothing."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Final

import pytest
from mcp import Client
from mcp.types import TextResourceContents

from cortex.config import load_settings
from cortex.domain.taxonomy import NodeType, RelationType
from cortex.domain.values import WorkspaceId
from cortex.memory import open_memory
from cortex.services.adding import insert_child
from cortex.services.linking import ensure_root, link
from tests.harness import call, connected, result, text_of

pytestmark = pytest.mark.anyio

SPOKES: Final = 5000
WHEEL: Final = 500
DESK: Final = 400
LONG: Final = 'He said: "größer" \\ 🙂\tand so on. ' * 60
# What stands around the lists: the start node, counts, cursor, notes.
STRUCTURED: Final = 26_000
TEXT: Final = 9_000


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A memory with a hub of 5,000 relations, and one with a full desktop."""
    home = tmp_path_factory.mktemp("pages") / "home"
    memory = open_memory(load_settings(home=home, workspace="w", env={}))
    for name, spokes in (("hub", SPOKES), ("wheel", WHEEL)):
        with memory.engine.write() as transaction:
            root, _ = ensure_root(transaction, WorkspaceId(name))
            at = (root.workspace_id, root)
            # Tasks have no vector, so that nothing is embedded behind the tests.
            centre = insert_child(
                transaction, NodeType.TASK, *at, {"title": "the hub", "pinned": True}
            )
            for number in range(spokes):
                data = {"title": f"spoke {number}", "text": LONG if number % 50 == 0 else ""}
                spoke = insert_child(transaction, NodeType.TASK, *at, data)
                transaction.relations.insert(
                    root.workspace_id, spoke.id, centre.id, RelationType.DEPENDS_ON, transaction.at
                )
    for number in range(DESK):
        with memory.engine.write() as transaction:
            desk, _ = ensure_root(transaction, WorkspaceId("desk"))
            text = {"title": f"task {number} {LONG}"[:480], "text": LONG}
            pinned = {"pinned": True} if number % 40 == 0 else {}
            node = insert_child(
                transaction, NodeType.TASK, desk.workspace_id, desk, {**text, **pinned}
            )
            link(transaction, node, transaction.nodes.by_ids([desk.id])[0], RelationType.RELATED_TO)
    memory.close()
    return home


@pytest.fixture(scope="module")
async def client(place: Path, anyio_backend: str) -> AsyncIterator[Client]:
    async with connected(place) as client:
        yield client


async def hub_of(client: Client, workspace: str) -> str:
    """The id of the node in the middle."""
    opened = await call(client, "desktop_open", workspace_id=workspace)
    return str(opened["hot"][0]["id"])


@pytest.fixture(scope="module")
async def centre(client: Client) -> str:
    return await hub_of(client, "hub")


def compact(value: Any) -> int:
    return len(json.dumps(value, ensure_ascii=False, separators=(",", ":")))


async def pages(
    client: Client, tool: str, *, most: int = 500, **arguments: Any
) -> list[dict[str, Any]]:
    """Every page of an answer; its text names all that its JSON has, and the same next page."""
    found: list[dict[str, Any]] = []
    cursor = ""
    while len(found) < most:
        done = await result(client, tool, **arguments, cursor=cursor)
        assert not done.is_error, text_of(done)
        assert done.structured_content is not None
        found.append(done.structured_content)
        shown = [
            item["id"][:8]
            for name in ("hot", "cold", "nodes", "events")
            for item in done.structured_content.get(name, ())
        ]
        assert [name for name in shown if name not in text_of(done)] == []
        following = done.structured_content["next_cursor"]
        assert ("cursor=" in text_of(done)) is (following is not None)
        if following is None:
            return found
        assert f"cursor={following}" in text_of(done)
        assert done.structured_content["truncated"]
        cursor = following
    raise AssertionError(f"more than {most} pages")


# A hub


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("graph_get_node", {"node_id": "{}", "depth": 2, "limit": 200}),
        ("graph_traverse", {"start_id": "{}", "direction": "in", "limit": 1000}),
        ("desktop_focus", {"node_id": "{}", "limit": 200, "workspace_id": "hub"}),
        ("desktop_history", {"workspace_id": "hub", "limit": 200}),
        ("temporal_walk", {"workspace_id": "hub", "limit": 200}),
        ("temporal_walk", {"workspace_id": "hub", "relation_type": "depends_on", "limit": 200}),
        ("session_timeline", {"workspace_id": "hub", "limit": 200}),
        ("desktop_open", {"workspace_id": "hub", "max_chars": 20000}),
        ("graph_search", {"query": "spoke", "workspace_id": "hub", "top_k": 100}),
    ],
)
async def test_a_hub_of_five_thousand_relations_answers_within_its_budget(
    client: Client, centre: str, tool: str, arguments: dict[str, Any]
) -> None:
    filled = {
        name: value.format(centre) if isinstance(value, str) else value
        for name, value in arguments.items()
    }
    done = await result(client, tool, **filled)
    assert not done.is_error, text_of(done)
    answer = done.structured_content
    assert answer is not None
    assert compact(answer) <= STRUCTURED
    assert len(text_of(done)) <= (20_000 if tool == "desktop_open" else TEXT)
    assert answer["truncated"] or tool == "desktop_history"
    assert ("cursor=" in text_of(done)) is bool(answer.get("next_cursor"))
    if tool in ("graph_get_node", "graph_traverse", "desktop_focus"):
        assert answer["total"] >= SPOKES
    again = (await result(client, tool, **filled)).structured_content
    lists = [name for name, value in answer.items() if isinstance(value, list)]
    if tool not in ("session_timeline", "desktop_history"):  # they show the calls before
        assert {k: again[k] for k in lists} == {k: answer[k] for k in lists}


async def test_the_resources_of_a_hub_are_within_their_budget(client: Client, centre: str) -> None:
    for uri in ("cortex://graph/hub", f"cortex://node/{centre}", "cortex://desktop/hub"):
        content = (await client.read_resource(uri)).contents[0]
        assert isinstance(content, TextResourceContents)
        text = content.text
        assert len(text) <= STRUCTURED + 40_000 * ("graph/" in uri)
        assert json.loads(text)["truncated"]


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("graph_get_node", {"node_id": "{}", "depth": 1, "limit": 200}),
        ("graph_traverse", {"start_id": "{}", "direction": "in", "depth": 1, "limit": 1000}),
    ],
)
async def test_the_pages_of_a_hub_have_each_node_and_each_relation_once(
    client: Client, tool: str, arguments: dict[str, Any]
) -> None:
    centre = await hub_of(client, "wheel")
    filled = {k: v.format(centre) if isinstance(v, str) else v for k, v in arguments.items()}
    found = await pages(client, tool, **filled)
    ids = [node["id"] for page in found for node in page["nodes"]]
    relations = [relation["id"] for page in found for relation in page["relations"]]
    assert {page["total"] for page in found} == {len(ids)}
    assert len(ids) == len(set(ids)) >= WHEEL
    assert len(relations) == len(set(relations)) >= WHEEL


async def test_a_memory_shows_the_ten_nearest_and_where_the_rest_are(
    client: Client, centre: str
) -> None:
    found = await call(client, "graph_get_node", node_id=centre)
    focus = await call(client, "desktop_focus", node_id=centre, workspace_id="hub")
    assert len(found["nodes"]) == len(focus["nodes"]) == 10
    assert [node["id"] for node in focus["nodes"]] == [node["id"] for node in found["nodes"]]
    assert found["total"] == focus["total"] >= SPOKES
    rest = await call(client, "graph_get_node", node_id=centre, cursor=found["next_cursor"])
    assert not {node["id"] for node in rest["nodes"]} & {node["id"] for node in found["nodes"]}


async def test_a_relation_between_nodes_of_two_pages_is_on_the_later_one(client: Client) -> None:
    at = {"workspace_id": "chain"}
    start = (await call(client, "graph_add_node", type="task", title="0", **at))["id"]
    last = start
    for number in range(1, 6):
        node = await call(client, "graph_add_node", type="task", title=str(number), **at)
        await call(client, "graph_add_relation", from_id=last, to_id=node["id"], type="depends_on")
        last = node["id"]
    found = await pages(
        client, "graph_traverse", start_id=start, relation="depends_on", depth=10, limit=2
    )
    assert [len(page["nodes"]) for page in found] == [2, 2, 1]
    assert [len(page["relations"]) for page in found] == [2, 2, 1]


# Time


@pytest.mark.parametrize("limit", [7, 200])
@pytest.mark.parametrize("more", [{}, {"relation_type": "related_to"}, {"node_types": "task"}])
async def test_a_walk_through_time_has_each_node_once_and_in_order(
    client: Client, limit: int, more: dict[str, str]
) -> None:
    found = await pages(client, "temporal_walk", workspace_id="desk", limit=limit, **more)
    nodes = [node for page in found for node in page["nodes"]]
    assert len({node["id"] for node in nodes}) == len(nodes) == DESK + ("node_types" not in more)
    order = [(node["created_at"], node["id"]) for node in nodes]
    assert order == sorted(order)


async def test_a_timeline_has_each_event_once_whatever_happens_at_one_instant(
    client: Client,
) -> None:
    window = {"workspace_id": "wheel", "to_time": "2100-01-01"}
    first = await call(client, "session_timeline", **window, limit=1)
    stop = first["events"][0]["at"]  # what the calls themselves add comes later
    found = await pages(client, "session_timeline", workspace_id="wheel", to_time=stop, limit=200)
    events = [event for page in found for event in page["events"]]
    times = [event["at"] for event in events]
    assert times == sorted(times, reverse=True)
    made = [event["id"] for event in events if event["kind"] == "created"]
    related = [event["detail"] + event["id"] for event in events if event["kind"] == "related"]
    assert len(made) == len(set(made)) == WHEEL + 2
    assert len(related) == len(set(related)) == 2 * WHEEL + 1


# The desktop


@pytest.mark.parametrize("most", [500, 700, 1000, 2000, 5000, 12_000, 40_000])
async def test_a_desktop_stays_within_its_ceiling_as_text_and_as_json(
    client: Client, most: int
) -> None:
    done = await result(client, "desktop_open", workspace_id="desk", max_chars=most)
    answer = done.structured_content
    assert answer is not None
    assert compact(answer) <= most
    assert len(text_of(done)) <= most
    assert answer["session_id"]
    assert answer["archive"]["count"] == 0
    if most >= 2000:
        assert answer["hot"]
        assert answer["cold"]
        assert all(len(hot["text"]) <= 400 for hot in answer["hot"])


@pytest.mark.parametrize("most", [1000, 5000, 40_000])
async def test_the_pages_of_a_desktop_have_each_cold_node_once(client: Client, most: int) -> None:
    found = await pages(client, "desktop_open", workspace_id="desk", max_chars=most)
    cold = [node["id"] for page in found for node in page["cold"]]
    assert len(cold) == len(set(cold)) == found[0]["total"] == DESK - DESK // 40
    assert not set(cold) & {node["id"] for node in found[0]["hot"]}
