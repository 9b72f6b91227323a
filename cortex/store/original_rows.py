"""The rows of an original file on their way from its tables, set aside, into ours.

Two passes over the nodes, the first without their data, so that memory grows with the
number of rows and with the relations, not with the texts.
"""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from cortex.domain.instants import Instant, render
from cortex.domain.taxonomy import Action, NodeType, RelationType, Status
from cortex.domain.values import Node, NodeId, Relation, new_id
from cortex.store.changes import Changes
from cortex.store.derive import derive
from cortex.store.embeddings import Embeddings, Outbox
from cortex.store.keywords import Keywords
from cortex.store.meta import Meta
from cortex.store.navigation import Navigation, Visit
from cortex.store.nodes import Nodes
from cortex.store.original import (
    as_json,
    as_text,
    extras,
    read_data,
    read_kind,
    read_time,
    read_workspace,
)
from cortex.store.original_links import Draft, Link, Links, OldRelation, iter_links
from cortex.store.relations import Relations

_NODE_COLUMNS: Final = frozenset(
    ["id", "type", "workspace_id", "parent_id", "data", "status", "created_at", "updated_at"]
)
_NODE_ROWS: Final = "SELECT rowid AS rowid, * FROM original_nodes ORDER BY rowid"
_NODE_ROW: Final = "SELECT * FROM original_nodes WHERE rowid = :row"
_RELATION_ROWS: Final = "SELECT rowid AS rowid, * FROM original_relations ORDER BY rowid"
_HISTORY_ROWS: Final = "SELECT rowid AS rowid, * FROM original_navigation_history ORDER BY rowid"
_HAS_HISTORY: Final = """
SELECT EXISTS (SELECT 1 FROM sqlite_master WHERE name = 'original_navigation_history')
"""
_DROPS: Final = (
    "DROP TABLE original_relations",
    "DROP TABLE IF EXISTS original_navigation_history",
    "DROP TABLE original_nodes",
)
_WRITER: Final = "UPDATE writer SET at = :at, actor = 'upgrade', tx = 1 WHERE one = 1"
_END_WRITER: Final = "UPDATE writer SET at = NULL, actor = NULL, tx = NULL WHERE one = 1"

Row = dict[str, Any]


