"""The schema as numbered migrations; every statement parses under SQLite 3.38.

DuckDB's scanner embeds 3.38.1, and one newer expression in a trigger would fail every
attached query. The CHECKs derive from the enums of the domain.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from cortex.domain.taxonomy import FILE_RELATIONS, Action, NodeType, RelationType, Status

APPLICATION_ID: Final = 0x6374_7831  # "ctx1": tells a cortex file from a foreign one


def _one_of(values: Iterable[str]) -> str:
    return "(" + ", ".join(f"'{value}'" for value in values) + ")"


FILE_KINDS: Final = _one_of(FILE_RELATIONS)
"""The types of relations that lead to a file, as a list in SQL."""

_D: Final = "[0-9]"
_INSTANT: Final = (
    f"'{_D * 4}-{_D * 2}-{_D * 2}T{_D * 2}:{_D * 2}:{_D * 2}.{_D * 6}Z'"  # invariant 5
)

# The writer's own clock, else SQLite's for a foreign shell; never earlier than the log.
_AT: Final = """max(
    COALESCE((SELECT at FROM writer), strftime('%Y-%m-%dT%H:%M:%f', 'now') || '000Z'),
    COALESCE((SELECT at FROM changes ORDER BY seq DESC LIMIT 1), ''))"""
_UUID: Final = """lower(
    hex(randomblob(4)) || '-' || hex(randomblob(2)) || '-4' || substr(hex(randomblob(2)), 2)
    || '-' || substr('89AB', 1 + (random() & 3), 1) || substr(hex(randomblob(2)), 2)
    || '-' || hex(randomblob(6)))"""
_TX: Final = """COALESCE((SELECT tx FROM writer),
    (SELECT COALESCE(MAX(seq), 0) + 1 FROM changes))"""
_ACTOR: Final = "COALESCE((SELECT actor FROM writer), 'shell')"

_NODE_BEFORE: Final = """json_object('rowkey', OLD.rowkey, 'id', OLD.id, 'type', OLD.type,
    'workspace_id', OLD.workspace_id, 'parent_id', OLD.parent_id, 'data', OLD.data,
    'status', OLD.status, 'created_at', OLD.created_at, 'updated_at', OLD.updated_at)"""
_RELATION_BEFORE: Final = """json_object('rowkey', OLD.rowkey, 'id', OLD.id,
    'workspace_id', OLD.workspace_id, 'from_id', OLD.from_id, 'to_id', OLD.to_id,
    'type', OLD.type, 'weight', printf('%!.17g', OLD.weight), 'data', OLD.data,
    'created_at', OLD.created_at, 'updated_at', OLD.updated_at)"""
_WAVE_BEFORE: Final = """json_object('node_key', OLD.node_key,
    'amplitude', printf('%!.17g', OLD.amplitude), 'frequency', printf('%!.17g', OLD.frequency),
    'phase', printf('%!.17g', OLD.phase), 'half_life', printf('%!.17g', OLD.half_life),
    'at', OLD.at)"""


_TALLY_NEW: Final = """INSERT INTO tallies(workspace_id, status, nodes)
    VALUES (NEW.workspace_id, NEW.status, 1)
    ON CONFLICT (workspace_id, status) DO UPDATE SET nodes = nodes + 1;"""
_TALLY_OLD: Final = """UPDATE tallies SET nodes = nodes - 1
    WHERE workspace_id = OLD.workspace_id AND status = OLD.status;"""


# The contains of a parent that was set on the node; its id is a UUID v4.
_CONTAIN: Final = f"""
    INSERT INTO relations(id, workspace_id, from_id, to_id, type, created_at, updated_at)
    SELECT {_UUID}, NEW.workspace_id, NEW.parent_id, NEW.id, 'contains', {_AT}, {_AT}
     WHERE NEW.parent_id IS NOT NULL;"""


def _log(row: str, entity: str, op: str, before: str) -> str:
    return (
        "INSERT INTO changes(at, tx, actor, workspace_id, entity, key, op, before) VALUES ("
        f"{_AT}, {_TX}, {_ACTOR}, {row}.workspace_id, '{entity}', {row}.rowkey, '{op}', {before});"
    )


def _log_wave(row: str, op: str, before: str) -> str:
    return (
        "INSERT INTO changes(at, tx, actor, workspace_id, entity, key, op, before) VALUES ("
        f"{_AT}, {_TX}, {_ACTOR}, (SELECT workspace_id FROM nodes WHERE rowkey = {row}.node_key), "
        f"'wave', {row}.node_key, '{op}', {before});"
    )


_TABLES: Final = (
    f"""
