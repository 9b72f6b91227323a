"""Undo: transactions taken back by the log, and given back."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cortex.config import load_settings
from cortex.domain.errors import ConflictError, CortexError, InvalidError, NotFoundError
from cortex.memory import Memory, open_memory
from cortex.services.fields import Fields
from tests.local import ask, run_cortex, told
from tests.original_schema import node, write_original

TABLES = {
    "nodes": "SELECT * FROM nodes ORDER BY rowkey",
    "relations": "SELECT * FROM relations ORDER BY rowkey",
    "tallies": "SELECT * FROM tallies WHERE nodes > 0 ORDER BY workspace_id, status",
    "keywords": "SELECT rowid, title, body FROM keywords ORDER BY rowid",
}


def rows(memory: Memory) -> dict[str, list[tuple[Any, ...]]]:
    """Every row of the truth, byte for byte, and every keyword row."""
    with closing(sqlite3.connect(memory.settings.database)) as shell:
        return {name: shell.execute(statement).fetchall() for name, statement in TABLES.items()}


def shell(memory: Memory, statement: str, *bound: str) -> None:
    with closing(sqlite3.connect(memory.settings.database, isolation_level=None)) as opened:
        opened.execute(statement, bound)


def add(memory: Memory, kind: str, text: str, **more: Any) -> str:
    return memory.adding.add_node(kind, Fields(text=text), **more).id


@pytest.fixture
def memory(memory: Memory) -> Memory:
    """Without the thread that embeds: its model would cost each test two seconds."""
    memory.engine.after_write = lambda: None
    return memory


@pytest.fixture
def world(memory: Memory) -> dict[str, str]:
    """A task over two facts, a decision with a rest, a session below the root."""
    ids = {"task": add(memory, "task", "The task")}
    for name in ("one", "two"):
        ids[name] = add(memory, "fact", f"Fact {name}", parent=ids["task"])
    ids["decision"] = add(memory, "decision", "Use HS256", relations=[f"supports:{ids['one']}"])
    ids["session"] = add(memory, "session", "A meeting", parent=ids["task"])
    ids["inner"] = add(memory, "thought", "Said there", parent=ids["session"])
    memory.linking.add_relation(ids["one"], ids["two"], "related_to", weight=0.1 + 0.2)
    return ids


WAYS: dict[str, Callable[[Memory, dict[str, str]], object]] = {
    "add": lambda m, w: add(m, "error", "E", parent=w["task"], relations=[f"triggers:{w['one']}"]),
    "add a session": lambda m, w: add(m, "session", "New", parent=w["task"]),
    "decompose": lambda m, w: m.adding.decompose(w["task"], ["a", "b", "c"]),
    "update": lambda m, w: m.mutation.update(w["one"], Fields(text="Other", tags=["x"])),
    "cascade": lambda m, w: m.mutation.update(w["task"], Fields(), status="stale", cascade=True),
    "supersede": lambda m, w: m.mutation.supersede(w["decision"], Fields(text="Use RS256")),
    "supersede a parent": lambda m, w: m.mutation.supersede(w["inner"], Fields(text="Heard")),
    "delete": lambda m, w: m.mutation.delete(w["one"]),
    "delete a parent": lambda m, w: m.mutation.delete(w["session"]),
    "delete a task": lambda m, w: m.mutation.delete(w["task"]),
    "delete a tree": lambda m, w: m.mutation.delete(w["task"], cascade=True),
    "relate": lambda m, w: m.linking.add_relation(w["two"], w["task"], "supports", weight=1 / 3),
    "refresh": lambda m, w: m.linking.add_relation(w["one"], w["two"], "related_to", weight=0.7),
    "delete all": lambda m, w: m.workspaces.delete("w"),
}  # fmt: skip


@pytest.mark.parametrize("way", WAYS)
def test_an_undo_restores_every_row_and_a_redo_gives_it_back(
    memory: Memory, world: dict[str, str], way: str
) -> None:
    before = rows(memory)
    WAYS[way](memory, world)
    after = rows(memory)
    assert after != before
    memory.undoing.undo()
    assert rows(memory) == before
    memory.undoing.undo(redo=True)
    assert rows(memory) == after


def test_all_of_a_memory_s_past_can_be_taken_back_and_given_back(
    memory: Memory, world: dict[str, str]
) -> None:
    WAYS["supersede"](memory, world)
    WAYS["delete a task"](memory, world)
    after = rows(memory)
    steps = len(memory.undoing.undo(1000).undone)
    assert rows(memory)["nodes"] == []
    assert rows(memory)["keywords"] == []
    memory.undoing.undo(redo=True)
    assert rows(memory) == after
    for _ in range(steps):
        memory.undoing.undo()
    memory.undoing.undo(steps, redo=True)
    assert rows(memory) == after


@settings(max_examples=6, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(st.sampled_from(sorted(set(WAYS) - {"delete all"})), min_size=2, max_size=6))
def test_n_changes_are_taken_back_by_undo_n(
    tmp_path_factory: pytest.TempPathFactory, ways: list[str]
) -> None:
    home = tmp_path_factory.mktemp("undo")
    memory = open_memory(load_settings(home=home, workspace="w", env={}))
    memory.engine.after_write = lambda: None  # nothing here is embedded
    try:
        known = world.__wrapped__(memory)  # type: ignore[attr-defined]  # pytest keeps it there
        before, done = rows(memory), 0
        for way in ways:
            start = memory.generation()
            with suppress(CortexError):  # its node is gone or superseded: nothing was changed
                WAYS[way](memory, known)
            done += memory.generation() > start
        if done:
            memory.undoing.undo(done)
        assert rows(memory) == before
    finally:
        memory.close()


def test_a_second_undo_goes_further_back_and_a_redo_takes_back_the_last(memory: Memory) -> None:
    fact = add(memory, "fact", "one")
    for text in ("two", "three"):
        memory.mutation.update(fact, Fields(text=text))

    def text() -> str:
        return str(ask(memory, "graph_get_node", node_id=fact)["node"]["text"])

    memory.undoing.undo()
    assert text() == "two"
    memory.undoing.undo()
    assert text() == "one"
    memory.undoing.undo(redo=True)
    assert text() == "two"
    memory.undoing.undo()
    assert text() == "one"


def test_a_later_change_of_the_same_node_is_named_and_never_lost(memory: Memory) -> None:
    fact = add(memory, "fact", "one")
    memory.mutation.update(fact, Fields(text="two"))
    first = memory.generation()
    memory.mutation.update(fact, Fields(text="three"))
    before = rows(memory)
    with pytest.raises(ConflictError, match=rf"in {memory.generation()} \(at .* by python#"):
        memory.undoing.undo(tx=first)
    assert rows(memory) == before


def test_a_later_relation_to_a_node_stands_in_the_way_of_its_removal(memory: Memory) -> None:
    old = add(memory, "fact", "old")
    start = memory.generation() + 1
    new = add(memory, "fact", "new")
    memory.linking.add_relation(old, new, "supports")
    before = rows(memory)
    with pytest.raises(ConflictError, match="cannot be taken back"):
        memory.undoing.undo(tx=start)
    assert rows(memory) == before


def test_a_deletion_is_not_taken_back_where_another_parent_came_since(
    memory: Memory, world: dict[str, str]
) -> None:
    start = memory.generation() + 1
    memory.mutation.delete(world["session"])
    memory.mutation.delete(world["task"])
    before = rows(memory)
    with pytest.raises(ConflictError, match="cannot be taken back"):
        memory.undoing.undo(tx=start)
    assert rows(memory) == before


def test_one_transaction_alone_is_taken_back_under_others(memory: Memory) -> None:
    kept = [add(memory, "fact", "first")]
    start = memory.generation() + 1
    gone = add(memory, "fact", "second")
    kept.append(add(memory, "fact", "third"))
    assert [node["id"] for node in memory.undoing.undo(tx=start).nodes] == [gone]
    with memory.engine.database.read() as snapshot:
        assert [n.id for n in snapshot.nodes.by_ids([*kept, gone])] == kept
    with pytest.raises(ConflictError, match="taken back already, by"):
        memory.undoing.undo(tx=start)


def test_a_dry_run_says_what_the_undo_then_does(memory: Memory, world: dict[str, str]) -> None:
    memory.mutation.delete(world["task"])
    before, generation = rows(memory), memory.generation()
    plan = ask(memory, "memory_undo", dry_run=True)
    assert (rows(memory), memory.generation()) == (before, generation)
    done = ask(memory, "memory_undo")
    said = ("undone", "nodes", "relations")
    assert [plan[name] for name in said] == [done[name] for name in said]
    assert {(n["title"], n["op"]) for n in done["nodes"]} >= {
        ("The task", "restored"), ("Fact one", "reverted"),
    }  # fmt: skip


def test_the_tool_takes_back_its_own_client_s_changes_unless_told_otherwise(
    memory: Memory, home: Path
) -> None:
    other = open_memory(load_settings(home=home, workspace="w", env={}), client="zoo")
    add(other, "fact", "theirs first")
    mine = add(memory, "fact", "mine")
    theirs = add(other, "fact", "theirs")
    other.close()
    assert [node["id"] for node in ask(memory, "memory_undo")["nodes"]] == [mine]
    with pytest.raises(NotFoundError, match="by python is left to undo"):
        ask(memory, "memory_undo")
    done = ask(memory, "memory_undo", actor="*")
    assert [node["id"] for node in done["nodes"]] == [theirs]
    assert done["undone"][0]["actor"].startswith("zoo#")


def test_a_retry_of_an_undone_request_neither_claims_success_nor_does_it_again(
    memory: Memory,
) -> None:
    first = add(memory, "fact", "once", key="k")
    memory.undoing.undo()
    with pytest.raises(ConflictError, match="taken back by the undo in transaction"):
        add(memory, "fact", "once", key="k")
    memory.undoing.undo(redo=True)
    assert add(memory, "fact", "once", key="k") == first


def test_an_undo_sent_again_is_done_once(memory: Memory) -> None:
    add(memory, "fact", "one")
    add(memory, "fact", "two")
    first = ask(memory, "memory_undo", idempotency_key="u")
    assert ask(memory, "memory_undo", idempotency_key="u")["undone"] == first["undone"]
    with memory.engine.database.read() as snapshot:
        assert snapshot.nodes.count(memory.settings.workspace) == 2  # the root and "one"


def test_what_a_shell_deleted_comes_back_as_one_step(memory: Memory, world: dict[str, str]) -> None:
    before = rows(memory)
    shell(memory, "DELETE FROM nodes WHERE id = ?", world["one"])
    memory.undoing.undo()
    assert rows(memory) == before


def test_a_node_that_returns_is_found_by_keyword_at_once_and_by_meaning_after(
    home: Path,
) -> None:
    memory = open_memory(load_settings(home=home, workspace="w", env={}))
    fact = add(memory, "fact", "The gateway checks the token")
    memory.indexing.wait(memory.settings.workspace, 20.0)
    memory.mutation.delete(fact)
    memory.undoing.undo()
    hits = memory.search.vector_search("who checks tokens?").hits
    assert [hit.node.id for hit in hits][:1] == [fact]
    assert ask(memory, "graph_search", query="gateway")["hits"][0]["id"] == fact
    memory.close()


def test_the_graph_follows_an_undo_in_another_process(memory: Memory, home: Path) -> None:
    task = add(memory, "task", "above")
    fact = add(memory, "fact", "below", parent=task)

    def below() -> list[str]:
        found = ask(memory, "graph_traverse", start_id=task, relation="contains")
        return [node["id"] for node in found["nodes"]]

    assert below() == [fact]
    run_cortex(home, "undo", "-w", "w")
    assert below() == []
    run_cortex(home, "undo", "--redo", "-w", "w")
    assert below() == [fact]


def test_renaming_a_workspace_bounds_what_undo_reaches(memory: Memory) -> None:
    add(memory, "fact", "old")
    memory.workspaces.rename("w", "v")
    before = rows(memory)
    with pytest.raises(ConflictError, match="renamed or merged"):
        memory.undoing.undo(workspace="v")
    assert rows(memory) == before
    new = add(memory, "fact", "new", workspace="v")
    assert [n["id"] for n in memory.undoing.undo(workspace="v").nodes] == [new]


def test_the_upgrade_of_an_original_file_is_nobody_s_change_to_take_back(home: Path) -> None:
    home.mkdir()
    write_original(home / "cortex.db", [node("a", workspace_id="w"), node("b", workspace_id="w")])
    memory = open_memory(load_settings(home=home, workspace="w", env={}))
    memory.engine.after_write = lambda: None
    new = add(memory, "fact", "new")
    assert new in [each["id"] for each in memory.undoing.undo(9).nodes]
    with pytest.raises(NotFoundError, match="left to undo"):
        memory.undoing.undo()
    with pytest.raises(InvalidError, match="brought the original file over"):
        memory.undoing.undo(tx=1)
    with memory.engine.database.read() as snapshot:
        assert [each.id for each in snapshot.nodes.by_ids(["a", "b"])] == ["a", "b"]
    memory.close()


def test_other_workspaces_stay_as_they_are(memory: Memory) -> None:
    here = add(memory, "fact", "here")
    add(memory, "fact", "elsewhere", workspace="v")
    assert memory.undoing.undo().nodes[-1]["id"] == here


def test_nothing_to_undo_or_redo_is_said_and_so_is_an_unknown_transaction(memory: Memory) -> None:
    with pytest.raises(NotFoundError, match=r"left to undo in 'w'\. The log is empty"):
        memory.undoing.undo()
    add(memory, "fact", "one")
    with pytest.raises(NotFoundError, match="left to redo"):
        memory.undoing.undo(redo=True)
    with pytest.raises(NotFoundError, match="no transaction 999"):
        memory.undoing.undo(tx=999)
    assert memory.undoing.undo(5).notes == ["1 of 5: no more are left"]


def test_the_history_of_a_node_survives_its_undo(memory: Memory) -> None:
    fact = add(memory, "fact", "one")
    memory.mutation.delete(fact)
    memory.undoing.undo()
    assert [c.op for c in memory.inspecting.past(fact).changes] == ["insert", "delete", "insert"]


def test_the_command_shows_what_came_back(memory: Memory, home: Path) -> None:
    fact = add(memory, "fact", "Of value")
    memory.mutation.delete(fact)
    said = run_cortex(home, "undo", "--dry-run", "-w", "w")
    assert "would take back" in said
    assert f"restored: {fact[:8]} fact Of value" in said
    done = json.loads(run_cortex(home, "undo", "-w", "w", "--json"))
    assert [node["op"] for node in done["nodes"]] == ["restored"]
    assert f"removed: {fact[:8]}" in told(memory, "memory_undo", redo=True, actor="*")
