"""What the derived tables hold, a span of node keys at a time, for comparing with the nodes.

The keyword index is checked as a whole too, by FTS5's own check. That is a write, and would
make writers wait: it runs on a copy of the index's tables, in a private database that SQLite
keeps in memory, then in an unlinked file.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Final, NamedTuple

from cortex.domain.values import Node
from cortex.store.keywords import keyword_rows
from cortex.store.nodes import node_of
from cortex.store.tokens import indexed

_NODES: Final = """
SELECT rowkey, id, type, workspace_id, parent_id, data, status, created_at, updated_at
  FROM nodes WHERE rowkey > :after ORDER BY rowkey LIMIT :limit
"""
# The content table itself: through the virtual one, a broken index would stop the reading.
_KEYWORDS: Final = """
SELECT id, c0, c1 FROM keywords_content WHERE id >= :first AND id < :stop ORDER BY id
"""
_OWED: Final = """
SELECT node_key, workspace_id, text_hash, state, problem
  FROM index_state WHERE node_key >= :first AND node_key < :stop ORDER BY node_key
"""
_VECTORS: Final = """
SELECT node_key, model, chunk, text_hash, vector
  FROM embeddings WHERE node_key >= :first AND node_key < :stop ORDER BY node_key, model, chunk
"""
_GRAPH_NODES: Final = "SELECT rowkey, id, type, status FROM nodes WHERE workspace_id = :workspace"
_GRAPH_RELATIONS: Final = """
SELECT rowkey, from_id, to_id, type, weight, COALESCE(json_extract(data, '$.derived') = 1, 0)
  FROM relations WHERE workspace_id = :workspace
"""
_BITS: Final = 11  # as in keywords.py: a row's number is the node's key and its chunk's number

_ATTACH: Final = "ATTACH :file AS file"
_INDEX: Final = "SELECT sql FROM file.sqlite_master WHERE name = 'keywords'"
_COPY: Final = (
    "DELETE FROM main.keywords_data",
    "INSERT INTO main.keywords_data SELECT id, block FROM file.keywords_data",
    "DELETE FROM main.keywords_idx",
    "INSERT INTO main.keywords_idx SELECT segid, term, pgno FROM file.keywords_idx",
    "DELETE FROM main.keywords_content",
    "INSERT INTO main.keywords_content SELECT id, c0, c1 FROM file.keywords_content",
    "DELETE FROM main.keywords_docsize",
    "INSERT INTO main.keywords_docsize SELECT id, sz FROM file.keywords_docsize",
    "DELETE FROM main.keywords_config",
    "INSERT INTO main.keywords_config SELECT k, v FROM file.keywords_config",
)
_CHECK: Final = "INSERT INTO main.keywords(keywords) VALUES ('integrity-check')"


class OwedRow(NamedTuple):
    """A row of the outbox."""

    workspace: str
    text_hash: str
    state: str
    problem: str | None


class VectorRow(NamedTuple):
    """A row of table embeddings, without its node's key."""

    model: str
    chunk: int
    text_hash: str
    vector: bytes


class Span(NamedTuple):
    """Nodes by rising key, and what lies under those keys and up to the next span's."""

    nodes: list[Node]
    keywords: dict[int, list[tuple[str, str]]]
    owed: dict[int, OwedRow]
    vectors: dict[int, list[VectorRow]]
    stop: int


class DerivedAudit:
    """Reads within one transaction."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def span(self, first: int, limit: int) -> Span:
        """At most `limit` nodes with keys from `first` on; without a node, the last span."""
        rows = self._connection.execute(_NODES, {"after": first - 1, "limit": limit})
        nodes = [node_of(row) for row in rows]
        stop = nodes[-1].key + 1 if nodes else (1 << 62) >> _BITS
        bound = {"first": first, "stop": stop}
        kept = {"first": first << _BITS, "stop": stop << _BITS}
        keywords: dict[int, list[tuple[str, str]]] = {}
        for row, title, body in self._connection.execute(_KEYWORDS, kept):
            keywords.setdefault(row >> _BITS, []).append((title, body))
        vectors: dict[int, list[VectorRow]] = {}
        for key, *rest in self._connection.execute(_VECTORS, bound):
            vectors.setdefault(key, []).append(VectorRow(*rest))
        owed = {key: OwedRow(*rest) for key, *rest in self._connection.execute(_OWED, bound)}
        return Span(nodes, keywords, owed, vectors, stop)

    def nodes_of(self, workspace: str) -> Iterator[tuple[int, str, str, str]]:
        """(key, id, type, status) of every node, as the table has them."""
        yield from self._connection.execute(_GRAPH_NODES, {"workspace": workspace})

    def relations_of(self, workspace: str) -> Iterator[tuple[int, str, str, str, float, int]]:
        """(key, from, to, type, weight, derived) of every relation, likewise."""
        yield from self._connection.execute(_GRAPH_RELATIONS, {"workspace": workspace})


def keyword_rows_of(node: Node) -> list[tuple[str, str]]:
    """What the keyword index should hold of a node."""
    return [(indexed(head), indexed(body)) for head, body in keyword_rows(node)]


def keyword_problem(path: Path) -> str | None:
    """What FTS5 itself says is wrong with the keyword index, None where it is whole.

    Looked at on a copy of its tables, as they stand at one moment; nobody waits.
    """
    with closing(sqlite3.connect("", isolation_level=None, uri=True)) as own:
        own.execute("PRAGMA journal_mode = OFF")
        own.execute(_ATTACH, {"file": f"{path.absolute().as_uri()}?mode=ro"})
        try:
            own.execute("BEGIN")
            made = own.execute(_INDEX).fetchone()
            if made is None:
                return "its table is missing"
            own.execute(made[0])
            for statement in _COPY:
                own.execute(statement)
            own.execute("COMMIT")
            own.execute(_CHECK)
        except sqlite3.DatabaseError as error:
            return str(error)
    return None
