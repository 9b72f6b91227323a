"""What --fix does for each check: derived things made again, and what has but one way back."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from cortex.domain.errors import ConflictError
from cortex.domain.taxonomy import RelationType
from cortex.domain.values import NodeId, WorkspaceId
from cortex.graph.shelf import Shelf
from cortex.services.doctor.findings import Case, Finding
from cortex.store.database import Transaction
from cortex.store.derive import owe
from cortex.store.shrinking import cut_wal

_STEP: Final = 200  # nodes a transaction: others write in between


def mend_triggers(case: Case, finding: Finding) -> None:
    """Before any row is mended, so that each mending is logged."""
    with case.engine.write() as transaction:
        kept = [each for each in finding.rows if each.kind != "index"]
        transaction.mending.restore_schema(kept)
        transaction.mending.begin_epoch()  # what was written meanwhile may not be in the log


def mend_missing_indexes(case: Case, finding: Finding) -> None:
    """After the rows, of which a unique index may forbid some as they are."""
    for each in finding.rows:
        if each.kind == "index":
            with suppress(ConflictError), case.engine.write() as transaction:  # told by its check
                transaction.mending.restore_schema([each])


def mend_indexes(case: Case, finding: Finding) -> None:
    with case.engine.write() as transaction:
        transaction.mending.reindex()
        transaction.mending.begin_epoch()


def mend_values(case: Case, finding: Finding) -> None:
    [(nodes, relations)] = finding.rows
    with case.engine.write() as transaction:
        transaction.mending.make_valid(nodes, relations)


def mend_foreign_keys(case: Case, finding: Finding) -> None:
    """Relations without an end go, and are logged; so does what hangs on no node."""
    [(dangling, stray)] = finding.rows
    with case.engine.write() as transaction:
        transaction.mending.drop_relations(dangling)
        transaction.mending.drop_stray(stray)


def mend_workspaces(case: Case, finding: Finding) -> None:
    """A relation goes where both of its ends are; one that joins two is a person's to judge."""
    with case.engine.write() as transaction:
        for key, _, _, _, near, far in finding.rows:
            if near == far:
                transaction.mending.move_relation(key, near)


def mend_parents(case: Case, finding: Finding) -> None:
    with case.engine.write() as transaction:
        for key, node, parent, container in finding.rows:
            if container is None and parent and transaction.mending.can_contain(parent, key):
                [child] = transaction.nodes.by_keys([key])
                transaction.relations.insert(
                    child.workspace_id,
                    NodeId(parent),
                    NodeId(node),
                    RelationType.CONTAINS,
                    transaction.at,
                )
            else:
                transaction.mending.set_parent(key, container)


def mend_superseded(case: Case, finding: Finding) -> None:
    with case.engine.write() as transaction:
        transaction.mending.go_stale(finding.rows)


def mend_roots(case: Case, finding: Finding) -> None:
    """Later roots go below the first."""
    with case.engine.write() as transaction:
        for _, node, place, first in finding.rows:
            transaction.relations.insert(
                WorkspaceId(place),
                NodeId(first),
                NodeId(node),
                RelationType.CONTAINS,
                transaction.at,
            )


def mend_tallies(case: Case, finding: Finding) -> None:
    with case.engine.write() as transaction:
        transaction.mending.recount()


def mend_writer(case: Case, finding: Finding) -> None:
    with case.engine.write() as transaction:
        transaction.mending.restore_writer()


def mend_log(case: Case, finding: Finding) -> None:
    with case.engine.write() as transaction:
        for entity in ("node", "relation"):
            keys = [
                fault.key
                for fault in finding.rows
                if fault.kind == "unlogged" and fault.entity == entity
            ]
            transaction.mending.log_present(entity, keys)
        transaction.mending.settle_marks()
        transaction.mending.begin_epoch()


def mend_broken_keywords(case: Case, finding: Finding) -> None:
    """Early: every write brings the keyword index up to date, and needs one that works."""
    [(broken, _)] = finding.rows
    if not broken:
        return
    with case.engine.write() as transaction:
        transaction.mending.rebuild_keywords()
        emptied = not transaction.keywords.keys()
    if emptied:
        with case.engine.database.read() as snapshot:
            places = snapshot.nodes.workspaces()
            keys = [node.key for place in places for node in snapshot.nodes.iter_all(place)]
        _each(case, keys, _put_keywords)


def mend_keywords(case: Case, finding: Finding) -> None:
    [(_, keys)] = finding.rows
    _each(case, keys, _put_keywords)


def _put_keywords(transaction: Transaction, key: int, node: Any) -> None:
    if node is None:
        transaction.keywords.drop(key)
    else:
        transaction.keywords.put(node)


def mend_outbox(case: Case, finding: Finding) -> None:
    _each(case, list(finding.rows), _put_debt)


def _put_debt(transaction: Transaction, key: int, node: Any) -> None:
    if node is None:
        transaction.outbox.forgive(key)
    else:
        owe(transaction.outbox, transaction.embeddings, node)


def mend_vectors(case: Case, finding: Finding) -> None:
    """The texts are embedded again, in the background of whoever serves next."""
    _each(case, list(finding.rows), lambda transaction, key, _: transaction.mending.owe_again(key))
    with case.engine.write() as transaction:
        transaction.mending.begin_epoch()


def mend_saved_graphs(case: Case, finding: Finding) -> None:
    Shelf(case.settings.database, writable=True).remove(finding.rows)


def mend_index(case: Case, finding: Finding) -> None:
    case.semantic.rebuild(case.step)


def mend_permissions(case: Case, finding: Finding) -> None:
    for path in map(Path, finding.rows):
        if path.exists():
            path.chmod(0o700 if path.is_dir() else 0o600)


def mend_wal(case: Case, finding: Finding) -> None:
    cut_wal(case.settings.database)


def _each(case: Case, keys: list[int], do: Callable[[Transaction, int, Any], None]) -> None:
    for start in range(0, len(keys), _STEP):
        piece = keys[start : start + _STEP]
        with case.engine.write() as transaction:
            nodes = {node.key: node for node in transaction.nodes.by_keys(piece)}
            for key in piece:
                do(transaction, key, nodes.get(key))
        case.step(start + len(piece), len(keys))


MENDERS: Final[tuple[tuple[str, Callable[[Case, Finding], None]], ...]] = (
    # First: whoever writes follows the log at the end, and must be able to read the rows.
    ("values", mend_values),
    ("keywords", mend_broken_keywords),
    ("schema", mend_triggers),
    ("foreign keys", mend_foreign_keys),
    ("workspaces", mend_workspaces),
    ("parents", mend_parents),
    ("superseded", mend_superseded),
    ("roots", mend_roots),
    ("schema", mend_missing_indexes),
    ("indexes", mend_indexes),
    ("tallies", mend_tallies),
    ("writer", mend_writer),
    ("log", mend_log),
    ("keywords", mend_keywords),
    ("outbox", mend_outbox),
    ("vectors", mend_vectors),
    ("saved graphs", mend_saved_graphs),
    ("vector index", mend_index),
    ("permissions", mend_permissions),
    ("write-ahead log", mend_wal),
)
"""By check, in the order in which they are mended: what later ones build on comes first."""