CREATE TABLE nodes (
    rowkey       INTEGER PRIMARY KEY AUTOINCREMENT,
    id           TEXT NOT NULL UNIQUE CHECK (length(id) > 0),
    type         TEXT NOT NULL CHECK (type IN {_one_of(NodeType)}),
    workspace_id TEXT NOT NULL CHECK (length(workspace_id) BETWEEN 1 AND 200),
    parent_id    TEXT,
    data         TEXT NOT NULL DEFAULT '{{}}'
                 CHECK (CASE WHEN json_valid(data) THEN json_type(data) = 'object' ELSE 0 END),
    status       TEXT NOT NULL DEFAULT 'active' CHECK (status IN {_one_of(Status)}),
    created_at   TEXT NOT NULL CHECK (created_at GLOB {_INSTANT}),
    updated_at   TEXT NOT NULL CHECK (updated_at GLOB {_INSTANT})
) STRICT""",
    f"""
CREATE TABLE relations (
    rowkey       INTEGER PRIMARY KEY AUTOINCREMENT,
    id           TEXT NOT NULL UNIQUE CHECK (length(id) > 0),
    workspace_id TEXT NOT NULL,
    from_id      TEXT NOT NULL REFERENCES nodes(id) ON DELETE CASCADE,
    to_id        TEXT NOT NULL REFERENCES nodes(id) ON DELETE CASCADE,
    type         TEXT NOT NULL CHECK (type IN {_one_of(RelationType)}),
    weight       REAL NOT NULL DEFAULT 1.0 CHECK (weight BETWEEN 0.0 AND 1.0),
    data         TEXT NOT NULL DEFAULT '{{}}'
                 CHECK (CASE WHEN json_valid(data) THEN json_type(data) = 'object' ELSE 0 END),
    created_at   TEXT NOT NULL CHECK (created_at GLOB {_INSTANT}),
    updated_at   TEXT NOT NULL CHECK (updated_at GLOB {_INSTANT}),
    UNIQUE (from_id, to_id, type),
    CHECK (from_id <> to_id)
) STRICT""",
    f"""
CREATE TABLE navigation_history (
    id           INTEGER PRIMARY KEY AUTOINCREMENT,
    workspace_id TEXT NOT NULL,
    node_id      TEXT NOT NULL,
    action       TEXT NOT NULL CHECK (action IN {_one_of(Action)}),
    context      TEXT NOT NULL DEFAULT '{{}}' CHECK (json_valid(context)),
    created_at   TEXT NOT NULL CHECK (created_at GLOB {_INSTANT})
) STRICT""",
    """
CREATE TABLE changes (
    seq          INTEGER PRIMARY KEY AUTOINCREMENT,
    at           TEXT NOT NULL,
    tx           INTEGER NOT NULL,
    actor        TEXT NOT NULL,
    workspace_id TEXT NOT NULL,
    entity       TEXT NOT NULL CHECK (entity IN ('node', 'relation', 'wave')),
    key          INTEGER NOT NULL,
    op           TEXT NOT NULL CHECK (op IN ('insert', 'update', 'delete')),
    before       TEXT
) STRICT""",
    """
CREATE TABLE writer (
    one   INTEGER PRIMARY KEY CHECK (one = 1),
    at    TEXT,
    actor TEXT,
    tx    INTEGER
) STRICT""",
    "INSERT INTO writer(one) VALUES (1)",
    """
