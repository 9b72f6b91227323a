"""Table keywords: the FTS5 index over tokens that the service has made."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from typing import Final, NamedTuple

from cortex.domain.instants import Instant
from cortex.domain.taxonomy import NodeType, Status
from cortex.domain.values import Node, NodeId, WorkspaceId
from cortex.store.tokens import indexed, query_tokens

_DROP: Final = "DELETE FROM keywords WHERE rowid = :key"
_PUT: Final = "INSERT INTO keywords(rowid, title, body) VALUES (:key, :title, :body)"
_KEYS: Final = "SELECT rowid FROM keywords ORDER BY rowid"
_DROP_ORPHANS: Final = "DELETE FROM keywords WHERE rowid NOT IN (SELECT rowkey FROM nodes)"
# FTS5 scores every row that matches; the join keeps what the caller may see.
_SEARCH: Final = """
SELECT n.id, n.rowkey, bm25(keywords, 2.0, 1.0) AS rank
  FROM keywords CROSS JOIN nodes AS n ON n.rowkey = keywords.rowid
 WHERE keywords MATCH :query
   AND (:workspaces IS NULL OR n.workspace_id IN (SELECT value FROM json_each(:workspaces)))
   AND (:types IS NULL OR n.type IN (SELECT value FROM json_each(:types)))
   AND (:statuses IS NULL OR n.status IN (SELECT value FROM json_each(:statuses)))
   AND n.created_at >= :start AND n.created_at <= :stop
 ORDER BY rank, n.id LIMIT :limit
"""


class KeywordHit(NamedTuple):
    """BM25 score of a node, higher is better, above 0."""

    node_id: NodeId
    key: int
    score: float


def keyword_text(node: Node) -> tuple[str, str]:
    """What of a node is found by keyword: its title and path, and its text, tags, labels."""
    data = node.data
    title = data.get("title")
    head = [title if isinstance(title, str) else "", str(data.get("path") or "")]
    kind, label = data.get("kind"), data.get("label")
    extra = (item for item in (kind, label) if isinstance(item, str))
    body = [node.text, *node.tags, *extra]
    return "\n".join(filter(None, head)), "\n".join(filter(None, body))


def match_expression(question: str) -> str:
    """The FTS5 query of a question: its words quoted and OR-ed; "" when it has none."""
    return " OR ".join(f'"{token}"' for token in query_tokens(question))


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
        expression = match_expression(question)
        if not expression:
            return []
        rows = self._connection.execute(
            _SEARCH,
            {
                "query": expression,
                "workspaces": None if workspaces is None else json.dumps(list(workspaces)),
                "types": json.dumps(list(types)) if types else None,
                "statuses": json.dumps(list(statuses)) if statuses else None,
                "start": start or "",
                "stop": stop or "~",
                "limit": limit,
            },
        )
        return [KeywordHit(NodeId(node), key, -rank) for node, key, rank in rows]
