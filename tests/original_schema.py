"""Databases as servers of the concept's original schema left them: its DDL, and rows of all sorts.

`make_original` writes a seeded one of 5,000 nodes with everything that hand-made SQL did to
such files; `write_original` writes the rows that a test names.
"""

from __future__ import annotations

import json
import random
import sqlite3
import uuid
from collections.abc import Iterable, Mapping
from contextlib import closing
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any, Final

from cortex.domain.taxonomy import NODE_TYPES, RELATION_TYPES

# The concept, section 3.3, word for word but for its comments.
DDL: Final = """
CREATE TABLE nodes (
    id          TEXT PRIMARY KEY,
    type        TEXT NOT NULL,
    workspace_id TEXT NOT NULL,
    parent_id   TEXT,
    data        JSON NOT NULL DEFAULT '{}',
    status      TEXT DEFAULT 'active',
    created_at  TEXT NOT NULL,
    updated_at  TEXT NOT NULL
);
CREATE TABLE relations (
    id          TEXT PRIMARY KEY,
    from_id     TEXT NOT NULL REFERENCES nodes(id) ON DELETE CASCADE,
    to_id       TEXT NOT NULL REFERENCES nodes(id) ON DELETE CASCADE,
    type        TEXT NOT NULL,
    weight      REAL DEFAULT 1.0,
    data        JSON DEFAULT '{}',
    created_at  TEXT NOT NULL
);
CREATE TABLE navigation_history (
    id          INTEGER PRIMARY KEY AUTOINCREMENT,
    workspace_id TEXT NOT NULL,
    node_id     TEXT NOT NULL,
    action      TEXT NOT NULL,
    context     JSON DEFAULT '{}',
    created_at  TEXT NOT NULL
);
CREATE INDEX idx_nodes_workspace ON nodes(workspace_id);
CREATE INDEX idx_nodes_parent ON nodes(parent_id);
CREATE INDEX idx_nodes_type ON nodes(type);
CREATE INDEX idx_nodes_status ON nodes(status);
CREATE INDEX idx_relations_from ON relations(from_id);
CREATE INDEX idx_relations_to ON relations(to_id);
CREATE INDEX idx_relations_type ON relations(type);
CREATE INDEX idx_nav_workspace ON navigation_history(workspace_id);
"""
WITH_UPDATED_AT: Final = "ALTER TABLE relations ADD COLUMN updated_at TEXT"  # its section 5.4
AT: Final = "2026-05-12T20:00:00Z"
_NODE: Final = """
INSERT INTO nodes(id, type, workspace_id, parent_id, data, status, created_at, updated_at)
VALUES (:id, :type, :workspace_id, :parent_id, :data, :status, :created_at, :updated_at)
"""
_RELATION: Final = """
INSERT INTO relations(id, from_id, to_id, type, weight, data, created_at)
VALUES (:id, :from_id, :to_id, :type, :weight, :data, :created_at)
"""
_VISIT: Final = """
INSERT INTO navigation_history(workspace_id, node_id, action, context, created_at)
VALUES (:workspace_id, :node_id, :action, :context, :created_at)
"""
Row = Mapping[str, Any]


def node(node_id: Any, kind: str = "fact", **columns: Any) -> dict[str, Any]:
    """A node's row: in workspace w, active, made at AT, saying its own id."""
    row = {
        "id": node_id,
        "type": kind,
        "workspace_id": "w",
        "parent_id": None,
        "data": json.dumps({"text": f"says {node_id}"}),
        "status": "active",
        "created_at": AT,
        **columns,
    }
    return {"updated_at": row["created_at"], **row}


def relation(source: str, kind: str, target: str, **columns: Any) -> dict[str, Any]:
    """A relation's row, named by its ends and type."""
    return {
        "id": f"{source}-{kind}-{target}",
        "from_id": source,
        "to_id": target,
        "type": kind,
        "weight": 1.0,
        "data": "{}",
        "created_at": AT,
        **columns,
    }


def visit(node_id: str, action: str = "focus", **columns: Any) -> dict[str, Any]:
    """An entry of the navigation history."""
    entry = {"workspace_id": "w", "node_id": node_id, "action": action, "context": "{}"}
    return {**entry, "created_at": AT, **columns}


