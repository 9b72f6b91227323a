"""What a reader must know before trusting a node: that it is stale, superseded, archived.

That its file changed is said by drift, which asks the disk after the transaction.
"""

from __future__ import annotations

from collections.abc import Container, Sequence

from cortex.domain.taxonomy import Status
from cortex.domain.values import Node, NodeId
from cortex.graph.proximity import find_superseded
from cortex.graph.workspace import WorkspaceGraph
from cortex.services.resolving import describe, head_of
from cortex.store.database import Snapshot

Warnings = tuple[str, ...]


def warnings_of(
    snapshot: Snapshot, nodes: Sequence[Node], graph: WorkspaceGraph | None = None
) -> Warnings:
    """One sentence per thing to know, in the order of the nodes.

    `graph` is theirs, of the same view: it spares a query.
    """
    known = None if graph is None else find_superseded(graph, [node.key for node in nodes])
    if known is None:
        replaced = snapshot.relations.superseded([node.id for node in nodes])
    else:
        replaced = {node.id for node in nodes if node.key in known}
    return tuple(sentence for node in nodes for sentence in _of(snapshot, node, replaced))


def _of(snapshot: Snapshot, node: Node, replaced: Container[NodeId]) -> list[str]:
    said = []
    head = head_of(snapshot, node) if node.id in replaced else node
    if head.id != node.id:
        said.append(f"{describe(node)} is superseded by {head.id}: {head.title[:80]}")
    elif node.status is Status.STALE:
        said.append(f"{describe(node)} is stale: check it before you rely on it")
    if node.status is Status.ARCHIVED:
        said.append(f"{describe(node)} is archived; desktop_focus brings it back")
    return said
