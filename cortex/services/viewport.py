"""The desktop: hot nodes in full, cold ones by title, the archive as a number."""

from __future__ import annotations

import base64
import binascii
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import inf
from typing import Final

from cortex.domain.errors import BusyError, InvalidError, UnavailableError
from cortex.domain.instants import Instant
from cortex.domain.taxonomy import Action, NodeType, Status
from cortex.domain.values import Node, NodeId, Relation, WorkspaceId
from cortex.domain.waves import decay
from cortex.graph.proximity import adjacent
from cortex.services.archiving import Archiver
from cortex.services.engine import Engine
from cortex.services.history import History
from cortex.services.linking import ensure_root
from cortex.services.naming import Known, ask
from cortex.services.reading import AROUND, Surroundings, surroundings
from cortex.services.resolving import head_of, resolve_node
from cortex.services.waves import hours, strongest
from cortex.store.database import Snapshot, Transaction
from cortex.store.navigation import Anchor, Visit
from cortex.store.nodes import LAST
from cortex.store.timeline import LastActivity

_FRONT: Final = 50
_KEPT: Final = 12
_RELATIONS: Final = 8
_RESTORE_WAIT: Final = 0.05  # seconds for the write lock; a focus goes on without it


@dataclass(frozen=True, slots=True)
class HotNode:
    """A node in the agent's context, with its direct relations and how many there are."""

    node: Node
    relations: tuple[tuple[Relation, Node], ...]
    degree: int


@dataclass(frozen=True, slots=True)
class Archive:
    """How many nodes are archived, and when the oldest of them was made."""

    count: int
    oldest: Instant | None


