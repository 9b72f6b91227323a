"""Finding the node that a caller means: a whole id, a prefix of one, or a file's path."""

from __future__ import annotations

import re
from typing import Final

from cortex.domain.errors import AmbiguousError, InvalidError, NotFoundError
from cortex.domain.taxonomy import RelationType
from cortex.domain.values import PREFIX, Node, NodeId, WorkspaceId, is_id, shorten
from cortex.store.database import Snapshot

_HEX: Final = re.compile(r"[0-9a-f-]+")
_FIND: Final = "Find it with graph_search or desktop_open"


def describe(node: Node) -> str:
    """A node in a message: prefix, type, title."""
    return f"{node.id[:PREFIX]} {node.type} {shorten(node.title, 40)!r}"


def resolve_node(
    snapshot: Snapshot, reference: str, workspace: WorkspaceId, *, strict: bool
) -> Node:
    """The one node that `reference` names.

    A whole id is looked up everywhere; `strict` refuses one of another workspace, as a
    caller who named a workspace expects. A prefix of 8 characters or more and a path must
    be unique in the workspace, or else in the file; the end of a path will do. Raises
    NotFoundError, AmbiguousError, InvalidError.
    """
    text = reference.strip()
    if not text:
        raise InvalidError("the node id is empty", "Valid: an id, a prefix of 8 or more", _FIND)
    lowered = text.lower()
    # Upgraded files keep ids that are no UUID; elsewhere such an id gives way to a path here.
    forms = dict.fromkeys((text, lowered, reference))
    whole = next(filter(None, (snapshot.nodes.find(form) for form in forms)), None)
    if whole is not None and (
        whole.workspace_id == workspace or is_id(lowered) or len(text) < PREFIX
    ):
        return _of_workspace(whole, workspace, strict)
    if is_id(lowered):
        raise NotFoundError(f"no node {text}", "", _FIND)
    path = text.removeprefix("file://")
    found = (
        _by_prefix(snapshot, lowered, workspace)
        or snapshot.nodes.by_path(workspace, path)
        or snapshot.nodes.by_path_end(workspace, path)
        or _by_foreign_prefix(snapshot, text, workspace)
    )
    if not found and whole is not None:
        return _of_workspace(whole, workspace, strict)
    if not found and not strict and len(text) >= PREFIX and _HEX.fullmatch(lowered):
        # A hit of another project is shown by its prefix: it must lead somewhere.
        found = snapshot.nodes.by_prefix_anywhere(lowered)
    if len(found) > 1:
        raise AmbiguousError(
            f"{text!r} names {len(found)} nodes or more",
            "Candidates: " + "; ".join(f"{node.id} {node.title[:40]}" for node in found[:5]),
            "Give more of the id",
        )
    if not found:
        raise NotFoundError(
            f"no node {shorten(text, 80)!r} in workspace {workspace!r}",
            "Valid: an id, a prefix of 8 or more characters, a file's path",
            _FIND,
        )
    return found[0]


def _of_workspace(node: Node, workspace: WorkspaceId, strict: bool) -> Node:
    if strict and node.workspace_id != workspace:
        raise NotFoundError(
            f"node {node.id} is in workspace {node.workspace_id!r}, not in {workspace!r}",
            "",
            f"Pass workspace_id={node.workspace_id!r}",
        )
    return node


def _by_foreign_prefix(snapshot: Snapshot, text: str, workspace: WorkspaceId) -> list[Node]:
    """By the start of an id that is no UUID."""
    return snapshot.nodes.by_prefix(workspace, text) if len(text) >= PREFIX else []


def _by_prefix(snapshot: Snapshot, text: str, workspace: WorkspaceId) -> list[Node]:
    if len(text) > 36 or not _HEX.fullmatch(text):
        return []
    if len(text) < PREFIX:
        raise InvalidError(
            f"{text!r} is too short for an id",
            f"Valid: a whole id, or its first {PREFIX} characters or more",
            "Give more of the id",
        )
    return snapshot.nodes.by_prefix(workspace, text)


def head_of(snapshot: Snapshot, node: Node) -> Node:
    """The newest node of the supersedes chain that `node` stands in; itself at its end.

    Where several nodes supersede one, the newest goes on. Cost: one look-up a link.
    """
    seen = {node.id}
    while True:
        newer = snapshot.relations.incoming(node.id, (RelationType.SUPERSEDES,))
        following = [relation.from_id for relation in newer if relation.from_id not in seen]
        if not following:
            return node
        found = snapshot.nodes.find(following[-1])
        if found is None:
            return node
        seen.add(found.id)
        node = found


def chain_of(snapshot: Snapshot, node: Node) -> list[Node]:
    """The whole supersedes chain of a node, newest first."""
    chain = [head_of(snapshot, node)]
    seen: set[NodeId] = {chain[0].id}
    queue = [chain[0].id]
    while queue:
        older = snapshot.relations.outgoing(queue.pop(0), (RelationType.SUPERSEDES,))
        for relation in older:
            found = snapshot.nodes.find(relation.to_id)
            if found is not None and found.id not in seen:
                seen.add(found.id)
                chain.append(found)
                queue.append(found.id)
    return chain
