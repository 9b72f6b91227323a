"""What can happen to a memory: through its services, and by a foreign shell."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any, Final

from cortex.domain.taxonomy import NodeType, Status
from cortex.domain.values import NodeId, new_id
from cortex.services.fields import Fields
from tests.parity import PLACES, Twins
from tests.parity_tables import Row

_INSERT_NODE: Final = """
INSERT INTO nodes(rowkey, id, type, workspace_id, parent_id, data, status, created_at, updated_at)
VALUES (:rowkey, :id, :type, :workspace_id, :parent_id, :data, :status, :created_at, :updated_at)
"""
_INSERT_RELATION: Final = """
INSERT INTO relations(id, workspace_id, from_id, to_id, type, weight, data, created_at, updated_at)
VALUES (:id, :place, :source, :target, :type, :weight, :data, :at, :at)
"""
_GONE: Final = """
SELECT before FROM changes AS c
 WHERE entity = 'node' AND op = 'delete' AND key NOT IN (SELECT rowkey FROM nodes)
   AND json_extract(before, '$.id') NOT IN (SELECT id FROM nodes)
 ORDER BY seq DESC LIMIT 1
"""
EDITS: Final = {
    "text": "UPDATE nodes SET data = json_set(data, '$.text', :word) WHERE rowkey = :key",
    "empty": "UPDATE nodes SET data = '{}' WHERE rowkey = :key",
    "tags": """UPDATE nodes SET data = json_set(data, '$.tags', json_array(:tag))
               WHERE rowkey = :key""",
    "status": "UPDATE nodes SET status = :status WHERE rowkey = :key",
    "type": "UPDATE nodes SET type = :type WHERE rowkey = :key",
    "time": "UPDATE nodes SET created_at = :at WHERE rowkey = :key",
    "parent": "UPDATE nodes SET parent_id = :other WHERE rowkey = :key",
    "orphan": "UPDATE nodes SET parent_id = NULL WHERE rowkey = :key",
    # A node that nothing is related to may move to another workspace.
    "place": """UPDATE nodes SET workspace_id = :place WHERE rowkey = :key AND NOT EXISTS (
                SELECT 1 FROM relations WHERE from_id = nodes.id OR to_id = nodes.id)""",
    "delete": "DELETE FROM nodes WHERE rowkey = :key",
}


class Undone(Exception):
    """Raised inside a transaction to take it back."""


class Operations(Twins):
    """Single steps on twins; numbers name nodes and relations, whatever there is."""

    def node(self, number: int) -> Row | None:
        """A node by any number; None while there is none."""
        nodes = list(self.tables.nodes.values())
        return nodes[number % len(nodes)] if nodes else None

    def relation(self, number: int) -> Row | None:
        relations = list(self.tables.relations.values())
        return relations[number % len(relations)] if relations else None

    # ── through the services ──────────────────────────────────────────────────────────────

    def add(self, who: int, kind: str, fields: Fields, parent: int | None, place: str) -> None:
        above = None if parent is None else self.node(parent)
        if kind == "fileref":
            fields = Fields(path=f"{fields.title or fields.text}.py")
        with self.asking():
            self.memories[who].adding.add_node(
                kind, fields, parent=above["id"] if above else None, workspace=place
            )

    def update(
        self, who: int, number: int, fields: Fields, status: str | None, cascade: bool
    ) -> None:
        if (node := self.node(number)) is not None:
            with self.asking():
                self.memories[who].mutation.update(
                    node["id"], fields, status=status, cascade=cascade
                )

    def supersede(self, who: int, number: int, word: str, cascade: bool) -> None:
        if (node := self.node(number)) is not None:
            with self.asking():
                self.memories[who].mutation.supersede(
                    node["id"], Fields(text=word), cascade=cascade
                )

    def delete(self, who: int, number: int, cascade: bool) -> None:
        if (node := self.node(number)) is not None:
            with self.asking():
                self.memories[who].mutation.delete(node["id"], cascade=cascade)

    def relate(
        self, who: int, near: int, far: int, kind: str, weight: float, derived: bool
    ) -> None:
        source, target = self.node(near), self.node(far)
        if source is not None and target is not None:
            data = {"derived": True} if derived else {}
            with self.asking():
                self.memories[who].linking.add_relation(
                    source["id"], target["id"], kind, weight=weight, data=data
                )

    def decompose(self, who: int, number: int, words: list[str]) -> None:
        if (node := self.node(number)) is not None:
            with self.asking():
                self.memories[who].adding.decompose(node["id"], words)

    def focus(self, who: int, number: int) -> None:
        if (node := self.node(number)) is not None:
            with self.asking():
                self.memories[who].viewport.focus(node["id"], workspace=node["workspace_id"])

    def open(self, who: int, place: str) -> None:
        """Opens the desktop, which once a day archives what lies idle."""
        self.memories[who].viewport.open(place)
        self.memories[who].history.flush(wait=10)

    def index(self, who: int) -> None:
        self.memories[who].indexing.step()

    def reindex(self, who: int) -> None:
        self.memories[who].indexing.reindex(None, lambda *_: None)

    def roll_back(self, who: int, number: int, word: str) -> None:
        """A transaction that inserts, changes and deletes, then fails; the other one looks."""
        memory = self.memories[who]
        with suppress(Undone), memory.engine.write() as transaction:
            made = transaction.nodes.insert(
                NodeId(new_id()), NodeType.FACT, PLACES[0], None, {"text": word}, transaction.at
            )
            if (node := self.node(number)) is not None:
                transaction.nodes.set_data(node["rowkey"], {"text": word}, transaction.at)
                transaction.nodes.delete([node["rowkey"]])
            transaction.nodes.set_status([made.key], Status.STALE)
            self.look(1 - who)
            raise Undone

    # ── by a foreign shell ────────────────────────────────────────────────────────────────

    def shell_insert(self, kind: str, data: Row, parent: int | None, place: str) -> None:
        above = None if parent is None else self.node(parent)
        self.sql(
            _INSERT_NODE,
            rowkey=None,
            id=new_id(),
            type=kind,
            workspace_id=above["workspace_id"] if above else place,
            parent_id=above["id"] if above else None,
            data=json.dumps(data),
            status="active",
            created_at=self.clock(),
            updated_at=self.clock(),
        )

    def shell_edit(self, number: int, other: int, edit: str, **bound: Any) -> None:
        node, second = self.node(number), self.node(other)
        if node is not None and second is not None:
            self.sql(EDITS[edit], key=node["rowkey"], other=second["id"], **bound)

    def shell_restore(self) -> None:
        """The node that was deleted last comes back under its old key and id."""
        row = self.shell.execute(_GONE).fetchone()
        if row is not None:
            self.sql(_INSERT_NODE, **{**json.loads(row[0]), "parent_id": None})

    def shell_relate(self, near: int, far: int, kind: str, weight: float) -> None:
        source, target = self.node(near), self.node(far)
        if source is not None and target is not None:
            self.sql(
                _INSERT_RELATION,
                id=new_id(),
                place=source["workspace_id"],
                source=source["id"],
                target=target["id"],
                type=kind,
                weight=weight,
                data="{}",
                at=self.clock(),
            )

    def shell_edit_relation(self, number: int, edit: str, weight: float) -> None:
        statement = {
            "weight": "UPDATE relations SET weight = :weight WHERE rowkey = :key",
            "derived": """UPDATE relations SET data = json_set(data, '$.derived', json('true'))
                           WHERE rowkey = :key""",
            "delete": "DELETE FROM relations WHERE rowkey = :key",
        }[edit]
        if (relation := self.relation(number)) is not None:
            self.sql(statement, key=relation["rowkey"], weight=weight)

    def shell_roll_back(self, number: int, word: str) -> None:
        self.shell.execute("BEGIN IMMEDIATE")
        self.shell_edit(number, number, "text", word=word)
        self.shell_edit(number, number, "delete")
        self.look(0)
        self.shell.execute("ROLLBACK")
