"""Table changes: the log that every derived store follows (invariants 2 and 3)."""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from cortex.domain.instants import Instant
from cortex.domain.values import Generation

# Without workspace_id: a workspace that is renamed takes its rows of the log along.
_MOMENT: Final = "SELECT at, tx, actor, entity, key, op, before FROM changes WHERE seq = :seq"
_GENERATION: Final = """
SELECT (SELECT value FROM meta WHERE key = 'epoch'),
       (SELECT CAST(value AS INTEGER) FROM meta WHERE key = 'log_floor'),
       (SELECT COALESCE(MAX(seq), 0) FROM changes),
       (SELECT COALESCE(MAX(emb_seq), 0) FROM embeddings)
"""
_LAST: Final = "SELECT seq, at FROM changes ORDER BY seq DESC LIMIT 1"
# NOT INDEXED: grouping lures the planner onto changes_by_key, which reads the whole log.
_TOUCHED: Final = """
SELECT entity, key, MAX(seq), MAX(entity = 'node' AND op = 'insert')
  FROM changes NOT INDEXED
 WHERE seq > :since AND seq <= :until AND entity IN ('node', 'relation')
 GROUP BY entity, key
 ORDER BY MAX(seq)
"""
_TOUCHED_NODES: Final = """
SELECT DISTINCT key FROM changes NOT INDEXED WHERE seq > :since AND entity = 'node' ORDER BY key
"""
_BEFORE: Final = """
SELECT key, before
  FROM changes
 WHERE entity = :entity AND op = 'delete' AND key IN (SELECT value FROM json_each(:keys))
"""
_OF_TX: Final = """
SELECT seq, at, tx, actor, workspace_id, entity, key, op, before
  FROM changes
 WHERE tx = :tx
 ORDER BY seq
"""
_OF_NODE: Final = """
SELECT seq, at, actor, op, before FROM changes WHERE entity = 'node' AND key = :key ORDER BY seq
"""
# A look through the whole log: for a person who asks after a node that is gone.
_GONE: Final = """
SELECT DISTINCT key, json_extract(before, '$.id')
  FROM changes
 WHERE entity = 'node' AND op = 'delete'
   AND substr(json_extract(before, '$.id'), 1, length(:prefix)) = :prefix
 ORDER BY key LIMIT 6
"""


class LogRow(NamedTuple):
    """One change of a node: the row as it was before, None for its insertion."""

    seq: int
    at: Instant
    actor: str
    op: str
    before: dict[str, Any] | None


class Touched(NamedTuple):
    """Keys of rows that changed in a span of the log, each list in order of last change.

    `entered` tells that a node was inserted, under a new key or one that was there before.
    """

    nodes: list[int]
    relations: list[int]
    entered: bool


class Changes:
    """Reads the log; only triggers write it."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def generation(self) -> Generation:
        epoch, floor, seq, embeddings = self._connection.execute(_GENERATION).fetchone()
        return Generation(str(epoch), int(floor or 0), int(seq), int(embeddings))

    def last(self) -> tuple[int, Instant] | None:
        row = self._connection.execute(_LAST).fetchone()
        return None if row is None else (int(row[0]), Instant(row[1]))

    def moment(self, seq: int) -> str | None:
        """The digest of one row of the log, None where it is not there.

        Tells a state of the file from another that gave the same number to another change.
        """
        row = self._connection.execute(_MOMENT, {"seq": seq}).fetchone()
        return None if row is None else hashlib.sha256(ascii(row).encode()).hexdigest()[:32]

    def touched(self, since: int, until: int) -> Touched:
        """Keys of nodes and relations changed after `since`, up to `until`."""
        nodes: list[int] = []
        relations: list[int] = []
        entered = False
        rows = self._connection.execute(_TOUCHED, {"since": since, "until": until})
        for entity, key, _, inserted in rows:
            (nodes if entity == "node" else relations).append(key)
            entered = entered or bool(inserted)
        return Touched(nodes, relations, entered)

    def touched_nodes(self, since: int) -> list[int]:
        return [key for (key,) in self._connection.execute(_TOUCHED_NODES, {"since": since})]

    def deleted(self, entity: str, keys: Sequence[int]) -> dict[int, dict[str, Any]]:
        """The row before its deletion, by key, for those of `keys` that were deleted."""
        rows = self._connection.execute(_BEFORE, {"entity": entity, "keys": json.dumps(keys)})
        return {key: json.loads(before) for key, before in rows}

    def of_node(self, key: int) -> list[LogRow]:
        """The changes of one node, oldest first."""
        return [
            LogRow(seq, Instant(at), actor, op, None if before is None else json.loads(before))
            for seq, at, actor, op, before in self._connection.execute(_OF_NODE, {"key": key})
        ]

    def gone(self, prefix: str) -> list[tuple[int, str]]:
        """Key and id of deleted nodes whose id begins so; at most 6."""
        return self._connection.execute(_GONE, {"prefix": prefix}).fetchall()

    def of_transaction(self, tx: int) -> list[tuple[Any, ...]]:
        return self._connection.execute(_OF_TX, {"tx": tx}).fetchall()
