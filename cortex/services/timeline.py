"""Time: the walk through a window, and the flat list of events.

SQLite's indexes have a page of everyone's events in half a millisecond. No index says whose
events they are, nor which nodes take part in a relation: over a long history the analytics
worker has such pages, and SQLite the same rows where it is out, with `degraded`.
"""

from __future__ import annotations

import base64
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

from cortex.domain.activity import EventRow, StepRow, Told
from cortex.domain.errors import BusyError, InvalidError, UnavailableError
from cortex.domain.instants import Instant, parse_window
from cortex.domain.taxonomy import NodeType, RelationType, parse_kind
from cortex.domain.values import Node, Relation, WorkspaceId, shorten, unpack
from cortex.graph.expansion import subgraph
from cortex.services.activity import HistorySource, degraded_by
from cortex.services.engine import Engine
from cortex.services.history import History
from cortex.services.resolving import resolve_node
from cortex.services.viewport import decode_cursor, encode_cursor, encode_place
from cortex.store.database import Snapshot
from cortex.store.nodes import FIRST

Session = Literal["all", "current", "last"]
_REACH: Final = 6
_REACHED: Final = 20_000
_PAGE: Final = 500
_LONG: Final = 20_000  # rows of log and history; SQLite looks through fewer in some 40 ms


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened: kind is created, changed, status, deleted, related, or the
    navigation's action. `id` is the node's; `detail` its type, or for `related` type:id."""

    at: Instant
    kind: str
    id: str
    title: str
    status: str | None
    detail: str
    actor: str | None


@dataclass(frozen=True, slots=True)
class Events:
    """A page of events, newest first."""

    events: tuple[Event, ...]
    next_cursor: str | None
    generation: int
    degraded: str | None = None


@dataclass(frozen=True, slots=True)
class Steps:
    """A page of nodes, oldest first; `relations` are those asked for, that they take part in."""

    nodes: tuple[Node, ...]
    relations: tuple[Relation, ...]
    next_cursor: str | None
    generation: int
    degraded: str | None = None


class Timeline:
    """Answers what happened, and in which order."""

    def __init__(self, engine: Engine, history: History, source: HistorySource | None) -> None:
        self._engine = engine
        self._history = history
        self._source = source

    def session_timeline(
        self,
        *,
        workspace: str | None = None,
        from_time: str | None = None,
        to_time: str | None = None,
        session: Session = "all",
        limit: int = 50,
        cursor: str | None = None,
    ) -> Events:
        """All events of a window in one flat list, newest first.

        `session`: current = this connection's own, last = the newest other one's.
        """
        place = self._engine.workspace(workspace)
        start, stop = parse_window(from_time, to_time)
        stop, skip = _event_cursor(cursor) if cursor else (stop, 0)
        self._history.flush()
        degraded = None
        with self._engine.database.read() as snapshot:
            actor = self._actor(snapshot, place, session)
            nobody = session == "last" and actor is None
            generation = snapshot.generation().seq
        rows: Sequence[EventRow] | None = () if nobody else None
        source = self._source
        if source is not None and actor is not None and self._long():
            try:
                told = source.events(place, start, stop, actor, limit + 1, skip)
                rows, generation = told.rows, told.generation
            except (BusyError, UnavailableError) as error:
                degraded = degraded_by(error)
        if rows is None:
            with self._engine.database.read() as snapshot:
                rows = snapshot.timeline.events(place, start, stop, actor, limit + 1, skip)
                generation = snapshot.generation().seq
        page = rows[:limit]
        more = len(rows) > limit
        return Events(
            tuple(_event(row) for row in page),
            _next_event_cursor(page, stop, skip) if more else None,
            generation,
            degraded,
        )

    def _actor(self, snapshot: Snapshot, place: WorkspaceId, session: Session) -> str | None:
        match session:
            case "all":
                return None
            case "current":
                return self._engine.actor
            case "last":
                last = snapshot.timeline.last_other(place, self._engine.actor)
                return None if last is None else last.actor

    def temporal_walk(
        self,
        *,
        workspace: str | None = None,
        from_time: str | None = None,
        to_time: str | None = None,
        relation_type: str | None = None,
        node_types: Sequence[str] = (),
        start_id: str | None = None,
        limit: int = 50,
        cursor: str | None = None,
    ) -> Steps:
        """Nodes in the order of their creation.

        With `relation_type` those that take part in such a relation, with it; with
        `start_id` those within six steps of that node.
        """
        place = self._engine.workspace(workspace)
        start, stop = parse_window(from_time, to_time)
        kinds = [parse_kind(NodeType, name, "node_types") for name in node_types]
        kind = parse_kind(RelationType, relation_type, "relation_type") if relation_type else None
        after = decode_cursor(cursor) if cursor else FIRST
        near: frozenset[int] | None = None
        if start_id:
            near = self._near(start_id, place, strict=workspace is not None)
        degraded = None
        source = self._source
        if source is not None and kind is not None and near is None and self._long():
            try:
                told = source.taking_part(place, start, stop, kinds, kind, after, limit + 1)
                return self._steps(told, kind, limit)
            except (BusyError, UnavailableError) as error:
                degraded = degraded_by(error)
        taken: list[Node] = []
        relations: dict[str, Relation] = {}
        with self._engine.database.read() as snapshot:
            if start_id:
                place = resolve_node(snapshot, start_id, place, strict=False).workspace_id
            while len(taken) <= limit:
                rows = snapshot.nodes.chronological(place, start, stop, kinds, after, _PAGE)
                for node, joined in _taking_part(snapshot, rows, kind):
                    if near is None or node.key in near:
                        taken.append(node)
                        if len(taken) <= limit:
                            relations.update({relation.id: relation for relation in joined})
                if len(rows) < _PAGE:
                    break
                after = (rows[-1].created_at, rows[-1].id)
            generation = snapshot.generation().seq
        return Steps(
            tuple(taken[:limit]),
            tuple(relations.values()),
            encode_cursor(taken[limit - 1]) if len(taken) > limit else None,
            generation,
            degraded,
        )

    def _long(self) -> bool:
        with self._engine.database.read() as snapshot:
            return snapshot.timeline.length() > _LONG

    def _steps(self, told: Told[StepRow], kind: RelationType, limit: int) -> Steps:
        """The worker's page with its nodes; one that was deleted meanwhile is left out."""
        page = told.rows[:limit]
        with self._engine.database.read() as snapshot:
            nodes = snapshot.nodes.by_ids([row.id for row in page])
            joined = _taking_part(snapshot, nodes, kind)
        relations = {relation.id: relation for _, beside in joined for relation in beside}
        more = len(told.rows) > limit
        return Steps(
            tuple(nodes),
            tuple(relations.values()),
            encode_place(page[-1].created_at, page[-1].id) if more else None,
            told.generation,
        )

    def _near(self, start_id: str, place: WorkspaceId, *, strict: bool) -> frozenset[int]:
        with self._engine.database.read() as snapshot:
            node = resolve_node(snapshot, start_id, place, strict=strict)
        with self._engine.graphs.view(self._engine.database, node.workspace_id) as (_, graph):
            found = subgraph(graph, [node.key], _REACH, _REACHED)
        return frozenset({node.key, *(key for key, _ in found.nodes)})


