"""A store, what may happen to it, and how a graph is compared with it."""

from __future__ import annotations

import sqlite3
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np

from cortex.domain.errors import ConflictError
from cortex.domain.instants import Instant
from cortex.domain.taxonomy import (
    NODE_TYPES,
    RELATION_TYPES,
    STATUSES,
    NodeType,
    RelationType,
)
from cortex.domain.values import NodeId, WorkspaceId, new_id
from cortex.graph.adjacency import rows_of
from cortex.graph.breadth_first import table
from cortex.graph.codes import flags
from cortex.graph.proximity import degree, files_of, find_superseded
from cortex.graph.workspace import FREE, WorkspaceGraph
from cortex.store.database import Database, Snapshot, Transaction

HERE = WorkspaceId("here")
THERE = WorkspaceId("there")


def differences(snapshot: Snapshot, graph: WorkspaceGraph) -> list[str]:
    """What the graph says otherwise than the store; empty when they agree."""
    briefs = list(snapshot.nodes.brief(graph.workspace))
    key_of = {node.id: node.key for node in briefs}
    nodes = {(node.key, node.type, node.status) for node in briefs}
    relations = [
        relation
        for relation in snapshot.relations.iter_all(graph.workspace)
        if relation.from_id in key_of and relation.to_id in key_of
    ]
    edges = Counter(
        (r.key, key_of[r.from_id], key_of[r.to_id], r.type, r.derived) for r in relations
    )
    weights = {r.key: r.weight for r in relations if r.weight != 1.0}
    order = [node.key for node in sorted(briefs, key=lambda node: (node.created_at, node.id))]
    pairs: list[tuple[str, Any, Any]] = [
        ("nodes", graph.nodes(), nodes),
        ("edges", graph.edges(), edges),
        ("weights", graph.weights, weights),
        ("order", graph.order(), order),
        ("out rows", rows_as_edges(graph, incoming=False), edges),
        ("in rows", rows_as_edges(graph, incoming=True), edges),
        ("crossed out", crossed_as_keys(graph, incoming=False), far_ends(edges, 2)),
        ("crossed in", crossed_as_keys(graph, incoming=True), far_ends(edges, 1)),
        ("found", {key for key in key_of.values() if graph.find(key) is not None}, set(order)),
    ]
    told = [f"{name}: {got} ≠ {wanted}" for name, got, wanted in pairs if got != wanted]
    return told + kept_differences(snapshot, graph)


def kept_differences(snapshot: Snapshot, graph: WorkspaceGraph) -> list[str]:
    """What the rows beside the graph, and what it tells of them, say otherwise than the store.

    All of them are asked for, and stay for the next time. Relations that a shell left between
    two workspaces are none of the graph's.
    """
    nodes = list(snapshot.nodes.iter_all(graph.workspace))
    relations = list(snapshot.relations.iter_all(graph.workspace))
    keys, ids = [node.key for node in nodes], [node.id for node in nodes]
    key_of = dict(zip(ids, keys, strict=True))
    inner = [each for each in relations if each.from_id in key_of and each.to_id in key_of]
    files: dict[int, list[int]] = {key: [] for key in keys}
    for node, file in snapshot.filerefs.rested_on(ids, 1 << 20):
        if file in files:
            files[key_of[node]].append(file)
    pairs: list[tuple[str, Any, Any]] = [
        ("kept nodes", graph.kept.nodes(snapshot, keys), nodes),
        (
            "kept relations",
            graph.kept.relations(snapshot, [each.key for each in relations]),
            relations,
        ),
        (
            "kept prefixes",
            graph.kept.unique_prefixes(snapshot, ids),
            snapshot.nodes.unique_prefixes(ids),
        ),
        (
            "files",
            {key: list(kept) for key, kept in files_of(graph, snapshot, nodes).items()},
            files,
        ),
    ]
    if (superseded := find_superseded(graph, keys)) is not None:
        newer = [each for each in inner if each.type is RelationType.SUPERSEDES]
        pairs.append(("superseded", superseded, {key_of[each.to_id] for each in newer}))
    degrees = Counter(key_of[end] for each in inner for end in (each.from_id, each.to_id))
    found = [key for key in keys if graph.find(key) is not None]
    pairs += [(f"degree of {key}", degree(graph, key), degrees[key]) for key in found]
    return [f"{name}: {got} ≠ {wanted}" for name, got, wanted in pairs if got != wanted]


