"""Table meta: the file's epoch, watermarks and the fingerprint of its vectors."""

from __future__ import annotations

import sqlite3
from typing import Final

_GET: Final = "SELECT value FROM meta WHERE key = :key"
_SET: Final = """
INSERT INTO meta(key, value) VALUES (:key, :value)
    ON CONFLICT (key) DO UPDATE SET value = excluded.value
"""

EPOCH: Final = "epoch"
LOG_FLOOR: Final = "log_floor"
DERIVED_SEQ: Final = "derived_seq"
FINGERPRINT: Final = "fingerprint"
MODEL: Final = "model"
UPGRADE_REPORT: Final = "upgrade_report"
UPGRADE_LEFTOVERS: Final = "upgrade_leftovers"
LAST_GC: Final = "last_gc:"
INGESTED_ROOTS: Final = "ingested_roots"  # JSON list of what people named to `cortex ingest`
MEMORY_ID: Final = "memory_id"  # whose vectors a Qdrant collection holds
PUSHER: Final = "pusher"  # "<until> <process>": who brings a remote index up to date
NEIGHBOURS: Final = "neighbours"  # "<epoch> <seq> <emb_seq> auto|on": up to where links are made
MENTIONS: Final = "mentions"  # "<epoch> <seq>": up to where memories' entities are written


class Meta:
    """Single values by name."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def find(self, key: str) -> str | None:
        row = self._connection.execute(_GET, {"key": key}).fetchone()
        return None if row is None else str(row[0])

    def set(self, key: str, value: str) -> None:
        self._connection.execute(_SET, {"key": key, "value": value})
