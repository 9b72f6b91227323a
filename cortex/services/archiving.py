"""What archiving goes by: the workspace's own clock, and the nodes that stay hot or strong."""

from __future__ import annotations

from typing import NamedTuple

from cortex.config import Settings
from cortex.domain.instants import Instant, before
from cortex.domain.values import NodeId, WorkspaceId
from cortex.services.waves import strong
from cortex.store.database import Snapshot


class Terms(NamedTuple):
    """Idle since before `cutoff`, beside `hot` (in focus lately, or strong still) and the newest
    `keep`; `last` is the latest life."""

    last: Instant
    cutoff: Instant
    keep: int
    hot: list[NodeId]


def archive_terms(snapshot: Snapshot, place: WorkspaceId, settings: Settings) -> Terms | None:
    """The terms of a workspace now; None where nothing ever happened."""
    last = snapshot.archiving.last_activity(place)
    if last is None:
        return None
    cutoff = before(last, days=settings.archive_days)
    hot = snapshot.navigation.focused(place, settings.hot_focuses)
    hot += strong(snapshot, place, last, settings.archive_days)
    return Terms(last, cutoff, settings.keep_newest, hot)
