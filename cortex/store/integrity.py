"""What one statement can tell about a file: is it whole, and do its rows keep the rules?

Rows are read raw, never as values of the domain: what breaks a rule could not become one.
Each list is in a stable order (invariant 9). Cost: each a scan or two.
"""

from __future__ import annotations

import json
import re
import sqlite3
from contextlib import closing
from functools import cache
from typing import Any, Final, NamedTuple

from cortex.domain.taxonomy import NodeType, RelationType, Status
from cortex.store.schema import MIGRATIONS

_MOST: Final = 10_000
_CHECK: Final = f"PRAGMA integrity_check({_MOST:d})"
_INDEX: Final = re.compile(
    r"(?:row \d+ missing from|wrong # of entries in|non-unique entry in) index (?P<name>\S+)"
)
_VALUE: Final = re.compile(r"CHECK constraint failed in|NULL value in|non-[A-Z]+ value in")
_KEYWORDS: Final = re.compile(r".*\b(?:FTS5|inverted index)\b")
_INSTANT: Final = (  # invariant 5
    "-".join(("[0-9]" * 4, "[0-9]" * 2, "[0-9]" * 2))
    + "T"
    + ":".join(("[0-9]" * 2, "[0-9]" * 2, "[0-9]" * 2))
    + "."
    + "[0-9]" * 6
    + "Z"
)

_OBJECTS: Final = """
SELECT type, name, sql FROM sqlite_master
 WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' AND name NOT LIKE 'keywords\\__%'
       ESCAPE '\\'
 ORDER BY type, name
"""
_BAD_NODES: Final = """
SELECT rowkey, id, type, workspace_id, data, status, created_at, updated_at
  FROM nodes
 WHERE type NOT IN (SELECT value FROM json_each(:types))
    OR status NOT IN (SELECT value FROM json_each(:statuses))
    OR length(workspace_id) NOT BETWEEN 1 AND 200
    OR created_at NOT GLOB :instant OR updated_at NOT GLOB :instant
    OR CASE WHEN json_valid(data) THEN json_type(data) <> 'object' ELSE 1 END
 ORDER BY rowkey
"""
_BAD_RELATIONS: Final = """
SELECT rowkey, id, type, weight, data, created_at, updated_at, workspace_id, from_id, to_id
  FROM relations
 WHERE type NOT IN (SELECT value FROM json_each(:kinds))
    OR weight NOT BETWEEN 0.0 AND 1.0
    OR created_at NOT GLOB :instant OR updated_at NOT GLOB :instant
    OR CASE WHEN json_valid(data) THEN json_type(data) <> 'object' ELSE 1 END
 ORDER BY rowkey
"""
_DANGLING: Final = """
SELECT rowkey, id, type, from_id, to_id
  FROM relations
 WHERE from_id NOT IN (SELECT id FROM nodes) OR to_id NOT IN (SELECT id FROM nodes)
 ORDER BY rowkey
"""
_APART: Final = """
SELECT r.rowkey, r.id, r.type, r.workspace_id, f.workspace_id, t.workspace_id
  FROM relations AS r JOIN nodes AS f ON f.id = r.from_id JOIN nodes AS t ON t.id = r.to_id
 WHERE r.workspace_id <> f.workspace_id OR r.workspace_id <> t.workspace_id
 ORDER BY r.rowkey
"""
_PARENTS: Final = """
SELECT n.rowkey, n.id, n.parent_id, r.from_id
  FROM nodes AS n LEFT JOIN relations AS r ON r.to_id = n.id AND r.type = 'contains'
 WHERE n.parent_id IS NOT r.from_id
   AND NOT EXISTS (SELECT 1 FROM relations AS other
                    WHERE other.to_id = n.id AND other.type = 'contains'
                      AND other.rowkey <> r.rowkey)
 ORDER BY n.rowkey
"""
_PAIRS: Final = """
SELECT from_id, to_id FROM relations WHERE type = :type ORDER BY rowkey
"""
_SUPERSEDED: Final = """
SELECT n.rowkey, n.id
  FROM relations AS r JOIN nodes AS n ON n.id = r.to_id
 WHERE r.type = 'supersedes' AND n.status = 'active'
 GROUP BY n.rowkey
 ORDER BY n.rowkey
"""
_ROOTS: Final = """
SELECT n.rowkey, n.id, n.workspace_id, f.id
  FROM nodes AS n
  JOIN (SELECT workspace_id, MIN(rowkey) AS first, COUNT(*) AS roots
          FROM nodes WHERE type = 'session' AND parent_id IS NULL
         GROUP BY workspace_id HAVING roots > 1) AS several
       ON several.workspace_id = n.workspace_id
  JOIN nodes AS f ON f.rowkey = several.first
 WHERE n.type = 'session' AND n.parent_id IS NULL AND n.rowkey <> several.first
 ORDER BY n.rowkey
"""
_MISCOUNTED: Final = """
SELECT workspace_id, status, SUM(told), SUM(counted) FROM (
    SELECT workspace_id, status, nodes AS told, 0 AS counted FROM tallies
    UNION ALL
    SELECT workspace_id, status, 0, COUNT(*) FROM nodes GROUP BY workspace_id, status)
 GROUP BY workspace_id, status HAVING SUM(told) <> SUM(counted)
 ORDER BY workspace_id, status
"""
_STRAY: Final = """
SELECT 'embeddings', node_key FROM embeddings
 WHERE node_key NOT IN (SELECT rowkey FROM nodes) GROUP BY node_key
UNION ALL
SELECT 'index_state', node_key FROM index_state WHERE node_key NOT IN (SELECT rowkey FROM nodes)
UNION ALL
SELECT 'accesses', node_key FROM accesses WHERE node_key NOT IN (SELECT rowkey FROM nodes)
UNION ALL
SELECT 'waves', node_key FROM waves WHERE node_key NOT IN (SELECT rowkey FROM nodes)
 ORDER BY 1, 2
"""
_WRITER: Final = """
SELECT (SELECT COUNT(*) FROM writer), (SELECT COUNT(*) FROM writer WHERE tx IS NOT NULL)
"""
_COUNTS: Final = "SELECT (SELECT COUNT(*) FROM nodes), (SELECT COUNT(*) FROM relations)"


