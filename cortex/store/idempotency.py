"""Table idempotency: the reply to a write that was asked for once already."""

from __future__ import annotations

import sqlite3
from typing import Final

from cortex.domain.instants import Instant, before
from cortex.domain.values import WorkspaceId

_FIND: Final = """
SELECT request, reply, tx FROM idempotency WHERE workspace_id = :workspace AND key = :key
"""
_KEEP: Final = """
INSERT INTO idempotency(workspace_id, key, request, reply, created_at, tx)
VALUES (:workspace, :key, :request, :reply, :at, (SELECT tx FROM writer))
"""
_EXPIRE: Final = "DELETE FROM idempotency WHERE created_at < :before"
KEPT_DAYS: Final = 7


class Idempotency:
    """Replies by (workspace, key), kept for 7 days."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def find(self, workspace: WorkspaceId, key: str) -> tuple[str, str, int] | None:
        """The digest of the request, the reply that was given, and its transaction."""
        row = self._connection.execute(_FIND, {"workspace": workspace, "key": key}).fetchone()
        return None if row is None else (row[0], row[1], row[2])

    def keep(self, workspace: WorkspaceId, key: str, request: str, reply: str, at: Instant) -> None:
        self._connection.execute(
            _KEEP,
            {"workspace": workspace, "key": key, "request": request, "reply": reply, "at": at},
        )

    def expire(self, now: Instant) -> None:
        self._connection.execute(_EXPIRE, {"before": before(now, days=KEPT_DAYS)})
