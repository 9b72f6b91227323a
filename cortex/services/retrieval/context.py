"""The context of a hit — what holds it, what stands beside it — and where to read next."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from cortex.domain.taxonomy import FILE_RELATIONS, NodeType, RelationType, Status
from cortex.domain.values import Node, Relation
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


def context_of(snapshot: Snapshot, node: Node) -> Context:
    """One node's context, each part bounded; stale nodes are left out. Its files come later:
    the disk is asked once for all hits, after the transaction."""
    relations = [
        relation
        for relation in (
            *snapshot.relations.outgoing(node.id, limit=_SCANNED),
            *snapshot.relations.incoming(node.id, limit=_SCANNED),
        )
        if not relation.derived
    ]
    near = [
        relation.to_id if relation.from_id == node.id else relation.from_id
        for relation in relations
        if relation.type not in _HIDDEN
    ]
    beside = snapshot.nodes.by_ids(list(dict.fromkeys(near)))
    parents = _parents(snapshot, node)
    if parents and parents[0].type in (NodeType.TASK, NodeType.SUBTASK):
        # What was learnt in the same task stands beside it too.
        known = {other.id for other in beside} | {node.id}
        siblings = snapshot.nodes.children_page(parents[0].id, _SCANNED)
        beside += [sibling for sibling in siblings if sibling.id not in known]
    current = [other for other in beside if other.status is not Status.STALE]
    return Context(
        tuple(parents),
        tuple(other for other in current if other.type in _FACTS)[:_BESIDE],
        tuple(other for other in current if other.type is NodeType.DECISION)[:_BESIDE],
    )


def _parents(snapshot: Snapshot, node: Node) -> list[Node]:
    """Ancestors by contains, nearest first, without the session root."""
    parents: list[Node] = []
    above = node.parent_id
    while above is not None and len(parents) < _PARENTS:
        parent = snapshot.nodes.find(above)
        if parent is None or parent.type is NodeType.SESSION:
            break
        parents.append(parent)
        above = parent.parent_id
    return parents


def spots_of(snapshot: Snapshot, nodes: Sequence[Node], limit: int = _PLACES) -> list[Spot]:
    """Where to read next: the files of these nodes, in their order, each spot once."""
    spots: dict[tuple[str, str, int | None], Spot] = {}
    for node in nodes:
        for file, relation in _files_of(snapshot, node):
            data = relation.data if relation else {}
            line, end = data.get("line"), data.get("end_line")
            spot = Spot(
                file,
                node,
                line if isinstance(line, int) else None,
                end if isinstance(end, int) else None,
            )
            path = str(file.data.get("path") or "")
            spots.setdefault((node.workspace_id, path, spot.line), spot)
        if len(spots) >= limit:
            break
    return list(spots.values())[:limit]


def placed(lists: Iterable[Iterable[Spot]], reach: Reach) -> list[tuple[Place, ...]]:
    """The same lists as places: each distinct file is asked for once, outside a transaction."""
    kept = [list(spots) for spots in lists]
    files = {spot.file.id: spot.file for spots in kept for spot in spots}
    states = {key: freshness(file, reach) for key, file in files.items()}
    return [tuple(spot.placed(states[spot.file.id]) for spot in spots) for spots in kept]


def places_of(snapshot: Snapshot, nodes: Sequence[Node], reach: Reach) -> tuple[Place, ...]:
    """Both in one, for a single node that a person looks at."""
    [places] = placed([spots_of(snapshot, nodes)], reach)
    return places


def _files_of(snapshot: Snapshot, node: Node) -> list[tuple[Node, Relation | None]]:
    if node.type is NodeType.FILEREF:
        return [(node, None)]
    relations = snapshot.relations.outgoing(node.id, FILE_RELATIONS, _SCANNED)
    files = {file.id: file for file in snapshot.nodes.by_ids([r.to_id for r in relations])}
    return [(files[relation.to_id], relation) for relation in relations]
