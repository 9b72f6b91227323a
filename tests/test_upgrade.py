"""Files of the concept's original schema: opened, they are ours, and every row is still there."""

from __future__ import annotations

import json
import os
import shutil
import signal
import sqlite3
import stat
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from cortex.config import load_settings
from cortex.domain.errors import AmbiguousError, ConflictError, NotFoundError, UnavailableError
from cortex.domain.instants import Instant
from cortex.domain.values import Node, WorkspaceId
from cortex.memory import Memory, open_memory
from cortex.services.resolving import resolve_node
from cortex.store.database import Database
from cortex.store.schema import MIGRATIONS
from tests.harness import ROOT, call, connected
from tests.local import run_cortex
from tests.original_schema import AT, make_original, node, relation, visit, write_original
from tests.parity_tables import Tables

W = WorkspaceId("w")
AT_27 = Instant("2026-05-12T20:00:00.000000Z")
EVERYTHING = (
    "SELECT * FROM nodes ORDER BY rowid",
    "SELECT * FROM relations ORDER BY rowid",
    "SELECT * FROM navigation_history ORDER BY id",
)
COUNTING = """
import os, signal, sqlite3, sys
from pathlib import Path
from cortex.store.database import Database
last, seen, connect = int(sys.argv[2]), 0, sqlite3.connect
def count(statement):
    global seen
    seen += 1
    if seen == last:
        os.kill(os.getpid(), signal.SIGKILL)
def traced(*arguments, **options):
    connection = connect(*arguments, **options)
    connection.set_trace_callback(count)
    return connection
sqlite3.connect = traced
Database(Path(sys.argv[1])).close()
print(seen)
"""


@pytest.fixture(scope="module")
def mixed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The generated file of 5,000 nodes, as the old server left it."""
    return make_original(tmp_path_factory.mktemp("mixed") / "old.db")


@pytest.fixture(scope="module")
def upgraded(mixed: Path) -> Path:
    """The same file after an opening."""
    path = mixed.parent / "home" / "cortex.db"
    path.parent.mkdir()
    shutil.copy(mixed, path)
    Database(path).close()
    return path


def opened(home: Path, **rows: Any) -> Database:
    """An original file with these rows, opened."""
    return Database(write_original(home / "cortex.db", **rows))


def rows(path: Path, question: str) -> list[Any]:
    with closing(sqlite3.connect(path)) as shell:
        shell.text_factory = lambda raw: raw.decode("utf-8", "replace")
        return shell.execute(question).fetchall()


def contents(path: Path) -> list[list[Any]]:
    """Every row of the three tables of the original schema."""
    return [rows(path, question) for question in EVERYTHING]


def the(database: Database, node_id: str) -> Node:
    with database.read() as snapshot:
        found = snapshot.nodes.find(node_id)
    assert found is not None, f"node {node_id} is lost"
    return found


def report(database: Database) -> dict[str, Any]:
    with database.read() as snapshot:
        text = snapshot.meta.find("upgrade_report")
    assert text is not None
    return dict(json.loads(text))


def ends(database: Database) -> dict[tuple[str, str, str], dict[str, Any]]:
    """Every relation's data by its ends and type."""
    with database.read() as snapshot:
        places = snapshot.nodes.workspaces()
        found = [r for place in places for r in snapshot.relations.iter_all(place)]
    return {(r.from_id, r.type.value, r.to_id): dict(r.data) for r in found}


# ── the whole file ────────────────────────────────────────────────────────────────────────


def test_every_node_and_visit_of_a_mixed_file_is_kept(mixed: Path, upgraded: Path) -> None:
    ids = "SELECT id FROM nodes ORDER BY id"
    assert rows(upgraded, ids) == rows(mixed, ids)
    visits = "SELECT COUNT(*) FROM navigation_history"
    assert rows(upgraded, visits) == rows(mixed, visits)


def test_every_relation_of_a_mixed_file_is_kept_somewhere(mixed: Path, upgraded: Path) -> None:
    found = {name for (name,) in rows(upgraded, "SELECT id FROM relations")}
    everything = rows(upgraded, "SELECT data FROM nodes UNION ALL SELECT data FROM relations")
    for data in (json.loads(text) for (text,) in everything):
        for name in ("original_relations", "original_duplicates"):
            found |= {entry["id"] for entry in data.get(name, ())}
    assert {name for (name,) in rows(mixed, "SELECT id FROM relations")} <= found