def write_original(
    path: Path,
    nodes: Iterable[Row] = (),
    relations: Iterable[Row] = (),
    visits: Iterable[Row] = (),
    *,
    with_updated_at: bool = False,
    also: str = "",
) -> Path:
    """A database of the original schema with these rows; `also` is more SQL."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with closing(sqlite3.connect(path)) as shell, shell:
        shell.executescript(DDL)
        if with_updated_at:
            shell.execute(WITH_UPDATED_AT)
        shell.executemany(_NODE, nodes)
        shell.executemany(_RELATION, relations)
        shell.executemany(_VISIT, visits)
        shell.executescript(also)
    return path


def _time(dice: random.Random, at: datetime) -> Any:
    """One of the forms in which the same moment was written."""
    east = timezone(timedelta(hours=5, minutes=30))
    forms = (
        at.isoformat(),
        at.isoformat().replace("+00:00", "Z"),
        at.replace(microsecond=0).isoformat().replace("+00:00", "Z"),
        at.replace(tzinfo=None).isoformat(),
        at.astimezone(east).isoformat(),
        at.isoformat(" ").replace("+00:00", "Z"),
        at.strftime("%Y-%m-%d %H:%M:%S"),
        at.strftime("%Y-%m-%d"),
        *(("yesterday", "", "2026-13-40T99:00:00Z") if dice.random() < 0.1 else ()),
    )
    return dice.choice(forms)


def _data(dice: random.Random, number: int) -> Any:
    words = " ".join(dice.choices(("token", "graph", "cache", "index", "query", "vector"), k=8))
    forms = [
        '{"text": ',
        "[1, 2]",
        '"only a string"',
        "null",
        "",
        '{"score": NaN}',
        "7",
        b"\xff\xfe",
    ]
    if dice.random() < 0.03:
        return dice.choice(forms)
    return json.dumps({"title": f"node {number}", "text": words, "tags": ["a", "b"]})


def make_original(path: Path, count: int = 5000, seed: int = 1) -> Path:
    """`count` nodes of three workspaces, twice as many relations, and a history."""
    dice = random.Random(seed)
    places = ("alpha", "beta", "gamma")
    start = datetime(2026, 3, 1, tzinfo=UTC)
    ids: list[str] = []
    nodes, relations, visits = [], [], []
    types = [kind.value for kind in NODE_TYPES if kind.value != "session"] + ["Person", "Fact"]
    for number in range(count):
        at = start + timedelta(minutes=number, microseconds=dice.randrange(1_000_000))
        name = str(uuid.UUID(int=dice.getrandbits(128), version=4))
        name = dice.choice((name, name, name, name.upper(), f"node_{number}"))
        kind = "session" if number % 700 < len(places) else dice.choice(types)
        nodes.append(
            node(
                name,
                kind,
                workspace_id=places[number % len(places)],
                parent_id=dice.choice((None, None, "gone", *ids[-60:])) if ids else None,
                data=_data(dice, number),
                status=dice.choice(("active", "active", "stale", "archived", None, "done")),
                created_at=_time(dice, at),
                updated_at=_time(dice, at + timedelta(hours=1)),
            )
        )
        ids.append(name)
    kinds = [kind.value for kind in RELATION_TYPES] + ["contains", "knows", "Depends-On"]
    weights = (1.0, 0.5, 0.0, None, 1.7, -2, "0.25", "strong", float("inf"))
    for number in range(2 * count):
        near = dice.randrange(count)
        far = min(count - 1, max(0, near + dice.choice((-6, -3, 0, 3, 3, 6, 9, 1))))
        relations.append(
            relation(
                ids[near],
                dice.choice(kinds),
                ids[far] if dice.random() > 0.01 else "gone",
                id=f"r{number}",
                weight=dice.choice(weights),
                data=dice.choice(("{}", "{}", None, '{"note": "x"}', "broken")),
                created_at=_time(dice, start + timedelta(minutes=max(near, far))),
            )
        )
        if number % 10 == 0:
            action = dice.choice(("focus", "branch", "open", "search", "jump"))
            place = places[near % len(places)]
            when = _time(dice, start + timedelta(minutes=near))
            visits.append(visit(ids[near], action, workspace_id=place, created_at=when))
    return write_original(path, nodes, relations, visits)
