"""What is searched follows what is stored: edits, deletions, superseding."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from cortex.config import load_settings
from cortex.domain.errors import CortexError, InvalidError, StaleTargetError
from cortex.domain.instants import Instant
from cortex.memory import Memory, open_memory
from tests.harness import connected
from tests.local import ask

QUERY = "SSH port is 22"


@contextmanager
def reopened(home: Path) -> Iterator[Memory]:
    """The memory of this folder, as a later process finds it."""
    with closing(open_memory(load_settings(home=home, workspace="w", env={}))) as memory:
        yield memory


def add(memory: Memory, text: str, **more: Any) -> str:
    """The id of a new fact."""
    return str(ask(memory, "graph_add_node", **{"type": "fact", "text": text, **more})["id"])


def family(memory: Memory) -> tuple[str, list[str]]:
    """A task with three facts, all in the vector index."""
    parent = add(memory, "harden the gateway", type="task")
    texts = ("the gateway drops idle sockets", "the gateway logs in JSON", "the gateway is in Oslo")
    children = [add(memory, text, parent_id=parent) for text in texts]
    ask(memory, "desktop_focus", node_id=children[0])
    assert found(memory, texts[0])[0] == children[0]
    return parent, children


def found(memory: Memory, query: str, **more: Any) -> list[str]:
    """Ids of the hits by meaning."""
    answer = ask(memory, "vector_search", query=query, **more)
    assert answer["degraded"] is None
    assert answer["pending"] == 0
    return [hit["id"] for hit in answer["hits"]]


def column(home: Path, query: str) -> list[Any]:
    """One column, read from the file beside the product."""
    with closing(sqlite3.connect(home / "cortex.db")) as connection:
        return [value for (value,) in connection.execute(query)]


def ports(memory: Memory) -> list[str]:
    """Ids of a fact superseded twice, oldest first."""
    chain = [add(memory, QUERY)]
    for text in ("SSH port is 49222", "SSH port is 2222"):
        made = ask(memory, "graph_supersede", old_id=chain[-1], new_data={"text": text})
        chain.append(made["new_id"])
    return chain


# Deletion


def test_a_child_deleted_with_its_parent_is_not_found(memory: Memory) -> None:
    parent, _ = family(memory)
    ask(memory, "graph_delete_node", node_id=parent, cascade=True)
    for query in ("the gateway drops idle sockets", "gateway"):
        assert found(memory, query) == []
        assert ask(memory, "graph_search", query=query)["hits"] == []


def test_a_child_deleted_with_its_parent_is_not_found_after_a_restart(
    memory: Memory, home: Path
) -> None:
    parent, _ = family(memory)
    ask(memory, "graph_delete_node", node_id=parent, cascade=True)
    memory.close()
    with reopened(home) as later:
        assert found(later, "the gateway drops idle sockets") == []


def test_a_cascade_leaves_no_vector_no_relation_and_no_parent_behind(
    memory: Memory, home: Path
) -> None:
    parent, _ = family(memory)
    stays = add(memory, "the balcony faces south")
    assert found(memory, "balcony") == [stays]
    ask(memory, "graph_delete_node", node_id=parent, cascade=True)
    live = column(home, "SELECT rowkey FROM nodes WHERE type NOT IN ('session', 'task')")
    assert column(home, "SELECT DISTINCT node_key FROM embeddings") == live
    assert column(home, "SELECT node_key FROM index_state") == live
    named = (
        "SELECT from_id FROM relations UNION SELECT to_id FROM relations UNION "
        "SELECT parent_id FROM nodes WHERE parent_id IS NOT NULL EXCEPT SELECT id FROM nodes"
    )
    assert column(home, named) == []


def test_the_history_of_a_deleted_node_is_readable(memory: Memory) -> None:
    parent, children = family(memory)
    ask(memory, "graph_delete_node", node_id=parent, cascade=True)
    entries = ask(memory, "desktop_history")["entries"]
    focus = next(entry for entry in entries if entry["action"] == "focus")
    assert (focus["node_id"], focus["node"]) == (children[0], "deleted")


def test_a_deleted_node_does_not_come_back_with_a_reindex(memory: Memory, home: Path) -> None:
    parent, _ = family(memory)
    ask(memory, "graph_delete_node", node_id=parent, cascade=True)
    memory.indexing.reindex(None, lambda done, total: None)
    assert found(memory, "the gateway drops idle sockets") == []
    assert ask(memory, "graph_search", query="gateway")["hits"] == []
    assert column(home, "SELECT node_key FROM embeddings") == []


def test_without_cascade_the_children_are_still_found(memory: Memory) -> None:
    parent, children = family(memory)
    ask(memory, "graph_delete_node", node_id=parent)
    assert sorted(found(memory, "gateway")) == sorted(children)


# Edits


def test_an_edit_keeps_tags_and_creation_time_in_the_index(home: Path) -> None:
    day = Instant("2026-05-14T10:00:00.000000Z")
    times = iter([day, Instant("2026-06-01T10:00:00.000000Z")])
    now = [day]

    def clock() -> Instant:
        now[0] = next(times, now[0])
        return now[0]

    settings = load_settings(home=home, workspace="w", env={})
    with closing(open_memory(settings, clock=clock)) as memory:
        node = add(memory, "the cache holds 10 MB", tags=["cache"])
    with reopened(home) as memory:
        ask(memory, "graph_update_node", node_id=node, text="the store keeps 64 MB")
        window = {"time_from": "2026-05-14", "time_to": "2026-05-14"}
        assert found(memory, "64 MB in the store", tags=["cache"], **window) == [node]
        assert found(memory, "64 MB in the store", tags=["other"], **window) == []


def test_an_edited_text_is_no_longer_found_by_its_old_words(memory: Memory) -> None:
    node = add(memory, "the kettle whistles in the kitchen")
    assert found(memory, "kettle in the kitchen") == [node]
    ask(memory, "graph_update_node", node_id=node, text="invoices are paid within 30 days")
    assert found(memory, "invoices paid") == [node]
    assert found(memory, "kettle in the kitchen") == []
    assert ask(memory, "graph_search", query="kettle")["hits"] == []


# Superseding


def test_broken_unicode_from_a_foreign_shell_stops_no_write_and_no_view(
    memory: Memory, home: Path
) -> None:
    node = add(memory, "will be broken")
    with closing(sqlite3.connect(home / "cortex.db", isolation_level=None)) as shell:
        data = r'{"text":"halves \ud800 and \u0000","k\udc00":"v"}'
        shell.execute("UPDATE nodes SET data = ? WHERE id = ?", (data, node))
    other = add(memory, "written after it")
    assert memory.indexing.wait(None, 60) == 0
    assert found(memory, "halves") == [node]
    shown = ask(memory, "graph_get_node", node_id=node)["node"]
    assert (shown["text"], shown["data"]) == ("halves \ufffd and \ufffd", {"k\ufffd": "v"})
    for tool in ("session_timeline", "desktop_open", "temporal_walk", "desktop_history"):
        ask(memory, tool)
    ask(memory, "graph_update_node", node_id=node, text="mended")
    ask(memory, "graph_delete_node", node_id=other)


def test_the_first_wording_finds_the_head_alone(memory: Memory) -> None:
    first, second, head = ports(memory)
    for tool in ("vector_search", "graph_search"):
        hits = ask(memory, tool, query=QUERY)["hits"]
        assert [hit["id"] for hit in hits] == [head]
        assert hits[0]["status"] == "active"
        assert hits[0]["text"] == "SSH port is 2222"
        assert hits[0]["matched_id"] in (first, second)


def test_stale_wordings_are_shown_on_request_and_labelled(memory: Memory) -> None:
    first, second, head = ports(memory)
    hits = ask(memory, "vector_search", query=QUERY, include_stale=True)["hits"]
    assert {hit["id"]: hit["status"] for hit in hits} == {
        first: "stale",
        second: "stale",
        head: "active",
    }


def test_the_whole_chain_is_walked_in_order(memory: Memory) -> None:
    first, second, head = ports(memory)
    path = ask(memory, "graph_walk", start_id=head)["path"]
    assert [step["node"]["id"] for step in path] == [head, second, first]
    back = ask(memory, "graph_walk", start_id=first, direction="backward")["path"]
    assert [step["node"]["id"] for step in back] == [first, second, head]


def test_superseding_a_stale_node_is_refused_and_names_the_head(memory: Memory) -> None:
    first, _, head = ports(memory)
    with pytest.raises(StaleTargetError, match=head):
        ask(memory, "graph_supersede", old_id=first, new_data={"text": "SSH port is 80"})


def test_a_superseded_node_cannot_be_made_active(memory: Memory) -> None:
    first, _, head = ports(memory)
    with pytest.raises(StaleTargetError, match=head):
        ask(memory, "graph_update_node", node_id=first, status="active")


def test_supersedes_in_a_circle_is_refused(memory: Memory) -> None:
    first, _, head = ports(memory)
    with pytest.raises(InvalidError, match="cycle"):
        ask(memory, "graph_add_relation", from_id=first, to_id=head, type="supersedes")


def test_a_superseding_that_fails_at_its_last_step_leaves_nothing(
    memory: Memory, home: Path
) -> None:
    old = add(memory, QUERY)
    with closing(sqlite3.connect(home / "cortex.db")) as connection:
        connection.execute(
            "CREATE TRIGGER stop BEFORE INSERT ON relations WHEN NEW.type = 'supersedes'"
            " BEGIN SELECT RAISE(ABORT, 'stopped'); END"
        )
    with pytest.raises(CortexError, match="stopped"):
        ask(memory, "graph_supersede", old_id=old, new_data={"text": "SSH port is 23"})
    assert column(home, "SELECT COUNT(*) FROM nodes WHERE type = 'fact'") == [1]
    assert ask(memory, "graph_get_node", node_id=old)["node"]["status"] == "active"


# No view shows an old value as current


def mentions(value: Any, node: str) -> Iterator[dict[str, Any]]:
    """Every object of the answer that stands for this node with its title."""
    if isinstance(value, dict):
        if value.get("id") == node and "title" in value:
            yield value
        for inner in value.values():
            yield from mentions(inner, node)
    elif isinstance(value, list):
        for inner in value:
            yield from mentions(inner, node)


VIEWS: dict[str, dict[str, Any]] = {
    "desktop_open": {},
    "desktop_history": {},
    "graph_search": {"query": QUERY},
    "vector_search": {"query": QUERY, "include_stale": True},
    "session_timeline": {},
    "temporal_walk": {},
    "graph_get_node": {"node_id": "head"},
    "graph_traverse": {"start_id": "head"},
    "graph_walk": {"start_id": "head"},
    "desktop_focus": {"node_id": "head"},
}
SHOWING = set(VIEWS) - {"graph_search"}


@pytest.fixture(scope="module")
def replaced(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Memory, str, str]]:
    """A memory with a pinned fact that was in focus, then superseded; both ids."""
    with reopened(tmp_path_factory.mktemp("views") / "home") as memory:
        old = add(memory, QUERY, pinned=True)
        ask(memory, "desktop_focus", node_id=old)
        made = ask(memory, "graph_supersede", old_id=old, new_data={"text": "SSH port is 2222"})
        yield memory, old, made["new_id"]


@pytest.mark.parametrize("view", VIEWS)
def test_each_view_labels_the_superseded_value(
    replaced: tuple[Memory, str, str], view: str
) -> None:
    memory, old, head = replaced
    arguments = {name: head if value == "head" else value for name, value in VIEWS[view].items()}
    shown = list(mentions(ask(memory, view, **arguments), old))
    assert bool(shown) == (view in SHOWING)
    assert all(each["status"] == "stale" for each in shown)


@pytest.mark.anyio
async def test_each_resource_labels_the_superseded_value(
    replaced: tuple[Memory, str, str],
) -> None:
    memory, old, head = replaced
    async with connected(memory.settings.home) as client:
        for place in ("graph/w", f"node/{head}", "desktop/w", "search/SSH%20port%20is%2022"):
            read = await client.read_resource(f"cortex://{place}")
            answer = json.loads(read.contents[0].text)  # type: ignore[union-attr]  # text, not blob
            assert list(mentions(answer, head)), place
            assert all(each["status"] == "stale" for each in mentions(answer, old)), place