class Upgrade:
    """One file's rows on their way from the old tables to the new."""

    def __init__(self, connection: sqlite3.Connection, path: Path, now: Instant) -> None:
        self._connection = connection
        self._now = now
        self._file_time = render(datetime.fromtimestamp(path.stat().st_mtime, UTC))
        self._written = Instant("")
        self.repairs: Counter[str] = Counter()
        self.nodes = self.relations = self.visits = 0
        self.leftovers: list[Row] = []

    def run(self) -> None:
        drafts = self._drafts()
        links = Links(drafts, self.repairs)
        links.plan(self._old_relations())
        self.leftovers = links.leftovers
        self._write(list(drafts.values()), list(iter_links(links.planned)))
        self._history({old: draft.id for old, draft in drafts.items()})
        for statement in _DROPS:
            self._connection.execute(statement)
        connection = self._connection
        derive(
            Meta(connection),
            Changes(connection),
            Nodes(connection),
            Keywords(connection),
            Embeddings(connection),
            Outbox(connection),
        )
        connection.execute(_END_WRITER)

    def _rows(self, statement: str) -> Iterator[Row]:
        cursor = self._connection.execute(statement)
        names = [column[0] for column in cursor.description]
        for values in cursor:
            yield dict(zip(names, values, strict=True))

    def _timed(self, rows: Sequence[Row]) -> list[tuple[Row, Instant, Row]]:
        """Each row with when it came to be, and what its data keeps of a time unread.

        A row without a time takes that of the row before it, else of the one after, else of
        the file: rows were added in the order of their rowids.
        """
        times = [read_time(row.get("created_at")) for row in rows]
        last = next(filter(None, times), self._file_time)
        found = []
        for row, at in zip(rows, times, strict=True):
            last = at or last
            kept = {} if at else {"original_created_at": as_json(row.get("created_at"))}
            self.repairs["time"] += not at
            found.append((row, last, kept))
        return found

    def _updated(self, value: Any, created: Instant) -> tuple[Instant, Row]:
        at = read_time(value)
        if at is None and as_text(value):
            self.repairs["time"] += 1
            return created, {"original_updated_at": as_json(value)}
        return at or created, {}

    def _drafts(self) -> dict[str, Draft]:
        """Every node without its data, by its old id, in order of creation."""
        drafts: dict[str, Draft] = {}
        taken: set[str] = set()
        needed = ("rowid", *sorted(_NODE_COLUMNS - {"data", "updated_at"}))
        rows = [{name: row.get(name) for name in needed} for row in self._rows(_NODE_ROWS)]
        for row, created, kept in self._timed(rows):
            draft = self._draft(row, created, kept, taken)
            drafts[as_text(row["id"]) if as_text(row["id"]) == draft.id else draft.id] = draft
        return dict(sorted(drafts.items(), key=lambda item: (item[1].created, item[1].id)))

    def _draft(self, row: Row, created: Instant, extra: Row, taken: set[str]) -> Draft:
        node = as_text(row["id"])
        if not node or node in taken:
            extra["original_id"] = as_json(row["id"])
            node = new_id()
            self.repairs["id"] += 1
        taken.add(node)
        kind = read_kind(NodeType, row["type"])
        if kind is None:
            kind, extra["kind"] = NodeType.ENTITY, as_text(row["type"])
            self.repairs["type"] += 1
        place = read_workspace(row["workspace_id"])
        if place != row["workspace_id"]:
            extra["original_workspace_id"] = as_json(row["workspace_id"])
            self.repairs["workspace"] += 1
        status = read_kind(Status, row["status"])
        if status is None:
            status = Status.ACTIVE
            self.repairs["status"] += 1
            if row["status"] is not None:
                extra["original_status"] = as_json(row["status"])
        return Draft(
            row["rowid"], NodeId(node), kind, place, status, created, row["parent_id"], extra=extra
        )

    def _old_relations(self) -> Iterator[OldRelation]:
        timed = self._timed(list(self._rows(_RELATION_ROWS)))
        for row, created, extra in sorted(timed, key=lambda item: (item[1], item[0]["rowid"])):
            updated, kept = self._updated(row.get("updated_at"), created)
            yield OldRelation(row, created, updated, {**extra, **kept})

    def _write(
        self,
        drafts: Sequence[Draft],
        links: Sequence[tuple[tuple[NodeId, NodeId, RelationType], Link]],
    ) -> None:
        """Nodes and relations in the order in which they came to be, as the log tells it.

        A relation comes after its ends. Nothing is logged as later than now: the log's time
        never goes back (invariant 5), and one wrong year would hold it there.
        """
        made = {draft.id: draft.created for draft in drafts}
        order: list[tuple[Instant, int, int]] = [
            (draft.created, 0, place) for place, draft in enumerate(drafts)
        ]
        for place, ((source, target, _), link) in enumerate(links):
            order.append((max(link.created, made[source], made[target]), 1, place))
        for at, is_link, place in sorted(order):
            self._at(min(at, self._now))
            if is_link:
                self._put_link(*links[place])
            else:
                self._put_node(drafts[place])

    def _at(self, at: Instant) -> None:
        if at != self._written:
            self._connection.execute(_WRITER, {"at": at})
            self._written = at

    def _put_node(self, draft: Draft) -> None:
        cursor = self._connection.execute(_NODE_ROW, {"row": draft.row})
        names = [column[0] for column in cursor.description]
        row = dict(zip(names, cursor.fetchone(), strict=True))
        data, mended = read_data(row["data"])
        self.repairs["data"] += mended
        updated, kept = self._updated(row.get("updated_at"), draft.created)
        if beside := extras(row, _NODE_COLUMNS):
            kept["original_columns"] = beside
        if "kind" in data and "kind" in draft.extra:
            kept["original_kind"] = data["kind"]
        Nodes(self._connection).restore(
            Node(
                0,
                draft.id,
                draft.type,
                draft.workspace,
                draft.parent,
                {**data, **draft.extra, **kept},
                draft.status,
                draft.created,
                updated,
            )
        )
        self.nodes += 1

    def _put_link(self, key: tuple[NodeId, NodeId, RelationType], link: Link) -> None:
        source, target, kind = key
        Relations(self._connection).restore(
            Relation(
                0,
                link.id,
                link.workspace,
                source,
                target,
                kind,
                link.weight,
                link.data,
                link.created,
                link.updated,
            )
        )
        self.relations += 1

    def _history(self, ids: Mapping[str, NodeId]) -> None:
        if not self._connection.execute(_HAS_HISTORY).fetchone()[0]:
            return
        navigation = Navigation(self._connection)
        timed = self._timed(list(self._rows(_HISTORY_ROWS)))
        for row, at, kept in sorted(timed, key=lambda item: (item[1], item[0]["rowid"])):
            context, mended = read_data(row.get("context"))
            self.repairs["data"] += mended
            action = read_kind(Action, row.get("action"))
            if action is None:
                action = Action.OPEN
                kept["original_action"] = as_json(row.get("action"))
                self.repairs["action"] += 1
            node = as_text(row.get("node_id"))
            place = read_workspace(row.get("workspace_id"))
            visited = ids.get(node, NodeId(node))
            navigation.add(Visit(place, visited, action, {**context, **kept}, at))
            self.visits += 1
