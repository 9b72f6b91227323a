"""Checks of the truth: the values of rows, the rules between them, and the log of changes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Final

from cortex.domain.taxonomy import RelationType
from cortex.services.doctor.findings import BY_FIX, COMPACT, Case, Finding, fine, found

_DROP: Final = "cortex health --drop-dangling --workspace"


def check_values(case: Case) -> Finding:
    """Types, statuses, times, weights and JSON that the columns may hold."""
    with case.engine.database.read() as snapshot:
        nodes = snapshot.integrity.bad_nodes()
        relations = snapshot.integrity.bad_relations()
        count = sum(snapshot.integrity.counts())
    wrong = [f"node {row[1]}: {_told(row[2:])}" for row in nodes]
    wrong += [f"relation {row[1]}: {_told(row[2:7])}" for row in relations]
    if wrong:
        said = "a row holds what cannot be read"
        return found("values", wrong, said, BY_FIX, rows=[(nodes, relations)])
    return fine("values", count, "types, statuses, times, weights, JSON")


def _told(values: Iterable[object]) -> str:
    return ", ".join(str(value)[:40] for value in values)


def check_foreign_keys(case: Case) -> Finding:
    """Relations have both ends, and what hangs on a node has its node."""
    with case.engine.database.read() as snapshot:
        dangling = snapshot.integrity.dangling()
        stray = snapshot.integrity.stray()
        count = snapshot.integrity.counts()[1]
    wrong = [f"relation {row[1]}: {row[3]} {row[2]} {row[4]}" for row in dangling]
    wrong += [f"{table} of node {key}" for table, key in stray]
    if wrong:
        said = "what it points to is gone"
        rows = [([row[0] for row in dangling], stray)]
        return found("foreign keys", wrong, said, BY_FIX, rows=rows)
    return fine("foreign keys", count, "every end is there")


def check_workspaces(case: Case) -> Finding:
    """A relation never joins two workspaces (invariant 6)."""
    with case.engine.database.read() as snapshot:
        apart = snapshot.integrity.apart()
        count = snapshot.integrity.counts()[1]
    if apart:
        torn = [row for row in apart if row[4] != row[5]]
        mend = BY_FIX if not torn else f"{_DROP} {torn[0][3]}"
        wrong = [f"relation {row[1]} of {row[3]}: {row[4]} {row[2]} {row[5]}" for row in apart]
        return found(
            "workspaces", wrong, "it is not in the workspace of its ends", mend, rows=apart
        )
    return fine("workspaces", count, "each relation within one")


def check_forest(case: Case) -> Finding:
    """`contains` is a forest: one parent each, no cycle (invariant 6)."""
    return _acyclic(case, "forest", RelationType.CONTAINS, one=True)


def check_supersedes(case: Case) -> Finding:
    """`supersedes` has no cycle (invariant 6)."""
    return _acyclic(case, "supersedes", RelationType.SUPERSEDES, one=False)


def _acyclic(case: Case, check: str, kind: RelationType, *, one: bool) -> Finding:
    with case.engine.database.read() as snapshot:
        pairs = snapshot.integrity.pairs(kind)
    wrong = [f"{source} {kind} {target}, in a cycle" for source, target in in_cycles(pairs)]
    if one:
        seen: set[str] = set()
        for source, target in pairs:
            if target in seen:
                wrong.append(f"{target} has more than one parent, {source} among them")
            seen.add(target)
    if wrong:
        mend = "delete one of these relations, in a SQL shell: which one is yours to say"
        return found(check, wrong, f"{kind} goes round", mend)
    return fine(check, len(pairs), f"{kind} has no cycle")


def in_cycles(pairs: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    """The pairs that lie on a cycle, or between two of them, in the order given.

    Ends without a way on are taken off, then those without a way in (Kahn, 1962, from both
    sides); what is left goes round. Linear.
    """
    left = list(pairs)
    for near, far in ((0, 1), (1, 0)):
        waiting: dict[str, int] = defaultdict(int)
        reached = defaultdict(list)
        for pair in left:
            waiting[pair[near]] += 1
            reached[pair[far]].append(pair[near])
        free = [node for node in reached if node not in waiting]
        gone: set[str] = set()
        while free:
            node = free.pop()
            gone.add(node)
            for other in reached[node]:
                waiting[other] -= 1
                if not waiting[other]:
                    free.append(other)
        left = [pair for pair in left if pair[far] not in gone]
    return left


def check_parents(case: Case) -> Finding:
    """parent_id and `contains` say the same."""
    with case.engine.database.read() as snapshot:
        differing = snapshot.integrity.parents()
        count = snapshot.integrity.counts()[0]
    if differing:
        wrong = [
            f"node {node}: parent_id {parent or 'none'}, contained by {container or 'none'}"
            for _, node, parent, container in differing
        ]
        said = "parent_id is not what contains it"
        return found("parents", wrong, said, BY_FIX, rows=differing)
    return fine("parents", count, "parent_id = contains")


def check_superseded(case: Case) -> Finding:
    """A superseded node is never active (invariant 6)."""
    with case.engine.database.read() as snapshot:
        active = snapshot.integrity.superseded()
        count = len(snapshot.integrity.pairs(RelationType.SUPERSEDES))
    if active:
        wrong = [f"node {node}" for _, node in active]
        rows = [key for key, _ in active]
        return found("superseded", wrong, "superseded, and active", BY_FIX, rows=rows)
    return fine("superseded", count, "none is active")


def check_roots(case: Case) -> Finding:
    """A workspace has one session root."""
    with case.engine.database.read() as snapshot:
        more = snapshot.integrity.roots()
        count = len(snapshot.nodes.workspaces())
    if more:
        wrong = [f"node {node} of {place}, beside {first}" for _, node, place, first in more]
        return found("roots", wrong, "a second session root", BY_FIX, rows=more)
    return fine("roots", count, "one a workspace")


def check_tallies(case: Case) -> Finding:
    """The kept numbers of nodes are those of the table."""
    with case.engine.database.read() as snapshot:
        miscounted = snapshot.integrity.miscounted()
        count = snapshot.integrity.counts()[0]
    if miscounted:
        wrong = [
            f"{place}: {told} {status}, there are {counted}"
            for place, status, told, counted in miscounted
        ]
        return found("tallies", wrong, "the number of nodes is kept wrong", BY_FIX)
    return fine("tallies", count, "nodes by workspace and status")


def check_log(case: Case) -> Finding:
    """The log leads to the tables; its time never goes back (invariants 2 and 5)."""
    with case.engine.database.read() as snapshot:
        faults = snapshot.log_audit.faults()
        count = snapshot.log_audit.rows()
    if faults:
        mendable = all(
            fault.kind == "mark" or (fault.kind == "unlogged" and fault.entity != "wave")
            for fault in faults
        )
        wrong = [fault.said for fault in faults]
        mend = BY_FIX if mendable else COMPACT
        return found("log", wrong, "the log does not lead to the tables", mend, rows=faults)
    return fine("log", count, "log = tables")


def check_writer(case: Case) -> Finding:
    """Nobody who has gone is still named as the writer."""
    with case.engine.database.read() as snapshot:
        rows, named = snapshot.integrity.writers()
    if (rows, named) != (1, 0):
        wrong = [f"{rows} rows, {named} of them with a transaction"]
        said = "a shell's changes would bear another's name and time"
        return found("writer", wrong, said, BY_FIX)
    return fine("writer", 1, "none outside of a transaction")
