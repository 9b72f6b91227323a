"""Table keywords: the FTS5 index over tokens that the service has made."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from cortex.domain.instants import Instant
from cortex.domain.taxonomy import NodeType, Status
from cortex.domain.values import Node, NodeId, WorkspaceId
from cortex.store.tokens import indexed, iter_tokens, query_tokens

_DROP: Final = "DELETE FROM keywords WHERE rowid = :key"
_PUT: Final = "INSERT INTO keywords(rowid, title, body) VALUES (:key, :title, :body)"
_KEYS: Final = "SELECT rowid FROM keywords ORDER BY rowid"
_DROP_ORPHANS: Final = "DELETE FROM keywords WHERE rowid NOT IN (SELECT rowkey FROM nodes)"
# In the temp schema of each connection: the file stays free of it.
TERMS_TABLE: Final = """
CREATE VIRTUAL TABLE IF NOT EXISTS temp.terms USING fts5vocab('main', 'keywords', 'row')
"""
_TERMS: Final = """
SELECT term, doc FROM temp.terms WHERE term IN (SELECT value FROM json_each(:tokens))
"""
_LAST: Final = "SELECT COALESCE(MAX(rowid), 0) FROM keywords"
# Ranked first, joined after: the join then keeps what the caller may see of the best.
_SEARCH: Final = """
SELECT n.id, n.rowkey, k.score
  FROM (SELECT rowid, bm25(keywords, 2.0, 1.0) AS score
          FROM keywords WHERE keywords MATCH :query
         ORDER BY score, rowid LIMIT :pool) AS k
 CROSS JOIN nodes AS n ON n.rowkey = k.rowid
 WHERE (:workspaces IS NULL OR n.workspace_id IN (SELECT value FROM json_each(:workspaces)))
   AND (:types IS NULL OR n.type IN (SELECT value FROM json_each(:types)))
   AND (:statuses IS NULL OR n.status IN (SELECT value FROM json_each(:statuses)))
   AND n.created_at >= :start AND n.created_at <= :stop
 ORDER BY k.score, n.id LIMIT :limit
"""
# Unranked: scoring reads the whole list of every part, and "py" is in all of them.
_PATHS: Final = """
SELECT n.rowkey
  FROM keywords AS k CROSS JOIN nodes AS n ON n.rowkey = k.rowid
 WHERE keywords MATCH :query AND n.workspace_id = :workspace AND n.type = 'fileref'
 ORDER BY k.rowid LIMIT :limit
"""
_POOL: Final = 4
_SCORED: Final = 8_000
_FEWEST: Final = 2
_GROUP: Final = 3
_GROUPED: Final = 6


# Fields of `data` that are in the index already, or that nobody would ask for in words.
_NOT_WORDS: Final = frozenset({"title", "text", "path", "root", "hash", "key"})
_SHORT: Final = 200


class KeywordHit(NamedTuple):
    """BM25 score of a node, higher is better, above 0."""

    node_id: NodeId
    key: int
    score: float


def keyword_text(node: Node) -> tuple[str, str]:
    """What of a node is found by keyword: title and path; text, tags, short texts of its data."""
    data = node.data
    title = data.get("title")
    head = [title if isinstance(title, str) else "", str(data.get("path") or "")]
    extra = (
        value
        for name, value in data.items()
        if isinstance(value, str) and name not in _NOT_WORDS and len(value) <= _SHORT
    )
    body = [node.text, *node.tags, *extra]
    return "\n".join(filter(None, head)), "\n".join(filter(None, body))


class Keywords:
    """Reads and writes the keyword index within one transaction."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def put(self, node: Node) -> None:
        title, body = keyword_text(node)
        self.drop(node.key)
        if title or body:
            self._connection.execute(
                _PUT, {"key": node.key, "title": indexed(title), "body": indexed(body)}
            )

    def drop(self, key: int) -> None:
        self._connection.execute(_DROP, {"key": key})

    def drop_orphans(self) -> None:
        """Remove rows whose node is gone."""
        self._connection.execute(_DROP_ORPHANS)

    def keys(self) -> list[int]:
        """Every node key that the index holds."""
        return [key for (key,) in self._connection.execute(_KEYS)]

    def _by_rarity(self, tokens: Sequence[str]) -> list[tuple[int, str]]:
        """The tokens that occur, with the number of rows that hold each, rarest first."""
        bound = {"tokens": json.dumps(list(tokens))}
        return sorted((rows, term) for term, rows in self._connection.execute(_TERMS, bound))

    def expression(self, question: str) -> str:
        """The FTS5 query of a question: its words quoted and OR-ed; "" when it has none.

        FTS5 scores every row that matches, so common words are what costs. Rarer ones are
        taken first until about 8,000 rows would be scored; the two rarest always are.
        """
        tokens = query_tokens(question)
        if int(self._connection.execute(_LAST).fetchone()[0]) > _SCORED:
            chosen: set[str] = set()
            scored = 0
            for rows, token in self._by_rarity(tokens):
                scored += rows
                if scored > _SCORED and len(chosen) >= _FEWEST:
                    break
                chosen.add(token)
            tokens = [token for token in tokens if token in chosen]
        return " OR ".join(f'"{token}"' for token in tokens)

    def alike(self, text: str, workspace: WorkspaceId, limit: int) -> list[KeywordHit]:
        """Active nodes that share three of the text's longest words, best first.

        Long words are rare ones. The six longest stand in two groups, so that one changed
        word leaves the other group whole.
        """
        tokens = sorted(query_tokens(text), key=lambda token: (-len(token), token))[:_GROUPED]
        words = [f'"{token}"' for token in tokens]
        groups = (words[place : place + _GROUP] for place in range(0, len(words), _GROUP))
        expression = " OR ".join(f"({' AND '.join(group)})" for group in groups)
        return self._run(expression, [workspace], limit, statuses=(Status.ACTIVE,), pool=64)

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
        """The best nodes by BM25, best first, ties by id; [] when the question has no word."""
        return self._run(
            self.expression(question),
            workspaces,
            limit,
            types=types,
            statuses=statuses,
            start=start,
            stop=stop,
        )

    def _run(
        self,
        expression: str,
        workspaces: Sequence[WorkspaceId] | None,
        limit: int,
        *,
        types: Sequence[NodeType] = (),
        statuses: Sequence[Status] = (),
        start: Instant | None = None,
        stop: Instant | None = None,
        pool: int | None = None,
    ) -> list[KeywordHit]:
        if not expression:
            return []
        bound: dict[str, Any] = {
            "query": expression,
            "pool": limit * _POOL if pool is None else pool,
            "workspaces": None if workspaces is None else json.dumps(list(workspaces)),
            "types": json.dumps(list(types)) if types else None,
            "statuses": json.dumps(list(statuses)) if statuses else None,
            "start": start or "",
            "stop": stop or "~",
            "limit": limit,
        }
        rows = self._connection.execute(_SEARCH, bound).fetchall()
        if pool is None and len(rows) < limit:  # the filters may have left out too many of the pool
            rows = self._connection.execute(_SEARCH, {**bound, "pool": -1}).fetchall()
        return [KeywordHit(NodeId(node), key, -score) for node, key, score in rows]
