"""Rows and cards that stay in memory: answers from them are those of a memory just opened."""

from __future__ import annotations

import json
import sqlite3
import tracemalloc
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from threading import Timer
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cortex.config import load_settings
from cortex.domain.errors import UnavailableError
from cortex.domain.instants import Instant
from cortex.domain.taxonomy import NodeType, RelationType, Status
from cortex.domain.values import NodeId, WorkspaceId, burden, unpack
from cortex.graph import proximity
from cortex.graph.kept import HeldNode, Recent
from cortex.memory import Memory, open_memory
from cortex.services.fields import Fields
from cortex.store.filerefs import Filerefs
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


def test_an_id_that_comes_under_a_key_that_was_there_is_a_new_one(
    memory: Memory, family: list[str]
) -> None:
    other = memory.reading.whole(family[4])
    whole = family[1]
    assert whole not in told(memory, "graph_get_node", node_id=family[2])
    twin = f"{whole[:8]}-0000-4000-8000-000000000000"
    shell(memory, "DELETE FROM nodes WHERE id = ?", other.id)
    shell(
        memory,
        "INSERT INTO nodes(rowkey, id, type, workspace_id, data, status, created_at, updated_at) "
        "VALUES (?, ?, 'fact', 'w', '{}', 'active', ?, ?)",
        str(other.key),
        twin,
        AT,
        AT,
    )
    assert whole in told(memory, "graph_get_node", node_id=family[2])


def test_a_focus_tells_of_the_moment_that_it_names(memory: Memory, family: list[str]) -> None:
    """It waits for a writer, so what it read before could be older than what it says."""
    node = family[1]
    path = memory.engine.database.path
    for _ in range(5):
        memory.mutation.update(node, Fields(text="before"))
        memory.history.opened([memory.reading.whole(node).id])
        with closing(
            sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        ) as writer:
            writer.execute("BEGIN IMMEDIATE")
            writer.execute("UPDATE nodes SET data = json_set(data, '$.text', 'after')")
            commit = Timer(0.02, writer.execute, ["COMMIT"])
            commit.start()
            said = ask(memory, "desktop_focus", node_id=node)
            commit.join()
        with memory.engine.database.read() as snapshot:
            present = snapshot.generation().seq
        if said["generation"] == present:
            assert said["node"]["text"] == "after"
        else:
            assert said["node"]["text"] == "before"


def wide_and_changed(memory: Memory, docs: Path) -> str:
    """A fact with more relations than a graph looks at, resting on a file that has changed."""
    docs.mkdir()
    (docs / "guide.md").write_text("# Guide\n\nzebra\n")
    memory.ingest.ingest(docs)
    fact = ask(memory, "graph_add_node", type="fact", text="wide")["id"]
    with memory.engine.database.write("test") as transaction:
        place = WorkspaceId("w")
        [file] = [each for each in transaction.nodes.iter_all(place) if "size" in each.data]
        source = NodeId(fact)
        transaction.relations.insert(place, source, file.id, RelationType.REFERENCES, AT)
        for number in range(70):
            made = NodeId(f"{number:08x}-1111-4111-8111-111111111111")
            transaction.nodes.insert(made, NodeType.FILEREF, place, None, {"path": made}, AT)
            transaction.relations.insert(place, source, made, RelationType.REFERENCES, AT)
    (docs / "guide.md").write_text("other\n")
    return fact


def test_a_query_that_fails_leaves_nothing_behind(
    memory: Memory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Fault injection: the look for a wide node's files is interrupted once."""
    fact = wide_and_changed(memory, tmp_path / "docs")

    def interrupted(self: Filerefs, ids: object, limit: int) -> list[tuple[NodeId, int]]:
        raise sqlite3.OperationalError("interrupted")

    with monkeypatch.context() as patch:
        patch.setattr(Filerefs, "rested_on", interrupted)
        with pytest.raises(UnavailableError):
            ask(memory, "graph_get_node", node_id=fact)
    assert "unverified" in ask(memory, "graph_get_node", node_id=fact)["warnings"][0]


def test_what_was_cut_is_not_kept(
    memory: Memory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fact = wide_and_changed(memory, tmp_path / "docs")
    with monkeypatch.context() as patch:
        patch.setattr(proximity, "_FILES_ASKED", 0)
        assert ask(memory, "graph_get_node", node_id=fact)["warnings"] == []
    assert "unverified" in ask(memory, "graph_get_node", node_id=fact)["warnings"][0]


def test_who_changes_an_answer_changes_no_other(memory: Memory, family: list[str]) -> None:
    ask(memory, "graph_add_relation", from_id=family[1], to_id=family[3], type="related_to",
        data={"label": "like"})  # fmt: skip
    before = json.dumps(answers(memory, family[1]))

    def spoil(value: Any) -> None:
        if isinstance(value, dict):
            for inner in list(value.values()):
                spoil(inner)
            value["spoilt"] = True
        elif isinstance(value, list):
            for inner in value:
                spoil(inner)
            value.append("spoilt")

    for said in answers(memory, family[1]):
        spoil(said)
    assert json.dumps(answers(memory, family[1])) == before


def test_a_read_only_focus_brings_nothing_back_and_says_so(home: Path) -> None:
    settings = load_settings(home=home, workspace="w", env={})
    with closing(open_memory(settings)) as memory:
        node = ask(memory, "graph_add_node", type="fact", text="old")["id"]
        memory.mutation.update(node, Fields(), status="archived")
    with closing(open_memory(replace(settings, read_only=True))) as memory:
        found = memory.viewport.focus(node)
    assert not found.restored
    assert "reading only" in found.notes[0]


@pytest.mark.parametrize("piece", ["{}", '{"a":{}}', "[]", "0.5", '"words, of a text"'])
def test_what_a_row_takes_in_memory_is_not_far_underestimated(piece: str) -> None:
    text = "{" + ",".join(f'"k{number}":{piece}' for number in range(2000)) + "}"
    tracemalloc.start()
    value = unpack(text)
    taken = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    assert len(value) == 2000
    assert taken < 1.5 * burden(text)


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


def test_what_was_found_is_searched_again_after_any_change(
    memory: Memory, family: list[str]
) -> None:
    searched: list[int] = []

    def ask_again() -> None:
        with memory.engine.graphs.view(memory.engine.database, WorkspaceId("w")) as (_, graph):
            graph.kept.found("asked", 10, lambda: searched.append(1) or "found")

    ask_again()
    ask_again()
    assert len(searched) == 1
    memory.mutation.update(family[1], Fields(text="other"))
    ask_again()
    assert len(searched) == 2


def test_the_pages_of_a_long_answer_are_not_kept(memory: Memory, family: list[str]) -> None:
    for offset in range(0, 5000, 100):
        memory.reading.traverse(family[0], offset=offset, limit=100)
        memory.reading.get([family[0]], offset=offset, limit=100)
    with memory.engine.graphs.view(memory.engine.database, WorkspaceId("w")) as (_, graph):
        assert len(graph.kept._found) == 2  # the first page of each


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
