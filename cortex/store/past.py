"""The past, read from the log: the rows as they stood after one of its changes.

Idea: the log holds the row before each change (invariant 2). So a row stood, after change
`seq`, as the first change of its key later than `seq` found it: not at all where that is
its insertion, and as it stands now where there is none. Cost: one look-up in the log's
index for each key that changed since; present rows are read by key.
"""

from __future__ import annotations

import json
import sqlite3
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from cortex.domain.instants import Instant
from cortex.domain.values import Node, Relation, WorkspaceId
from cortex.store.nodes import node_of
from cortex.store.relations import relation_of

# NOT INDEXED: grouping lures the planner onto changes_by_key, which reads the whole log.
_FIRST: Final = """
SELECT c.entity, c.key, c.before
  FROM (SELECT MIN(seq) AS first
          FROM changes NOT INDEXED
         WHERE seq > :since AND seq <= :until AND entity IN ('node', 'relation')
         GROUP BY entity, key) AS f
  JOIN changes AS c ON c.seq = f.first
 ORDER BY c.seq
"""
_FIRST_OF: Final = """
SELECT c.key, c.before
  FROM json_each(:keys) AS wanted
 CROSS JOIN changes AS c ON c.seq = (
       SELECT MIN(seq) FROM changes
        WHERE entity = :entity AND key = wanted.value AND seq > :since)
"""
# One scan in the order of the file; by an index, each page would be sorted anew.
_NODES: Final = """
SELECT rowkey, id, type, workspace_id, parent_id, data, status, created_at, updated_at
  FROM nodes NOT INDEXED WHERE workspace_id = :workspace
"""
_RELATIONS: Final = """
SELECT rowkey, id, workspace_id, from_id, to_id, type, weight, data, created_at, updated_at
  FROM relations NOT INDEXED WHERE workspace_id = :workspace
"""
_REACH: Final = """
SELECT COALESCE((SELECT CAST(value AS INTEGER) FROM meta WHERE key = 'log_floor'), 0),
       (SELECT at FROM changes ORDER BY seq LIMIT 1),
       (SELECT COALESCE(MAX(seq), 0) FROM changes)
"""
_AT_OR_AFTER: Final = "SELECT at FROM changes WHERE seq >= :seq ORDER BY seq LIMIT 1"


class Reach(NamedTuple):
    """How far back the log goes: the last seq folded away, its first row's time, its end."""

    floor: int
    first_at: Instant | None
    seq: int


class Before(NamedTuple):
    """Rows as they stood, by key; None where there was none yet, or no longer."""

    nodes: Mapping[int, Node | None]
    relations: Mapping[int, Relation | None]


class PastRows:
    """Reads the past within one transaction."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def reach(self) -> Reach:
        floor, first, seq = self._connection.execute(_REACH).fetchone()
        return Reach(int(floor), None if first is None else Instant(first), max(seq, floor))

    def reach_from(self, floor: int) -> Reach:
        """How far back the log would go, were it folded up to this change."""
        row = self._connection.execute(_AT_OR_AFTER, {"seq": floor + 1}).fetchone()
        return Reach(floor, None if row is None else Instant(row[0]), self.reach().seq)

    def seq_at(self, instant: Instant) -> int:
        """The last change at or before an instant; the log's floor where all came later.

        Bisection, since `at` never decreases (invariant 5): some 20 look-ups by key.
        """
        reach = self.reach()
        span = range(reach.floor + 1, reach.seq + 1)
        return reach.floor + bisect_right(span, instant, key=self._at)

    def _at(self, seq: int) -> Instant:
        return Instant(self._connection.execute(_AT_OR_AFTER, {"seq": seq}).fetchone()[0])

    def iter_nodes(self, workspace: WorkspaceId) -> Iterator[Node]:
        """Every node as it is now."""
        for row in self._connection.execute(_NODES, {"workspace": workspace}):
            yield node_of(row)

    def iter_relations(self, workspace: WorkspaceId) -> Iterator[Relation]:
        """Every relation as it is now."""
        for row in self._connection.execute(_RELATIONS, {"workspace": workspace}):
            yield relation_of(row)

    def before(self, since: int, until: int) -> Before:
        """Every row that changed in (since, until], as it stood after change `since`."""
        found: dict[str, dict[int, Any]] = {"node": {}, "relation": {}}
        for entity, key, before in self._connection.execute(
            _FIRST, {"since": since, "until": until}
        ):
            found[entity][key] = _row(entity, before)
        return Before(found["node"], found["relation"])

    def nodes_before(self, since: int, keys: Sequence[int]) -> dict[int, Node | None]:
        """Those of `keys` that changed after `since`, as they stood then."""
        return {key: _row("node", before) for key, before in self._first_of("node", since, keys)}

    def relations_before(self, since: int, keys: Sequence[int]) -> dict[int, Relation | None]:
        """Those of `keys` that changed after `since`, as they stood then."""
        rows = self._first_of("relation", since, keys)
        return {key: _row("relation", before) for key, before in rows}

    def _first_of(self, entity: str, since: int, keys: Sequence[int]) -> list[tuple[int, Any]]:
        bound = {"entity": entity, "since": since, "keys": json.dumps(list(keys))}
        return self._connection.execute(_FIRST_OF, bound).fetchall()


def _row(entity: str, before: str | None) -> Any:
    """The value of a logged image; its fields stand in the table's order."""
    if before is None:
        return None
    fields = json.loads(before)
    if entity == "node":
        return node_of(tuple(fields.values()))
    return relation_of(tuple({**fields, "weight": float(fields["weight"])}.values()))
