"""Conversations: a session node to begin with, and what memory has for the present question.

Which session a connection is in is known to this process alone: after a restart, memories go
below the root until `session_start` is called again.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import dataclass
from typing import Any, Final

from cortex.domain.taxonomy import NodeType, Status
from cortex.domain.values import Node, NodeId, WorkspaceId
from cortex.services.adding import insert_child
from cortex.services.engine import Engine
from cortex.services.fields import Fields, merged, require_content
from cortex.services.linking import ensure_root
from cortex.services.repeating import once
from cortex.services.retrieval.search import Found, Search
from cortex.services.screening import screened
from cortex.services.viewport import Viewport
from cortex.store.database import Snapshot, Transaction

_MOST: Final = 1000
_HITS: Final = 10


@dataclass(frozen=True, slots=True)
class Started:
    """The session of this conversation, in focus now. All JSON values."""

    session_id: str
    title: str
    workspace_id: str
    parent_id: str | None


@dataclass(frozen=True, slots=True)
class Recollected:
    """What the conversation is about: its session, None without one, where it stands, hits."""

    session: Node | None
    anchor: Node | None
    found: Found | None
    recent: tuple[Node, ...]
    generation: int


class Sessions:
    """Begins conversations, and finds what belongs to them."""

    def __init__(self, engine: Engine, viewport: Viewport, search: Search) -> None:
        self._engine = engine
        self._viewport = viewport
        self._search = search
        self._lock = threading.Lock()
        self._current: OrderedDict[tuple[str, WorkspaceId], NodeId] = OrderedDict()

    def start(self, title: str, *, workspace: str | None = None, key: str | None = None) -> Started:
        """Make a session node below the workspace's root and focus it.

        Raises InvalidError for an empty title.
        """
        place = self._engine.workspace(workspace)
        data = merged({}, Fields(title=title).changes())
        require_content(data, NodeType.SESSION)
        screened(self._engine.settings, data)
        with self._engine.write() as transaction:
            started = once(
                transaction, place, key, data, Started, lambda: _start(transaction, place, data)
            )
        self._viewport.focus(started.session_id, limit=1, workspace=place)
        with self._lock:
            self._current[self._engine.actor, place] = NodeId(started.session_id)
            self._current.move_to_end((self._engine.actor, place))
            while len(self._current) > _MOST:
                self._current.popitem(last=False)
        return started

    def current(self, snapshot: Snapshot, place: WorkspaceId) -> Node | None:
        """The session that this connection is in, while that is active."""
        with self._lock:
            known = self._current.get((self._engine.actor, place))
        node = snapshot.nodes.find(known) if known else None
        if node is None or node.status is not Status.ACTIVE or node.workspace_id != place:
            return None
        return node

    def context(self, query: str, *, workspace: str | None = None) -> Recollected:
        """What memory has for this question, with the context of each hit; without a question,
        what the session holds, newest first."""
        place = self._engine.workspace(workspace)
        found = None
        if query.strip():
            found = self._search.graph_search(query, top_k=_HITS, workspace=workspace)
        with self._engine.database.read() as snapshot:
            session = self.current(snapshot, place)
            anchor = snapshot.navigation.anchor(place)
            anchored = snapshot.nodes.find(anchor.node_id) if anchor else None
            recent: list[Node] = []
            if session is not None:
                recent = snapshot.nodes.children_page(session.id, _HITS)
            elif found is None:
                recent = snapshot.nodes.newest(place, _HITS)
            generation = snapshot.generation().seq
        return Recollected(session, anchored, found, tuple(recent), generation)


def _start(transaction: Transaction, place: WorkspaceId, data: dict[str, Any]) -> Started:
    root, _ = ensure_root(transaction, place)
    node = insert_child(transaction, NodeType.SESSION, place, root, data)
    return Started(node.id, node.title, place, root.id)
