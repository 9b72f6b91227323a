"""Since when active nodes lie idle, and what their last sign of life was.

Idea: a node's own last sign is the latest of its creation, edit, focus and access; a node is
as alive as the liveliest below it, so each sign climbs as long as it is the latest on its
way. At one instant the node's own sign comes before one from below, and of its own opened
before focused before changed before created. Cost: one pass over the workspace's nodes and
its focuses, in Python; the analytics worker has the same rows sooner. Corner: a ring of
parents, which no cortex makes, ends, since a sign climbs over smaller ones alone.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Collection
from typing import Final, NamedTuple

from cortex.domain.activity import IdleRow
from cortex.domain.instants import Instant, as_microseconds
from cortex.domain.values import WorkspaceId

_SIGNS: Final = """
WITH focused(node_id, at) AS (
    SELECT node_id, MAX(created_at) FROM navigation_history
     WHERE workspace_id = :workspace AND action IN ('focus', 'branch')
     GROUP BY node_id)
SELECT n.rowkey, n.id, n.parent_id, n.status = 'active', n.created_at, n.updated_at, f.at, a.last_at
  FROM nodes AS n
       LEFT JOIN focused AS f ON f.node_id = n.id
       LEFT JOIN accesses AS a ON a.node_key = n.rowkey
 WHERE n.workspace_id = :workspace
"""
_WHAT: Final = ("created", "changed", "focused", "opened")


class _Sign(NamedTuple):
    """Greater means later, at one instant the node's own."""

    at: str
    own: bool
    what: int


_NEVER: Final = _Sign("", False, 0)


class Idleness:
    """Reads signs of life within one transaction."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def rows(
        self,
        workspace: WorkspaceId,
        last: Instant | None,
        keys: Collection[int] | None,
        take: int | None,
    ) -> tuple[IdleRow, ...]:
        """Active nodes, the longest idle first, ties by id; `keys` None means all of them.

        `last` is the workspace's last activity, to which idle seconds count.
        """
        found = self._connection.execute(_SIGNS, {"workspace": workspace}).fetchall()
        own = {row[1]: _own(*row[4:]) for row in found}
        below = _lifted(own, {row[1]: row[2] for row in found})
        wanted = None if keys is None else frozenset(keys)
        latest = [
            (max(own[node], below.get(node, _NEVER)), node, key)
            for key, node, _, active, *_ in found
            if active and (wanted is None or key in wanted)
        ]
        latest.sort(key=lambda each: (each[0].at, each[1]))
        end = as_microseconds(last) if last else 0
        return tuple(
            IdleRow(
                key,
                node,
                Instant(sign.at),
                _WHAT[sign.what],
                int(not sign.own),
                (end - as_microseconds(Instant(sign.at))) / 1e6,
                len(latest),
            )
            for sign, node, key in latest[:take]
        )


def _own(created: str, updated: str, focused: str | None, opened: str | None) -> _Sign:
    signs = [_Sign(created, True, 0)]
    if updated > created:
        signs.append(_Sign(updated, True, 1))
    signs += [_Sign(at, True, what) for what, at in ((2, focused), (3, opened)) if at is not None]
    return max(signs)


def _lifted(own: dict[str, _Sign], parent: dict[str, str | None]) -> dict[str, _Sign]:
    """The latest sign below each node that has any."""
    below: dict[str, _Sign] = {}
    for node, sign in own.items():
        climbing = sign._replace(own=False)
        above = parent[node]
        while above in own and below.get(above, _NEVER) < climbing:
            below[above] = climbing
            above = parent[above]
    return below
