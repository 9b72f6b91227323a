"""Nodes in the order of time: the chronological walk, and the chain of what superseded what."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Final

from analytics.queries import (
    Chronological,
    CountRow,
    Counts,
    Lineage,
    NameRow,
    Names,
    WorkspaceRow,
    Workspaces,
)
from analytics.worker import sources
from analytics.worker.instants import text, window
from analytics.worker.mirror import View
from cortex.domain.activity import LineageRow, StepRow
from cortex.domain.errors import NotFoundError

_STEPS: Final = """
SELECT n.key, n.id, n.created
  FROM nodes AS n
 WHERE n.workspace = hash($workspace) AND n.created BETWEEN $start AND $stop
   AND (n.created > $after OR (n.created = $after AND n.id > $after_id))
   AND (len($types::VARCHAR[]) = 0 OR list_contains($types::VARCHAR[], CAST(n.type AS VARCHAR)))
   AND ($relation::VARCHAR IS NULL OR n.key IN (
        SELECT source FROM relations WHERE type = $relation::VARCHAR
        UNION ALL
        SELECT target FROM relations WHERE type = $relation::VARCHAR))
 ORDER BY n.created, n.id LIMIT $take
"""

_LINEAGE: Final = """
WITH RECURSIVE replaced AS MATERIALIZED (
    SELECT source AS new, target AS old, created, key FROM relations WHERE type = 'supersedes'),
older(key) AS (
    SELECT key FROM nodes WHERE id = $node
    UNION
    SELECT r.old FROM older JOIN replaced AS r ON r.new = older.key),
newer(key) AS (
    SELECT key FROM nodes WHERE id = $node
    UNION
    SELECT r.new FROM newer JOIN replaced AS r ON r.old = newer.key),
chain(key) AS (SELECT key FROM older UNION SELECT key FROM newer)
SELECT n.id, CAST(n.type AS VARCHAR), CAST(n.status AS VARCHAR), n.created, s.id, r.created, r.key
  FROM chain JOIN nodes AS n ON n.key = chain.key
       LEFT JOIN (replaced AS r JOIN chain AS up ON up.key = r.new JOIN nodes AS s ON s.key = r.new)
              ON r.old = n.key
 ORDER BY n.created, n.id, r.created, s.id
"""

_COUNTS: Final = """
SELECT 'node' AS entity, CAST(type AS VARCHAR) AS kind, CAST(status AS VARCHAR) AS state, COUNT(*)
  FROM nodes WHERE workspace = hash($workspace) GROUP BY type, status
UNION ALL
SELECT 'relation', CAST(type AS VARCHAR), NULL, COUNT(*)
  FROM relations WHERE workspace = hash($workspace) GROUP BY type
 ORDER BY entity, kind, state
"""


def chronological(view: View, query: Chronological) -> Iterable[StepRow]:
    """A page of nodes, oldest first."""
    rows = view.rows(
        _STEPS,
        workspace=query.workspace,
        types=list(query.types),
        relation=query.relation,
        after=window(query.after_at, None)["start"],
        after_id=query.after_id,
        take=query.take,
        **window(query.start, query.stop),
    )
    return [StepRow(key, node, text(created)) for key, node, created in rows]


def lineage(view: View, query: Lineage) -> Iterable[LineageRow]:
    """The chain that the node is a link of, oldest first; NotFoundError without the node."""
    rows = view.rows(_LINEAGE, node=query.node)
    if not rows:
        raise NotFoundError(f"node {query.node!r} does not exist", "", "Search for it")
    keys = json.dumps([row[-1] for row in rows if row[-1] is not None])
    reasons = {int(key): reason for key, reason in view.source(sources.REASONS, keys)}
    return [
        LineageRow(
            node, kind, status, text(made), by, None if at is None else text(at), reasons.get(key)
        )
        for node, kind, status, made, by, at, key in rows
    ]


def counts(view: View, query: Counts) -> Iterable[CountRow]:
    """How many there are, by name."""
    return [CountRow(*row) for row in view.rows(_COUNTS, workspace=query.workspace)]


def workspaces(view: View, _query: Workspaces) -> Iterable[WorkspaceRow]:
    """What the file holds, the largest first."""
    rows = view.source(sources.WORKSPACES)
    found = [WorkspaceRow(name, int(nodes), int(relations)) for name, nodes, relations in rows]
    return sorted(found, key=lambda row: (-row.nodes, row.workspace))


def names(view: View, query: Names) -> Iterable[NameRow]:
    """Type and title of nodes."""
    return [NameRow(*row) for row in view.source(sources.NAMES, json.dumps(query.ids))]