def test_a_mixed_file_keeps_the_rules_and_its_log_leads_back_to_nothing(upgraded: Path) -> None:
    with closing(sqlite3.connect(upgraded, isolation_level=None)) as shell:
        shell.row_factory = sqlite3.Row
        tables = Tables(shell)
    tables.check_rules()
    assert tables.undone() == ({}, {})
    assert {change["op"] for change in tables.log} == {"insert"}
    times = [change["at"] for change in tables.log]
    assert times == sorted(times)
    assert {actor for (actor,) in rows(upgraded, "SELECT actor FROM changes")} == {"upgrade"}


def test_what_is_searched_owes_its_vector_and_has_its_words(upgraded: Path) -> None:
    [(owed,)] = rows(upgraded, "SELECT COUNT(*) FROM index_state")
    [(indexed,)] = rows(upgraded, "SELECT COUNT(*) FROM keywords")
    assert owed > 3000
    assert indexed > 4500


def test_the_data_that_could_be_read_is_unchanged(mixed: Path, upgraded: Path) -> None:
    now = dict(rows(upgraded, "SELECT id, data FROM nodes"))
    compared = 0
    for name, text in rows(mixed, "SELECT id, data FROM nodes WHERE json_valid(data)"):
        old = json.loads(str(text))  # a column of type JSON makes numbers of digits
        if isinstance(old, dict):
            assert old.items() <= json.loads(now[name]).items()
            compared += 1
    assert compared > 4500


def test_the_backup_is_the_file_as_it_was_and_its_owners_alone(mixed: Path, upgraded: Path) -> None:
    [backup] = upgraded.parent.glob("cortex.db.original-*")
    assert stat.S_IMODE(backup.stat().st_mode) == 0o600
    assert len(backup.name.rpartition("-")[2]) == len("20260512200000")
    assert contents(backup) == contents(mixed)


def test_it_is_upgraded_once(upgraded: Path) -> None:
    before = Database(upgraded)
    with before.read() as snapshot:
        generation = snapshot.generation()
    before.close()
    again = Database(upgraded)
    assert again.upgraded is None
    with again.read() as snapshot:
        assert snapshot.generation() == generation
    again.close()
    assert len(list(upgraded.parent.glob("*original*"))) == 1


# ── one repair each ───────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("2026-05-12T20:00:00Z", "2026-05-12T20:00:00.000000Z"),
        ("2026-05-12T20:00:00.5Z", "2026-05-12T20:00:00.500000Z"),
        ("2026-05-12T20:00:00.123456789+00:00", "2026-05-12T20:00:00.123456Z"),
        ("2026-05-12T20:00:00+05:30", "2026-05-12T14:30:00.000000Z"),
        ("2026-05-12T20:00:00", "2026-05-12T20:00:00.000000Z"),
        ("2026-05-12 20:00:00", "2026-05-12T20:00:00.000000Z"),
        ("1778616000", "2026-05-12T20:00:00.000000Z"),
    ],
)
def test_every_form_of_a_time_is_the_moment_that_it_means(
    home: Path, written: str, meant: str
) -> None:
    database = opened(home, nodes=[node("a", created_at=written)])
    assert the(database, "a").created_at == meant
    assert report(database)["repairs"] == {}
    database.close()


def test_a_time_that_is_none_becomes_that_of_the_row_before_and_is_kept(home: Path) -> None:
    odd = node("b", created_at="last week", updated_at=AT)
    database = opened(home, nodes=[node("a"), odd, node("c", created_at="2026-06-01")])
    assert the(database, "b").created_at == AT_27
    assert the(database, "b").data["original_created_at"] == "last week"
    assert report(database)["repairs"] == {"time": 1}
    database.close()


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("plain words", {"text": "plain words"}),
        ('"a string"', {"text": "a string"}),
        ("[1, 2]", {"original_data": [1, 2]}),
        ('{"score": NaN}', {"score": "NaN"}),
        ("null", {}),
        ("[" * 950 + "]" * 950, {"original_data": "[" * 950 + "]" * 950}),
    ],
)
def test_data_that_is_no_object_becomes_one_that_holds_it(
    home: Path, written: str, meant: dict[str, Any]
) -> None:
    database = opened(home, nodes=[node("a", data=written)])
    assert the(database, "a").data == meant
    assert report(database)["repairs"] == {"data": 1}
    database.close()


