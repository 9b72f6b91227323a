"""Tables embeddings and index_state: the vectors, and what is still owed (the outbox)."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from cortex.domain.instants import Instant
from cortex.domain.values import WorkspaceId

_OF_NODE: Final = """
SELECT node_key, text_hash, vector
  FROM embeddings
 WHERE model = :model AND node_key IN (SELECT value FROM json_each(:keys))
 ORDER BY node_key, chunk
"""
_TOUCHED: Final = """
SELECT DISTINCT node_key FROM embeddings
 WHERE emb_seq > :since AND emb_seq <= :until ORDER BY node_key
"""
_DROP: Final = "DELETE FROM embeddings WHERE node_key = :key AND model = :model"
_DROP_OTHERS: Final = "DELETE FROM embeddings WHERE model <> :model"
_PUT: Final = """
INSERT INTO embeddings(node_key, model, chunk, text_hash, vector)
VALUES (:key, :model, :chunk, :text_hash, :vector)
"""
_MODELS: Final = "SELECT model, COUNT(DISTINCT node_key) FROM embeddings GROUP BY model"
_LACKING: Final = """
SELECT s.node_key, s.text_hash
  FROM index_state AS s
 WHERE s.node_key > :after AND NOT EXISTS (
       SELECT 1 FROM embeddings AS e
        WHERE e.node_key = s.node_key AND e.model = :model AND e.text_hash = s.text_hash)
 ORDER BY s.node_key LIMIT :limit
"""
_COUNT_LACKING: Final = """
SELECT COUNT(*)
  FROM index_state AS s
 WHERE s.node_key > :after AND NOT EXISTS (
       SELECT 1 FROM embeddings AS e
        WHERE e.node_key = s.node_key AND e.model = :model AND e.text_hash = s.text_hash)
"""
_DROP_NODE: Final = "DELETE FROM embeddings WHERE node_key = :key"

_OWE: Final = """
INSERT INTO index_state(node_key, workspace_id, text_hash, state)
VALUES (:key, :workspace, :text_hash, 'pending')
    ON CONFLICT (node_key) DO UPDATE
   SET workspace_id = excluded.workspace_id, text_hash = excluded.text_hash, attempts = 0,
       state = 'pending', leased_until = '', problem = NULL
 WHERE index_state.text_hash <> excluded.text_hash
    OR index_state.workspace_id <> excluded.workspace_id
"""
_FORGIVE: Final = "DELETE FROM index_state WHERE node_key = :key"
_STATE: Final = """
SELECT node_key, text_hash, state, attempts, problem FROM index_state WHERE node_key = :key
"""
_STATES: Final = """
SELECT s.node_key, s.state, s.problem
  FROM index_state AS s
 WHERE s.state <> 'ready' AND s.node_key IN (SELECT value FROM json_each(:keys))
"""
_LEASE: Final = """
UPDATE index_state SET leased_until = :until
 WHERE node_key IN (
       SELECT node_key FROM index_state
        WHERE state <> 'ready' AND leased_until < :now
        ORDER BY state = 'failed', node_key LIMIT :limit)
RETURNING node_key, text_hash
"""
_SETTLE: Final = """
UPDATE index_state SET state = 'ready', leased_until = '', attempts = 0, problem = NULL
 WHERE node_key = :key AND text_hash = :text_hash
"""
_FAIL: Final = """
UPDATE index_state
   SET state = 'failed', attempts = attempts + 1, problem = :problem, leased_until = :retry_at
 WHERE node_key = :key AND text_hash = :text_hash
"""
_RELEASE: Final = """
UPDATE index_state SET leased_until = ''
 WHERE state = 'pending' AND node_key IN (SELECT value FROM json_each(:keys))
"""
_SETTLE_ALL: Final = """
UPDATE index_state SET state = 'ready', leased_until = '', attempts = 0, problem = NULL
 WHERE state <> 'ready'
"""
_RETRY_ALL: Final = "UPDATE index_state SET leased_until = '' WHERE state <> 'ready'"
_COUNTS: Final = "SELECT state, COUNT(*) FROM index_state GROUP BY state"
# The partial index answers a query that says its very condition, state <> 'ready'.
_OPEN: Final = """
SELECT COUNT(*) FROM index_state
 WHERE state <> 'ready' AND state = 'pending' AND (:workspace IS NULL OR workspace_id = :workspace)
"""
_OWING: Final = """
SELECT COUNT(*) FROM index_state
 WHERE state <> 'ready' AND (:workspace IS NULL OR workspace_id = :workspace)
"""
_ANY_READY: Final = """
SELECT EXISTS (
    SELECT 1 FROM index_state
     WHERE state = 'ready' AND (:workspace IS NULL OR workspace_id = :workspace))
"""
_FAILED: Final = """
SELECT COUNT(*), MAX(problem) FROM index_state
 WHERE state <> 'ready' AND state = 'failed' AND (:workspace IS NULL OR workspace_id = :workspace)
"""
_NEXT_DUE: Final = "SELECT MIN(leased_until) FROM index_state WHERE state <> 'ready'"


@dataclass(frozen=True, slots=True)
class Owed:
    """A node whose text waits for its vector."""

    key: int
    text_hash: str


@dataclass(frozen=True, slots=True)
class IndexState:
    """Whether a node's present text is in the vector index, and if not, why."""

    state: str
    attempts: int
    problem: str | None


@dataclass(frozen=True, slots=True)
class Stored:
    """A node's vectors under one model: one float16 row per chunk, as bytes."""

    key: int
    text_hash: str
    vectors: tuple[bytes, ...]