class Problems(NamedTuple):
    """SQLite's own check, sorted by what they mean: of pages, of indexes, of the keyword
    index. What it says of values is told better by `bad_nodes` and `bad_relations`."""

    pages: list[str]
    indexes: list[str]
    keywords: list[str]


class Difference(NamedTuple):
    """A table, index or trigger that is not as the migrations make it.

    `state` is missing, changed or extra; `sql` how it should be, "" for an extra one.
    """

    kind: str
    name: str
    state: str
    sql: str


class Integrity:
    """Checks within one read transaction."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def problems(self) -> Problems:
        """Every page, cell and index entry is looked at; at most 10,000 problems."""
        sorted_ = Problems([], [], [])
        try:
            lines = [str(row[0]) for row in self._connection.execute(_CHECK)]
        except sqlite3.DatabaseError as error:
            return Problems([str(error)], [], [])
        for line in lines:
            if line == "ok" or _VALUE.match(line):
                continue
            if _INDEX.match(line):
                sorted_.indexes.append(line)
            elif _KEYWORDS.match(line):
                sorted_.keywords.append(line)
            else:
                sorted_.pages.append(line)
        return sorted_

    def differences(self) -> list[Difference]:
        """What of the schema is not as this version makes it."""
        here = {(kind, name): sql for kind, name, sql in self._connection.execute(_OBJECTS)}
        wanted = _wanted()
        changed = [
            Difference(kind, name, "changed" if (kind, name) in here else "missing", sql)
            for (kind, name), sql in wanted.items()
            if here.get((kind, name)) != sql
        ]
        extra = [Difference(*which, "extra", "") for which in here if which not in wanted]
        return changed + extra

    def bad_nodes(self) -> list[tuple[Any, ...]]:
        """(rowkey, id, type, workspace_id, data, status, created_at, updated_at) of nodes that
        hold what no column may."""
        bound = {
            "types": json.dumps([kind.value for kind in NodeType]),
            "statuses": json.dumps([status.value for status in Status]),
            "instant": _INSTANT,
        }
        return self._connection.execute(_BAD_NODES, bound).fetchall()

    def bad_relations(self) -> list[tuple[Any, ...]]:
        """(rowkey, id, type, weight, data, created_at, updated_at, workspace_id, from_id, to_id);
        likewise."""
        bound = {
            "kinds": json.dumps([kind.value for kind in RelationType]),
            "instant": _INSTANT,
        }
        return self._connection.execute(_BAD_RELATIONS, bound).fetchall()

    def dangling(self) -> list[tuple[int, str, str, str, str]]:
        """(rowkey, id, type, from, to) of relations with an end that is gone."""
        return self._connection.execute(_DANGLING).fetchall()

    def apart(self) -> list[tuple[int, str, str, str, str, str]]:
        """(rowkey, id, type, its workspace, that of its ends) where they differ."""
        return self._connection.execute(_APART).fetchall()

    def parents(self) -> list[tuple[int, str, str | None, str | None]]:
        """(rowkey, id, parent_id, who contains it) of nodes where the two differ; those that
        several contain are left to the check of the forest."""
        return self._connection.execute(_PARENTS).fetchall()

    def pairs(self, kind: RelationType) -> list[tuple[str, str]]:
        """(from, to) of every relation of a type."""
        return self._connection.execute(_PAIRS, {"type": kind.value}).fetchall()

    def superseded(self) -> list[tuple[int, str]]:
        """(rowkey, id) of nodes that are superseded, and active."""
        return self._connection.execute(_SUPERSEDED).fetchall()

    def roots(self) -> list[tuple[int, str, str, str]]:
        """(rowkey, id, workspace, id of the first root) of every session root but the first."""
        return self._connection.execute(_ROOTS).fetchall()

    def miscounted(self) -> list[tuple[str, str, int, int]]:
        """(workspace, status, as told, as counted) where the tallies are wrong."""
        return self._connection.execute(_MISCOUNTED).fetchall()

    def stray(self) -> list[tuple[str, int]]:
        """(table, key) of rows that hang on a node that is gone."""
        return self._connection.execute(_STRAY).fetchall()

    def writers(self) -> tuple[int, int]:
        """Rows of table writer, and those that name a transaction: (1, 0) outside of one."""
        rows, named = self._connection.execute(_WRITER).fetchone()
        return int(rows), int(named)

    def counts(self) -> tuple[int, int]:
        """How many nodes and relations there are."""
        nodes, relations = self._connection.execute(_COUNTS).fetchone()
        return int(nodes), int(relations)


def wanted_sql(name: str) -> str:
    """How this version makes a table, index or trigger."""
    return next(sql for (_, each), sql in _wanted().items() if each == name)


@cache
def _wanted() -> dict[tuple[str, str], str]:
    """The schema as the migrations leave it, made in memory."""
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as fresh:
        for statements in MIGRATIONS:
            for statement in statements:
                fresh.execute(statement)
        return {(kind, name): sql for kind, name, sql in fresh.execute(_OBJECTS)}