def _taking_part(
    snapshot: Snapshot, nodes: Sequence[Node], kind: RelationType | None
) -> list[tuple[Node, list[Relation]]]:
    if kind is None:
        return [(node, []) for node in nodes]
    joined: dict[str, list[Relation]] = {}
    for relation in snapshot.relations.of_type([node.id for node in nodes], kind):
        for end in (relation.from_id, relation.to_id):
            joined.setdefault(end, []).append(relation)
    return [(node, joined[node.id]) for node in nodes if node.id in joined]


def _event(row: EventRow) -> Event:
    data = unpack(row.title) if row.title else {}
    title = data.get("title") or data.get("text") or data.get("path") or ""
    gone = row.status is None
    return Event(
        Instant(row.at),
        row.kind,
        row.id,
        "deleted" if gone and row.id else shorten(str(title), 120),
        row.status,
        row.detail or "",
        row.actor,
    )


def _next_event_cursor(page: Sequence[EventRow], stop: Instant | None, skip: int) -> str:
    """The instant of the last event, and how many events of that instant are shown."""
    last = page[-1].at
    shown = sum(1 for row in page if row.at == last)
    if stop == last:
        shown += skip
    return base64.urlsafe_b64encode(f"{last} {shown}".encode()).decode()


def _event_cursor(cursor: str) -> tuple[Instant, int]:
    at, count = decode_cursor(cursor)
    if not count.isdigit():
        raise InvalidError(
            "this cursor belongs to another tool", "Valid: next_cursor of session_timeline"
        )
    return Instant(at), int(count)
