"""The graph as it stood, and what changed between two moments, from the log.

A moment is an instant, or the number of a change; it includes the changes at it. What was
added and removed again within a window is in neither list.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Generic, TypeVar

from cortex.domain.errors import InvalidError, NotFoundError
from cortex.domain.instants import parse_instant
from cortex.domain.values import Node, NodeId, Relation, RelationId, WorkspaceId
from cortex.services.engine import Engine
from cortex.store.database import Snapshot

Moment = str | int
T = TypeVar("T", Node, Relation)


@dataclass(frozen=True, slots=True)
class GraphThen:
    """The nodes and relations of a workspace after change `seq`, by id."""

    workspace_id: WorkspaceId
    seq: int
    nodes: Mapping[NodeId, Node]
    relations: Mapping[RelationId, Relation]


@dataclass(frozen=True, slots=True)
class Changed(Generic[T]):
    """One that stood at both ends of the window, and not alike.

    `fields` are columns, and for `data` its own keys: (old, new) by name.
    """

    before: T
    after: T

    @property
    def fields(self) -> dict[str, tuple[Any, Any]]:
        return _differing(_flat(self.before), _flat(self.after))


@dataclass(frozen=True, slots=True)
class Delta(Generic[T]):
    """What became of the nodes, or of the relations, by creation, then id."""

    added: tuple[T, ...]
    changed: tuple[Changed[T], ...]
    removed: tuple[T, ...]


@dataclass(frozen=True, slots=True)
class Diff:
    """What changed in a workspace after change `from_seq`, up to `to_seq`."""

    workspace_id: WorkspaceId
    from_seq: int
    to_seq: int
    nodes: Delta[Node]
    relations: Delta[Relation]
    generation: int


class Past:
    """Looks back through the log."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def as_of(self, workspace: str | None, moment: Moment) -> GraphThen:
        """The whole graph as it stood; a date alone means its end.

        Raises InvalidError below the log's floor, with what can still be reached.
        """
        place = self._engine.workspace(workspace)
        with self._engine.database.read() as snapshot:
            seq = _seq_of(snapshot, moment, "moment", end=True)
            then = snapshot.past.before(seq, snapshot.past.reach().seq)
            nodes = {
                node.id: node
                for node in snapshot.past.iter_nodes(place)
                if node.key not in then.nodes
            }
            relations = {
                relation.id: relation
                for relation in snapshot.past.iter_relations(place)
                if relation.key not in then.relations
            }
        nodes.update(_within(then.nodes, place))
        relations.update(_within(then.relations, place))
        return GraphThen(place, seq, MappingProxyType(nodes), MappingProxyType(relations))

    def diff(self, workspace: str | None, from_time: Moment, to_time: Moment | None = None) -> Diff:
        """What differs between two moments; without an end, until now.

        A date alone begins with its day, and ends with it. Reads only what changed. Raises
        InvalidError where the window is turned round, or begins below the log's floor;
        NotFoundError for a workspace that the log does not know.
        """
        place = self._engine.workspace(workspace)
        with self._engine.database.read() as snapshot:
            last = snapshot.past.reach().seq
            start = _seq_of(snapshot, from_time, "from_time")
            stop = last if to_time is None else _seq_of(snapshot, to_time, "to_time", end=True)
            if start > stop:
                raise InvalidError(
                    f"from_time {from_time!r} is after to_time {to_time!r}",
                    "Valid: from_time ≤ to_time",
                    "Swap them",
                )
            old = snapshot.past.before(start, stop)
            keys, others = list(old.nodes), list(old.relations)
            nodes: dict[int, Node | None] = {n.key: n for n in snapshot.nodes.by_keys(keys)}
            nodes.update(snapshot.past.nodes_before(stop, keys))
            relations: dict[int, Relation | None] = {
                r.key: r for r in snapshot.relations.by_keys(others)
            }
            relations.update(snapshot.past.relations_before(stop, others))
            diff = Diff(
                place,
                start,
                stop,
                _delta(_within(old.nodes, place), _within(nodes, place)),
                _delta(_within(old.relations, place), _within(relations, place)),
                snapshot.generation().seq,
            )
            if place not in snapshot.nodes.workspaces() and not _says_anything(diff):
                raise NotFoundError(
                    f"workspace {place!r} holds nothing, and changed in nothing",
                    f"Valid: {', '.join(snapshot.nodes.workspaces()[:20]) or 'none yet'}",
                    "Name one of these",
                )
        return diff


