"""What a reader must know before trusting a node: stale, superseded, its file changed."""

from __future__ import annotations

from collections.abc import Sequence

from cortex.domain.taxonomy import FILE_RELATIONS, NodeType, Status
from cortex.domain.values import Node
from cortex.services.files import Freshness, freshness
from cortex.services.resolving import describe, head_of
from cortex.store.database import Snapshot

Warnings = tuple[str, ...]
_FILES = 8


def warnings_of(snapshot: Snapshot, nodes: Sequence[Node]) -> Warnings:
    """One sentence per thing to know, in the order of the nodes."""
    return tuple(sentence for node in nodes for sentence in _of(snapshot, node))


def _of(snapshot: Snapshot, node: Node) -> list[str]:
    said = []
    head = head_of(snapshot, node)
    if head.id != node.id:
        said.append(f"{describe(node)} is superseded by {head.id}: {head.title[:80]}")
    elif node.status is Status.STALE:
        said.append(f"{describe(node)} is stale: check it before you rely on it")
    if node.status is Status.ARCHIVED:
        said.append(f"{describe(node)} is archived; desktop_focus brings it back")
    for file in _files_of(snapshot, node):
        state = freshness(file)
        if state is not Freshness.UNCHANGED:
            said.append(f"unverified: file {file.data.get('path')} is {state.value} since noted")
    return said


def _files_of(snapshot: Snapshot, node: Node) -> list[Node]:
    if node.type is NodeType.FILEREF:
        return [node] if "hash" in node.data else []
    relations = snapshot.relations.outgoing(node.id, FILE_RELATIONS, _FILES)
    files = snapshot.nodes.by_ids([relation.to_id for relation in relations])
    return [file for file in files if file.type is NodeType.FILEREF and "hash" in file.data]