def test_an_unknown_type_is_an_entity_of_that_kind(home: Path) -> None:
    database = opened(home, nodes=[node("a", "Person"), node("b", "FACT")])
    assert (the(database, "a").type, the(database, "a").data["kind"]) == ("entity", "Person")
    assert the(database, "b").type == "fact"
    database.close()


def test_status_and_workspace_are_repaired_with_the_original_beside(home: Path) -> None:
    odd = node("a", status="done", workspace_id="  w\n")
    database = opened(home, nodes=[odd, node("b", status=None)])
    found = the(database, "a")
    assert (found.status, found.workspace_id) == ("active", "w")
    assert found.data["original_status"] == "done"
    assert found.data["original_workspace_id"] == "  w\n"
    assert the(database, "b").status == "active"
    database.close()


@pytest.mark.parametrize(
    ("written", "meant", "kept"),
    [("0.7", 0.7, None), (1.5, 1.0, 1.5), (-1, 0.0, -1.0), ("strong", 1.0, "strong")],
)
def test_a_weight_is_the_nearest_and_the_original_is_kept(
    home: Path, written: Any, meant: float, kept: Any
) -> None:
    link = relation("a", "supports", "b", weight=written)
    database = opened(home, nodes=[node("a"), node("b")], relations=[link])
    with database.read() as snapshot:
        [found] = snapshot.relations.iter_all(W)
    assert found.weight == meant
    assert found.data.get("original_weight") == kept
    database.close()


def test_relations_that_break_a_rule_are_kept_as_labels_or_in_a_node(home: Path) -> None:
    nodes = [node(name) for name in "abcd"] + [node("far", workspace_id="v")]
    links = [
        relation("a", "contains", "b"),
        relation("c", "contains", "b"),
        relation("b", "contains", "a"),
        relation("c", "knows", "d"),
        relation("a", "supports", "a"),
        relation("a", "supports", "far"),
        relation("a", "supports", "gone"),
        relation("gone", "supports", "nobody"),
    ]
    database = opened(home, nodes=nodes, relations=links)
    found = ends(database)
    assert found.pop(("a", "contains", "b")) == {}
    label = {"label": "contains", "from": "c", "to": "b"}
    assert found.pop(("b", "related_to", "c")) == label
    assert found.pop(("a", "related_to", "b")) == {"label": "contains", "from": "b", "to": "a"}
    assert found.pop(("c", "related_to", "d")) == {"label": "knows", "from": "c", "to": "d"}
    assert not found
    kept = the(database, "a").data["original_relations"]
    whys = [("self_loop", "a"), ("cross_workspace", "far"), ("dangling", "gone")]
    assert [(entry["why"], entry["to_id"]) for entry in kept] == whys
    with database.read() as snapshot:
        [lost] = json.loads(snapshot.meta.find("upgrade_leftovers") or "")
    assert lost["id"] == "gone-supports-nobody"
    counts = report(database)["repairs"]
    assert counts == {
        "cross_workspace": 1, "cycle": 1, "dangling": 2, "relation_type": 1,
        "second_parent": 1, "self_loop": 1,
    }  # fmt: skip
    database.close()


def test_two_relations_of_the_same_ends_and_type_are_one_that_keeps_both(home: Path) -> None:
    first = relation("a", "supports", "b", id="r1", weight=0.3, data='{"x": 1}')
    second = {**first, "id": "r2", "weight": 0.8, "data": '{"x": 2}', "created_at": "2026-05-13"}
    database = opened(home, nodes=[node("a"), node("b")], relations=[first, second])
    [data] = ends(database).values()
    assert data["x"] == 2
    assert [(each["id"], each["data"]) for each in data["original_duplicates"]] == [
        ("r1", {"x": 1})
    ]
    database.close()


def test_a_parent_without_contains_gets_it_and_contains_without_parent_sets_it(
    home: Path,
) -> None:
    nodes = [node("a"), node("b", parent_id="a"), node("c"), node("d", parent_id="gone")]
    database = opened(home, nodes=nodes, relations=[relation("a", "contains", "c")])
    assert set(ends(database)) == {("a", "contains", "b"), ("a", "contains", "c")}
    assert [the(database, name).parent_id for name in "bcd"] == ["a", "a", None]
    assert the(database, "d").data["original_parent_id"] == "gone"
    database.close()


