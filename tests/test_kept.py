"""Rows and cards that stay in memory: answers from them are those of a memory just opened."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cortex.config import load_settings
from cortex.domain.instants import Instant
from cortex.domain.taxonomy import NodeType, Status
from cortex.domain.values import NodeId, WorkspaceId
from cortex.graph.kept import HeldNode, Recent
from cortex.memory import Memory, open_memory
from cortex.services.fields import Fields
from cortex.tools.registry import Written
from tests.local import ask, told

AT = Instant("2026-01-01T00:00:00.000000Z")
ROOM = 100


@pytest.fixture
def family(memory: Memory) -> list[str]:
    """A task, and four facts below it that follow one another."""
    task = ask(memory, "graph_add_node", type="task", title="The task")["id"]
    made = [task]
    for number in range(4):
        relations = [f"leads_to:{made[-1]}"] if number else []
        node = ask(
            memory,
            "graph_add_node",
            type="fact",
            text=f"fact {number} ü",
            parent_id=task,
            relations=relations,
        )
        made.append(node["id"])
    return made


def answers(memory: Memory, node: str) -> list[Any]:
    """What the graph tools say of a node, but for the generation of its index."""
    said: list[Any] = [
        ask(memory, "graph_get_node", node_id=node),
        told(memory, "graph_get_node", node_id=node),
        ask(memory, "graph_traverse", start_id=node, direction="both"),
        told(memory, "graph_traverse", start_id=node, direction="both"),
        ask(memory, "graph_walk", start_id=node),
        told(memory, "graph_walk", start_id=node),
        ask(memory, "find_related", node_id=node),
    ]
    said[0].pop("index")
    return said


def shell(memory: Memory, statement: str, *bound: str) -> None:
    with closing(sqlite3.connect(memory.engine.database.path)) as connection, connection:
        connection.execute(statement, bound)


CHANGES = {
    "text": lambda memory, ids: memory.mutation.update(ids[2], Fields(text="changed")),
    "status": lambda memory, ids: memory.mutation.update(ids[0], Fields(), status="stale"),
    "pinned": lambda memory, ids: memory.mutation.update(ids[3], Fields(pinned=True)),
    "superseded": lambda memory, ids: memory.mutation.supersede(ids[2], Fields(text="newer")),
    "deleted": lambda memory, ids: memory.mutation.delete(ids[3]),
    "deleted with all below": lambda memory, ids: memory.mutation.delete(ids[0], cascade=True),
    "weight": lambda memory, ids: memory.linking.add_relation(
        ids[2], ids[1], "leads_to", weight=0.5
    ),
    "label": lambda memory, ids: memory.linking.add_relation(
        ids[2], ids[4], "related_to", data={"label": "resembles"}
    ),
    "moved by a shell": lambda memory, ids: shell(
        memory, "UPDATE nodes SET parent_id = ? WHERE id = ?", ids[1], ids[4]
    ),
    "written by a shell": lambda memory, ids: shell(
        memory, "UPDATE nodes SET data = json_set(data, '$.text', ?) WHERE id = ?", "new", ids[1]
    ),
    "file": lambda memory, ids: memory.adding.add_node(
        "fact", Fields(text="of a file"), parent=ids[0], files=["notes.md:3"]
    ),
}


@pytest.mark.parametrize("change", CHANGES)
def test_after_a_change_every_answer_is_that_of_a_memory_just_opened(
    memory: Memory, home: Path, family: list[str], change: str
) -> None:
    for node in family:
        answers(memory, node)
    CHANGES[change](memory, family)
    left = [node for node in family if exists(memory, node)]
    with closing(open_memory(load_settings(home=home, workspace="w", env={}))) as fresh:
        for node in left:
            assert answers(memory, node) == answers(fresh, node)


def exists(memory: Memory, node: str) -> bool:
    with memory.engine.database.read() as snapshot:
        return snapshot.nodes.find(node) is not None


def test_what_is_written_once_is_what_the_objects_say(memory: Memory, family: list[str]) -> None:
    for _ in range(2):
        for node in family:
            for said in answers(memory, node):
                for value in said.values() if isinstance(said, dict) else ():
                    if isinstance(value, Written):
                        assert json.loads(value.written) == list(value)


def test_an_id_is_shown_whole_as_soon_as_another_begins_like_it(
    memory: Memory, family: list[str]
) -> None:
    short, whole = family[1][:8], family[1]
    assert whole not in told(memory, "graph_get_node", node_id=family[2])
    twin = f"{short}-0000-4000-8000-000000000000"
    shell(
        memory,
        "INSERT INTO nodes(id, type, workspace_id, data, status, created_at, updated_at) "
        "VALUES (?, 'fact', 'elsewhere', '{}', 'active', ?, ?)",
        twin,
        AT,
        AT,
    )
    assert whole in told(memory, "graph_get_node", node_id=family[2])


def test_a_file_that_changes_and_changes_back_is_marked_meanwhile(
    memory: Memory, tmp_path: Path
) -> None:
    docs = tmp_path / "docs"
    docs.mkdir()
    guide = docs / "guide.md"
    guide.write_text("# Guide\n\nThe zebra crosses at the old bridge.\n")
    memory.ingest.ingest(docs)
    node = memory.search.keyword_search("zebra").hits[0].node.id

    def marks() -> int:
        said = ask(memory, "graph_get_node", node_id=node)
        return sum("unverified" in each for each in (said["node"], *said["nodes"]))

    before = guide.read_text()
    assert marks() == 0
    guide.write_text("Other.\n")
    assert marks() > 0
    guide.write_text(before)
    assert marks() == 0


def held(key: int, size: int) -> HeldNode:
    name = WorkspaceId("w")
    node = HeldNode(key, NodeId(str(key)), NodeType.FACT, name, None, {}, Status.ACTIVE, AT, AT)
    node.size = size
    return node


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 12)), max_size=60))
def test_what_is_kept_is_what_was_read_and_stays_within_its_room(
    steps: list[tuple[bool, int]],
) -> None:
    kept = Recent[HeldNode](ROOM)
    for dropping, key in steps:
        if dropping:
            kept.drop([key])
        else:
            found = kept.all([key, key + 1], lambda keys: (held(each, each) for each in keys))
            assert [node.key for node in found] == [key, key + 1]
        inside = [*kept._new.values(), *kept._old.values()]
        assert kept.bytes == sum(node.size for node in inside) <= 2 * ROOM
        assert all(node.size * 16 <= ROOM for node in inside)


def test_what_was_asked_for_last_stays_longest() -> None:
    kept = Recent[HeldNode](ROOM)
    read: list[int] = []

    def reading(keys: list[int]) -> list[HeldNode]:
        read.extend(keys)
        return [held(key, 6) for key in keys]

    for key in range(200):
        kept.all([key, 0], reading)
    assert read == list(range(200))  # the first, asked for each time, was read once
    kept.all([1], reading)
    assert read[-1] == 1  # the second, never again, had gone
