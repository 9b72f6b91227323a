"""Workspaces renamed, merged and deleted, as every process sees it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from cortex.cli.app import app
from cortex.config import load_settings
from cortex.domain.errors import ConflictError, InvalidError, NotFoundError
from cortex.domain.taxonomy import RelationType
from cortex.domain.values import WorkspaceId
from cortex.memory import Memory, open_memory
from cortex.services.fields import Fields
from tests.local import start_cortex


@pytest.fixture
def other(home: Path) -> Iterator[Memory]:
    """Another process's view of the same file, as far as caches go."""
    opened = open_memory(load_settings(home=home, workspace="a", env={}))
    yield opened
    opened.close()


def add(
    memory: Memory, text: str, place: str, kind: str = "fact", parent: str | None = None
) -> str:
    return memory.adding.add_node(kind, Fields(text=text), workspace=place, parent=parent).id


def texts(memory: Memory, query: str, place: str) -> list[str]:
    return [hit.node.text for hit in memory.search.vector_search(query, workspace=place).hits]


def graph(memory: Memory, place: str) -> tuple[set[int], int]:
    """Node keys and number of relations in the graph cache."""
    with memory.engine.graphs.view(memory.engine.database, WorkspaceId(place)) as (_, found):
        return {key for key, _, _ in found.nodes()}, found.edges().total()


def stored(memory: Memory, place: str) -> tuple[set[int], int]:
    with memory.engine.database.read() as snapshot:
        nodes = {node.key for node in snapshot.nodes.iter_all(WorkspaceId(place))}
        return nodes, snapshot.relations.count(WorkspaceId(place))


def root_of(memory: Memory, place: str) -> str:
    with memory.engine.database.read() as snapshot:
        root = snapshot.nodes.root(WorkspaceId(place))
    assert root is not None
    return root.id


def test_after_a_merge_both_graphs_and_both_indexes_of_every_process_are_right(
    memory: Memory, other: Memory
) -> None:
    add(memory, "Water the tomatoes every evening", "a")
    task = add(memory, "Repair the fence", "b", "task")
    add(memory, "The fence is made of oak", "b", parent=task)
    assert memory.indexing.wait(None, 20) == 0
    for each in (memory, other):  # caches of both workspaces are built before
        assert texts(each, "wood of the fence", "b")
        assert graph(each, "a") == stored(each, "a")
        assert graph(each, "b") == stored(each, "b")
    done = memory.workspaces.merge("b", "a")
    assert (done.nodes, done.workspace) == (2, "a")
    for each in (other, memory):
        assert texts(each, "wood of the fence", "b") == []
        assert texts(each, "wood of the fence", "a")[0] == "The fence is made of oak"
        assert graph(each, "b") == (set(), 0)
        assert graph(each, "a") == stored(each, "a")
        assert each.reading.get([task], workspace="a").starts[0].id == task


def test_a_merge_embeds_nothing_again(memory: Memory) -> None:
    add(memory, "one", "a")
    add(memory, "two", "b")
    assert memory.indexing.wait(None, 20) == 0
    newest = memory.engine.database
    with newest.read() as snapshot:
        before = snapshot.generation().embeddings
    memory.workspaces.merge("b", "a")
    with newest.read() as snapshot:
        assert snapshot.generation().embeddings == before
        assert snapshot.outbox.owing(None) == 0
        assert snapshot.outbox.any_ready(WorkspaceId("b")) is False


def test_the_children_of_the_old_root_go_below_the_other_with_its_relations_and_visits(
    memory: Memory,
) -> None:
    add(memory, "one", "a")
    nested = add(memory, "A session of its own", "b", "session")
    fact = add(memory, "two", "b")
    old = root_of(memory, "b")
    memory.linking.add_relation(old, fact, "related_to", workspace="b")
    memory.viewport.focus(old, workspace="b")
    memory.workspaces.merge("b", "a")
    root = root_of(memory, "a")
    shown = memory.inspecting.show(root, "a")
    assert {node.id for r, node in shown.outgoing if r.type is RelationType.CONTAINS} >= {
        nested,
        fact,
    }
    assert RelationType.RELATED_TO in {r.type for r, _ in (*shown.outgoing, *shown.incoming)}
    with pytest.raises(NotFoundError):
        memory.inspecting.locate(old)
    visits = memory.viewport.history("a").entries
    assert [entry.visit.node_id for entry in visits] == [root]


