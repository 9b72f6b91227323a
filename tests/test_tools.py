"""What the writing tools do to the graph: decompose, delete, relate, supersede, cascade."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
from mcp import Client

from tests.harness import call, connected, refused

pytestmark = pytest.mark.anyio


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The data folder of the server that this module's tests share."""
    return tmp_path_factory.mktemp("tools") / "home"


@pytest.fixture(scope="module")
async def client(place: Path, anyio_backend: str) -> AsyncIterator[Client]:
    async with connected(place) as client:
        yield client


def rows(home: Path, query: str, **values: Any) -> list[Any]:
    connection = sqlite3.connect(home / "cortex.db", isolation_level=None)
    try:
        return connection.execute(query, values).fetchall()
    finally:
        connection.close()


@contextmanager
def unchanged(home: Path) -> Iterator[None]:
    """No row of a node, a relation or the log is other afterwards."""

    def all_of_it() -> list[Any]:
        tables = ("nodes", "relations", "changes")
        return [rows(home, f"SELECT * FROM {table} ORDER BY rowid") for table in tables]  # noqa: S608 - fixed names

    before = all_of_it()
    yield
    assert all_of_it() == before


async def add(client: Client, kind: str, title: str, **more: Any) -> str:
    """The id of a new node; tasks have no vector, so that they cost nothing."""
    made = await call(client, "graph_add_node", type=kind, title=title, **more)
    return str(made["id"])


async def node(client: Client, node_id: str) -> dict[str, Any]:
    got = await call(client, "graph_get_node", node_id=node_id, depth=0)
    return dict(got["node"])


async def ends(client: Client, start: str, relation: str, direction: str = "out") -> list[str]:
    """Titles of the direct neighbours by one type of relation."""
    got = await call(
        client, "graph_traverse", start_id=start, relation=relation, depth=1, direction=direction
    )
    return [each["title"] for each in got["nodes"]]


# Ids


async def test_an_ambiguous_prefix_is_refused_with_its_candidates(
    client: Client, place: Path
) -> None:
    root = (await call(client, "desktop_open", workspace_id="prefix"))["session_id"]
    twins = [f"abcdef12-000{n}-4000-8000-000000000000" for n in (1, 2)]
    for twin in twins:
        rows(
            place,
            """INSERT INTO nodes(id, type, workspace_id, parent_id, data, created_at, updated_at)
            SELECT :twin, 'task', workspace_id, id, '{"title":"twin"}', created_at, updated_at
              FROM nodes WHERE id = :root""",
            twin=twin,
            root=root,
        )
    for tool, name in (
        ("graph_get_node", "node_id"),
        ("graph_traverse", "start_id"),
        ("graph_delete_node", "node_id"),
        ("desktop_focus", "node_id"),
    ):
        line = await refused(client, tool, **{name: "abcdef12"}, workspace_id="prefix")
        assert line.startswith("ambiguous: 'abcdef12' names 2 nodes")
        assert all(twin in line for twin in twins)
    got = await call(client, "graph_get_node", node_id="ABCDEF12-0002", workspace_id="prefix")
    assert got["node"]["id"] == twins[1]
    opened = await call(client, "desktop_open", workspace_id="prefix")
    assert {each["id"] for each in opened["cold"]} == set(twins)


async def test_a_prefix_of_eight_and_a_path_name_a_node(client: Client) -> None:
    file = await add(client, "fileref", "", path="src/app.py", workspace_id="names")
    for name in (file, file[:8], file[:13], file.upper(), "src/app.py"):
        got = await call(client, "graph_get_node", node_id=name, workspace_id="names")
        assert got["node"]["id"] == file


# Decompose


async def test_a_task_is_decomposed_into_subtasks_in_order(client: Client) -> None:
    task = await add(client, "task", "release", workspace_id="decompose")
    steps = ["build", {"title": "test", "text": "all of it", "tags": ["ci"]}, "publish"]
    done = await call(client, "graph_decompose", task_id=task, subtasks=steps)
    got = await call(client, "graph_get_node", node_id=done["ids"], depth=0)
    starts = got["starts"]
    assert [each["title"] for each in starts] == ["build", "test", "publish"]
    assert {(each["type"], each["parent_id"]) for each in starts} == {("subtask", task)}
    assert starts[1]["tags"] == ["ci"]
    assert sorted(await ends(client, task, "contains")) == ["build", "publish", "test"]
    assert sorted(await ends(client, task, "decomposes_to")) == ["build", "publish", "test"]
    below = await call(client, "graph_traverse", start_id=task, relation="contains", depth=1)
    assert [node["id"] for node in below["nodes"]] == done["ids"], "in order by creation too"
    walked = await call(client, "graph_walk", start_id=done["ids"][2])
    assert [step["node"]["title"] for step in walked["path"]] == ["publish", "test", "build"]


async def test_a_subtask_without_a_parent_is_refused(client: Client, place: Path) -> None:
    with unchanged(place):
        line = await refused(client, "graph_add_node", type="subtask", title="x")
    assert line.startswith("invalid: a subtask needs a parent")


