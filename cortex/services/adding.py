"""Adding memories: one node with its parent, relations and files; a task's subtasks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from cortex.domain.errors import InvalidError
from cortex.domain.instants import Instant, later
from cortex.domain.taxonomy import (
    NodeType,
    RelationType,
    file_relation,
    off_taxonomy,
    parse_kind,
)
from cortex.domain.values import Node, NodeId, WorkspaceId, new_id
from cortex.services.engine import Engine
from cortex.services.fields import Fields, merged, require_content
from cortex.services.files import ensure_fileref, parse_place, with_facts
from cortex.services.linking import ensure_root, link
from cortex.services.reach import project_of
from cortex.services.repeating import once
from cortex.services.resolving import resolve_node
from cortex.services.screening import screened
from cortex.services.similar import settle, sight
from cortex.store.database import Transaction


@dataclass(frozen=True, slots=True)
class Added:
    """A node that was written; `similar` lists active nodes that say nearly the same."""

    id: str
    type: str
    title: str
    workspace_id: str
    parent_id: str | None
    similar: list[dict[str, Any]]
    notes: list[str]


@dataclass(frozen=True, slots=True)
class Decomposed:
    """Subtasks in their order."""

    task_id: str
    ids: list[str]
    workspace_id: str
    notes: list[str]


class Adding:
    """Writes new nodes."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def add_node(
        self,
        kind: str,
        fields: Fields,
        *,
        parent: str | None = None,
        relations: Sequence[str] = (),
        files: Sequence[str] = (),
        workspace: str | None = None,
        key: str | None = None,
    ) -> Added:
        """Write one node under its parent, with what it points to.

        `relations` are "type:id", from the new node; `files` are "path:line". All or
        nothing. Raises InvalidError for an unknown type, an empty node, or a subtask
        without parent.
        """
        place = self._engine.workspace(workspace)
        node_type = parse_kind(NodeType, kind, "type")
        data = merged({}, fields.changes())
        require_content(data, node_type)
        flagged = screened(self._engine.settings, {**data, "files": list(files)})
        if node_type is NodeType.SUBTASK and not parent:
            raise InvalidError(
                "a subtask needs a parent", "Valid: parent_id of its task", "Pass parent_id"
            )
        request = {
            "type": kind,
            "fields": asdict(fields),
            "parent": parent,
            "relations": list(relations),
            "files": list(files),
        }
        with self._engine.sighting, self._engine.database.read() as snapshot:
            sighted = sight(snapshot, place, data)
        with self._engine.write(short=True) as transaction:

            def do() -> Added:
                similar = settle(transaction, place, data, sighted)
                return self._add(
                    transaction, place, node_type, data, parent, relations, files, flagged, similar
                )

            return once(transaction, place, key, request, Added, do)

    def _add(
        self,
        transaction: Transaction,
        place: WorkspaceId,
        kind: NodeType,
        data: dict[str, Any],
        parent: str | None,
        relations: Sequence[str],
        files: Sequence[str],
        flagged: Sequence[str],
        similar: list[dict[str, Any]],
    ) -> Added:
        root, _ = ensure_root(transaction, place)
        above = resolve_node(transaction, parent, place, strict=True) if parent else root
        project = project_of(self._engine.settings)
        if kind is NodeType.FILEREF:
            data = with_facts(data, project)
        node = insert_child(transaction, kind, place, above, data)
        notes = list(flagged)
        for relation in relations:
            name, _, other = relation.partition(":")
            if not other:
                raise InvalidError(
                    f"relation {relation!r} names no node",
                    'Valid: "type:id", as "supports:1a2b3c4d"',
                    "Correct it",
                )
            target = resolve_node(transaction, other, place, strict=True)
            linked = link(transaction, node, target, parse_kind(RelationType, name, "relation"))
            notes += linked.notes
        for text in files:
            spot = parse_place(text)
            target = ensure_fileref(transaction, place, spot.path, project, root.id)
            lines = {"line": spot.line, "end_line": spot.end_line}
            present = {name: value for name, value in lines.items() if value is not None}
            link(transaction, node, target, file_relation(kind), data=present)
        return Added(node.id, kind.value, node.title, place, above.id, similar, notes)

    def decompose(
        self,
        task: str,
        subtasks: Sequence[str | Mapping[str, Any]],
        *,
        workspace: str | None = None,
        key: str | None = None,
    ) -> Decomposed:
        """Write subtasks below a task, in order: contains, decomposes_to, sequel_to."""
        place = self._engine.workspace(workspace)
        drafts = [_draft(item, position) for position, item in enumerate(subtasks, 1)]
        if not drafts:
            raise InvalidError(
                "subtasks is empty",
                'Valid: ["first step", {"title": "second", "text": "…"}]',
                "Name at least one",
            )
        settings = self._engine.settings
        flagged = [
            note
            for position, draft in enumerate(drafts, 1)
            for note in screened(settings, draft, f"subtask {position}")
        ]
        request = {"task": task, "subtasks": [dict(draft) for draft in drafts]}
        with self._engine.write() as transaction:

            def do() -> Decomposed:
                above = resolve_node(transaction, task, place, strict=workspace is not None)
                note = off_taxonomy(RelationType.DECOMPOSES_TO, above.type, NodeType.SUBTASK)
                made: list[Node] = []
                for position, draft in enumerate(drafts):
                    # A microsecond apart, so that lists by creation keep their order.
                    node = insert_child(
                        transaction,
                        NodeType.SUBTASK,
                        above.workspace_id,
                        above,
                        draft,
                        later(transaction.at, microseconds=position),
                    )
                    link(transaction, above, node, RelationType.DECOMPOSES_TO)
                    if made:
                        link(transaction, node, made[-1], RelationType.SEQUEL_TO)
                    made.append(node)
                return Decomposed(
                    above.id,
                    [node.id for node in made],
                    above.workspace_id,
                    [*flagged, note] if note else flagged,
                )

            return once(transaction, place, key, request, Decomposed, do)


def insert_child(
    transaction: Transaction,
    kind: NodeType,
    workspace: WorkspaceId,
    parent: Node,
    data: Mapping[str, Any],
    at: Instant | None = None,
) -> Node:
    """A new node below `parent`: parent_id and contains say the same."""
    node = transaction.nodes.insert(
        NodeId(new_id()), kind, workspace, parent.id, data, at or transaction.at
    )
    transaction.relations.insert(
        workspace, parent.id, node.id, RelationType.CONTAINS, transaction.at
    )
    return node


def _draft(item: str | Mapping[str, Any], position: int) -> dict[str, Any]:
    if isinstance(item, str):
        fields = Fields(title=item) if len(item) <= 200 else Fields(text=item)
    else:
        fields = Fields(data=item)
    data = merged({}, fields.changes())
    require_content(data, f"subtask {position}")
    return data