@dataclass(frozen=True, slots=True)
class Desktop:
    """One viewport. `cold` is one page; `cold_total` counts all cold nodes.

    `archived_now` counts what was archived, as far as it was not told before.
    `anchored` is the node where the agent stopped, `head` what has superseded it since;
    `last_session` the newest activity of
    another connection.
    """

    session: Node
    created: bool
    anchor: Anchor | None
    anchored: Node | None
    head: Node | None
    last_session: LastActivity | None
    hot: tuple[HotNode, ...]
    cold: tuple[Node, ...]
    cold_total: int
    next_cursor: str | None
    stale: int
    archive: Archive
    archived_now: int
    notes: tuple[str, ...]
    generation: int

    def cursor_after(self, node: Node) -> str:
        """The cursor that goes on after this cold node."""
        return encode_cursor(node)


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry of the history; `node` is None when it was deleted."""

    visit: Visit
    node: Node | None


@dataclass(frozen=True, slots=True)
class Looked:
    """Entries of the history, the newest first."""

    entries: tuple[Entry, ...]
    known: Known
    generation: int


@dataclass(frozen=True, slots=True)
class Focused:
    """A node in focus with its subgraph; `action` is focus or branch."""

    around: Surroundings
    action: Action
    restored: bool
    notes: tuple[str, ...]


class Viewport:
    """Opens the desktop, moves the focus, archives what lies idle."""

    def __init__(self, engine: Engine, history: History) -> None:
        self._engine = engine
        self._history = history
        self._archiver = Archiver(engine)

    def open(self, workspace: str | None, *, cursor: str | None = None, page: int = 40) -> Desktop:
        """The workspace's viewport; makes its session root when there is none.

        Waits for the write lock only there. What lies idle is archived at most once a day, and
        waited for a moment; `archived_now` is what was since the last opening of this process.
        """
        place = self._engine.workspace(workspace)
        after = decode_cursor(cursor) if cursor else None
        if self._history.owes_focus:  # else a commit would be most of what opening costs
            self._history.flush()
        created = self._ensure_root(place)
        notes: list[str] = []
        archived = 0 if created else self._archiver.collect(place, notes)
        if self._history.owes_focus:
            notes.append(f"{self._history.waiting} history entries wait for another writer")
        with self._engine.database.read() as snapshot:
            session = snapshot.nodes.root(place)
            if session is None:
                raise InvalidError(
                    f"workspace {place!r} is empty",
                    "",
                    "Write to it first: this memory is open for reading only",
                )
            anchor = snapshot.navigation.anchor(place)
            anchored = snapshot.nodes.find(anchor.node_id) if anchor else None
            hot = self._hot(snapshot, place)
            counts = snapshot.nodes.counts(place)
            hidden = {node.node.id for node in hot} | {session.id}
            active = counts.get(Status.ACTIVE, 0)
            total = active - sum(1 for node in hot if node.node.status is Status.ACTIVE) - 1
            cold = self._cold(snapshot, place, hidden, after, page + 1)
            desktop = Desktop(
                session,
                created,
                anchor,
                anchored,
                _head(snapshot, anchored),
                snapshot.timeline.last_other(place, self._engine.actor),
                hot,
                tuple(cold[:page]),
                max(total, 0),
                encode_cursor(cold[page - 1]) if len(cold) > page else None,
                counts.get(Status.STALE, 0),
                Archive(
                    counts.get(Status.ARCHIVED, 0),
                    snapshot.nodes.oldest(place, Status.ARCHIVED),
                ),
                archived,
                tuple(notes),
                snapshot.generation().seq,
            )
        self._history.visit(place, session.id, Action.OPEN, {})
        return desktop

    def _ensure_root(self, place: WorkspaceId) -> bool:
        with self._engine.database.read() as snapshot:
            if snapshot.nodes.root(place) is not None:
                return False
        if self._engine.settings.read_only:
            return False
        with self._engine.write() as transaction:
            _, created = ensure_root(transaction, place)
        return created

    def _hot(self, snapshot: Snapshot, place: WorkspaceId) -> tuple[HotNode, ...]:
        kept = snapshot.nodes.kept(place, _KEPT)
        focuses = snapshot.navigation.focused(place, self._engine.settings.hot_focuses)
        chosen = {node.id: node for node in (*kept, *snapshot.nodes.by_ids(focuses))}
        root = snapshot.nodes.root(place)
        if root is not None:
            chosen.pop(root.id, None)
        return _hot_nodes(snapshot, list(chosen.values()))

    def _cold(
        self,
        snapshot: Snapshot,
        place: WorkspaceId,
        hidden: set[NodeId],
        after: tuple[str, str] | None,
        limit: int,
    ) -> list[Node]:
        """The strongest first, then the newest; newest tasks before where none was ever focused."""
        front = self._front(snapshot, place)
        stream = _stream(snapshot, place, front, self._engine.now(), limit)
        page: list[Node] = []
        skipping = after is not None
        for node in stream:
            if skipping:
                skipping = (node.created_at, node.id) != after
                continue
            if node.id not in hidden:
                page.append(node)
                if len(page) == limit:
                    break
        return page

    def _front(self, snapshot: Snapshot, place: WorkspaceId) -> list[tuple[float, Node]]:
        """Memories with their strengths, where those were opened or strengthened."""
        if snapshot.navigation.ever_focused(place):
            return strongest(snapshot, place, self._engine.now(), _FRONT)
        tasks = snapshot.nodes.newest_of(place, (NodeType.TASK, NodeType.SUBTASK), _FRONT)
        return [(inf, node) for node in tasks]

    def focus(
        self, reference: str, *, limit: int = AROUND, workspace: str | None = None
    ) -> Focused:
        """Move the focus to a node of this workspace, and bring it back from the archive.

        The history notes `branch` where the node is no neighbour of the last focus.
        """
        place = self._engine.workspace(workspace)
        with self._engine.graphs.view(self._engine.database, place) as (snapshot, graph):
            node = resolve_node(snapshot, reference, place, strict=True)
            last = snapshot.navigation.anchor(place)
            action = Action.FOCUS
            if last is not None and last.node_id != node.id:
                previous = snapshot.nodes.find(last.node_id)
                if previous is not None and not adjacent(graph, previous.key, node.key):
                    action = Action.BRANCH
        notes: list[str] = []
        restored = self._enter(node, action, last, notes)
        # After what it waited for: the answer is of the moment that it names.
        with self._engine.graphs.view(self._engine.database, place) as (snapshot, graph):
            node = resolve_node(snapshot, node.id, place, strict=True)
            around = surroundings(self._engine, snapshot, graph, (node,), 2, limit)
        return Focused(around(), action, restored, tuple(notes))

    def _enter(self, node: Node, action: Action, last: Anchor | None, notes: list[str]) -> bool:
        """Note the focus and restore the node; True when it came from the archive."""
        context = {"from": last.node_id} if last else {}
        self._history.visit(node.workspace_id, node.id, action, context)
        restored = False
        if node.status is Status.ARCHIVED:
            try:
                with self._engine.write(wait=_RESTORE_WAIT) as transaction:
                    _restore(transaction, node)
                restored = True
            except BusyError:
                notes.append("not restored from the archive: another writer holds the memory")
            except UnavailableError:
                if not self._engine.settings.read_only:
                    raise
                notes.append("not restored from the archive: the memory is open for reading only")
        self._history.flush()
        return restored

    def drain(self) -> None:
        """Wait until what lies idle is archived."""
        self._archiver.drain()

    def close(self) -> None:
        """Let archiving stop."""
        self._archiver.close()

    def history(self, workspace: str | None, limit: int = 20) -> Looked:
        """The newest entries first."""
        place = self._engine.workspace(workspace)
        self._history.flush()
        with self._engine.database.read() as snapshot:
            visits = snapshot.navigation.newest(place, limit)
            found = {node.id: node for node in snapshot.nodes.by_ids([v.node_id for v in visits])}
            asked = ask(self._engine, snapshot, list(found))
            seq = snapshot.generation().seq
        entries = tuple(Entry(visit, found.get(visit.node_id)) for visit in visits)
        return Looked(entries, asked.known(), seq)


def _head(snapshot: Snapshot, node: Node | None) -> Node | None:
    """What has superseded the node; None when nothing has."""
    if node is None:
        return None
    head = head_of(snapshot, node)
    return None if head.id == node.id else head


def _restore(transaction: Transaction, node: Node) -> None:
    """Out of the archive; to stale where it was superseded (invariant 6)."""
    present = transaction.nodes.find(node.id)
    if present is not None and present.status is Status.ARCHIVED:
        superseded = head_of(transaction, present).id != present.id
        wanted = Status.STALE if superseded else Status.ACTIVE
        transaction.nodes.set_status([present.key], wanted)


def _hot_nodes(snapshot: Snapshot, nodes: Sequence[Node]) -> tuple[HotNode, ...]:
    """The nodes with their first relations, outgoing before incoming; four queries in all."""
    ids = [node.id for node in nodes]
    first = snapshot.relations.first_of(ids, _RELATIONS)
    ends: dict[NodeId, list[tuple[Relation, NodeId]]] = {
        node: [
            (relation, relation.to_id if relation.from_id == node else relation.from_id)
            for relation in relations
            if not relation.derived
        ][:_RELATIONS]
        for node, relations in first.items()
    }
    wanted = dict.fromkeys(end for pairs in ends.values() for _, end in pairs)
    others = {other.id: other for other in snapshot.nodes.by_ids(list(wanted))}
    degrees = snapshot.relations.degrees(ids)
    return tuple(
        HotNode(
            node,
            tuple((relation, others[end]) for relation, end in ends.get(node.id, ())),
            degrees[node.id],
        )
        for node in nodes
    )


def _stream(
    snapshot: Snapshot,
    place: WorkspaceId,
    front: Sequence[tuple[float, Node]],
    now: Instant,
    batch: int,
) -> Iterator[Node]:
    """The front, strongest first, merged with the others: of plain ones the newest is strongest."""
    known = {node.id for _, node in front}
    waiting = deque(front)
    for node in _newest(snapshot, place, batch):
        if node.id not in known:
            plain = decay(hours(node.created_at, now)) if waiting else 0.0
            while waiting and waiting[0][0] >= plain:
                yield waiting.popleft()[1]
            yield node
    yield from (node for _, node in waiting)


def _newest(snapshot: Snapshot, place: WorkspaceId, batch: int) -> Iterator[Node]:
    position = LAST
    while True:
        rows = snapshot.nodes.newest(place, batch, position)
        yield from rows
        if len(rows) < batch:
            return
        position = (rows[-1].created_at, rows[-1].id)


def encode_cursor(node: Node) -> str:
    """An opaque place after this node."""
    return encode_place(node.created_at, node.id)


def encode_place(created_at: str, node: str) -> str:
    """The same, of a node's creation and id."""
    return base64.urlsafe_b64encode(f"{created_at} {node}".encode()).decode()


def decode_cursor(cursor: str) -> tuple[str, str]:
    """The (created_at, id) of a cursor; raises InvalidError for anything else."""
    try:
        at, _, node = (
            base64.urlsafe_b64decode(cursor.encode("ascii", "strict")).decode().partition(" ")
        )
    except (ValueError, binascii.Error):
        at = node = ""
    if len(at) != 27 or not node:
        raise InvalidError(
            f"cursor {cursor[:40]!r} is not one of ours",
            "Valid: next_cursor of the last answer",
            "Leave it out to begin again",
        )
    return at, node