def test_a_cycle_of_parents_is_cut_once(home: Path) -> None:
    nodes = [node("a", parent_id="c"), node("b", parent_id="a"), node("c", parent_id="b")]
    database = opened(home, nodes=nodes)
    parents = [the(database, name).parent_id for name in "abc"]
    assert parents == ["c", "a", None]
    assert the(database, "c").data["original_parent_id"] == "b"
    database.close()


def test_further_session_roots_come_below_the_oldest(home: Path) -> None:
    nodes = [node("new", "session", created_at="2026-05-13"), node("old", "session")]
    database = opened(home, nodes=nodes)
    with database.read() as snapshot:
        root = snapshot.nodes.root(W)
    assert root is not None
    assert root.id == "old"
    assert the(database, "new").parent_id == "old"
    database.close()


def test_a_superseded_node_is_stale(home: Path) -> None:
    link = relation("new", "supersedes", "old")
    database = opened(home, nodes=[node("old"), node("new")], relations=[link])
    assert (the(database, "old").status, the(database, "new").status) == ("stale", "active")
    database.close()


def test_relations_with_updated_at_keep_it(home: Path) -> None:
    also = "UPDATE relations SET updated_at = '2026-06-01 00:00:00' WHERE from_id = 'a'"
    links = [relation("a", "supports", "b"), relation("b", "supports", "a")]
    nodes = [node("a"), node("b")]
    database = opened(home, nodes=nodes, relations=links, with_updated_at=True, also=also)
    with database.read() as snapshot:
        times = {link.from_id: link.updated_at for link in snapshot.relations.iter_all(W)}
    assert times == {"a": "2026-06-01T00:00:00.000000Z", "b": AT_27}
    database.close()


def test_a_year_far_ahead_does_not_hold_the_log_there(home: Path) -> None:
    database = opened(home, nodes=[node("a", created_at="2999-01-01T00:00:00Z")])
    assert the(database, "a").created_at.startswith("2999")
    with database.write("test") as transaction:
        assert transaction.at < "2999"
    database.close()


def test_columns_tables_and_names_of_their_own_are_no_hindrance(home: Path) -> None:
    also = """
    ALTER TABLE nodes ADD COLUMN importance REAL;
    UPDATE nodes SET importance = 0.9;
    CREATE TABLE meta (mine TEXT);
    INSERT INTO meta VALUES ('kept');
    CREATE INDEX nodes_by_type ON nodes(type);
    CREATE TRIGGER nodes_insert BEFORE DELETE ON nodes BEGIN SELECT RAISE(ABORT, 'no'); END;
    CREATE VIEW keywords AS SELECT * FROM nodes;
    """
    database = opened(home, nodes=[node("a")], visits=[visit("a", "jump")], also=also)
    assert the(database, "a").data["original_columns"] == {"importance": 0.9}
    assert rows(database.path, "SELECT mine FROM original_meta") == [("kept",)]
    with database.read() as snapshot:
        [entry] = snapshot.navigation.newest(W, 10)
    assert (entry.action, entry.context) == ("open", {"original_action": "jump"})
    database.close()


# ── ids that are no UUID ──────────────────────────────────────────────────────────────────


def test_a_node_is_found_by_its_whole_id_whatever_its_form(home: Path) -> None:
    names = ["n1", "AUTH_task", "Задача 7", "42", "C0FFEE00-0000-4000-8000-00000000000A"]
    database = opened(home, nodes=[node(name) for name in names])
    with database.read() as snapshot:
        for name in names:
            assert resolve_node(snapshot, name, W, strict=True).id == name
            assert resolve_node(snapshot, name, WorkspaceId("v"), strict=False).id == name
            with pytest.raises(NotFoundError):
                resolve_node(snapshot, name, WorkspaceId("v"), strict=True)
    database.close()


def test_the_start_of_such_an_id_is_enough_where_it_is_unique(home: Path) -> None:
    database = opened(home, nodes=[node("Task-auth-1"), node("Task-auth-2"), node("Task-data")])
    with database.read() as snapshot:
        assert resolve_node(snapshot, "Task-dat", W, strict=True).id == "Task-data"
        with pytest.raises(AmbiguousError):
            resolve_node(snapshot, "Task-aut", W, strict=True)
    database.close()


