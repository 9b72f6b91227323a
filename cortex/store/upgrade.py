"""Upgrading a file of the concept's original schema in place, with nothing lost.

First a verified copy beside it. Then, in the one transaction that makes the new tables, the
old ones are renamed aside, their rows written in order of creation as the actor "upgrade",
and the old tables dropped: a process that dies on the way leaves the old file as it was
(invariant 11: no live file is replaced). Two passes over the nodes, the first without
their data, so that memory grows with the relations and not with the texts.
"""

from __future__ import annotations

import json
import logging
import os
import re
import sqlite3
import stat
from collections.abc import Callable, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any, Final

from cortex.domain.errors import UnavailableError
from cortex.domain.instants import Instant
from cortex.store.meta import UPGRADE_LEFTOVERS, UPGRADE_REPORT, Meta
from cortex.store.original import lenient
from cortex.store.original_rows import Upgrade
from cortex.store.schema import MIGRATIONS

logger = logging.getLogger(__name__)

_COLUMNS: Final = """
SELECT t.name, c.name FROM pragma_table_list AS t JOIN pragma_table_xinfo(t.name) AS c
 WHERE t.schema = 'main' AND t.type = 'table'
"""
_SIGNS: Final = {
    "nodes": frozenset({"id", "type", "workspace_id", "data", "created_at"}),
    "relations": frozenset({"id", "from_id", "to_id", "type"}),
}
_OBJECTS: Final = """
SELECT type, name FROM sqlite_master
 WHERE sql IS NOT NULL AND type IN ('trigger', 'index', 'view') ORDER BY type DESC, name
"""
_TABLES: Final = "SELECT name FROM sqlite_master WHERE type = 'table'"
_COUNTS: Final = "SELECT (SELECT COUNT(*) FROM nodes), (SELECT COUNT(*) FROM relations)"
_OURS: Final = re.compile(r"CREATE (?:VIRTUAL )?TABLE (\w+)")


def is_original(connection: sqlite3.Connection) -> bool:
    """Whether the file has the concept's tables and not ours."""
    columns: dict[str, set[str]] = {}
    for table, column in connection.execute(_COLUMNS):
        columns.setdefault(table, set()).add(column)
    return all(signs <= columns.get(table, set()) for table, signs in _SIGNS.items()) and (
        "rowkey" not in columns["nodes"]
    )


def upgrade_original(
    writer: sqlite3.Connection, path: Path, now: Instant, make_schema: Callable[[], None]
) -> Mapping[str, Any]:
    """Copy, set aside, make the schema, bring over; within the caller's write transaction.

    Returns what `announce` says. On any error the transaction is undone and the copy, not
    needed then, removed.
    """
    backup = back_up(path, now)
    try:
        set_aside(writer)
        make_schema()
        return bring_over(writer, path, backup, now)
    except BaseException:
        if writer.in_transaction:  # a full disk has rolled back by itself
            writer.execute("ROLLBACK")
        backup.unlink()
        raise


def back_up(path: Path, at: Instant) -> Path:
    """A copy beside the file, for its owner alone, whole or not there at all.

    Read through a connection of its own while the caller holds the write lock, so that it
    is the very state that will be upgraded. Raises UnavailableError where it does not
    verify.
    """
    stamp = re.sub(r"\D", "", at)[:14]
    target = path.with_name(f"{path.name}.original-{stamp}")
    while target.exists():
        target = target.with_name(f"{target.name}-again")
    draft = target.with_name(f"{target.name}.{os.getpid()}.part")
    os.close(os.open(draft, os.O_RDWR | os.O_CREAT | os.O_EXCL, stat.S_IRUSR | stat.S_IWUSR))
    try:
        with closing(sqlite3.connect(path)) as source, closing(sqlite3.connect(draft)) as copy:
            source.backup(copy)
            copy.execute("PRAGMA journal_mode = DELETE")  # one file, that needs no other beside it
            found = copy.execute("PRAGMA quick_check(1)").fetchone()[0]
            if (
                found != "ok"
                or copy.execute(_COUNTS).fetchone() != source.execute(_COUNTS).fetchone()
            ):
                raise UnavailableError(
                    f"the backup of {path} does not verify ({found})",
                    "",
                    "Check the disk, then open it again; the file was not changed",
                )
    except BaseException:
        draft.unlink()
        raise
    draft.rename(target)
    return target


def set_aside(connection: sqlite3.Connection) -> None:
    """Rename the tables in our way, within the transaction that will drop the old ones.

    Indexes, triggers and views of the old file go at once: they are in the backup, and
    their names may be ours.
    """
    connection.execute("PRAGMA legacy_alter_table = ON")  # rename these, rewrite nothing
    for kind, name in connection.execute(_OBJECTS).fetchall():
        connection.execute(f"DROP {kind} IF EXISTS {_quoted(name)}")
    ours = {
        name for statements in MIGRATIONS for text in statements for name in _OURS.findall(text)
    }
    tables = {name for (name,) in connection.execute(_TABLES)}
    for name in sorted(tables & ours):
        connection.execute(f"ALTER TABLE {_quoted(name)} RENAME TO {_quoted('original_' + name)}")


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def bring_over(
    connection: sqlite3.Connection, path: Path, backup: Path, now: Instant
) -> Mapping[str, Any]:
    """Write what was set aside into the new tables; what was done, as `upgrade_report` says it."""
    factory = connection.text_factory
    connection.text_factory = lenient
    try:
        upgrade = Upgrade(connection, path, now)
        upgrade.run()
    finally:
        connection.text_factory = factory
    report = {
        "at": now,
        "backup": backup.name,
        "nodes": upgrade.nodes,
        "relations": upgrade.relations,
        "history": upgrade.visits,
        "repairs": {kind: count for kind, count in sorted(upgrade.repairs.items()) if count},
    }
    meta = Meta(connection)
    meta.set(UPGRADE_REPORT, json.dumps(report))
    if upgrade.leftovers:
        meta.set(UPGRADE_LEFTOVERS, json.dumps(upgrade.leftovers, ensure_ascii=False))
    return report


def announce(report: Mapping[str, Any]) -> None:
    """Say once, on stderr by way of the log, what the upgrade did."""
    repairs = ", ".join(f"{kind} {count}" for kind, count in report["repairs"].items())
    logger.warning(
        "upgraded a file of the original schema: %d nodes, %d relations, %d visits; repaired: %s. "
        "The file as it was: %s",
        report["nodes"],
        report["relations"],
        report["history"],
        repairs or "nothing",
        report["backup"],
    )
