"""Table waves, and what accesses say: the state from which strength is computed.

A memory without a row has the wave of `cortex.domain.waves.PLAIN`, counted from its creation,
so plain memories cost nothing here. Triggers log every change of a row (entity 'wave', key:
the node's), with the row before it; accesses are not logged.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

from cortex.domain.instants import Instant
from cortex.domain.values import WorkspaceId
from cortex.domain.waves import PLAIN, Wave

# PLAIN's values and the creation, where there is no row.
_OF_KEYS: Final = """
SELECT n.rowkey, w.amplitude, w.frequency, w.phase, w.half_life, COALESCE(w.at, n.created_at),
       n.created_at, COALESCE(a.count, 0), a.last_at
  FROM json_each(:keys) AS wanted CROSS JOIN nodes AS n ON n.rowkey = wanted.value
       LEFT JOIN waves AS w ON w.node_key = n.rowkey
       LEFT JOIN accesses AS a ON a.node_key = n.rowkey
 ORDER BY n.rowkey
"""
_ACTIVE: Final = """
SELECT n.rowkey, w.amplitude, w.frequency, w.phase, w.half_life, COALESCE(w.at, n.created_at),
       n.created_at, COALESCE(a.count, 0), a.last_at
  FROM nodes AS n
       LEFT JOIN waves AS w ON w.node_key = n.rowkey
       LEFT JOIN accesses AS a ON a.node_key = n.rowkey
 WHERE n.workspace_id = :workspace AND n.status = 'active' AND n.type <> 'session'
 ORDER BY n.rowkey
"""
_WAVED: Final = """
SELECT n.rowkey, n.id, w.amplitude, w.frequency, w.phase, w.half_life, w.at
  FROM waves AS w CROSS JOIN nodes AS n ON n.rowkey = w.node_key
 WHERE n.workspace_id = :workspace AND n.status = 'active'
 ORDER BY n.rowkey
"""
# Candidates for the strongest: any order by strength needs the present instant.
_LIKELY: Final = """
SELECT node_key FROM (
    SELECT w.node_key FROM waves AS w CROSS JOIN nodes AS n ON n.rowkey = w.node_key
     WHERE n.workspace_id = :workspace AND n.status = 'active'
     ORDER BY w.amplitude DESC, w.at DESC, w.node_key LIMIT :limit)
UNION
SELECT node_key FROM (
    SELECT a.node_key FROM accesses AS a CROSS JOIN nodes AS n ON n.rowkey = a.node_key
     WHERE n.workspace_id = :workspace AND n.status = 'active'
     ORDER BY a.count DESC, a.node_key DESC LIMIT :limit)
"""
_FIND: Final = """
SELECT amplitude, frequency, phase, half_life, at FROM waves WHERE node_key = :key
"""
_UPDATE: Final = """
UPDATE waves
   SET amplitude = :amplitude, frequency = :frequency, phase = :phase, half_life = :half_life,
       at = :at
 WHERE node_key = :key
"""
_INSERT: Final = """
INSERT INTO waves(node_key, amplitude, frequency, phase, half_life, at)
VALUES (:key, :amplitude, :frequency, :phase, :half_life, :at)
"""
_DROP: Final = "DELETE FROM waves WHERE node_key = :key"
_TOUCHED: Final = """
SELECT DISTINCT key FROM changes NOT INDEXED WHERE seq > :since AND entity = 'wave' ORDER BY key
"""


class WaveState(NamedTuple):
    """A node's wave and what counts beside it; `since` is where the wave is counted from."""

    key: int
    wave: Wave
    since: Instant
    created_at: Instant
    accesses: int
    last_access: Instant | None
    own: bool
    """Whether the node has a row of its own."""


class Waved(NamedTuple):
    """A node that has a row."""

    key: int
    node_id: str
    wave: Wave
    since: Instant


class Waves:
    """Reads and writes waves within one transaction."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def of_keys(self, keys: Sequence[int]) -> dict[int, WaveState]:
        """Of those that exist, by rising key."""
        rows = self._connection.execute(_OF_KEYS, {"keys": json.dumps(list(keys))})
        return {row[0]: _state(row) for row in rows}

    def iter_active(self, workspace: WorkspaceId) -> Iterator[WaveState]:
        """Of every active node but sessions, by rising key."""
        return map(_state, self._connection.execute(_ACTIVE, {"workspace": workspace}))

    def waved(self, workspace: WorkspaceId) -> list[Waved]:
        """The active nodes that have a row, by rising key."""
        rows = self._connection.execute(_WAVED, {"workspace": workspace})
        return [Waved(row[0], row[1], Wave(*row[2:6]), Instant(row[6])) for row in rows]

    def likely(self, workspace: WorkspaceId, limit: int) -> list[int]:
        """Keys of the active nodes of greatest amplitude and of most accesses, `limit` of each."""
        rows = self._connection.execute(_LIKELY, {"workspace": workspace, "limit": limit})
        return [key for (key,) in rows]

    def find(self, key: int) -> tuple[Wave, Instant] | None:
        """A node's own row."""
        row = self._connection.execute(_FIND, {"key": key}).fetchone()
        return None if row is None else (Wave(*row[:4]), Instant(row[4]))

    def put(self, key: int, wave: Wave, at: Instant) -> None:
        """Write a node's wave, counted from `at`."""
        bound = {
            "key": key,
            "amplitude": wave.amplitude,
            "frequency": wave.frequency,
            "phase": wave.phase,
            "half_life": wave.half_life,
            "at": at,
        }
        if not self._connection.execute(_UPDATE, bound).rowcount:
            self._connection.execute(_INSERT, bound)

    def drop(self, key: int) -> None:
        """Back to the plain wave."""
        self._connection.execute(_DROP, {"key": key})

    def touched(self, since: int) -> list[int]:
        """Keys of nodes whose wave changed after change `since`."""
        return [key for (key,) in self._connection.execute(_TOUCHED, {"since": since})]


def _state(row: Sequence[Any]) -> WaveState:
    key, amplitude, frequency, phase, half_life, since, created, count, last = row
    own = amplitude is not None
    wave = Wave(amplitude, frequency, phase, half_life) if own else PLAIN
    return WaveState(key, wave, since, created, count, last, own)