def rows_as_edges(graph: WorkspaceGraph, *, incoming: bool) -> Counter[Any]:
    """New rows; those that the graph keeps stay as they are, with their notes."""
    rows = rows_of(graph.graph, len(graph.key), incoming=incoming)
    edges: Counter[Any] = Counter()
    for index, key in enumerate(graph.key):
        for at in range(rows.indptr[index], rows.indptr[index + 1]):
            assert key != FREE
            other = graph.key[rows.neighbor[at]]
            source, target = (other, key) if incoming else (key, other)
            kind = RELATION_TYPES[rows.relation_type[at]]
            edges[int(rows.relation[at]), source, target, kind, bool(rows.derived[at])] += 1
    return edges


def crossed_as_keys(graph: WorkspaceGraph, *, incoming: bool) -> Counter[tuple[int, int]]:
    """(key, far end's key) of all that the kept rows and their notes lead to."""
    everything = table(flags(None, include_derived=True))
    found = graph.crossed(np.arange(len(graph.key)), everything, incoming=incoming)
    far = [graph.key[index] for index in found.neighbors()]
    return Counter(zip(found.relations().tolist(), far, strict=True))


def far_ends(edges: Counter[Any], end: int) -> Counter[tuple[int, int]]:
    return Counter((edge[0], edge[end]) for edge in edges)


def add_node(
    transaction: Transaction,
    kind: NodeType = NodeType.FACT,
    workspace: WorkspaceId = HERE,
    at: Instant | None = None,
) -> tuple[int, NodeId]:
    node = transaction.nodes.insert(
        NodeId(new_id()), kind, workspace, None, {}, at or transaction.at
    )
    return node.key, node.id


