"""What an index outside of the file lacks: how many nodes, and their points in pages.

Each page is read in a short transaction of its own, so that no snapshot is held while it
travels. Pages see later states than the generation they are pushed under; what changed in
between is in the log after that generation, and is pushed again (invariants 2 and 3).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from cortex.domain.taxonomy import VECTORISED
from cortex.domain.values import Generation, Node, NodeId, WorkspaceId
from cortex.services.meaning.points import outdated, point_of, words_of
from cortex.store.database import Database, Snapshot
from cortex.store.embeddings import Stored
from cortex.vectors.index import Point

PAGE: Final = 256
Marks = Mapping[WorkspaceId, Generation]


@dataclass(frozen=True, slots=True)
class Page:
    """Points to put, and ids of nodes that are in no index any more."""

    points: list[Point]
    gone: list[NodeId]


@dataclass(frozen=True, slots=True)
class Owing:
    """Reads what is owed of the vectors of one model, `dimension` numbers each."""

    database: Database
    model: str
    dimension: int

    def lag(self, places: Sequence[WorkspaceId], marks: Marks) -> dict[WorkspaceId, int]:
        """How many nodes of each place are not as the index has them; 0 for a place in step."""
        with self.database.read() as snapshot:
            now = snapshot.generation()
            whole = [p for p in places if p not in marks or outdated(marks[p], now)]
            counts = snapshot.vectored.counts(self.model) if whole else {}
            lags = {place: counts.get(place, 0) for place in whole}
            seen: dict[Generation, dict[WorkspaceId, int]] = {}
            for place in places:
                if place in lags:
                    continue
                mark = marks[place]
                if mark not in seen:
                    seen[mark] = self._touched(snapshot, mark, now)
                lags[place] = seen[mark].get(place, 0)
        return lags

    def _touched(
        self, snapshot: Snapshot, mark: Generation, now: Generation
    ) -> dict[WorkspaceId, int]:
        keys = _keys(snapshot, mark, now)
        counts: dict[WorkspaceId, int] = {}
        nodes, stored = self._rows(snapshot, keys)
        for node in nodes:
            if node.key in stored:
                counts[node.workspace_id] = counts.get(node.workspace_id, 0) + 1
        for row in snapshot.changes.deleted("node", keys).values():
            if row["type"] in VECTORISED:
                place = WorkspaceId(str(row["workspace_id"]))
                counts[place] = counts.get(place, 0) + 1
        return counts

    def iter_delta(self, since: Generation, until: Generation) -> Iterator[Page]:
        """What changed in all workspaces after `since`, up to `until`."""
        with self.database.read() as snapshot:
            keys = _keys(snapshot, since, until)
        for start in range(0, len(keys), PAGE):
            some = keys[start : start + PAGE]
            with self.database.read() as snapshot:
                nodes, stored = self._rows(snapshot, some)
                deleted = snapshot.changes.deleted("node", some).values()
            points: list[Point] = []
            gone = [NodeId(str(row["id"])) for row in deleted if row["type"] in VECTORISED]
            for node in nodes:
                point = self._point(node, stored)
                if point is not None:
                    points.append(point)
                elif node.type in VECTORISED:
                    gone.append(node.id)
            yield Page(points, gone)

    def iter_all(self, place: WorkspaceId, beat: Callable[[], None]) -> Iterator[Point]:
        """Every point of a workspace by rising key; `beat` is called before each page."""
        after = 0
        while True:
            beat()
            with self.database.read() as snapshot:
                nodes = snapshot.nodes.page(place, after, PAGE)
                keys = [node.key for node in nodes]
                stored = {i.key: i for i in snapshot.embeddings.of_nodes(keys, self.model)}
            for node in nodes:
                point = self._point(node, stored)
                if point is not None:
                    yield point
            if len(nodes) < PAGE:
                return
            after = nodes[-1].key

    def _rows(
        self, snapshot: Snapshot, keys: Sequence[int]
    ) -> tuple[list[Node], dict[int, Stored]]:
        stored = snapshot.embeddings.of_nodes(keys, self.model)
        return snapshot.nodes.by_keys(keys), {item.key: item for item in stored}

    def _point(self, node: Node, stored: Mapping[int, Stored]) -> Point | None:
        item = stored.get(node.key)
        return None if item is None else point_of(node, item, self.dimension, words_of(node))


def _keys(snapshot: Snapshot, since: Generation, until: Generation) -> list[int]:
    touched = set(snapshot.changes.touched(since.seq, until.seq).nodes)
    touched.update(snapshot.embeddings.touched(since.embeddings, until.embeddings))
    return sorted(touched)