def _grouped(rows: Iterator[Sequence[Any]]) -> Iterator[Stored]:
    key: int | None = None
    text_hash = ""
    vectors: list[bytes] = []
    for node_key, row_hash, vector in rows:
        if node_key != key:
            if key is not None:
                yield Stored(key, text_hash, tuple(vectors))
            key, text_hash, vectors = node_key, row_hash, []
        vectors.append(vector)
    if key is not None:
        yield Stored(key, text_hash, tuple(vectors))


class Embeddings:
    """Reads and writes vectors within one transaction."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def of_nodes(self, keys: Sequence[int], model: str) -> list[Stored]:
        bound = {"model": model, "keys": json.dumps(list(keys))}
        return list(_grouped(iter(self._connection.execute(_OF_NODE, bound))))

    def touched(self, since: int, until: int) -> list[int]:
        """Keys of nodes whose vectors were written after `since`, up to `until`."""
        rows = self._connection.execute(_TOUCHED, {"since": since, "until": until})
        return [key for (key,) in rows]

    def put(self, key: int, model: str, text_hash: str, vectors: Sequence[bytes]) -> None:
        """Replace the node's vectors under this model."""
        self.drop(key, model)
        self._connection.executemany(
            _PUT,
            [
                {"key": key, "model": model, "chunk": n, "text_hash": text_hash, "vector": vector}
                for n, vector in enumerate(vectors)
            ],
        )

    def drop(self, key: int, model: str) -> None:
        self._connection.execute(_DROP, {"key": key, "model": model})

    def drop_other_models(self, model: str) -> None:
        self._connection.execute(_DROP_OTHERS, {"model": model})

    def drop_node(self, key: int) -> None:
        """Remove the node's vectors under every model."""
        self._connection.execute(_DROP_NODE, {"key": key})

    def count_lacking(self, model: str, after: int) -> int:
        bound = {"model": model, "after": after}
        return int(self._connection.execute(_COUNT_LACKING, bound).fetchone()[0])

    def models(self) -> dict[str, int]:
        """Number of nodes with vectors, by model."""
        return dict(self._connection.execute(_MODELS).fetchall())

    def lacking(self, model: str, after: int, limit: int) -> list[Owed]:
        """Nodes whose present text has no vector under this model, by rising key."""
        rows = self._connection.execute(_LACKING, {"model": model, "after": after, "limit": limit})
        return [Owed(*row) for row in rows]


class Outbox:
    """Which nodes' texts still owe a vector; it survives restarts."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def owe(self, key: int, workspace: str, text_hash: str) -> None:
        """Note the debt, unless this very text is known already."""
        self._connection.execute(_OWE, {"key": key, "workspace": workspace, "text_hash": text_hash})

    def forgive(self, key: int) -> None:
        self._connection.execute(_FORGIVE, {"key": key})

    def state(self, key: int) -> IndexState | None:
        """None for a node that has no vector by its type or lacks text."""
        row = self._connection.execute(_STATE, {"key": key}).fetchone()
        return None if row is None else IndexState(row[2], row[3], row[4])

    def not_ready(self, keys: Sequence[int]) -> dict[int, str]:
        rows = self._connection.execute(_STATES, {"keys": json.dumps(list(keys))})
        return {key: state for key, state, _ in rows}

    def lease(self, now: Instant, until: Instant, limit: int) -> list[Owed]:
        """Take up to `limit` debts for oneself until then; pending before failed."""
        rows = self._connection.execute(_LEASE, {"now": now, "until": until, "limit": limit})
        return sorted((Owed(*row) for row in rows), key=lambda owed: owed.key)

    def release(self, keys: Sequence[int]) -> None:
        self._connection.execute(_RELEASE, {"keys": json.dumps(list(keys))})

    def settle(self, owed: Owed) -> bool:
        """Mark as paid; False when the text has changed meanwhile."""
        bound = {"key": owed.key, "text_hash": owed.text_hash}
        return self._connection.execute(_SETTLE, bound).rowcount == 1

    def holds(self, owed: Owed) -> bool:
        """Whether this very text is still the node's."""
        row = self._connection.execute(_STATE, {"key": owed.key}).fetchone()
        return row is not None and row[1] == owed.text_hash

    def fail(self, owed: Owed, problem: str, retry_at: Instant) -> None:
        self._connection.execute(
            _FAIL,
            {
                "key": owed.key,
                "text_hash": owed.text_hash,
                "problem": problem[:500],
                "retry_at": retry_at,
            },
        )

    def settle_all(self) -> None:
        self._connection.execute(_SETTLE_ALL)

    def retry_all(self) -> None:
        """Let every debt be taken at once, failed ones too."""
        self._connection.execute(_RETRY_ALL)

    def counts(self) -> dict[str, int]:
        return dict(self._connection.execute(_COUNTS).fetchall())

    def pending(self, workspace: WorkspaceId | None) -> int:
        row = self._connection.execute(_OPEN, {"workspace": workspace}).fetchone()
        return int(row[0])

    def owing(self, workspace: WorkspaceId | None) -> int:
        """How many are not in the vector index, pending and failed."""
        row = self._connection.execute(_OWING, {"workspace": workspace}).fetchone()
        return int(row[0])

    def any_ready(self, workspace: WorkspaceId | None) -> bool:
        row = self._connection.execute(_ANY_READY, {"workspace": workspace}).fetchone()
        return bool(row[0])

    def failed(self, workspace: WorkspaceId | None) -> tuple[int, str | None]:
        """How many failed, and one of the reasons."""
        row = self._connection.execute(_FAILED, {"workspace": workspace}).fetchone()
        return int(row[0]), row[1]

    def next_due(self) -> str | None:
        """When the next debt can be taken; "" means now, None that there is none."""
        row = self._connection.execute(_NEXT_DUE).fetchone()
        return None if row is None or row[0] is None else str(row[0])
