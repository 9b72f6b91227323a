"""Faults of a memory that one statement finds; each returns the ids of what it is about.

The first id of a row is the one to mend; further ones are what it stands beside. Only
active nodes count, and derived relations never do. Order: by id, so that the same store
gives the same examples (invariant 9).
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from enum import StrEnum
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from cortex.domain.taxonomy import ENDS, NODE_TYPES
from cortex.domain.values import Node, NodeId, WorkspaceId
from cortex.store.nodes import node_of

_ORPHANS: Final = """
SELECT n.id
  FROM nodes AS n
 WHERE n.workspace_id = :workspace AND n.status = 'active' AND n.parent_id IS NULL
   AND n.type <> 'session'
   AND NOT EXISTS (SELECT 1 FROM relations AS r WHERE r.from_id = n.id
                      AND json_extract(r.data, '$.derived') IS NOT 1)
   AND NOT EXISTS (SELECT 1 FROM relations AS r WHERE r.to_id = n.id
                      AND json_extract(r.data, '$.derived') IS NOT 1)
 ORDER BY n.id
"""
# Ends that are not here are few: they are found in the indexes alone, then their relations.
_DANGLING: Final = """
WITH gone(id) AS MATERIALIZED (
    SELECT from_id FROM relations UNION SELECT to_id FROM relations
    EXCEPT SELECT id FROM nodes WHERE workspace_id = :workspace)
SELECT r.to_id, r.from_id, r.rowkey
  FROM gone CROSS JOIN relations AS r ON r.from_id = gone.id
 WHERE r.workspace_id = :workspace
UNION ALL
SELECT r.from_id, r.to_id, r.rowkey
  FROM gone CROSS JOIN relations AS r ON r.to_id = gone.id
 WHERE r.workspace_id = :workspace AND r.from_id NOT IN (SELECT id FROM gone)
 ORDER BY 1, 2, 3
"""
# Two scans, joined in Python: SQLite looks up both ends of each relation by text, 0.9 s at
# 300,000 of them where this takes 0.6.
_ACTIVE_TYPES: Final = """
SELECT id, type FROM nodes WHERE workspace_id = :workspace AND status = 'active'
"""
_NARROW_RELATIONS: Final = """
SELECT from_id, to_id, type, weight
  FROM relations
 WHERE workspace_id = :workspace AND type IN (SELECT value FROM json_each(:types))
   AND (data = '{}' OR json_extract(data, '$.meant') IS NOT 1
                       AND json_extract(data, '$.derived') IS NOT 1)
"""
# The older one first: as a rule it is the one that is no longer so.
_CONTRADICTIONS: Final = """
SELECT CASE WHEN a.created_at <= b.created_at THEN a.id ELSE b.id END,
       CASE WHEN a.created_at <= b.created_at THEN b.id ELSE a.id END
  FROM relations AS r
  JOIN nodes AS a ON a.id = r.from_id
  JOIN nodes AS b ON b.id = r.to_id
 WHERE r.workspace_id = :workspace AND r.type = 'contradicts'
   AND a.status = 'active' AND b.status = 'active'
   AND json_extract(r.data, '$.derived') IS NOT 1
 ORDER BY a.id, b.id
"""
# The support that a stale node gave counts as carried over where what replaced it gives it.
_STALE_SUPPORT: Final = """
WITH RECURSIVE newer(old, new) AS (
    SELECT to_id, from_id FROM relations WHERE workspace_id = :workspace AND type = 'supersedes'
    UNION
    SELECT newer.old, r.from_id
      FROM newer JOIN relations AS r ON r.to_id = newer.new AND r.type = 'supersedes'),
given(giver, taker, type) AS (
    SELECT g.id, r.to_id, r.type
      FROM nodes AS g CROSS JOIN relations AS r
           ON r.from_id = g.id AND r.type IN ('supports', 'answers')
     WHERE g.workspace_id = :workspace AND g.status = 'stale'
       AND json_extract(r.data, '$.derived') IS NOT 1
    UNION ALL
    SELECT g.id, r.from_id, r.type
      FROM nodes AS g CROSS JOIN relations AS r ON r.to_id = g.id AND r.type = 'derives_from'
     WHERE g.workspace_id = :workspace AND g.status = 'stale'
       AND json_extract(r.data, '$.derived') IS NOT 1)
