"""SQL that SQLite runs: what the mirror copies out of the file. It must parse under 3.38.

A statement of rows ends where a condition begins: ALL reads a table whole, SINCE the rows
that the log names after ?1. Texts of data cross the border as hex, since what a foreign
shell wrote need not be UTF-8; they end as 64-bit hashes, by which two are compared.
"""

from __future__ import annotations

from typing import Final

# Below every key: the place before the first row.
LEAST: Final = -(1 << 63)

GENERATION: Final = """
SELECT (SELECT value FROM meta WHERE key = 'epoch') AS epoch,
       (SELECT value FROM meta WHERE key = 'log_floor') AS floor,
       (SELECT MAX(seq) FROM changes) AS seq,
       (SELECT MAX(id) FROM navigation_history) AS navigation
"""

_NODES: Final = """
SELECT n.rowkey, n.id, n.workspace_id, n.type, n.status, p.rowkey AS parent, n.created_at,
       n.updated_at, hex(n.data) AS data,
       CASE WHEN json_valid(n.data) THEN json_extract(n.data, '$.pinned') IS 1 END AS pinned
  FROM nodes AS n LEFT JOIN nodes AS p ON p.id = n.parent_id
"""
_ALL_NODES: Final = "WHERE n.rowkey > ?1"
# NOT INDEXED: the log's newest rows, not every row of one entity.
_NODES_SINCE: Final = """
 WHERE n.rowkey IN (SELECT key FROM changes NOT INDEXED WHERE seq > ?1 AND entity = 'node')
"""
NODES_ALL: Final = _NODES + _ALL_NODES
NODES_SINCE: Final = _NODES + _NODES_SINCE

_RELATIONS: Final = """
SELECT r.rowkey, r.id, r.workspace_id, f.rowkey AS source, t.rowkey AS target, r.type,
       CASE WHEN typeof(r.weight) IN ('real', 'integer')
            THEN printf('%!.17g', r.weight) END AS weight,
       CASE WHEN r.data = '{}' THEN 0
            WHEN json_valid(r.data) THEN json_extract(r.data, '$.derived') IS 1 END AS derived,
       r.created_at
  FROM relations AS r
       LEFT JOIN nodes AS f ON f.id = r.from_id
       LEFT JOIN nodes AS t ON t.id = r.to_id
"""
_ALL_RELATIONS: Final = "WHERE r.rowkey > ?1"
_RELATIONS_SINCE: Final = """
 WHERE r.rowkey IN (SELECT key FROM changes NOT INDEXED WHERE seq > ?1 AND entity = 'relation')
"""
RELATIONS_ALL: Final = _RELATIONS + _ALL_RELATIONS
RELATIONS_SINCE: Final = _RELATIONS + _RELATIONS_SINCE

# Rising keys are never used again: at least as many as there are rows, from the ends of the keys.
HELD: Final = """
SELECT (SELECT COALESCE(MAX(rowkey), 0) FROM nodes)
     + (SELECT COALESCE(MAX(rowkey), 0) FROM relations) AS held
"""

# The status after a change is the one before the next change of that node, or the present.
CHANGES: Final = """
SELECT c.seq, c.at, c.tx, c.actor, c.workspace_id, c.entity, c.key, c.op,
       hex(json_extract(c.before, '$.data')) AS data,
       CASE WHEN c.entity = 'node' THEN json_extract(c.before, '$.type') END AS type,
       CASE WHEN c.entity = 'node' THEN json_extract(c.before, '$.status') END AS old_status,
       CASE WHEN c.entity = 'node' AND c.op <> 'delete' THEN COALESCE(
            (SELECT json_extract(x.before, '$.status') FROM changes AS x
              WHERE x.entity = 'node' AND x.key = c.key AND x.seq > c.seq
              ORDER BY x.seq LIMIT 1),
            (SELECT n.status FROM nodes AS n WHERE n.rowkey = c.key)) END AS new_status
  FROM changes AS c NOT INDEXED
 WHERE c.seq > ?1
"""

