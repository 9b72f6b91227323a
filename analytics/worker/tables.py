"""The mirror's tables in DuckDB, and the statements that fill them from the sources.

Idea: integers and times alone. Instants are microseconds since 1970; kinds are ENUMs of one
byte; workspaces, actors, data and the node ids of the history are 64-bit hashes (two of a
million texts share one with a probability of 3e-8); the ids of nodes and relations stay
text, because ties go by id. About 85 bytes a row until they are packed, then 12. Corner: a
row with a cell that cannot be read is named in `unread`, and is in no answer; `bad` is the
number of its first such cell.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from cortex.domain.taxonomy import Action, NodeType, RelationType, Status


def _enum(name: str, members: Iterable[str]) -> str:
    return f"CREATE TYPE {name} AS ENUM (" + ", ".join(f"'{each}'" for each in members) + ")"


KINDS: Final = (
    _enum("node_type", NodeType),
    _enum("relation_type", RelationType),
    _enum("node_status", Status),
    _enum("visit", Action),
    _enum("entity", ("node", "relation", "wave")),
    _enum("operation", ("insert", "update", "delete")),
    "CREATE MACRO instant(said) AS epoch_us(TRY_CAST(said AS TIMESTAMP))",
)

TABLES: Final = (
    """
CREATE OR REPLACE TABLE nodes (
    key BIGINT, id VARCHAR, workspace UBIGINT, type node_type, status node_status,
    parent BIGINT, created BIGINT, updated BIGINT, pinned BOOLEAN, data UBIGINT, bad UTINYINT)
""",
    """
CREATE OR REPLACE TABLE relations (
    key BIGINT, id VARCHAR, workspace UBIGINT, source BIGINT, target BIGINT,
    type relation_type, weight DOUBLE, derived BOOLEAN, created BIGINT, bad UTINYINT)
""",
    """
CREATE OR REPLACE TABLE changes (
    seq BIGINT, moment BIGINT, tx BIGINT, entity entity, key BIGINT, op operation,
    workspace UBIGINT, actor UBIGINT, type node_type, old_status node_status,
    new_status node_status, data UBIGINT, bad UTINYINT)
""",
    """
CREATE OR REPLACE TABLE navigation (
    id BIGINT, workspace UBIGINT, node UBIGINT, action visit, moment BIGINT, actor UBIGINT,
    bad UTINYINT)
""",
    # The last focus of each node; appended to, so read its greatest moment.
    "CREATE OR REPLACE TABLE focuses (workspace UBIGINT, node UBIGINT, moment BIGINT)",
    "CREATE OR REPLACE TABLE unread (origin VARCHAR, key BIGINT, cell VARCHAR)",
    # What happened, as cortex.store.timeline lists it: at one instant by rank, then by word
    # or number. A change counts as one while its data or status differ from the present.
    """
CREATE OR REPLACE VIEW events AS
SELECT workspace, created AS moment, 1 AS rank, 'created' AS kind, id AS word, 0 AS number,
       key, NULL::UBIGINT AS actor
  FROM nodes
UNION ALL
SELECT c.workspace, c.moment, 2,
       CASE WHEN c.old_status IS DISTINCT FROM n.status THEN 'status' ELSE 'changed' END,
       '', c.seq, c.seq, c.actor
  FROM changes AS c JOIN nodes AS n ON n.key = c.key
 WHERE c.entity = 'node' AND c.op = 'update'
   AND (c.data <> n.data OR c.old_status IS DISTINCT FROM n.status)
UNION ALL
SELECT workspace, moment, 3, 'deleted', '', seq, seq, actor
  FROM changes WHERE entity = 'node' AND op = 'delete'
UNION ALL
SELECT workspace, created, 4, 'related', id, 0, key, NULL
  FROM relations WHERE source IS NOT NULL
UNION ALL
SELECT workspace, moment, 5, CAST(action AS VARCHAR), '', id, id, actor
  FROM navigation
""",
)

FILL_NODES: Final = """
INSERT INTO nodes
SELECT CAST(rowkey AS BIGINT), id, hash(workspace_id), TRY_CAST(type AS node_type),
       TRY_CAST(status AS node_status), CAST(parent AS BIGINT), instant(created_at),
       instant(updated_at), pinned = '1', hash(data),
       CASE WHEN TRY_CAST(type AS node_type) IS NULL THEN 1
            WHEN TRY_CAST(status AS node_status) IS NULL THEN 2
            WHEN instant(created_at) IS NULL THEN 3 WHEN instant(updated_at) IS NULL THEN 4
            WHEN pinned IS NULL THEN 5 ELSE 0 END
  FROM sqlite_query('s', $source, params = row($since::BIGINT))
