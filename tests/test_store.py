"""The schema refuses what must not be, whoever writes; and the file opens well, or not at all."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path
from typing import Any

import pytest

from cortex.domain.taxonomy import Action, NodeType, RelationType, Status
from cortex.domain.values import new_id
from cortex.store.database import Database

AT = "2026-05-12T20:00:00.000000Z"
NODE = """
INSERT INTO nodes(id, type, workspace_id, parent_id, data, status, created_at, updated_at)
VALUES (:id, :type, :workspace_id, :parent_id, :data, :status, :created_at, :updated_at)
"""
RELATION = """
INSERT INTO relations(id, workspace_id, from_id, to_id, type, weight, data, created_at, updated_at)
VALUES (:id, :workspace_id, :from_id, :to_id, :type, :weight, :data, :created_at, :updated_at)
"""


@pytest.fixture
def database(home: Path) -> Iterator[Database]:
    opened = Database(home / "cortex.db")
    yield opened
    opened.close()


@pytest.fixture
def shell(database: Database) -> Iterator[sqlite3.Connection]:
    """A foreign shell on the file; foreign keys are off there, as shells have them."""
    connection = sqlite3.connect(database.path, isolation_level=None)
    assert connection.execute("PRAGMA foreign_keys").fetchone() == (0,)
    yield connection
    connection.close()


def node(shell: sqlite3.Connection, **given: Any) -> str:
    """Insert a node of workspace w; its id."""
    usual = {
        "id": new_id(),
        "type": "fact",
        "workspace_id": "w",
        "parent_id": None,
        "data": "{}",
        "status": "active",
        "created_at": AT,
        "updated_at": AT,
    }
    row = {**usual, **given}
    shell.execute(NODE, row)
    return str(row["id"])


def relate(shell: sqlite3.Connection, source: str, target: str, **given: Any) -> str:
    """Insert a relation of workspace w; its id."""
    usual = {
        "id": new_id(),
        "workspace_id": "w",
        "from_id": source,
        "to_id": target,
        "type": "supports",
        "weight": 1.0,
        "data": "{}",
        "created_at": AT,
        "updated_at": AT,
    }
    row = {**usual, **given}
    shell.execute(RELATION, row)
    return str(row["id"])


def ask(shell: sqlite3.Connection, question: str, *bound: Any) -> list[Any]:
    return shell.execute(question, bound).fetchall()


# ── cells ─────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("id", ""),
        ("id", None),
        ("type", "Decision"),
        ("type", "foo"),
        ("workspace_id", ""),
        ("workspace_id", "w" * 201),
        ("data", "{"),
        ("data", "[]"),
        ("data", "null"),
        ("data", None),
        ("status", "deleted"),
        ("created_at", "2026-05-12"),
        ("created_at", "2026-05-12 20:00:00"),
        ("created_at", "2026-05-12T20:00:00Z"),
        ("updated_at", "2026-05-12T20:00:00.000000+00:00"),
        ("updated_at", 1778616000),
    ],
)
def test_a_bad_cell_of_a_node_is_refused(
    shell: sqlite3.Connection, column: str, value: Any
) -> None:
    with pytest.raises(sqlite3.IntegrityError):
        node(shell, **{column: value})
    kept = node(shell)
    with pytest.raises(sqlite3.IntegrityError):
        shell.execute(f"UPDATE nodes SET {column} = ? WHERE id = ?", (value, kept))  # noqa: S608 - our names


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("type", "likes"),
        ("weight", "heavy"),
        ("weight", 1.01),
        ("weight", -0.01),
        ("weight", None),
        ("weight", float("nan")),
        ("data", "derived"),
        ("data", '"text"'),
        ("created_at", "yesterday"),
        ("updated_at", None),
    ],
)
def test_a_bad_cell_of_a_relation_is_refused(
    shell: sqlite3.Connection, column: str, value: Any
) -> None:
    source, target = node(shell), node(shell)
    with pytest.raises(sqlite3.IntegrityError):
        relate(shell, source, target, **{column: value})
    kept = relate(shell, source, target)
    with pytest.raises(sqlite3.IntegrityError):
        shell.execute(f"UPDATE relations SET {column} = ? WHERE id = ?", (value, kept))  # noqa: S608 - our names


@pytest.mark.parametrize(
    ("table", "column", "enum"),
    [
        ("nodes", "type", NodeType),
        ("nodes", "status", Status),
        ("relations", "type", RelationType),
        ("navigation_history", "action", Action),
    ],
)
def test_the_check_lists_exactly_the_members_of_the_enum(
    shell: sqlite3.Connection, table: str, column: str, enum: type[StrEnum]
) -> None:
    [(ddl,)] = ask(shell, "SELECT sql FROM sqlite_master WHERE name = ?", table)
    listed = re.search(rf"CHECK \({column} IN \(([^)]*)\)\)", ddl)
    assert listed is not None
    assert re.findall(r"'(\w+)'", listed[1]) == [member.value for member in enum]


# ── ids and ends ──────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("column", ["id", "rowkey"])
def test_the_id_of_a_node_never_changes(shell: sqlite3.Connection, column: str) -> None:
    kept = node(shell)
    with pytest.raises(sqlite3.IntegrityError, match="never changes"):
        shell.execute(f"UPDATE nodes SET {column} = 99 WHERE id = ?", (kept,))  # noqa: S608 - our names


@pytest.mark.parametrize("column", ["id", "rowkey", "from_id", "to_id", "type"])
def test_the_ends_and_type_of_a_relation_never_change(
    shell: sqlite3.Connection, column: str
) -> None:
    value = {"type": "blocks", "rowkey": 99}.get(column, node(shell))
    kept = relate(shell, node(shell), node(shell))
    with pytest.raises(sqlite3.IntegrityError, match="never change"):
        shell.execute(f"UPDATE relations SET {column} = ? WHERE id = ?", (value, kept))  # noqa: S608 - our names


def test_the_key_of_a_deleted_node_is_not_given_to_the_next(shell: sqlite3.Connection) -> None:
    gone = node(shell)
    [(key,)] = ask(shell, "SELECT rowkey FROM nodes")
    shell.execute("DELETE FROM nodes WHERE id = ?", (gone,))
    node(shell)
    assert ask(shell, "SELECT rowkey FROM nodes") == [(key + 1,)]


def test_a_node_cannot_be_replaced_behind_the_log(shell: sqlite3.Connection) -> None:
    kept = node(shell)
    with pytest.raises(sqlite3.IntegrityError):
        shell.execute(
            "INSERT OR REPLACE INTO nodes(id, type, workspace_id, created_at, updated_at)"
            " VALUES (?, 'note', 'w', ?, ?)",
            (kept, AT, AT),
        )
    assert ask(shell, "SELECT type FROM nodes") == [("fact",)]


def test_a_second_session_root_cannot_replace_the_first(shell: sqlite3.Connection) -> None:
    root = node(shell, type="session")
    with pytest.raises(sqlite3.IntegrityError):
        shell.execute(
            "INSERT OR REPLACE INTO nodes(id, type, workspace_id, created_at, updated_at)"
            " VALUES ('other', 'session', 'w', ?, ?)",
            (AT, AT),
        )
    assert ask(shell, "SELECT id FROM nodes") == [(root,)]


@pytest.mark.parametrize("kind", ["supports", "contains"])
def test_a_relation_cannot_be_replaced_behind_the_log(shell: sqlite3.Connection, kind: str) -> None:
    child = node(shell)
    kept = relate(shell, node(shell), child, type=kind)
    [source] = ask(shell, "SELECT from_id FROM relations")[0]
    other = source if kind == "supports" else node(shell)  # contains: one parent
    with pytest.raises(sqlite3.IntegrityError):
        shell.execute(RELATION.replace("INSERT", "INSERT OR REPLACE"), {
            "id": "other", "workspace_id": "w", "from_id": other, "to_id": child, "type": kind,
            "weight": 0.5, "data": "{}", "created_at": AT, "updated_at": AT,
        })  # fmt: skip
    assert ask(shell, "SELECT id FROM relations") == [(kept,)]


# ── relations among nodes ─────────────────────────────────────────────────────────────────


def test_a_relation_across_workspaces_is_refused(shell: sqlite3.Connection) -> None:
    here, there = node(shell), node(shell, workspace_id="v")
    for place in ("w", "v"):
        with pytest.raises(sqlite3.IntegrityError, match="its own workspace"):
            relate(shell, here, there, workspace_id=place)


def test_a_relation_to_nothing_is_refused_without_foreign_keys(shell: sqlite3.Connection) -> None:
    with pytest.raises(sqlite3.IntegrityError, match="its own workspace"):
        relate(shell, node(shell), "nobody")


def test_a_relation_to_itself_is_refused(shell: sqlite3.Connection) -> None:
    only = node(shell)
    with pytest.raises(sqlite3.IntegrityError):
        relate(shell, only, only)


def test_a_second_parent_is_refused(shell: sqlite3.Connection) -> None:
    child = node(shell)
    relate(shell, node(shell), child, type="contains")
    with pytest.raises(sqlite3.IntegrityError):
        relate(shell, node(shell), child, type="contains")


@pytest.mark.parametrize("kind", ["contains", "supersedes"])
def test_a_cycle_is_refused_over_three_links(shell: sqlite3.Connection, kind: str) -> None:
    a, b, c = node(shell), node(shell), node(shell)
    relate(shell, a, b, type=kind)
    relate(shell, b, c, type=kind)
    with pytest.raises(sqlite3.IntegrityError, match="no cycle"):
        relate(shell, c, a, type=kind)
    relate(shell, c, a, type="supports")


def test_a_superseded_node_goes_stale_and_cannot_come_back(shell: sqlite3.Connection) -> None:
    old, new = node(shell), node(shell)
    link = relate(shell, new, old, type="supersedes")
    assert ask(shell, "SELECT status FROM nodes WHERE id = ?", old) == [("stale",)]
    wake = "UPDATE nodes SET status = 'active' WHERE id = ?"
    with pytest.raises(sqlite3.IntegrityError, match="never active"):
        shell.execute(wake, (old,))
    shell.execute("DELETE FROM relations WHERE id = ?", (link,))
    shell.execute(wake, (old,))
    assert ask(shell, "SELECT status FROM nodes WHERE id = ?", old) == [("active",)]


def test_a_parent_set_by_a_shell_is_a_contains_relation(shell: sqlite3.Connection) -> None:
    first, second = node(shell), node(shell)
    child = node(shell, parent_id=first)
    contains = "SELECT from_id, to_id FROM relations WHERE type = 'contains'"
    assert ask(shell, contains) == [(first, child)]
    shell.execute("UPDATE nodes SET parent_id = ? WHERE id = ?", (second, child))
    assert ask(shell, contains) == [(second, child)]
    shell.execute("UPDATE nodes SET parent_id = NULL WHERE id = ?", (child,))
    assert ask(shell, contains) == []


def test_a_contains_relation_of_a_shell_is_the_parent(shell: sqlite3.Connection) -> None:
    parent, child = node(shell), node(shell)
    link = relate(shell, parent, child, type="contains")
    parents = "SELECT parent_id FROM nodes WHERE id = ?"
    assert ask(shell, parents, child) == [(parent,)]
    shell.execute("DELETE FROM relations WHERE id = ?", (link,))
    assert ask(shell, parents, child) == [(None,)]


def test_a_parent_that_is_not_there_is_refused(shell: sqlite3.Connection) -> None:
    with pytest.raises(sqlite3.IntegrityError):
        node(shell, parent_id="nobody")
    assert ask(shell, "SELECT count(*) FROM nodes") == [(0,)]


def test_deleting_a_node_logs_each_of_its_relations_without_foreign_keys(
    shell: sqlite3.Connection,
) -> None:
    hub, child, other = node(shell), node(shell), node(shell)
    made = {relate(shell, hub, child, type="contains"), relate(shell, other, hub)}
    kept = relate(shell, child, other)
    shell.execute("DELETE FROM nodes WHERE id = ?", (hub,))
    assert ask(shell, "SELECT id FROM relations") == [(kept,)]
    assert ask(shell, "SELECT parent_id FROM nodes WHERE id = ?", child) == [(None,)]
    logged = ask(
        shell,
        "SELECT json_extract(before, '$.id') FROM changes"
        " WHERE op = 'delete' AND entity = 'relation'",
    )
    assert {name for (name,) in logged} == made