NAVIGATION: Final = """
SELECT id, workspace_id, node_id, action, created_at,
       CASE WHEN json_valid(context) THEN json_extract(context, '$.actor') END AS actor
  FROM navigation_history NOT INDEXED
 WHERE id > ?1
"""

# Rows of events by [rank, key], as cortex.store.timeline shows them, in the order asked.
EVENTS: Final = """
WITH wanted(position, rank, key) AS MATERIALIZED (
    SELECT key, json_extract(value, '$[0]'), json_extract(value, '$[1]') FROM json_each(?1))
SELECT w.position, n.created_at, 'created', n.id, n.data, n.status,
       (SELECT c.actor FROM changes AS c
         WHERE c.entity = 'node' AND c.key = n.rowkey AND c.op = 'insert'), n.type
  FROM wanted AS w CROSS JOIN nodes AS n ON n.rowkey = w.key
 WHERE w.rank = 1
UNION ALL
SELECT w.position, c.at, CASE WHEN json_extract(c.before, '$.status') IS NOT n.status
                              THEN 'status' ELSE 'changed' END,
       n.id, n.data, n.status, c.actor, n.type
  FROM wanted AS w CROSS JOIN changes AS c ON c.seq = w.key
                   CROSS JOIN nodes AS n ON n.rowkey = c.key
 WHERE w.rank = 2
UNION ALL
SELECT w.position, c.at, 'deleted', json_extract(c.before, '$.id'),
       json_extract(c.before, '$.data'), 'deleted', c.actor, json_extract(c.before, '$.type')
  FROM wanted AS w CROSS JOIN changes AS c ON c.seq = w.key
 WHERE w.rank = 3
UNION ALL
SELECT w.position, r.created_at, 'related', r.from_id, n.data, n.status,
       (SELECT c.actor FROM changes AS c
         WHERE c.entity = 'relation' AND c.key = r.rowkey AND c.op = 'insert'),
       r.type || ':' || r.to_id
  FROM wanted AS w CROSS JOIN relations AS r ON r.rowkey = w.key
                   CROSS JOIN nodes AS n ON n.id = r.from_id
 WHERE w.rank = 4
UNION ALL
SELECT w.position, h.created_at, h.action, h.node_id, n.data, n.status,
       json_extract(h.context, '$.actor'), n.type
  FROM wanted AS w CROSS JOIN navigation_history AS h ON h.id = w.key
                   LEFT JOIN nodes AS n ON n.id = h.node_id
 WHERE w.rank = 5
"""
# Why each of some supersedes came to be, by key: what it says itself, else its newer node.
REASONS: Final = """
SELECT r.rowkey, COALESCE(NULLIF(json_extract(r.data, '$.reason'), ''),
                          NULLIF(json_extract(n.data, '$.reason'), ''))
  FROM json_each(?1) AS k CROSS JOIN relations AS r ON r.rowkey = k.value
                          LEFT JOIN nodes AS n ON n.id = r.from_id
"""
WORKSPACES: Final = """
SELECT workspace_id, SUM(nodes), SUM(relations) FROM (
    SELECT workspace_id, COUNT(*) AS nodes, 0 AS relations FROM nodes GROUP BY workspace_id
    UNION ALL
    SELECT workspace_id, 0, COUNT(*) FROM relations GROUP BY workspace_id)
 GROUP BY workspace_id
"""
NAMES: Final = """
SELECT n.id, n.type, substr(COALESCE(NULLIF(json_extract(n.data, '$.title'), ''),
                                     NULLIF(json_extract(n.data, '$.text'), ''),
                                     json_extract(n.data, '$.path'), ''), 1, 80)
  FROM json_each(?1) AS i CROSS JOIN nodes AS n ON n.id = i.value
 ORDER BY i.key
"""
# Access counts are no part of the log: read when asked for.
ACCESSES: Final = "SELECT node_key, last_at FROM accesses"
OPENED_SINCE: Final = "SELECT node_key FROM accesses WHERE last_at >= ?1"
OPENED_OF: Final = """
SELECT a.node_key, a.last_at
  FROM json_each(?1) AS k CROSS JOIN accesses AS a ON a.node_key = k.value
"""
