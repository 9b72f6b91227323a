"""The direct neighbors of a node.

Idea: one look at the adjacency of both directions. Cost: the node's degree; `adjacent` is
one lookup in each direction. Corners: parallel relations give a neighbor once; derived
relations make no neighbors unless asked for. What nodes of very many relations rest on, and
what supersedes them, an index of the store tells sooner. Relations that a shell left between
two workspaces are in no graph: here they do not count.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from cortex.domain.taxonomy import FILE_RELATIONS, NODE_CODE, NodeType, RelationType
from cortex.domain.values import Node, NodeId
from cortex.graph.codes import MASK, flags
from cortex.graph.workspace import WorkspaceGraph
from cortex.store.database import Snapshot

MAX_NEIGHBORS: Final = 1000
_FILE: Final = NODE_CODE[NodeType.FILEREF]
_TO_FILES: Final = flags(FILE_RELATIONS, include_derived=True)
_SUPERSEDES: Final = flags([RelationType.SUPERSEDES], include_derived=True)
_MOST: Final = 64
"""Relations of a node, above which an index of the store is faster than looking at each."""
_FILES_ASKED: Final = 4_000
_FILES_KEPT: Final = 20_000


def neighbours(
    graph: WorkspaceGraph,
    key: int,
    relations: frozenset[RelationType] | None = None,
    *,
    limit: int = MAX_NEIGHBORS,
    include_derived: bool = False,
) -> list[int]:
    """Keys of at most `limit` nodes one hop away, either way, by (created_at, id).

    Raises NotFoundError.
    """
    index = graph.index(key)
    allowed = flags(relations, include_derived=include_derived)
    near = {edge[1] for edge in graph.graph.out_edges(index) if allowed[edge[2] & MASK]}
    near.update(edge[0] for edge in graph.graph.in_edges(index) if allowed[edge[2] & MASK])
    return [graph.key[other] for other in graph.chronological(list(near))[:limit]]


def adjacent(graph: WorkspaceGraph, a: int, b: int, *, include_derived: bool = False) -> bool:
    """Whether a relation joins the two nodes, in whichever direction."""
    first, second = graph.find(a), graph.find(b)
    if first is None or second is None:
        return False
    for source, target in ((first, second), (second, first)):
        if graph.graph.has_edge(source, target):
            payloads = graph.graph.get_all_edge_data(source, target)
            if include_derived or any(not payload & 1 for payload in payloads):
                return True
    return False


def files_of(
    graph: WorkspaceGraph, snapshot: Snapshot, nodes: Sequence[Node]
) -> dict[int, Sequence[int]]:
    """Keys of the filerefs that each node rests on, rising; a fileref rests on itself.

    The snapshot is the one that the graph has caught up to.
    """
    kept = graph.kept.files
    if len(kept) > _FILES_KEPT:
        kept.clear()
    found: dict[int, Sequence[int]] = {}
    wide: dict[NodeId, int] = {}
    for node in nodes:
        files = kept.get(node.key)
        if files is None:
            files = _files_of(graph, node.key)
        if files is None:
            wide[node.id] = node.key
        else:
            found[node.key] = files
    if wide:
        rows = snapshot.filerefs.rested_on(list(wide), _FILES_ASKED)
        asked: dict[int, list[int]] = {key: [] for key in wide.values()}
        for node_id, file in rows:
            asked[wide[node_id]].append(file)
        if len(rows) == _FILES_ASKED:  # the rest is not told, so nothing of it is kept
            return found | asked
        found |= asked
    kept |= found
    return found


def _files_of(graph: WorkspaceGraph, key: int) -> Sequence[int] | None:
    """None where it takes the store to tell."""
    index = graph.find(key)
    if index is None or graph.graph.out_degree(index) > _MOST:
        return None
    files = {
        graph.key[edge[1]]
        for edge in graph.graph.out_edges(index)
        if _TO_FILES[edge[2] & MASK] and graph.kind[edge[1]] == _FILE
    }
    if graph.kind[index] == _FILE:
        files.add(key)
    return sorted(files)


def find_superseded(graph: WorkspaceGraph, keys: Sequence[int]) -> set[int] | None:
    """Those of the keys that some node supersedes; None where it takes the store to tell."""
    in_degree, in_edges = graph.graph.in_degree, graph.graph.in_edges
    found: set[int] = set()
    for key in keys:
        index = graph.find(key)
        if index is None or in_degree(index) > _MOST:
            return None
        if any(_SUPERSEDES[edge[2] & MASK] for edge in in_edges(index)):
            found.add(key)
    return found


def degree(graph: WorkspaceGraph, key: int) -> int:
    """How many relations the node has, either way. Raises NotFoundError."""
    index = graph.index(key)
    return int(graph.graph.in_degree(index) + graph.graph.out_degree(index))