CREATE TABLE embeddings (
    emb_seq   INTEGER PRIMARY KEY AUTOINCREMENT,
    node_key  INTEGER NOT NULL,
    model     TEXT NOT NULL,
    chunk     INTEGER NOT NULL,
    text_hash TEXT NOT NULL,
    vector    BLOB NOT NULL,
    UNIQUE (node_key, model, chunk)
) STRICT""",
    """
CREATE TABLE index_state (
    node_key     INTEGER PRIMARY KEY,
    workspace_id TEXT NOT NULL,
    text_hash    TEXT NOT NULL,
    state        TEXT NOT NULL CHECK (state IN ('pending', 'ready', 'failed')),
    leased_until TEXT NOT NULL DEFAULT '',
    attempts     INTEGER NOT NULL DEFAULT 0,
    problem      TEXT
) STRICT""",
    """
CREATE TABLE accesses (
    node_key INTEGER PRIMARY KEY,
    count    INTEGER NOT NULL,
    last_at  TEXT NOT NULL
) STRICT""",
    f"""
CREATE TABLE waves (
    node_key  INTEGER PRIMARY KEY,
    amplitude REAL NOT NULL DEFAULT 1.0 CHECK (amplitude BETWEEN 0.0 AND 10.0),
    frequency REAL NOT NULL DEFAULT 0.0 CHECK (frequency BETWEEN 0.0 AND 1e6),
    phase     REAL NOT NULL DEFAULT 0.0 CHECK (phase BETWEEN -3.1415927 AND 3.1415927),
    half_life REAL NOT NULL DEFAULT 168.0 CHECK (half_life BETWEEN 1e-3 AND 1e9),
    at        TEXT NOT NULL CHECK (at GLOB {_INSTANT})
) STRICT""",
    # How many nodes there are, kept by trigger: counting 100,000 rows takes 15 ms.
    """
CREATE TABLE tallies (
    workspace_id TEXT NOT NULL,
    status       TEXT NOT NULL,
    nodes        INTEGER NOT NULL,
    PRIMARY KEY (workspace_id, status)
) STRICT""",
    """
CREATE TABLE idempotency (
    workspace_id TEXT NOT NULL,
    key          TEXT NOT NULL,
    request      TEXT NOT NULL,
    reply        TEXT NOT NULL,
    created_at   TEXT NOT NULL,
    tx           INTEGER NOT NULL,
    PRIMARY KEY (workspace_id, key)
) STRICT""",
    # Which transaction of the log took back which; never read by a follower.
    """
CREATE TABLE reversals (
    by_tx INTEGER NOT NULL,
    tx    INTEGER NOT NULL,
    PRIMARY KEY (by_tx, tx)
) STRICT""",
    "CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT",
    # Tokens come ready from tokens.py, a row a chunk (see keywords.py); 'ascii' keeps each whole.
    """
