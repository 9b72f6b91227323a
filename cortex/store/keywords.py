"""Table keywords: the FTS5 index over tokens that the service has made, a row a chunk.

Long texts are found by their best passage: whole, they lose to short ones that say less of
what was asked. A row's number is the node's key and the chunk's number, so that a node's
rows lie together. What is found is ranked by `bm25.py`.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from cortex.domain.chunking import chunk
from cortex.domain.instants import Instant
from cortex.domain.taxonomy import NodeType, Status
from cortex.domain.values import Node, NodeId, WorkspaceId
from cortex.store.alike import Alike, find_alike
from cortex.store.bm25 import Collection, Row, corrected, read_averages, scored
from cortex.store.tokens import indexed, iter_tokens, query_tokens

_BITS: Final = 11  # 2,048 numbers for at most 2,000 chunks
_DROP: Final = "DELETE FROM keywords WHERE rowid >= :first AND rowid <= :last"
_PUT: Final = "INSERT INTO keywords(rowid, title, body) VALUES (:row, :title, :body)"
_KEYS: Final = "SELECT DISTINCT rowid >> 11 FROM keywords ORDER BY 1"
_DROP_ORPHANS: Final = """
DELETE FROM keywords WHERE (rowid >> 11) NOT IN (SELECT rowkey FROM nodes)
"""
# In the temp schema of each connection: the file stays free of it.
TERMS_TABLE: Final = """
CREATE VIRTUAL TABLE IF NOT EXISTS temp.terms USING fts5vocab('main', 'keywords', 'row')
"""
_TERMS: Final = """
SELECT term, doc FROM temp.terms WHERE term IN (SELECT value FROM json_each(:tokens))
"""
# FTS5 keeps the number of rows and the tokens of each column here, as its own bm25() needs.
_AVERAGES: Final = "SELECT block FROM keywords_data WHERE id = 1"
# Ranked first, joined after: the join then keeps what the caller may see of the best.
_SEARCH: Final = """
SELECT n.id, n.rowkey, k.row, k.score
  FROM (SELECT rowid AS row, bm25(keywords, 2.0, 1.0) AS score
          FROM keywords WHERE keywords MATCH :query
         ORDER BY score, rowid LIMIT :pool) AS k
 CROSS JOIN nodes AS n ON n.rowkey = k.row >> 11
 WHERE (:workspaces IS NULL OR n.workspace_id IN (SELECT value FROM json_each(:workspaces)))
   AND (:types IS NULL OR n.type IN (SELECT value FROM json_each(:types)))
   AND (:statuses IS NULL OR n.status IN (SELECT value FROM json_each(:statuses)))
   AND n.created_at >= :start AND n.created_at <= :stop
 ORDER BY k.score, k.row LIMIT :limit
"""
_ROWS: Final = """
SELECT k.rowid, k.title, k.body
  FROM json_each(:rows) AS wanted CROSS JOIN keywords AS k ON k.rowid = wanted.value
"""
# The last row of each node: FTS5 keeps the length of every row here.
_LAST_ROWS: Final = """
SELECT wanted.value, (SELECT MAX(d.id) FROM keywords_docsize AS d
                       WHERE d.id >= wanted.value << 11 AND d.id < (wanted.value + 1) << 11)
  FROM json_each(:keys) AS wanted
"""
# Unranked: scoring reads the whole list of every part, and "py" is in all of them.
_PATHS: Final = """
SELECT DISTINCT n.rowkey
  FROM keywords AS k CROSS JOIN nodes AS n ON n.rowkey = k.rowid >> 11
 WHERE keywords MATCH :query AND n.workspace_id = :workspace AND n.type = 'fileref'
 ORDER BY n.rowkey LIMIT :limit
"""
_POOL: Final = 1.5  # rows for each node that is wanted
_SCORED: Final = 5_000
_FEWEST: Final = 2


# Fields of `data` that are in the index already, or that nobody would ask for in words.
_NOT_WORDS: Final = frozenset({"title", "text", "path", "root", "hash", "key"})
_SHORT: Final = 200


class KeywordHit(NamedTuple):
    """BM25 score of a node's best chunk, higher is better, above 0; and which chunk it is."""

    node_id: NodeId
    key: int
    score: float
    chunk: int


class _Candidate(NamedTuple):
    node_id: NodeId
    key: int
    row: int


def keyword_rows(node: Node) -> list[tuple[str, str]]:
    """What of a node is found by keyword, a (head, body) for each chunk of its text.

    The head, title and path, stands in every row, so that its words and those of a passage
    add up. Tags and the short texts of its data are in the first row. None of it: no row.
    """
    data = node.data
    said = data.get("title")
    title = said if isinstance(said, str) else ""
    head = "\n".join(filter(None, (title, str(data.get("path") or ""))))
    extra = "\n".join(
        (
            *node.tags,
            *(
                value
                for name, value in data.items()
                if isinstance(value, str) and name not in _NOT_WORDS and len(value) <= _SHORT
            ),
        )
    )
    bodies = [node.text[piece.start : piece.end] for piece in chunk(node.text, title)]
    if extra:
        bodies[0] = f"{bodies[0]}\n{extra}" if bodies[0] else extra
    return [(head, body) for body in bodies] if head or any(bodies) else []