def test_a_rename_keeps_ids_history_timeline_and_the_log(memory: Memory, other: Memory) -> None:
    fact = add(memory, "Water the tomatoes", "b")
    memory.mutation.update(fact, Fields(text="Water the beans"), workspace="b")
    memory.viewport.focus(fact, workspace="b")
    assert memory.indexing.wait(None, 20) == 0
    assert texts(other, "beans", "b")
    before = memory.timeline.session_timeline(workspace="b").events
    memory.workspaces.rename("b", "garden")
    kinds = [(event.at, event.kind, event.id) for event in before]
    after = memory.timeline.session_timeline(workspace="garden").events
    assert [each for each in ((e.at, e.kind, e.id) for e in after) if each in kinds] == kinds
    assert memory.viewport.history("garden").entries[0].visit.node_id == fact
    assert texts(other, "beans", "garden") == ["Water the beans"]
    assert graph(other, "garden") == stored(other, "garden")
    assert [place.name for place in other.workspaces.list()] == ["garden"]
    assert memory.inspecting.locate(root_of(memory, "garden")).title == "garden"
    moved = memory.inspecting.past(fact).changes[0]
    assert moved.fields == {"workspace_id": ("b", "garden")}


def test_a_moved_node_keeps_its_instants(memory: Memory) -> None:
    fact = add(memory, "one", "b")
    before = memory.inspecting.locate(fact)
    memory.workspaces.rename("b", "c")
    after = memory.inspecting.locate(fact)
    assert (after.created_at, after.updated_at) == (before.created_at, before.updated_at)


def test_unknown_same_and_taken_names_are_refused_and_nothing_moves(memory: Memory) -> None:
    add(memory, "one", "a")
    add(memory, "two", "b")
    before = memory.generation()
    with pytest.raises(NotFoundError, match=r"no workspace 'x'\. Known: a, b"):
        memory.workspaces.merge("x", "a")
    with pytest.raises(NotFoundError, match="no workspace 'x'"):
        memory.workspaces.merge("a", "x")
    with pytest.raises(InvalidError, match="merged into itself"):
        memory.workspaces.merge("a", "a")
    with pytest.raises(ConflictError, match="cortex workspace merge a b"):
        memory.workspaces.rename("a", "b")
    with pytest.raises(NotFoundError, match="Known"):
        memory.workspaces.delete("x", dry_run=True)
    assert memory.generation() == before


def test_delete_takes_everything_nested_sessions_too_and_leaves_the_rest(
    memory: Memory, other: Memory
) -> None:
    add(memory, "stays", "a")
    outer = add(memory, "outer", "b", "session")
    for text in ("one", "two"):
        add(memory, text, "b", parent=add(memory, text, "b", "session", parent=outer))
    assert graph(other, "b") == stored(other, "b")
    plan = memory.workspaces.delete("b", dry_run=True)
    assert (plan.nodes, plan.types) == (6, {"fact": 2, "session": 4})
    assert memory.workspaces.delete("b").nodes == 6
    assert graph(other, "b") == (set(), 0)
    assert [place.name for place in other.workspaces.list()] == ["a"]
    assert memory.viewport.history("b").entries == ()


def test_an_idempotency_key_goes_with_its_workspace(memory: Memory) -> None:
    first = memory.adding.add_node("fact", Fields(text="one"), workspace="b", key="k")
    memory.workspaces.rename("b", "c")
    again = memory.adding.add_node("fact", Fields(text="one"), workspace="c", key="k")
    assert again.id == first.id


def test_the_commands_list_merge_and_ask_before_they_delete(memory: Memory) -> None:
    home = ["--home", str(memory.settings.home)]
    assert "No workspaces yet" in CliRunner().invoke(app, ["workspace", "list", *home]).stdout
    add(memory, "one", "a")
    add(memory, "two", "b")
    listed = CliRunner().invoke(app, ["workspace", "list", "--json", *home]).stdout
    assert [place["name"] for place in json.loads(listed)] == ["a", "b"]
    merged = CliRunner().invoke(app, ["workspace", "merge", "b", "a", *home]).stdout
    assert "b is merged into a: 1 node moved" in merged
    with start_cortex(memory.settings.home, "workspace", "delete", "a") as process:
        _, err = process.communicate(timeout=60)
    assert process.returncode == 2
    assert "3 nodes would go (2 fact, 1 session)" in err
    done = CliRunner().invoke(app, ["workspace", "delete", "a", "--yes", *home])
    assert "a deleted: 3 nodes, 2 relations" in done.stdout