CREATE VIRTUAL TABLE keywords USING fts5(
    title, body, tokenize = "ascii tokenchars '_-./:@#+'")""",
)

_INDEXES: Final = (
    "CREATE INDEX nodes_by_parent ON nodes(parent_id) WHERE parent_id IS NOT NULL",
    "CREATE INDEX nodes_by_type ON nodes(workspace_id, type, created_at)",
    "CREATE INDEX nodes_by_status ON nodes(workspace_id, status, created_at, id)",
    "CREATE INDEX nodes_by_created ON nodes(workspace_id, created_at, id)",
    "CREATE INDEX nodes_by_updated ON nodes(workspace_id, updated_at)",
    """CREATE UNIQUE INDEX nodes_one_root ON nodes(workspace_id)
    WHERE type = 'session' AND parent_id IS NULL""",
    """CREATE INDEX nodes_pinned ON nodes(workspace_id, created_at, id)
    WHERE json_extract(data, '$.pinned') = 1""",
    """CREATE INDEX nodes_aims ON nodes(workspace_id, created_at, id)
    WHERE type IN ('goal', 'constraint')""",
    """CREATE INDEX nodes_by_path ON nodes(workspace_id, json_extract(data, '$.path'))
    WHERE type = 'fileref'""",
    "CREATE INDEX relations_by_from ON relations(from_id, type)",
    "CREATE INDEX relations_by_to ON relations(to_id, type)",
    "CREATE INDEX relations_by_type ON relations(workspace_id, type, created_at)",
    "CREATE INDEX relations_by_created ON relations(workspace_id, created_at)",
    # Invariant 6: contains is a forest, so a node has one parent.
    "CREATE UNIQUE INDEX relations_one_parent ON relations(to_id) WHERE type = 'contains'",
    "CREATE INDEX navigation_by_time ON navigation_history(workspace_id, created_at)",
    """CREATE INDEX navigation_by_focus ON navigation_history(node_id, created_at)
    WHERE action IN ('focus', 'branch')""",
    """CREATE INDEX navigation_focuses ON navigation_history(workspace_id, created_at, node_id)
    WHERE action IN ('focus', 'branch')""",
    "CREATE INDEX changes_by_key ON changes(entity, key)",
    "CREATE INDEX changes_by_time ON changes(workspace_id, at)",
    """CREATE INDEX index_state_open ON index_state(workspace_id, state, leased_until)
    WHERE state <> 'ready'""",
    "CREATE INDEX accesses_by_count ON accesses(count DESC)",
    "CREATE INDEX reversals_of ON reversals(tx)",
)

_TRIGGERS: Final = (
    f"""
CREATE TRIGGER nodes_insert AFTER INSERT ON nodes BEGIN
    {_log("NEW", "node", "insert", "NULL")}
    {_TALLY_NEW}
END""",
    f"""
CREATE TRIGGER nodes_tally AFTER UPDATE OF status, workspace_id ON nodes
WHEN OLD.status IS NOT NEW.status OR OLD.workspace_id IS NOT NEW.workspace_id
BEGIN
    {_TALLY_OLD}
    {_TALLY_NEW}
END""",
    f"""
CREATE TRIGGER nodes_update AFTER UPDATE ON nodes
WHEN OLD.data IS NOT NEW.data OR OLD.status IS NOT NEW.status OR OLD.type IS NOT NEW.type
  OR OLD.parent_id IS NOT NEW.parent_id OR OLD.workspace_id IS NOT NEW.workspace_id
  OR OLD.created_at IS NOT NEW.created_at OR OLD.updated_at IS NOT NEW.updated_at
BEGIN
    {_log("NEW", "node", "update", _NODE_BEFORE)}
END""",
    """
CREATE TRIGGER nodes_fixed BEFORE UPDATE OF rowkey, id ON nodes
WHEN OLD.rowkey IS NOT NEW.rowkey OR OLD.id IS NOT NEW.id
BEGIN SELECT RAISE(ABORT, 'the id of a node never changes'); END""",
    # REPLACE deletes without firing a trigger. These fire before it does (invariant 2).
    """
CREATE TRIGGER nodes_stay BEFORE INSERT ON nodes
WHEN EXISTS (SELECT 1 FROM nodes WHERE id = NEW.id)
  OR EXISTS (SELECT 1 FROM nodes WHERE rowkey = NEW.rowkey)
  OR NEW.type = 'session' AND NEW.parent_id IS NULL AND EXISTS (
     SELECT 1 FROM nodes
      WHERE workspace_id = NEW.workspace_id AND type = 'session' AND parent_id IS NULL)
BEGIN SELECT RAISE(ABORT, 'this node exists: update it'); END""",
    """
CREATE TRIGGER relations_stay BEFORE INSERT ON relations
WHEN EXISTS (SELECT 1 FROM relations WHERE id = NEW.id)
  OR EXISTS (SELECT 1 FROM relations WHERE rowkey = NEW.rowkey)
  OR EXISTS (SELECT 1 FROM relations
              WHERE from_id = NEW.from_id AND to_id = NEW.to_id AND type = NEW.type)
  OR NEW.type = 'contains' AND EXISTS (
     SELECT 1 FROM relations WHERE to_id = NEW.to_id AND type = 'contains')