@pytest.mark.anyio
async def test_a_server_opens_such_a_file_and_answers_from_it(home: Path) -> None:
    text = json.dumps({"text": "Refresh tokens live for seven days"})
    nodes = [node("s", "session"), node("ttl", data=text, parent_id="s")]
    write_original(home / "cortex.db", nodes, [relation("s", "contains", "ttl")], [visit("ttl")])
    async with connected(home) as client:
        desktop = await call(client, "desktop_open")
        assert desktop["anchor"]["node_id"] == "ttl"
        found = await call(client, "vector_search", query="how long is a refresh token valid?")
        assert found["hits"][0]["id"] == "ttl"
        whole = await call(client, "graph_get_node", node_id="ttl")
        assert whole["node"]["parent_id"] == "s"


# ── nothing is lost on the way ────────────────────────────────────────────────────────────


def upgrade_and_die(path: Path, at: int) -> subprocess.CompletedProcess[str]:
    """Open the file in a process that is killed at its statement number `at`; 0 lives."""
    return subprocess.run(
        [sys.executable, "-c", COUNTING, str(path), str(at)],
        env={"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_a_process_killed_anywhere_on_the_way_leaves_the_old_file(home: Path) -> None:
    source = make_original(home / "source.db", 60)
    before = contents(source)
    shutil.copy(source, home / "whole.db")
    total = int(upgrade_and_die(home / "whole.db", 0).stdout)
    # The last three statements are the commit and what comes after it.
    for at in [12, 20, *(total * part // 8 for part in range(1, 8)), total - 4]:
        path = home / str(at) / "cortex.db"
        path.parent.mkdir()
        shutil.copy(source, path)
        assert upgrade_and_die(path, at).returncode == -signal.SIGKILL
        assert rows(path, "PRAGMA quick_check") == [("ok",)]
        assert contents(path) == before, f"killed at {at} of {total}"
        Database(path).close()
        assert len(rows(path, "SELECT rowkey FROM nodes")) == len(before[0])


def test_an_upgrade_that_fails_leaves_the_old_file_and_no_copy(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = make_original(home / "cortex.db", 50)
    before = rows(path, "SELECT * FROM nodes ORDER BY rowid")
    refusing = """CREATE TRIGGER refusing BEFORE INSERT ON navigation_history
    BEGIN SELECT RAISE(ABORT, 'no room'); END"""
    monkeypatch.setattr("cortex.store.database.MIGRATIONS", (*MIGRATIONS, (refusing,)))
    with pytest.raises(ConflictError, match="no room"):
        Database(path)
    assert rows(path, "SELECT * FROM nodes ORDER BY rowid") == before
    assert not list(home.glob("*original*"))
    monkeypatch.undo()
    Database(path).close()
    assert len(rows(path, "SELECT rowkey FROM nodes")) == len(before)


def test_reading_only_refuses_the_old_file_and_leaves_it(home: Path) -> None:
    path = make_original(home / "cortex.db", 20)
    before = path.read_bytes()
    with pytest.raises(UnavailableError, match="original schema"):
        Database(path, read_only=True)
    assert path.read_bytes() == before


# ── people ────────────────────────────────────────────────────────────────────────────────


def test_the_upgrade_is_told_once_and_status_shows_it(home: Path) -> None:
    write_original(home / "cortex.db", [node("a", "Person")])
    told = subprocess.run(
        [sys.executable, "-m", "cortex", "status", "--home", str(home)],
        env={"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), "HOME": str(home)},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert told.stderr.count("upgraded a file of the original schema") == 1
    assert "1 type" in run_cortex(home, "status")
    status = json.loads(run_cortex(home, "status", "--json"))
    assert status["upgrade"]["repairs"] == {"type": 1}


def test_an_upgraded_memory_is_written_like_any_other(home: Path) -> None:
    write_original(home / "cortex.db", [node("root", "session"), node("a", parent_id="root")])
    memory: Memory = open_memory(load_settings(home=home, workspace="w", env={}))
    made = memory.linking.add_relation("a", "root", "related_to")
    assert made.created
    assert memory.mutation.delete("a").deleted == ["a"]
    memory.close()
