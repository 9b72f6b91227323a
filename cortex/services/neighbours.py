"""Neighbour links: each memory joined to those nearest in meaning, in the background.

Idea: a follower of the log and of the embeddings. A memory that takes part (`auto`: written
by store_memory) and whose text or status changed is compared with all vectors of its
workspace; its `K` nearest of cosine 0.5 and more become `related_to` relations marked
`derived`, with the cosine as weight. Memories that chose it before stay joined while they are
that near, and near ones that have fewer than `K` links are joined as well: those that came when
there was little to choose from. So links are undirected, and at most `MOST` a memory: one that
has so many is passed over. What is no longer active loses its links. Of two memories the cosine
is that of the mean vectors of their chunks, to 4 digits, whichever of the two asks.

Where the follower stands is kept in the file and moves with the links, in one transaction, so
that it goes on where a process ended. It writes as actor "neighbours", moves no `updated_at`,
and never touches a relation that somebody stated.
Cost: a vector search a memory (20 ms at 100,000), and nothing in processes that do not use it.

Corners: a memory is not compared anew when a nearer one comes that does not choose it, only
when it changes, or by `complete`, whose second run changes nothing. A relation between two
memories that somebody states takes the place of their link.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from cortex.domain.taxonomy import VECTORISED, NodeType, RelationType, Status
from cortex.domain.values import Generation, Node, NodeId, Relation, WorkspaceId
from cortex.services.engine import Engine
from cortex.services.meaning.semantic import Meaning, Semantic
from cortex.store.database import Snapshot, Transaction
from cortex.store.meta import NEIGHBOURS
from cortex.store.neighbours import STORE_MEMORY, STORED_BY
from cortex.store.undo import FOLLOWER
from cortex.vectors.index import Vector, VectorFilter

K: Final = 8
MOST: Final = 32
LEAST: Final = 0.5
_BATCH: Final = 16
_POOL: Final = 40  # candidates a search: the nearest, and some in place of full ones
_PAGE: Final = 5000
# Names and runs of work are near everything that mentions them.
LINKED: Final = VECTORISED - {NodeType.ENTITY}
_WHERE: Final = VectorFilter(types=LINKED, statuses=frozenset({Status.ACTIVE}))
_DERIVED: Final = {"derived": True}


class Neighbours:
    """Makes and mends neighbour links."""

    def __init__(self, engine: Engine, semantic: Semantic) -> None:
        self._engine = engine
        self._semantic = semantic
        self._seen: Generation | None = None  # looked at since, with nothing to write

    @property
    def everyone(self) -> bool:
        return self._engine.settings.waves.neighbours == "on"

    @property
    def off(self) -> bool:
        settings = self._engine.settings
        return settings.read_only or settings.waves.neighbours == "off"

    def behind(self) -> int:
        """How many memories are to be looked at."""
        if self.off:
            return 0
        with self._engine.database.read() as snapshot:
            return len(self._touched(snapshot, snapshot.generation()))

    def catch_up(self) -> int:
        """Link what changed, all of it; how many memories were looked at.

        Raises UnavailableError where the model or the index is out: the links wait.
        """
        if self.off:
            return 0
        with self._engine.database.read() as snapshot:
            end = snapshot.generation()
            keys = self._touched(snapshot, end)
            first = self._mark(snapshot) is None
        if keys or first:
            self.link(keys, end)
        self._seen = end
        return len(keys)

    def complete(self, workspace: WorkspaceId) -> int:
        """Link every active memory of a workspace that has a vector, whatever the setting; how
        many there were. For a dream, which wants the whole graph."""
        after, done = 0, 0
        while True:
            with self._engine.database.read() as snapshot:
                keys = snapshot.neighbours.taking_part(
                    after, _PAGE, everyone=True, workspace=workspace
                )
            done += self.link(keys, None)
            if len(keys) < _PAGE:
                return done
            after = keys[-1]

    def link(self, keys: Sequence[int], end: Generation | None) -> int:
        """Bring the links of these memories up to date; with `end`, that is where we stand then."""
        if not keys:
            if end is not None:
                self._write([], {}, None, end)
            return 0
        meaning = self._semantic.meaning()
        for start in range(0, len(keys), _BATCH):
            batch = list(keys[start : start + _BATCH])
            with self._engine.database.read() as snapshot:
                nodes = snapshot.nodes.by_keys(batch)
                own = vectors_of(snapshot, meaning.key, batch)
            near = {
                node.key: self._candidates(meaning, node, own[node.key])
                for node in nodes
                if node.key in own and _may(node)
            }
            last = start + _BATCH >= len(keys)
            turn = set(keys[start:])
            self._write(nodes, near, meaning, end if last else None, turn)
        return len(keys)

    def _mark(self, snapshot: Snapshot) -> Generation | None:
        """Up to where links are made, None where all are to be made anew."""
        words = (snapshot.meta.find(NEIGHBOURS) or "").split(" ")
        end, seen = snapshot.generation(), self._seen
        if len(words) != 4 or words[0] != end.epoch or (self.everyone and words[3] != "on"):
            return None
        mark = Generation(words[0], end.floor, int(words[1]), int(words[2]))
        if seen is not None and seen.epoch == mark.epoch and seen.seq > mark.seq:
            mark = seen
        return mark if mark.seq >= end.floor else None

    def _touched(self, snapshot: Snapshot, end: Generation) -> list[int]:
        """Memories whose links may be out of date, by rising key."""
        mark = self._mark(snapshot)
        if mark is None:
            return _all(snapshot, self.everyone)
        keys = set(snapshot.changes.touched_nodes(mark.seq))
        keys.update(snapshot.embeddings.touched(mark.embeddings, end.embeddings))
        touched = sorted(keys)
        joined = set(snapshot.neighbours.linked(touched))
        return [
            node.key
            for start in range(0, len(touched), _PAGE)
            for node in snapshot.nodes.by_keys(touched[start : start + _PAGE])
            if node.key in joined or (_may(node) and (self.everyone or by_store_memory(node)))
        ]

    def _candidates(self, meaning: Meaning, node: Node, vector: Vector) -> list[NodeId]:
        points = self._semantic.search(vector, meaning, node.workspace_id, _POOL + 1, _WHERE)
        return [point.node_id for point in points if point.node_id != node.id]

    def _write(
        self,
        nodes: Sequence[Node],
        near: dict[int, list[NodeId]],
        meaning: Meaning | None,
        end: Generation | None,
        turn: set[int] | None = None,
    ) -> None:
        """Link `nodes`; `turn` are the keys whose own turn is still to come, themselves among."""
        turn = turn or set()
        with self._engine.database.write(FOLLOWER) as transaction:
            for node in nodes:
                turn.discard(node.key)
                present = transaction.nodes.find(node.id)
                if present is None:
                    continue  # its links went with it
                assert meaning is not None
                if not _may(present):
                    links = links_of(transaction, present.id)
                    transaction.relations.delete([link.key for link in links])
                elif present.key in near:
                    _relink(transaction, meaning, present, near[present.key], turn)
                # Else it has no vector yet: when it has, it is looked at again, by whoever
                # follows then. Its links may be that one's already.
            if end is not None:
                self._advance(transaction, end)

    def _advance(self, transaction: Transaction, end: Generation) -> None:
        """Note where the follower stands; another process may be further."""
        words = (transaction.meta.find(NEIGHBOURS) or "").split(" ")
        reach = "on" if self.everyone else "auto"
        ahead = False
        if len(words) == 4 and words[0] == end.epoch:
            ahead = (int(words[1]), int(words[2])) > (end.seq, end.embeddings)
        if not ahead or (reach == "on" and words[3] != "on"):
            mark = f"{end.epoch} {end.seq} {end.embeddings} {reach}"
            transaction.meta.set(NEIGHBOURS, mark)


def by_store_memory(node: Node) -> bool:
    """Whether the tool store_memory wrote it."""
    return node.data.get(STORED_BY) == STORE_MEMORY


def links_of(snapshot: Snapshot, node: NodeId) -> list[Relation]:
    """The neighbour links of a node."""
    kinds = (RelationType.RELATED_TO,)
    relations = snapshot.relations
    both = (*relations.outgoing(node, kinds), *relations.incoming(node, kinds))
    return [relation for relation in both if relation.derived]


def vectors_of(
    snapshot: Snapshot, model: str, keys: Sequence[int]
) -> dict[int, NDArray[np.float32]]:
    """The mean of each node's chunks as a vector of length 1, for those that have vectors.

    `model` is the key under which they are stored.
    """
    found = {}
    for stored in snapshot.embeddings.of_nodes(keys, model):
        rows = np.stack([np.frombuffer(row, np.float16) for row in stored.vectors])
        mean = rows.astype(np.float32).mean(axis=0)
        length = float(np.linalg.norm(mean))
        if length > 0.0:
            found[stored.key] = mean / np.float32(length)
    return found


def _may(node: Node) -> bool:
    return node.status is Status.ACTIVE and node.type in LINKED


def _all(snapshot: Snapshot, everyone: bool) -> list[int]:
    keys: list[int] = []
    while True:
        page = snapshot.neighbours.taking_part(keys[-1] if keys else 0, _PAGE, everyone=everyone)
        keys += page
        if len(page) < _PAGE:
            return keys


def _relink(
    transaction: Transaction,
    meaning: Meaning,
    node: Node,
    candidates: Sequence[NodeId],
    turn: set[int],
) -> None:
    """Give a memory the links that it is to have now."""
    present = {_other(link, node.id): link for link in links_of(transaction, node.id)}
    others = {each.id: each for each in transaction.nodes.by_ids([*candidates, *present])}
    likeness = _likeness(transaction, meaning, node, list(others.values()))
    degrees = transaction.neighbours.degrees(list(likeness))
    nearest = sorted(likeness, key=lambda other: (-likeness[other], other))
    free = [other for other in nearest if other in present or degrees[other] < MOST]
    # One that came when little was there to link it to gets what came since, from here.
    lacking = {other for other in free if degrees[other] < K and others[other].key not in turn}
    wanted = [*free[:K], *(each for each in free[K:] if each in present or each in lacking)][:MOST]
    gone = [link.key for other, link in present.items() if other not in wanted]
    transaction.relations.delete(gone)
    for other in wanted:
        _join(transaction, node, others[other], likeness[other], present.get(other))


def _join(
    transaction: Transaction, node: Node, other: Node, weight: float, link: Relation | None
) -> None:
    if link is not None:
        if link.weight != weight:
            transaction.relations.refresh(link.key, weight, link.data, transaction.at)
        return
    first, second = sorted((node.id, other.id))
    if transaction.relations.find(first, second, RelationType.RELATED_TO) is None:
        transaction.relations.insert(
            node.workspace_id, first, second, RelationType.RELATED_TO, transaction.at, weight,
            _DERIVED,
        )  # fmt: skip


def _likeness(
    transaction: Transaction, meaning: Meaning, node: Node, others: Sequence[Node]
) -> dict[NodeId, float]:
    """Cosines of at least LEAST with those that may be linked."""
    able = [each for each in others if _may(each) and each.workspace_id == node.workspace_id]
    vectors = vectors_of(transaction, meaning.key, [node.key, *(each.key for each in able)])
    own = vectors.get(node.key)
    if own is None:
        return {}
    found = {
        each.id: round(min(float(own.astype(np.float64) @ vectors[each.key]), 1.0), 4)
        for each in able
        if each.key in vectors and each.id != node.id
    }
    return {other: cosine for other, cosine in found.items() if cosine >= LEAST}


def _other(link: Relation, node: NodeId) -> NodeId:
    return link.to_id if link.from_id == node else link.from_id