BEGIN SELECT RAISE(ABORT, 'this relation exists, or the node has a parent'); END""",
    # Invariant 2: relations go one by one, so that each is logged, foreign keys on or off;
    # the incoming ones after the node, or a session below the root would lose its parent
    # first, and be a second root for a moment.
    """
CREATE TRIGGER nodes_leave BEFORE DELETE ON nodes BEGIN
    DELETE FROM waves WHERE node_key = OLD.rowkey;
    DELETE FROM relations WHERE from_id = OLD.id;
    UPDATE nodes SET parent_id = NULL WHERE parent_id = OLD.id;
END""",
    f"""
CREATE TRIGGER nodes_delete AFTER DELETE ON nodes BEGIN
    {_log("OLD", "node", "delete", _NODE_BEFORE)}
    {_TALLY_OLD}
    DELETE FROM relations WHERE to_id = OLD.id;
    DELETE FROM embeddings WHERE node_key = OLD.rowkey;
    DELETE FROM index_state WHERE node_key = OLD.rowkey;
    DELETE FROM accesses WHERE node_key = OLD.rowkey;
END""",
    # Invariant 6.
    """
CREATE TRIGGER relations_within BEFORE INSERT ON relations
WHEN NOT EXISTS (SELECT 1 FROM nodes WHERE id = NEW.from_id AND workspace_id = NEW.workspace_id)
  OR NOT EXISTS (SELECT 1 FROM nodes WHERE id = NEW.to_id AND workspace_id = NEW.workspace_id)
BEGIN SELECT RAISE(ABORT, 'a relation joins two nodes of its own workspace'); END""",
    """
CREATE TRIGGER relations_acyclic BEFORE INSERT ON relations
WHEN NEW.type IN ('contains', 'supersedes') AND EXISTS (
    WITH RECURSIVE above(id) AS (
        SELECT NEW.from_id
        UNION
        SELECT r.from_id FROM above JOIN relations AS r ON r.to_id = above.id AND r.type = NEW.type)
    SELECT 1 FROM above WHERE id = NEW.to_id)
BEGIN SELECT RAISE(ABORT, 'contains and supersedes have no cycle'); END""",
    """
CREATE TRIGGER superseded_goes_stale AFTER INSERT ON relations WHEN NEW.type = 'supersedes'
BEGIN UPDATE nodes SET status = 'stale' WHERE id = NEW.to_id AND status = 'active'; END""",
    """
CREATE TRIGGER superseded_stays_stale BEFORE UPDATE OF status ON nodes
WHEN NEW.status = 'active' AND OLD.status <> 'active'
 AND EXISTS (SELECT 1 FROM relations WHERE to_id = NEW.id AND type = 'supersedes')
BEGIN SELECT RAISE(ABORT, 'a superseded node is never active'); END""",
    """
CREATE TRIGGER relations_fixed BEFORE UPDATE OF rowkey, id, from_id, to_id, type ON relations
WHEN OLD.rowkey IS NOT NEW.rowkey OR OLD.id IS NOT NEW.id OR OLD.type IS NOT NEW.type
  OR OLD.from_id IS NOT NEW.from_id OR OLD.to_id IS NOT NEW.to_id
BEGIN SELECT RAISE(ABORT, 'the ends and type of a relation never change'); END""",
    f"""
CREATE TRIGGER relations_insert AFTER INSERT ON relations BEGIN
    {_log("NEW", "relation", "insert", "NULL")}
END""",
    f"""
CREATE TRIGGER relations_update AFTER UPDATE ON relations
WHEN OLD.weight IS NOT NEW.weight OR OLD.data IS NOT NEW.data
  OR OLD.workspace_id IS NOT NEW.workspace_id OR OLD.created_at IS NOT NEW.created_at
  OR OLD.updated_at IS NOT NEW.updated_at
BEGIN
    {_log("NEW", "relation", "update", _RELATION_BEFORE)}
END""",
    f"""