class Keywords:
    """Reads and writes the keyword index within one transaction."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def put(self, node: Node) -> None:
        self.drop(node.key)
        for nth, (head, body) in enumerate(keyword_rows(node)):
            bound = {"row": (node.key << _BITS) + nth, "title": indexed(head)}
            self._connection.execute(_PUT, {**bound, "body": indexed(body)})

    def drop(self, key: int) -> None:
        first = key << _BITS
        self._connection.execute(_DROP, {"first": first, "last": first + (1 << _BITS) - 1})

    def drop_orphans(self) -> None:
        """Remove rows whose node is gone."""
        self._connection.execute(_DROP_ORPHANS)

    def keys(self) -> list[int]:
        """Every node key that the index holds."""
        return [key for (key,) in self._connection.execute(_KEYS)]

    def collection(self) -> Collection:
        """How many rows there are, and how long they are on average."""
        found = self._connection.execute(_AVERAGES).fetchone()
        return read_averages(b"" if found is None else found[0])

    def _counts(self, tokens: Sequence[str]) -> dict[str, int]:
        """In how many rows each token occurs; without those that occur in none."""
        bound = {"tokens": json.dumps(list(tokens))}
        return dict(self._connection.execute(_TERMS, bound))

    def alike(self, text: str, workspace: WorkspaceId, limit: int) -> list[Alike]:
        """Active nodes that say nearly the same, most alike first, then newest."""
        return find_alike(self._connection, text, workspace, limit)

    def paths(self, end: str, workspace: WorkspaceId, limit: int) -> list[int]:
        """Keys of filerefs whose path has every part of this one: candidates for an end."""
        parts = dict.fromkeys(token for token in iter_tokens(end) if token.isalnum())
        if not parts:
            return []
        query = " AND ".join(f'"{part}"' for part in parts)
        bound = {"query": query, "workspace": workspace, "limit": limit}
        return [key for (key,) in self._connection.execute(_PATHS, bound)]

    def search(
        self,
        question: str,
        workspaces: Sequence[WorkspaceId] | None,
        limit: int,
        *,
        types: Sequence[NodeType] = (),
        statuses: Sequence[Status] = (),
        start: Instant | None = None,
        stop: Instant | None = None,
    ) -> list[KeywordHit]:
        """The best nodes by BM25, best first, ties by id; [] when the question has no word.

        FTS5 scores every row that matches, so common words are what costs. Candidates are
        found by the rarer words, until about 5,000 rows would be scored (the two rarest
        always are); those are then ranked by all the words.
        """
        tokens = query_tokens(question)
        counts = self._counts(tokens)
        chosen: list[str] = []
        read = 0
        for token in sorted(counts, key=lambda token: (counts[token], token)):
            read += counts[token]
            if read > _SCORED and len(chosen) >= _FEWEST:
                break
            chosen.append(token)
        if not chosen:
            return []
        expression = " OR ".join(f'"{token}"' for token in chosen)
        bound = self._bound(workspaces, types, statuses, start, stop)
        rows = round(limit * _POOL)
        wanted = self._candidates(expression, bound, rows, rows)
        if read > rows and len({each.key for each in wanted}) < limit:
            # The filters may have left out too many of the pool.
            wanted = self._candidates(expression, bound, rows, -1)
        return self._ranked(wanted, tokens, counts)[:limit]

    def _bound(
        self,
        workspaces: Sequence[WorkspaceId] | None,
        types: Sequence[NodeType],
        statuses: Sequence[Status],
        start: Instant | None = None,
        stop: Instant | None = None,
    ) -> dict[str, Any]:
        return {
            "workspaces": None if workspaces is None else json.dumps(list(workspaces)),
            "types": json.dumps(list(types)) if types else None,
            "statuses": json.dumps(list(statuses)) if statuses else None,
            "start": start or "",
            "stop": stop or "~",
        }

    def _candidates(
        self, expression: str, bound: dict[str, Any], limit: int, pool: int
    ) -> list[_Candidate]:
        bound = {**bound, "query": expression, "limit": limit, "pool": pool}
        rows = self._connection.execute(_SEARCH, bound)
        return [_Candidate(NodeId(node), key, row) for node, key, row, _ in rows]

    def _ranked(
        self,
        candidates: Sequence[_Candidate],
        tokens: Sequence[str],
        counts: dict[str, int] | None = None,
    ) -> list[KeywordHit]:
        bound = {"rows": json.dumps([each.row for each in candidates])}
        rows = [Row(*row) for row in self._connection.execute(_ROWS, bound)]
        if counts is None:
            counts = self._counts(tokens)
        scores = scored(rows, {token: counts.get(token, 0) for token in tokens}, self.collection())
        best: dict[int, _Candidate] = {}
        for each in candidates:
            if each.key not in best or scores[each.row] > scores[best[each.key].row]:
                best[each.key] = each
        fair = corrected(
            {key: scores[each.row] for key, each in best.items()},
            self._row_counts(list(best)),
            scores.values(),
        )
        hits = [
            KeywordHit(each.node_id, key, fair[key], each.row & ((1 << _BITS) - 1))
            for key, each in best.items()
        ]
        return sorted(hits, key=lambda hit: (-hit.score, hit.node_id))

    def _row_counts(self, keys: Sequence[int]) -> dict[int, int]:
        """How many rows each node has."""
        rows = self._connection.execute(_LAST_ROWS, {"keys": json.dumps(list(keys))})
        return {key: (last & ((1 << _BITS) - 1)) + 1 for key, last in rows}