# Delete


async def family(client: Client, workspace: str) -> tuple[str, str, list[str], str]:
    """Grandparent, parent, two children, and a grandchild below the first."""
    top = await add(client, "task", "top", workspace_id=workspace)
    mid = await add(client, "task", "mid", parent_id=top, workspace_id=workspace)
    low = [
        await add(client, "task", t, parent_id=mid, workspace_id=workspace) for t in ("l1", "l2")
    ]
    leaf = await add(client, "task", "leaf", parent_id=low[0], workspace_id=workspace)
    return top, mid, low, leaf


async def test_the_children_of_a_deleted_node_move_up_to_its_parent(client: Client) -> None:
    top, mid, low, leaf = await family(client, "up")
    done = await call(client, "graph_delete_node", node_id=mid)
    assert (done["deleted"], sorted(done["moved"])) == ([mid], sorted(low))
    assert [(await node(client, each))["parent_id"] for each in low] == [top, top]
    assert await ends(client, top, "contains") == ["l1", "l2"]
    assert (await node(client, leaf))["parent_id"] == low[0]
    assert (await refused(client, "graph_get_node", node_id=mid)).startswith("not_found: ")


async def test_a_cascading_delete_leaves_nothing_below_and_all_beside(
    client: Client, place: Path
) -> None:
    top, mid, low, leaf = await family(client, "down")
    beside = await add(client, "task", "beside", parent_id=top, workspace_id="down")
    await call(client, "graph_add_relation", from_id=beside, to_id=leaf, type="depends_on")
    done = await call(client, "graph_delete_node", node_id=mid, cascade=True)
    assert set(done["deleted"]) == {mid, *low, leaf}
    assert await ends(client, top, "contains") == ["beside"]
    assert await ends(client, beside, "depends_on") == []
    assert rows(
        place,
        """SELECT (SELECT count(*) FROM relations WHERE from_id NOT IN (SELECT id FROM nodes)
        OR to_id NOT IN (SELECT id FROM nodes)), (SELECT count(*) FROM nodes
        WHERE parent_id NOT IN (SELECT id FROM nodes))""",
    ) == [(0, 0)]


async def test_a_session_root_is_deleted_by_cascade_alone(client: Client, place: Path) -> None:
    await add(client, "task", "x", workspace_id="whole")
    root = (await call(client, "desktop_open", workspace_id="whole"))["session_id"]
    with unchanged(place):
        assert (await refused(client, "graph_delete_node", node_id=root)).startswith("conflict: ")
    done = await call(client, "graph_delete_node", node_id=root, cascade=True)
    assert done["deleted_total"] == 2
    assert (await call(client, "desktop_open", workspace_id="whole"))["graph"] == "empty"


# Cycles and homes


async def test_a_cycle_of_contains_or_a_second_parent_is_refused(
    client: Client, place: Path
) -> None:
    top, mid, low, leaf = await family(client, "cycle")
    with unchanged(place):
        for source, target, code in (
            (leaf, mid, "invalid"),
            (mid, top, "invalid"),
            (top, leaf, "conflict"),
            (low[1], leaf, "conflict"),
            (top, top, "invalid"),
        ):
            line = await refused(
                client, "graph_add_relation", from_id=source, to_id=target, type="contains"
            )
            assert line.startswith(f"{code}: ")


async def test_a_relation_across_workspaces_is_refused(client: Client, place: Path) -> None:
    here = await add(client, "task", "here", workspace_id="here")
    there = await add(client, "task", "there", workspace_id="there")
    with unchanged(place):
        for kind in ("related_to", "contains", "depends_on"):
            line = await refused(client, "graph_add_relation", from_id=here, to_id=there, type=kind)
            assert "'here'" in line
            assert "'there'" in line


async def test_a_relation_off_the_taxonomy_is_kept_with_a_note(client: Client) -> None:
    here = await add(client, "task", "a", workspace_id="off")
    there = await add(client, "task", "b", workspace_id="off")
    made = await call(client, "graph_add_relation", from_id=here, to_id=there, type="answers")
    assert made["notes"] == ["answers usually does not join task to task; kept as given"]
    assert await ends(client, here, "answers") == ["b"]


# Supersede


