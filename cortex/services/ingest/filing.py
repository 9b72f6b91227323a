"""One file's fileref and pieces: how they differ from what was read, and the writing of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from cortex.domain.taxonomy import FILE_RELATIONS, NodeType, RelationType, Status, file_relation
from cortex.domain.values import Node, NodeId, Relation, WorkspaceId
from cortex.services.adding import insert_child
from cortex.services.ingest.pieces import Piece
from cortex.services.resolving import head_of
from cortex.store.database import Snapshot, Transaction

KEY: Final = "key"
MISSING: Final = "missing"
Action = Literal["add", "update", "rename", "return", "missing"]


@dataclass(frozen=True, slots=True)
class FileChange:
    """What an ingest does with one file; the numbers count its pieces.

    `was` is the old path of a renamed file.
    """

    path: str
    action: Action
    added: int = 0
    updated: int = 0
    stale: int = 0
    was: str | None = None


@dataclass(frozen=True, slots=True)
class FileRead:
    """A file as it was read: the fileref's data, and its pieces; None when they are the same.

    `moved` is the fileref that it takes over, since nothing lies at that one's path.
    """

    facts: Mapping[str, Any]
    pieces: tuple[Piece, ...] | None
    moved: Node | None = None

    @property
    def path(self) -> str:
        return str(self.facts["path"])


Pieces = dict[tuple[str, NodeType], tuple[Node, Relation]]


def is_same(file: Node, digest: str) -> bool:
    """Whether an earlier ingest has read the file in this very form, and knows it is there."""
    data = file.data
    return data.get("hash") == digest and "ingested" in data and MISSING not in data


def known_file(snapshot: Snapshot, place: WorkspaceId, reading: FileRead) -> Node | None:
    """The fileref that a reading is of: by its path, else the one that it takes over."""
    known = snapshot.nodes.by_path(place, reading.path)
    if known or reading.moved is None:
        return known[0] if known else None
    moved = snapshot.nodes.find(reading.moved.id)
    if moved is None or moved.data != reading.moved.data:
        return None  # another ingest was faster: it moved or changed meanwhile
    return moved


def change_of(snapshot: Snapshot, file: Node | None, reading: FileRead) -> FileChange:
    """What writing this reading over the fileref would do."""
    present = {} if file is None else _pieces_of(snapshot, file)
    added = updated = 0
    for piece in reading.pieces or ():
        node, _ = present.pop((piece.key, piece.type), (None, None))
        if node is None:
            added += 1
        elif {**node.data, **_data(piece)} != node.data:
            updated += 1
    left = [] if reading.pieces is None else [node for node, _ in present.values()]
    stale = sum(1 for node in left if node.status is Status.ACTIVE)
    was = None if file is None else str(file.data.get("path"))
    action: Action = "update"
    if file is None or "ingested" not in file.data:
        action = "add"
    if file is not None and was != reading.path:
        action = "rename"
    elif file is not None and MISSING in file.data:
        action = "return"
    return FileChange(
        reading.path, action, added, updated, stale, was if action == "rename" else None
    )


class FileWriter:
    """One file's nodes within one transaction."""

    def __init__(self, transaction: Transaction, place: WorkspaceId) -> None:
        self._transaction = transaction
        self._place = place

    def write(self, parent: NodeId, reading: FileRead) -> FileChange | None:
        """Make the fileref and its pieces what was read; None where another was first."""
        transaction = self._transaction
        file = known_file(transaction, self._place, reading)
        if file is not None and file.data.get("path") == reading.path:
            if is_same(file, str(reading.facts["hash"])):
                return None
        elif file is None and reading.pieces is None:
            return None
        change = change_of(transaction, file, reading)
        above = transaction.nodes.find(parent)
        assert above is not None
        if file is None:
            file = insert_child(
                transaction, NodeType.FILEREF, self._place, above, dict(reading.facts)
            )
        else:
            kept = {name: value for name, value in file.data.items() if name != MISSING}
            transaction.nodes.set_data(file.key, {**kept, **reading.facts}, transaction.at)
            if change.action == "rename" and _is_filed(transaction, file):
                self._move(file, above)
        if reading.pieces is not None:
            self._write_pieces(file, reading.pieces)
        return change

    def _write_pieces(self, file: Node, pieces: Sequence[Piece]) -> None:
        present = _pieces_of(self._transaction, file)
        nodes: dict[str, Node] = {}
        for piece in pieces:
            above = nodes[piece.parent_key] if piece.parent_key else file
            found = present.pop((piece.key, piece.type), None)
            nodes[piece.key] = (
                self._insert(file, above, piece)
                if found is None
                else self._update(found[0], found[1], above, piece)
            )
        self._retire([node for node, _ in present.values()])

    def _insert(self, file: Node, above: Node, piece: Piece) -> Node:
        transaction = self._transaction
        node = insert_child(transaction, piece.type, self._place, above, _data(piece))
        transaction.relations.insert(
            self._place,
            node.id,
            file.id,
            file_relation(piece.type),
            transaction.at,
            data=_lines(piece),
        )
        return node

    def _update(self, node: Node, link: Relation, above: Node, piece: Piece) -> Node:
        transaction = self._transaction
        data = {**node.data, **_data(piece)}
        if data != node.data:
            transaction.nodes.set_data(node.key, data, transaction.at)
        if node.status is Status.STALE and head_of(transaction, node).id == node.id:
            transaction.nodes.set_status([node.key], Status.ACTIVE, transaction.at)
        if link.data != _lines(piece):
            transaction.relations.refresh(link.key, link.weight, _lines(piece), transaction.at)
        if node.parent_id != above.id:
            self._move(node, above)
        return node

    def _move(self, node: Node, above: Node) -> None:
        if node.parent_id == above.id:
            return
        transaction = self._transaction
        old = transaction.relations.incoming(node.id, (RelationType.CONTAINS,))
        transaction.relations.delete([relation.key for relation in old])
        transaction.relations.insert(
            self._place, above.id, node.id, RelationType.CONTAINS, transaction.at
        )

    def _retire(self, nodes: Sequence[Node]) -> None:
        going = [node.key for node in nodes if node.status is Status.ACTIVE]
        if going:
            self._transaction.nodes.set_status(going, Status.STALE, self._transaction.at)


def _is_filed(snapshot: Snapshot, file: Node) -> bool:
    """Whether an ingest put the fileref where it is: below the fileref of a folder."""
    above = snapshot.nodes.find(file.parent_id) if file.parent_id else None
    return above is None or above.data.get("kind") == "folder"


def _pieces_of(snapshot: Snapshot, file: Node) -> Pieces:
    """The nodes that an earlier ingest made of this file, by key and type."""
    links = snapshot.relations.incoming(file.id, FILE_RELATIONS)
    nodes = {node.id: node for node in snapshot.nodes.by_ids([link.from_id for link in links])}
    return {
        (str(nodes[link.from_id].data[KEY]), nodes[link.from_id].type): (nodes[link.from_id], link)
        for link in links
        if KEY in nodes[link.from_id].data
    }


def _data(piece: Piece) -> dict[str, Any]:
    data: dict[str, Any] = {"title": piece.title[:500], "text": piece.text, KEY: piece.key}
    if piece.tags:
        data["tags"] = list(piece.tags)
    return {**data, **piece.data}


def _lines(piece: Piece) -> dict[str, Any]:
    return {"line": piece.line, "end_line": piece.end_line}