def apply(diff: Diff, graph: GraphThen) -> GraphThen:
    """The graph after the diff; `apply(diff(a, b), as_of(a)) == as_of(b)`.

    Raises InvalidError for a graph of another workspace or moment.
    """
    if (graph.workspace_id, graph.seq) != (diff.workspace_id, diff.from_seq):
        raise InvalidError(
            f"the graph is {graph.workspace_id!r} after change {graph.seq}",
            f"Valid: {diff.workspace_id!r} after change {diff.from_seq}",
            "Take as_of the diff's own beginning",
        )
    return GraphThen(
        graph.workspace_id,
        diff.to_seq,
        MappingProxyType(_applied(diff.nodes, graph.nodes)),
        MappingProxyType(_applied(diff.relations, graph.relations)),
    )


def _applied(delta: Delta[T], items: Mapping[Any, T]) -> dict[Any, T]:
    gone = {item.id for item in delta.removed}
    kept = {key: item for key, item in items.items() if key not in gone}
    kept.update({item.id: item for item in delta.added})
    kept.update({item.after.id: item.after for item in delta.changed})
    return kept


def _seq_of(snapshot: Snapshot, moment: Moment, field: str, *, end: bool = False) -> int:
    """The change after which a moment lies."""
    reach = snapshot.past.reach()
    first = "" if reach.first_at is None else f", or a time from {reach.first_at}"
    valid = f"Valid: a change from {reach.floor} to {reach.seq}{first}"
    if isinstance(moment, int):
        if not reach.floor <= moment <= reach.seq:
            raise InvalidError(
                f"{field}: change {moment} is not in the log", valid, "Name one of these"
            )
        return moment
    instant = parse_instant(moment, field, end=end)
    # What was folded away may have come after that instant as well as before it.
    if reach.floor and (reach.first_at is None or instant < reach.first_at):
        raise InvalidError(
            f"{field} {moment!r} is before what the log still holds", valid, "Name a later time"
        )
    return snapshot.past.seq_at(instant)


def _within(items: Mapping[int, T | None], place: WorkspaceId) -> dict[Any, T]:
    """Those that were there, and in this workspace, by id."""
    return {
        item.id: item for item in items.values() if item is not None and item.workspace_id == place
    }


def _delta(old: Mapping[Any, T], new: Mapping[Any, T]) -> Delta[T]:
    return Delta(
        _ordered(item for key, item in new.items() if key not in old),
        tuple(
            Changed(old[item.id], item)
            for item in _ordered(new[key] for key in new if key in old)
            if not _same(old[item.id], item)
        ),
        _ordered(item for key, item in old.items() if key not in new),
    )


def _ordered(items: Any) -> tuple[Any, ...]:
    return tuple(sorted(items, key=lambda item: (item.created_at, item.id)))


def _same(one: T, other: T) -> bool:
    # By their text: Python holds 1, 1.0 and true for equal, and a reader does not.
    return one == other and _text(one.data) == _text(other.data)


def _text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, sort_keys=True)


def _differing(old: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, tuple[Any, Any]]:
    return {
        name: (old.get(name), new.get(name))
        for name in dict.fromkeys((*old, *new))
        if name not in old or name not in new or _text(old[name]) != _text(new[name])
    }


def _flat(item: Node | Relation) -> dict[str, Any]:
    columns = item._asdict()
    own = columns.pop("data").items()
    return {
        **{f"data.{name}" if name in columns else name: value for name, value in own},
        **columns,
    }


def _says_anything(diff: Diff) -> bool:
    return any(
        part
        for delta in (diff.nodes, diff.relations)
        for part in (delta.added, delta.changed, delta.removed)
    )
