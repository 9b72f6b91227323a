"""The context of a hit — what holds it, what stands beside it — and where to read next."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from cortex.domain.taxonomy import FILE_RELATIONS, NodeType, RelationType, Status
from cortex.domain.values import Node, NodeId
from cortex.services.files import Freshness, freshness
from cortex.services.reach import Reach
from cortex.store.database import Snapshot

_PARENTS: Final = 4
_BESIDE: Final = 5
FILES: Final = 3
_PLACES: Final = 20
_SCANNED: Final = 60
_FACTS: Final = frozenset(
    {NodeType.FACT, NodeType.CONSTRAINT, NodeType.GOAL, NodeType.ERROR, NodeType.PATTERN}
)
_HIDDEN: Final = frozenset({RelationType.CONTAINS, RelationType.SUPERSEDES})


@dataclass(frozen=True, slots=True)
class Place:
    """A spot in a file: line 1-based, None for the whole file; how fresh the file is."""

    path: str
    line: int | None
    end_line: int | None
    freshness: Freshness
    file_id: str
    node_id: str
    workspace_id: str


@dataclass(frozen=True, slots=True)
class Spot:
    """A place as memory has it, before the disk was asked."""

    file: Node
    node: Node
    line: int | None
    end_line: int | None

    def placed(self, state: Freshness) -> Place:
        """The place, with the freshness of its file."""
        return Place(
            str(self.file.data.get("path") or ""),
            self.line,
            self.end_line,
            state,
            self.file.id,
            self.node.id,
            self.node.workspace_id,
        )


@dataclass(frozen=True, slots=True)
class Context:
    """What surrounds a node: its ancestors, nearest first, and facts and decisions beside it."""

    parents: tuple[Node, ...]
    facts: tuple[Node, ...]
    decisions: tuple[Node, ...]
    files: tuple[Place, ...] = ()


def contexts_of(snapshot: Snapshot, nodes: Sequence[Node]) -> tuple[Context, ...]:
    """Each node's context, each part bounded; stale nodes are left out. Their files come later:
    the disk is asked once for all hits, after the transaction.

    A query for each kind of thing and one for each task, however many nodes there are.
    """
    first = snapshot.relations.first_of([node.id for node in nodes], _SCANNED)
    near = {
        node.id: list(
            dict.fromkeys(
                relation.to_id if relation.from_id == node.id else relation.from_id
                for relation in first.get(node.id, ())
                if not relation.derived and relation.type not in _HIDDEN
            )
        )
        for node in nodes
    }
    others = _by_id(snapshot, (each for ids in near.values() for each in ids))
    above = _ancestors(snapshot, nodes)
    siblings: dict[NodeId, list[Node]] = {}
    contexts: list[Context] = []
    for node in nodes:
        beside = [others[each] for each in near[node.id]]
        parents = list(_parents(node, above))
        if parents and parents[0].type in (NodeType.TASK, NodeType.SUBTASK):
            # What was learnt in the same task stands beside it too.
            task = parents[0].id
            if task not in siblings:
                siblings[task] = snapshot.nodes.children_page(task, _SCANNED)
            known = {other.id for other in beside} | {node.id}
            beside += [sibling for sibling in siblings[task] if sibling.id not in known]
        current = [other for other in beside if other.status is not Status.STALE]
        contexts.append(
            Context(
                tuple(parents),
                tuple(other for other in current if other.type in _FACTS)[:_BESIDE],
                tuple(other for other in current if other.type is NodeType.DECISION)[:_BESIDE],
            )
        )
    return tuple(contexts)


def _by_id(snapshot: Snapshot, ids: Iterable[NodeId]) -> dict[NodeId, Node]:
    return {node.id: node for node in snapshot.nodes.by_ids(list(dict.fromkeys(ids)))}


def _ancestors(snapshot: Snapshot, nodes: Sequence[Node]) -> dict[NodeId, Node]:
    """All that `_parents` will ask for, read level by level."""
    found: dict[NodeId, Node] = {}
    level = nodes
    for _ in range(_PARENTS):
        missing = {node.parent_id for node in level if node.parent_id} - found.keys()
        if not missing:
            break
        level = list(_by_id(snapshot, sorted(missing)).values())
        found.update({node.id: node for node in level})
    return found


def _parents(node: Node, above: Mapping[NodeId, Node]) -> Iterator[Node]:
    """Ancestors by contains, nearest first, without the session root."""
    for _ in range(_PARENTS):
        parent = above.get(node.parent_id) if node.parent_id else None
        if parent is None or parent.type is NodeType.SESSION:
            return
        yield parent
        node = parent


def spots_of(snapshot: Snapshot, nodes: Sequence[Node]) -> list[list[Spot]]:
    """Where to read next: the files of each of these nodes, each spot once; two queries."""
    outgoing = snapshot.relations.first_outgoing(
        [node.id for node in nodes if node.type is not NodeType.FILEREF], _SCANNED, FILE_RELATIONS
    )
    files = _by_id(snapshot, (r.to_id for relations in outgoing.values() for r in relations))
    return [
        _distinct(
            [Spot(node, node, None, None)]
            if node.type is NodeType.FILEREF
            else [_spot(node, files[r.to_id], r.data) for r in outgoing.get(node.id, ())]
        )
        for node in nodes
    ]


def together(spots: Iterable[Sequence[Spot]]) -> list[Spot]:
    """The spots of all nodes, in their order, each once and at most 20."""
    return _distinct(each for few in spots for each in few)[:_PLACES]


def _spot(node: Node, file: Node, data: Mapping[str, Any]) -> Spot:
    line, end = data.get("line"), data.get("end_line")
    return Spot(
        file, node, line if isinstance(line, int) else None, end if isinstance(end, int) else None
    )


def _distinct(spots: Iterable[Spot]) -> list[Spot]:
    found: dict[tuple[str, str, int | None], Spot] = {}
    for spot in spots:
        path = str(spot.file.data.get("path") or "")
        found.setdefault((spot.node.workspace_id, path, spot.line), spot)
    return list(found.values())


def placed(lists: Iterable[Iterable[Spot]], reach: Reach) -> list[tuple[Place, ...]]:
    """The same lists as places: each distinct file is asked for once, outside a transaction."""
    kept = [list(spots) for spots in lists]
    files = {spot.file.id: spot.file for spots in kept for spot in spots}
    states = {key: freshness(file, reach) for key, file in files.items()}
    return [tuple(spot.placed(states[spot.file.id]) for spot in spots) for spots in kept]


def places_of(snapshot: Snapshot, nodes: Sequence[Node], reach: Reach) -> tuple[Place, ...]:
    """Both in one, for a single node that a person looks at."""
    [places] = placed([together(spots_of(snapshot, nodes))], reach)
    return places