async def test_a_new_node_takes_the_place_of_the_one_it_supersedes(client: Client) -> None:
    at = {"workspace_id": "supersede"}
    parent = await add(client, "task", "parent", **at)
    limit = await add(client, "constraint", "no downtime", **at)
    old = await add(
        client,
        "task",
        "migrate by hand",
        parent_id=parent,
        tags="db,ops",
        files="ops/migrate.sh:3",
        relations=f"constrained_by:{limit}",
        **at,
    )
    child = await add(client, "task", "dump", parent_id=old, **at)
    other = await add(client, "task", "announce", relations=f"depends_on:{old}", **at)
    done = await call(client, "graph_supersede", old_id=old, title="migrate by script")
    new = done["new_id"]
    assert (done["old_id"], done["status"]) == (old, "superseded")
    assert [each["id"] for each in done["dependents"]] == [other]
    assert [(each["type"], each["direction"]) for each in done["left"]] == [("depends_on", "in")]
    fresh, stale = await node(client, new), await node(client, old)
    assert (fresh["type"], fresh["parent_id"], fresh["tags"]) == ("task", parent, ["db", "ops"])
    assert (fresh["status"], stale["status"]) == ("active", "stale")
    assert (await node(client, child))["parent_id"] == new
    assert await ends(client, new, "contains") == ["dump"]
    assert await ends(client, new, "constrained_by") == ["no downtime"]
    assert await ends(client, new, "relates_to_file") == ["ops/migrate.sh"]
    assert await ends(client, new, "supersedes") == ["migrate by hand"]
    line = await refused(client, "graph_supersede", old_id=old, title="again")
    assert line.startswith("stale_target: ")
    assert new in line
    for source, target in ((old, new), (new, new)):
        line = await refused(
            client, "graph_add_relation", from_id=source, to_id=target, type="supersedes"
        )
        assert line.startswith("invalid: ")


async def test_a_superseded_node_cannot_become_active_again(client: Client, place: Path) -> None:
    old = await add(client, "task", "first", workspace_id="again")
    new = (await call(client, "graph_supersede", old_id=old, title="second"))["new_id"]
    with unchanged(place):
        line = await refused(client, "graph_update_node", node_id=old, status="active")
    assert line.startswith("stale_target: ")
    assert new in line


# Update and cascade


async def test_an_update_merges_and_null_removes(client: Client) -> None:
    made = await add(
        client, "task", "t", data={"a": 1, "b": {"c": 2}}, tags="x", workspace_id="merge"
    )
    await call(client, "graph_update_node", node_id=made, data={"a": None, "d": 4}, text="body")
    got = await node(client, made)
    assert (got["title"], got["text"], got["tags"]) == ("t", "body", ["x"])
    assert got["data"] == {"b": {"c": 2}, "d": 4}


async def test_stale_cascades_down_and_is_taken_back(client: Client) -> None:
    top, mid, low, leaf = await family(client, "stale")
    gone = (await call(client, "graph_supersede", old_id=low[1], title="l3"))["new_id"]
    done = await call(client, "graph_update_node", node_id=mid, status="stale", cascade=True)
    assert {each["id"] for each in done["marked"]} == {mid, low[0], gone, leaf}
    assert (await node(client, top))["status"] == "active"
    assert (await node(client, leaf))["status"] == "stale"
    done = await call(client, "graph_update_node", node_id=mid, status="active", cascade=True)
    back = [(await node(client, each))["status"] for each in (mid, low[0], leaf, gone, low[1])]
    assert back == ["active", "active", "active", "active", "stale"]
    assert low[1][:8] in str(done["notes"])


# Dry runs


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("graph_update_node", {"text": "other", "data": {"x": 1}}),
        ("graph_update_node", {"status": "stale", "cascade": True}),
        ("graph_supersede", {"text": "other"}),
        ("graph_supersede", {"text": "other", "cascade": True}),
        ("graph_delete_node", {}),
        ("graph_delete_node", {"cascade": True}),
    ],
)
async def test_a_dry_run_says_what_the_run_does_and_changes_nothing(
    client: Client, place: Path, tool: str, arguments: dict[str, Any]
) -> None:
    top, mid, _, _ = await family(client, "dry")
    name = "old_id" if tool == "graph_supersede" else "node_id"
    arguments = {name: mid, **arguments}
    with unchanged(place):
        plan = await call(client, tool, **arguments, dry_run=True)
    done = await call(client, tool, **arguments)
    assert plan.pop("dry_run")
    assert not done.pop("dry_run")
    assert plan.pop("generation") < done.pop("generation")
    assert plan.pop("new_id", None) is None
    done.pop("new_id", None)
    assert plan == done
    await call(client, "graph_delete_node", node_id=top, cascade=True)


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("graph_update_node", {"status": "stale"}),
        ("graph_supersede", {"text": "other"}),
        ("graph_delete_node", {}),
    ],
)
async def test_a_plan_waits_for_no_writer_and_spends_no_key(
    client: Client, place: Path, tool: str, arguments: dict[str, Any]
) -> None:
    top, mid, _, _ = await family(client, "plan")
    name = "old_id" if tool == "graph_supersede" else "node_id"
    arguments = {name: mid, "cascade": True, "idempotency_key": f"plan {tool}", **arguments}
    with closing(sqlite3.connect(place / "cortex.db", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        plan = await call(client, tool, **arguments, dry_run=True)
        other.execute("ROLLBACK")
    assert plan["dry_run"]
    assert not (await call(client, tool, **arguments))["dry_run"]
    await call(client, "graph_delete_node", node_id=top, cascade=True)
