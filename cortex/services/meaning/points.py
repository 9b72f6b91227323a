"""Nodes and the points of a vector index: one from the other, in step, and scored alike."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Final

import numpy as np

from cortex.domain.taxonomy import layer_of
from cortex.domain.values import Generation, Node, NodeId, WorkspaceId
from cortex.store.database import Snapshot
from cortex.store.derive import has_vector
from cortex.store.embeddings import Stored
from cortex.store.tokens import iter_tokens
from cortex.vectors.embedded import EmbeddedIndex, unit_rows
from cortex.vectors.index import Point, ScoredPoint, Vector, VectorIndex
from cortex.vectors.vector_file import Stamp

_PAGE: Final = 1000


def catch_up(
    snapshot: Snapshot, index: VectorIndex, model: str, dimension: int, place: WorkspaceId
) -> None:
    """Bring one partition to the snapshot's generation; `model` is the key of its vectors."""
    now = snapshot.generation()
    if isinstance(index, EmbeddedIndex):
        index.take_file(place, partial(_leads_on, snapshot, now))
    mark = index.watermark(place)
    if mark == now:
        return
    if mark is None or outdated(mark, now):
        index.rebuild(place, iter_points(snapshot, model, dimension, place), now)
        return
    touched = set(snapshot.changes.touched(mark.seq, now.seq).nodes)
    touched.update(snapshot.embeddings.touched(mark.embeddings, now.embeddings))
    keys = sorted(touched)
    nodes = {node.key: node for node in snapshot.nodes.by_keys(keys)}
    stored = {item.key: item for item in snapshot.embeddings.of_nodes(keys, model)}
    upserts: list[Point] = []
    leaving = [str(row["id"]) for row in snapshot.changes.deleted("node", keys).values()]
    for key, node in nodes.items():
        point = None
        if node.workspace_id == place and key in stored:
            point = point_of(node, stored[key], dimension)
        if point is None:
            leaving.append(node.id)
        else:
            upserts.append(point)
    index.apply(place, upserts, [NodeId(node) for node in leaving], now)


def outdated(mark: Generation, now: Generation) -> bool:
    """Whether the log no longer leads from the mark to now (invariant 3)."""
    return mark.epoch != now.epoch or mark.seq < now.floor


def _leads_on(snapshot: Snapshot, now: Generation, stamp: Stamp) -> bool:
    """Whether the log leads from what a file reflects to now, and is the log that it knew.

    A file may be newer than a snapshot that was taken before it, and a file of the store that
    was put back to an older state and written again has other rows of the same numbers.
    """
    ahead = stamp.seq > now.seq or (stamp.seq == now.seq and stamp.embeddings > now.embeddings)
    known = not ahead and not outdated(stamp.watermark, now)
    return known and snapshot.changes.moment(stamp.seq) == stamp.said


def iter_points(
    snapshot: Snapshot, model: str, dimension: int, place: WorkspaceId
) -> Iterator[Point]:
    """Every point of a workspace by rising key, read by pages.

    The keys are listed first: one statement over nodes and vectors would sort all vectors in
    memory (80 MB at 100,000), and pages that each begin after a key are found by reading all
    keys of the workspace anew.
    """
    keys = snapshot.vectored.keys(place, model)
    for begin in range(0, len(keys), _PAGE):
        some = keys[begin : begin + _PAGE]
        stored = {item.key: item for item in snapshot.embeddings.of_nodes(some, model)}
        for node in snapshot.nodes.by_keys(some):
            point = point_of(node, stored[node.key], dimension)
            if point is not None:
                yield point


def point_of(
    node: Node, stored: Stored, dimension: int, words: Mapping[str, int] | None = None
) -> Point | None:
    """The node as a point; None for one that is not to be found by meaning."""
    layer = layer_of(node.type)
    if layer is None or not has_vector(node):  # a shell may have emptied it a moment ago
        return None
    rows = np.frombuffer(b"".join(stored.vectors), dtype=np.float16).reshape(-1, dimension)
    return Point(
        node.id,
        node.workspace_id,
        node.type,
        layer,
        node.tags,
        node.status,
        node.created_at,
        rows.astype(np.float32),
        words or {},
    )


def exact(
    snapshot: Snapshot, model: str, query: Vector, hits: Sequence[ScoredPoint]
) -> list[ScoredPoint]:
    """The same hits scored from the stored vectors, with the chunk that matched, best first.

    Makes scores, ties and chunks of a server's hits those of the embedded index; who is gone
    since is left out.
    """
    nodes = {node.key: node for node in snapshot.nodes.by_ids([hit.node_id for hit in hits])}
    scored: list[ScoredPoint] = []
    for item in snapshot.embeddings.of_nodes(sorted(nodes), model):
        rows = np.frombuffer(b"".join(item.vectors), np.float16).reshape(-1, len(query))
        cosines = unit_rows(rows, len(query), str(item.key)) @ query
        best, node = int(cosines.argmax()), nodes[item.key]
        cosine = float(cosines[best])
        scored.append(ScoredPoint(node.id, node.workspace_id, cosine, best, len(rows)))
    return sorted(scored, key=lambda hit: (-hit.score, hit.node_id))


def words_of(node: Node) -> Counter[str]:
    """How often each token of the keyword index occurs in the node's title and text."""
    title = node.data.get("title")
    head = title if isinstance(title, str) and not node.text.startswith(title) else ""
    return Counter(iter_tokens(f"{head}\n{node.text}"))