CREATE TRIGGER relations_delete AFTER DELETE ON relations BEGIN
    {_log("OLD", "relation", "delete", _RELATION_BEFORE)}
END""",
    # A wave hangs on a node, whose workspace its log rows name: it goes before the node does.
    """
CREATE TRIGGER waves_stay BEFORE INSERT ON waves
WHEN EXISTS (SELECT 1 FROM waves WHERE node_key = NEW.node_key)
  OR NOT EXISTS (SELECT 1 FROM nodes WHERE rowkey = NEW.node_key)
BEGIN SELECT RAISE(ABORT, 'this wave exists, or its node does not'); END""",
    """
CREATE TRIGGER waves_fixed BEFORE UPDATE OF node_key ON waves
WHEN OLD.node_key IS NOT NEW.node_key
BEGIN SELECT RAISE(ABORT, 'the node of a wave never changes'); END""",
    f"""
CREATE TRIGGER waves_insert AFTER INSERT ON waves BEGIN
    {_log_wave("NEW", "insert", "NULL")}
END""",
    f"""
CREATE TRIGGER waves_update AFTER UPDATE ON waves
WHEN OLD.amplitude IS NOT NEW.amplitude OR OLD.frequency IS NOT NEW.frequency
  OR OLD.phase IS NOT NEW.phase OR OLD.half_life IS NOT NEW.half_life OR OLD.at IS NOT NEW.at
BEGIN
    {_log_wave("NEW", "update", _WAVE_BEFORE)}
END""",
    f"""
CREATE TRIGGER waves_delete AFTER DELETE ON waves BEGIN
    {_log_wave("OLD", "delete", _WAVE_BEFORE)}
END""",
    # parent_id and contains say the same always, whoever writes.
    """
CREATE TRIGGER contains_sets_parent AFTER INSERT ON relations WHEN NEW.type = 'contains'
BEGIN
    UPDATE nodes SET parent_id = NEW.from_id
     WHERE id = NEW.to_id AND parent_id IS NOT NEW.from_id;
END""",
    """
CREATE TRIGGER contains_clears_parent AFTER DELETE ON relations WHEN OLD.type = 'contains'
BEGIN
    UPDATE nodes SET parent_id = NULL WHERE id = OLD.to_id AND parent_id = OLD.from_id;
END""",
    # A service writes both itself; a shell that sets a parent makes the relation so.
    f"""
CREATE TRIGGER parent_sets_contains AFTER INSERT ON nodes
WHEN NEW.parent_id IS NOT NULL AND (SELECT tx FROM writer) IS NULL
BEGIN
    {_CONTAIN}
END""",
    f"""
CREATE TRIGGER parent_moves_contains AFTER UPDATE OF parent_id ON nodes
WHEN NEW.parent_id IS NOT OLD.parent_id AND NEW.parent_id IS NOT
     (SELECT from_id FROM relations WHERE to_id = NEW.id AND type = 'contains')
BEGIN
    DELETE FROM relations WHERE to_id = NEW.id AND type = 'contains';
    {_CONTAIN}
END""",
)

# IF NOT EXISTS: some files of the first schema have them already.
_FILES_CHANGES_AND_USE: Final = (
    "CREATE INDEX IF NOT EXISTS nodes_files ON nodes(id) WHERE type = 'fileref'",
    "CREATE INDEX IF NOT EXISTS relations_to_files ON relations(from_id, to_id) "
    f"WHERE type IN {FILE_KINDS}",
    """CREATE INDEX IF NOT EXISTS changes_of_nodes ON changes(workspace_id, at)
    WHERE entity = 'node' AND op <> 'insert'""",
    # Read from its end it gives the most used first, and of those used as often the newest.
    "DROP INDEX accesses_by_count",
    "CREATE INDEX accesses_by_count ON accesses(count)",
)

MIGRATIONS: Final[tuple[tuple[str, ...], ...]] = (
    (*_TABLES, *_INDEXES, *_TRIGGERS),
    _FILES_CHANGES_AND_USE,
)
"""Migration n stands at position n − 1; each runs in one transaction with its record."""