"""
FILL_RELATIONS: Final = """
INSERT INTO relations
SELECT CAST(rowkey AS BIGINT), id, hash(workspace_id), CAST(source AS BIGINT),
       CAST(target AS BIGINT), TRY_CAST(type AS relation_type), TRY_CAST(weight AS DOUBLE),
       derived = '1', instant(created_at),
       CASE WHEN TRY_CAST(type AS relation_type) IS NULL THEN 1
            WHEN TRY_CAST(weight AS DOUBLE) IS NULL THEN 2
            WHEN instant(created_at) IS NULL THEN 3 WHEN derived IS NULL THEN 4 ELSE 0 END
  FROM sqlite_query('s', $source, params = row($since::BIGINT))
"""
FILL_CHANGES: Final = """
INSERT INTO changes
SELECT CAST(seq AS BIGINT), instant("at"), CAST(tx AS BIGINT), TRY_CAST(entity AS entity),
       CAST(key AS BIGINT), TRY_CAST(op AS operation), hash(workspace_id), hash(actor),
       TRY_CAST(type AS node_type), TRY_CAST(old_status AS node_status),
       TRY_CAST(new_status AS node_status), hash(data),
       CASE WHEN instant("at") IS NULL THEN 1 WHEN TRY_CAST(entity AS entity) IS NULL THEN 2
            WHEN TRY_CAST(op AS operation) IS NULL THEN 3 ELSE 0 END
  FROM sqlite_query('s', $source, params = row($since::BIGINT))
"""
FILL_NAVIGATION: Final = """
INSERT INTO navigation
SELECT CAST(id AS BIGINT), hash(workspace_id), hash(node_id), TRY_CAST(action AS visit),
       instant(created_at), hash(actor),
       CASE WHEN TRY_CAST(action AS visit) IS NULL THEN 1
            WHEN instant(created_at) IS NULL THEN 2 ELSE 0 END
  FROM sqlite_query('s', $source, params = row($since::BIGINT))
"""
FILL_FOCUSES: Final = """
INSERT INTO focuses
SELECT workspace, node, MAX(moment)
  FROM navigation
 WHERE id > $since AND action IN ('focus', 'branch') AND bad = 0
 GROUP BY workspace, node
"""

# Keys that the log names after $since: their rows are read anew.
FORGET_NODES: Final = """
DELETE FROM nodes
 WHERE key IN (SELECT key FROM changes WHERE seq > $since AND entity = 'node')
"""
FORGET_RELATIONS: Final = """
DELETE FROM relations
 WHERE key IN (SELECT key FROM changes WHERE seq > $since AND entity = 'relation')
"""
FORGET_UNREAD: Final = """
DELETE FROM unread
 WHERE (origin = 'nodes'
        AND key IN (SELECT key FROM changes WHERE seq > $since AND entity = 'node'))
    OR (origin = 'relations'
        AND key IN (SELECT key FROM changes WHERE seq > $since AND entity = 'relation'))
"""
FOLD_CHANGES: Final = "DELETE FROM changes WHERE seq <= $floor"

# Answered from the statistics of the column, without a look at the rows.
BAD: Final = """
SELECT EXISTS (SELECT 1 FROM nodes WHERE bad > 0)
    OR EXISTS (SELECT 1 FROM relations WHERE bad > 0)
    OR EXISTS (SELECT 1 FROM changes WHERE bad > 0)
    OR EXISTS (SELECT 1 FROM navigation WHERE bad > 0)
"""
NAME_BAD: Final = (
    """
INSERT INTO unread
SELECT 'nodes', key, list_extract(['type', 'status', 'created_at', 'updated_at', 'data'], bad)
  FROM nodes WHERE bad > 0
""",
    "DELETE FROM nodes WHERE bad > 0",
    """
INSERT INTO unread
SELECT 'relations', key, list_extract(['type', 'weight', 'created_at', 'data'], bad)
  FROM relations WHERE bad > 0
""",
    "DELETE FROM relations WHERE bad > 0",
    """
INSERT INTO unread
SELECT 'changes', seq, list_extract(['at', 'entity', 'op'], bad) FROM changes WHERE bad > 0
""",
    "DELETE FROM changes WHERE bad > 0",
    """
INSERT INTO unread
SELECT 'navigation_history', id, list_extract(['action', 'created_at'], bad)
  FROM navigation WHERE bad > 0
""",
    "DELETE FROM navigation WHERE bad > 0",
)
UNREAD: Final = "SELECT origin, key, cell FROM unread ORDER BY origin, key LIMIT 20"
