"""What the graph engine computes, as recursive CTEs: the standard it is timed against."""

from __future__ import annotations

from typing import Final

_TYPED_REACH: Final = """
WITH RECURSIVE reach(id, depth) AS (
    VALUES (:start, 0)
    UNION
    SELECT r.to_id, reach.depth + 1
      FROM reach JOIN relations AS r ON r.from_id = reach.id
     WHERE reach.depth < 3 AND r.type IN ('contains', 'decomposes_to', 'supports', 'derives_from'))
"""
_TYPED_FOUND: Final = """
  FROM (SELECT id, MIN(depth) AS depth FROM reach GROUP BY id) AS found
  JOIN nodes AS n ON n.id = found.id
 WHERE n.id <> :start
 ORDER BY found.depth, n.created_at, n.id
"""
TYPED_KEYS: Final = f"{_TYPED_REACH} SELECT n.rowkey {_TYPED_FOUND}"
TYPED: Final = f"""{_TYPED_REACH}
SELECT n.rowkey, n.id, n.type, n.workspace_id, n.parent_id, n.data, n.status, n.created_at,
       n.updated_at {_TYPED_FOUND}"""
UNTYPED: Final = """
WITH RECURSIVE reach(id, depth) AS (
    VALUES (:start, 0)
    UNION
    SELECT r.to_id, reach.depth + 1
      FROM reach JOIN relations AS r ON r.from_id = reach.id
     WHERE reach.depth < 3 AND (r.data = '{}' OR json_extract(r.data, '$.derived') IS NOT 1)
    UNION
    SELECT r.from_id, reach.depth + 1
      FROM reach JOIN relations AS r ON r.to_id = reach.id
     WHERE reach.depth < 3 AND (r.data = '{}' OR json_extract(r.data, '$.derived') IS NOT 1))
SELECT n.rowkey
  FROM (SELECT id, MIN(depth) AS depth FROM reach GROUP BY id) AS found
  JOIN nodes AS n ON n.id = found.id
 WHERE n.id <> :start
 ORDER BY found.depth, n.created_at, n.id LIMIT 50
"""
SUBGRAPH: Final = """
WITH RECURSIVE reach(id, depth) AS (
    VALUES (:start, 0)
    UNION
    SELECT r.to_id, reach.depth + 1
      FROM reach JOIN nodes AS n ON n.id = reach.id JOIN relations AS r ON r.from_id = reach.id
     WHERE reach.depth < 2 AND (r.data = '{}' OR json_extract(r.data, '$.derived') IS NOT 1)
       AND (reach.depth = 0 OR n.type <> 'session')
    UNION
    SELECT r.from_id, reach.depth + 1
      FROM reach JOIN nodes AS n ON n.id = reach.id JOIN relations AS r ON r.to_id = reach.id
     WHERE reach.depth < 2 AND (r.data = '{}' OR json_extract(r.data, '$.derived') IS NOT 1)
       AND (reach.depth = 0 OR n.type <> 'session'))
SELECT n.rowkey
  FROM (SELECT id, MIN(depth) AS depth FROM reach GROUP BY id) AS found
  JOIN nodes AS n ON n.id = found.id
 WHERE n.id <> :start
 ORDER BY found.depth, n.created_at, n.id LIMIT 50
"""
BELOW: Final = """
WITH RECURSIVE below(id) AS (
    VALUES (:start)
    UNION
    SELECT r.to_id
      FROM below JOIN relations AS r ON r.from_id = below.id
     WHERE r.type IN ('contains', 'decomposes_to'))
SELECT n.rowkey FROM below JOIN nodes AS n ON n.id = below.id WHERE n.id <> :start
"""
WALK: Final = """
WITH RECURSIVE walk(step, relation, node, path) AS (
    VALUES (0, NULL, :start, :start)
    UNION ALL
    SELECT walk.step + 1, r.rowkey, r.to_id, walk.path || ' ' || r.to_id
      FROM walk JOIN relations AS r ON r.rowkey = (
           SELECT o.rowkey FROM relations AS o
            WHERE o.from_id = walk.node AND instr(walk.path, o.to_id) = 0
              AND o.type IN ('sequel_to', 'leads_to', 'triggers', 'resolves', 'derives_from',
                             'supports', 'answers', 'supersedes')
              AND (o.data = '{}' OR json_extract(o.data, '$.derived') IS NOT 1)
            ORDER BY o.weight DESC, o.rowkey LIMIT 1)
     WHERE walk.step < 10)
SELECT walk.relation, n.rowkey FROM walk JOIN nodes AS n ON n.id = walk.node ORDER BY walk.step
"""