SELECT s.taker, s.giver, s.type
  FROM given AS s JOIN nodes AS t ON t.id = s.taker
 WHERE t.status = 'active'
   AND NOT EXISTS (
       SELECT 1
         FROM newer
         JOIN nodes AS h ON h.id = newer.new AND h.status = 'active'
         JOIN relations AS c
           ON c.from_id = CASE s.type WHEN 'derives_from' THEN s.taker ELSE h.id END
          AND c.to_id = CASE s.type WHEN 'derives_from' THEN h.id ELSE s.taker END
          AND c.type = s.type AND json_extract(c.data, '$.derived') IS NOT 1
        WHERE newer.old = s.giver)
 ORDER BY s.giver, s.taker, s.type
"""
_TASKS: Final = """
SELECT n.id
  FROM nodes AS n
 WHERE n.workspace_id = :workspace AND n.status = 'active' AND n.type IN ('task', 'subtask')
   AND n.created_at < :cutoff
   AND NOT EXISTS (SELECT 1 FROM relations AS r WHERE r.from_id = n.id
                      AND r.type IN ('contains', 'decomposes_to', 'leads_to'))
   AND NOT EXISTS (SELECT 1 FROM relations AS r WHERE r.to_id = n.id AND r.type = 'resolves')
 ORDER BY n.id
"""
# A source: a file or node it was taken from, what supports it, what it stands below and was
# read from, or data.source or data.url in words.
_FACTS: Final = """
SELECT n.id
  FROM nodes AS n
 WHERE n.workspace_id = :workspace AND n.status = 'active' AND n.type = 'fact'
   AND COALESCE(json_extract(n.data, '$.source'), json_extract(n.data, '$.url'), '') = ''
   AND NOT EXISTS (SELECT 1 FROM relations AS r WHERE r.from_id = n.id AND r.type IN (
           'extracted_from', 'derives_from', 'references', 'relates_to_file'))
   AND NOT EXISTS (SELECT 1 FROM relations AS r WHERE r.to_id = n.id AND r.type = 'supports')
   AND NOT EXISTS (SELECT 1 FROM nodes AS p WHERE p.id = n.parent_id
                      AND p.type IN ('fileref', 'chunk', 'note', 'entity'))
 ORDER BY n.id
"""
# Half the bound in one direction is looked for in the index alone; only then it is counted.
_HUBS: Final = """
WITH busy(id) AS (
    SELECT from_id FROM relations WHERE type <> 'contains'
     GROUP BY from_id HAVING COUNT(*) * 2 > :bound
    UNION
    SELECT to_id FROM relations WHERE type <> 'contains'
     GROUP BY to_id HAVING COUNT(*) * 2 > :bound)
SELECT n.id
  FROM busy JOIN nodes AS n ON n.id = busy.id
 WHERE n.workspace_id = :workspace AND n.status = 'active'
   AND n.type NOT IN ('session', 'fileref') AND json_extract(n.data, '$.hub') IS NOT 1
   AND (SELECT COUNT(*) FROM relations WHERE from_id = n.id AND type <> 'contains'
           AND json_extract(data, '$.derived') IS NOT 1)
     + (SELECT COUNT(*) FROM relations WHERE to_id = n.id AND type <> 'contains'
           AND json_extract(data, '$.derived') IS NOT 1) > :bound
 ORDER BY n.id
"""
_NEVER_READ: Final = """
SELECT n.id
  FROM nodes AS n
 WHERE n.workspace_id = :workspace AND n.status = 'active' AND n.created_at < :cutoff
   AND n.type NOT IN ('session', 'goal', 'constraint', 'fileref')
   AND NOT EXISTS (SELECT 1 FROM accesses AS a WHERE a.node_key = n.rowkey)
   AND json_extract(n.data, '$.pinned') IS NOT 1
 ORDER BY n.id
"""
_UNINDEXED: Final = """
SELECT n.id
  FROM index_state AS s JOIN nodes AS n ON n.rowkey = s.node_key
 WHERE s.workspace_id = :workspace AND s.state <> 'ready' AND n.status = 'active'
 ORDER BY n.id