@contextmanager
def opened(count: int = 1) -> Iterator[tuple[Path, list[Database]]]:
    """A new file, opened `count` times, as that many processes would."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "home" / "cortex.db"
        databases = [Database(path) for _ in range(count)]
        try:
            yield path, databases
        finally:
            for database in databases:
                database.close()


class World:
    """One file, two databases on it, a foreign shell, and the operations on them."""

    def __init__(self, path: Path, databases: list[Database]) -> None:
        self.databases = databases
        self.shell = sqlite3.connect(path, isolation_level=None)  # foreign keys off, as in a shell

    def node(self, number: int) -> tuple[int, NodeId] | None:
        with self.databases[0].read() as snapshot:
            nodes = [n for ws in (HERE, THERE) for n in snapshot.nodes.brief(ws)]
        chosen = nodes[number % len(nodes)] if nodes else None
        return (chosen.key, NodeId(chosen.id)) if chosen else None

    def relation(self, number: int) -> int | None:
        with self.databases[0].read() as snapshot:
            keys = [r.key for ws in (HERE, THERE) for r in snapshot.relations.iter_all(ws)]
        return keys[number % len(keys)] if keys else None

    def apply(self, name: str, who: int, a: int, b: int, c: int) -> None:
        operation: Callable[[Database, int, int, int], None] = getattr(self, "op_" + name)
        # What the store refuses changes nothing; the graph has to see that too.
        with suppress(ConflictError, sqlite3.IntegrityError):
            operation(self.databases[who], a, b, c)
        if self.shell.in_transaction:
            self.shell.execute("ROLLBACK")

    def op_insert(self, database: Database, a: int, b: int, c: int) -> None:
        with database.write("test") as transaction:
            for number in range(1 + a % 3):
                kind = NODE_TYPES[(b + number) % 13]
                add_node(transaction, kind, THERE if c % 5 == 0 else HERE)

    def op_insert_late(self, database: Database, a: int, b: int, c: int) -> None:
        with database.write("test") as transaction:
            at = Instant(f"2020-01-{1 + a % 3:02}T00:00:00.000000Z")
            add_node(transaction, NODE_TYPES[b % 13], HERE, at)

    def op_relate(self, database: Database, a: int, b: int, c: int) -> None:
        source, target = self.node(a), self.node(b)
        with database.write("test") as transaction:
            if source is None or target is None or source == target:
                return
            ends = [transaction.nodes.find(end[1]) for end in (source, target)]
            kind = RELATION_TYPES[1 + c % 21]
            if ends[0] is None or ends[1] is None or ends[0].workspace_id != ends[1].workspace_id:
                return
            if transaction.relations.find(source[1], target[1], kind) is None:
                transaction.relations.insert(
                    ends[0].workspace_id,
                    source[1],
                    target[1],
                    kind,
                    transaction.at,
                    1.0 if a % 2 else 0.5,
                    {"derived": True} if b % 3 == 0 else {},
                )

    def op_refresh(self, database: Database, a: int, b: int, c: int) -> None:
        key = self.relation(a)
        if key is not None:
            with database.write("test") as transaction:
                data = {"derived": True} if b % 3 == 0 else {}
                transaction.relations.refresh(key, (c % 3) / 2, data, transaction.at)

    def op_unrelate(self, database: Database, a: int, b: int, c: int) -> None:
        key = self.relation(a)
        if key is not None:
            with database.write("test") as transaction:
                transaction.relations.delete([key])

    def op_delete(self, database: Database, a: int, b: int, c: int) -> None:
        node = self.node(a)
        if node is not None:
            with database.write("test") as transaction:
                transaction.nodes.delete([node[0]])

    def op_status(self, database: Database, a: int, b: int, c: int) -> None:
        node = self.node(a)
        if node is not None:
            with database.write("test") as transaction:
                transaction.nodes.set_status([node[0]], STATUSES[b % 3])

    def op_replace(self, database: Database, a: int, b: int, c: int) -> None:
        """Delete and insert in one transaction, so that indices are reused at once."""
        node = self.node(a)
        with database.write("test") as transaction:
            if node is not None:
                transaction.nodes.delete([node[0]])
            first, second = add_node(transaction), add_node(transaction)
            transaction.relations.insert(
                HERE, first[1], second[1], RELATION_TYPES[1 + c % 21], transaction.at
            )

    def op_shell_delete(self, database: Database, a: int, b: int, c: int) -> None:
        node = self.node(a)
        if node is not None:
            self.shell.execute("DELETE FROM nodes WHERE rowkey = ?", (node[0],))

    def op_shell_date(self, database: Database, a: int, b: int, c: int) -> None:
        node = self.node(a)
        if node is not None:
            at = f"2021-01-{1 + b % 3:02}T00:00:00.000000Z"
            self.shell.execute("UPDATE nodes SET created_at = ? WHERE rowkey = ?", (at, node[0]))

    def op_shell_move(self, database: Database, a: int, b: int, c: int) -> None:
        """To the other workspace, its relations moved only sometimes."""
        node = self.node(a)
        if node is not None:
            there = THERE if b % 2 else HERE
            self.shell.execute("BEGIN IMMEDIATE")
            self.shell.execute("UPDATE nodes SET workspace_id = ? WHERE id = ?", (there, node[1]))
            if c % 2:
                self.shell.execute(
                    "UPDATE relations SET workspace_id = ? WHERE from_id = ? OR to_id = ?",
                    (there, node[1], node[1]),
                )
            self.shell.execute("COMMIT")

    def op_shell_same_key(self, database: Database, a: int, b: int, c: int) -> None:
        """A relation's key, given by hand to another relation."""
        key, source, target = self.relation(a), self.node(b), self.node(c)
        if key is None or source is None or target is None:
            return
        self.shell.execute("BEGIN IMMEDIATE")
        self.shell.execute("DELETE FROM relations WHERE rowkey = ?", (key,))
        # Where it was there, or would join two workspaces, the deletion alone stands.
        with suppress(sqlite3.IntegrityError):
            self.shell.execute(
                """INSERT INTO relations(rowkey, id, workspace_id, from_id, to_id, type,
                                         created_at, updated_at)
                   SELECT ?, ?, workspace_id, id, ?, 'blocks', created_at, updated_at
                     FROM nodes WHERE id = ?""",
                (key, new_id(), target[1], source[1]),
            )
        self.shell.execute("COMMIT")


def shell_on(path: Path, *statements: tuple[str, tuple[Any, ...]]) -> None:
    """One transaction of a foreign shell."""
    shell = sqlite3.connect(path, isolation_level=None)
    shell.execute("BEGIN IMMEDIATE")
    for statement, bound in statements:
        shell.execute(statement, bound)
    shell.execute("COMMIT")
    shell.close()