"""
_FILES: Final = """
SELECT rowkey, id, type, workspace_id, parent_id, data, status, created_at, updated_at
  FROM nodes
 WHERE workspace_id = :workspace AND type = 'fileref' AND status = 'active'
 ORDER BY created_at DESC, id DESC LIMIT :limit
"""
_TEXTS: Final = """
SELECT id, type, substr(json_extract(data, '$.text'), 1, :cut)
  FROM nodes
 WHERE workspace_id = :workspace AND status = 'active' AND json_extract(data, '$.text') <> ''
 ORDER BY created_at DESC, id DESC LIMIT :limit
"""


class Check(StrEnum):
    """What is looked for, the gravest first."""

    DANGLING_RELATIONS = "dangling_relations"
    CONTRADICTIONS = "contradictions"
    STALE_SUPPORT = "stale_support"
    CHANGED_FILES = "changed_files"
    ORPHANS = "orphans"
    INDEX_LAG = "index_lag"
    TASKS_WITHOUT_OUTCOME = "tasks_without_outcome"
    FACTS_WITHOUT_SOURCE = "facts_without_source"
    NEAR_DUPLICATES = "near_duplicates"
    OFF_TAXONOMY = "off_taxonomy"
    HUBS = "hubs"
    NEVER_READ = "never_read"


_STATEMENTS: Final = MappingProxyType(
    {
        Check.DANGLING_RELATIONS: _DANGLING,
        Check.CONTRADICTIONS: _CONTRADICTIONS,
        Check.STALE_SUPPORT: _STALE_SUPPORT,
        Check.ORPHANS: _ORPHANS,
        Check.INDEX_LAG: _UNINDEXED,
        Check.TASKS_WITHOUT_OUTCOME: _TASKS,
        Check.FACTS_WITHOUT_SOURCE: _FACTS,
        Check.HUBS: _HUBS,
        Check.NEVER_READ: _NEVER_READ,
    }
)


_NARROW: Final = MappingProxyType(
    {
        kind: sides
        for kind, sides in ENDS.items()
        if any(len(side) < len(NODE_TYPES) for side in sides)
    }
)
"""Types that do not join anything to anything, with those of their ends."""
_ALLOWED: Final = frozenset(
    (near.value, kind.value, far.value)
    for kind, (nears, fars) in _NARROW.items()
    for near in nears
    for far in fars
)
_NARROW_TYPES: Final = json.dumps([kind.value for kind in _NARROW])


class Saying(NamedTuple):
    """The start of a node's text."""

    id: NodeId
    type: str
    text: str


class HealthChecks:
    """Reads faults within one transaction."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def found(self, check: Check, workspace: WorkspaceId, **bound: Any) -> list[tuple[Any, ...]]:
        """The rows of one check: an id, then what else its mend needs."""
        if check is Check.OFF_TAXONOMY:
            return self._off_taxonomy(workspace)
        values = {"workspace": workspace, **bound}
        return self._connection.execute(_STATEMENTS[check], values).fetchall()

    def _off_taxonomy(self, workspace: WorkspaceId) -> list[tuple[Any, ...]]:
        values = {"workspace": workspace, "types": _NARROW_TYPES}
        kind = dict(self._connection.execute(_ACTIVE_TYPES, values)).get
        rows = self._connection.execute(_NARROW_RELATIONS, values)
        # An end that is not active has no type here.
        return sorted(
            row
            for row in rows
            if (near := kind(row[0])) is not None
            and (far := kind(row[1])) is not None
            and (near, row[2], far) not in _ALLOWED
        )

    def files(self, workspace: WorkspaceId, limit: int) -> list[Node]:
        """Active filerefs, newest first."""
        rows = self._connection.execute(_FILES, {"workspace": workspace, "limit": limit})
        return [node_of(row) for row in rows]

    def texts(self, workspace: WorkspaceId, limit: int, cut: int) -> list[Saying]:
        """The texts of active nodes, newest first, each cut to `cut` characters."""
        bound = {"workspace": workspace, "limit": limit, "cut": cut}
        return [Saying(*row) for row in self._connection.execute(_TEXTS, bound)]

    def dangling(self, workspace: WorkspaceId) -> Sequence[int]:
        """Keys of relations with an end that is gone, or in another workspace."""
        return [key for _, _, key in self.found(Check.DANGLING_RELATIONS, workspace)]
