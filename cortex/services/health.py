"""Health: what in a memory has come loose, how grave that is, and the call that mends it.

score = 100 − Σ weight · affected / active nodes, not below 0, where `affected` counts the
distinct active nodes of a check's findings. A finding's `points` is its part of the sum, so
that the score can be taken apart. Bounds: the newest 10,000 texts are compared for near
duplicates, by their first 400 characters, and the newest 2,000 filerefs with the disk.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

from cortex.domain.instants import before
from cortex.domain.taxonomy import Status
from cortex.domain.values import Node, NodeId, WorkspaceId
from cortex.services.duplicates import near_duplicates
from cortex.services.engine import Engine
from cortex.services.files import Freshness, freshness, path_of
from cortex.services.ingest.sources import SUFFIXES
from cortex.services.reach import reach_of
from cortex.services.resolving import head_of
from cortex.store.database import Snapshot
from cortex.store.health import Check

TASK_DAYS: Final = 14
READ_DAYS: Final = 30
HUB_DEGREE: Final = 200
TEXTS: Final = 10_000
FILES: Final = 2_000
EXAMPLES: Final = 5
_CUT: Final = 400

WEIGHTS: Final = MappingProxyType(
    {
        Check.DANGLING_RELATIONS: 20,
        Check.CONTRADICTIONS: 20,
        Check.STALE_SUPPORT: 15,
        Check.CHANGED_FILES: 15,
        Check.ORPHANS: 15,
        Check.INDEX_LAG: 15,
        Check.TASKS_WITHOUT_OUTCOME: 10,
        Check.FACTS_WITHOUT_SOURCE: 10,
        Check.NEAR_DUPLICATES: 10,
        Check.OFF_TAXONOMY: 5,
        Check.HUBS: 5,
        Check.NEVER_READ: 5,
    }
)
"""Points lost where every active node is affected."""

Row = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Finding:
    """What one check found; `mend` is the call or command for the first example.

    Repeated for each that is left, it brings `count` to 0.
    """

    check: Check
    count: int
    examples: tuple[Node, ...]
    mend: str
    weight: int
    affected: int
    points: float


@dataclass(frozen=True, slots=True)
class Health:
    """The findings, gravest check first, of a workspace's `nodes` active nodes."""

    workspace_id: WorkspaceId
    score: float
    nodes: int
    findings: tuple[Finding, ...]
    generation: int


class Checkup:
    """Looks a workspace over, and drops what no tool can mend."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def health(self, workspace: str | None = None) -> Health:
        """Every check in one snapshot; the disk is asked, and texts are compared, after it."""
        place = self._engine.workspace(workspace)
        with self._engine.database.read() as snapshot:
            rows = _rows(snapshot, place)
            files = snapshot.health.files(place, FILES)
            texts = snapshot.health.texts(place, TEXTS, _CUT)
            active = snapshot.nodes.counts(place).get(Status.ACTIVE, 0)
            generation = snapshot.generation().seq
            reach = reach_of(snapshot, self._engine.settings)
        states = {file.id: freshness(file, reach) for file in files if "size" in file.data}
        differing = (Freshness.CHANGED, Freshness.MISSING)
        rows[Check.CHANGED_FILES] = [
            (file.id, states[file.id]) for file in files if states.get(file.id) in differing
        ]
        rows[Check.NEAR_DUPLICATES] = list(near_duplicates(texts))
        with self._engine.database.read() as snapshot:
            findings = [
                _finding(snapshot, place, check, rows[check], active)
                for check in Check
                if rows[check]
            ]
        lost = sum(finding.points for finding in findings)
        return Health(place, round(max(100.0 - lost, 0.0), 1), active, tuple(findings), generation)

    def drop_dangling(self, workspace: str | None = None) -> int:
        """Delete relations with an end that is gone, or in another workspace; how many."""
        place = self._engine.workspace(workspace)
        with self._engine.write() as transaction:
            return transaction.relations.delete(transaction.health.dangling(place))


def _rows(snapshot: Snapshot, place: WorkspaceId) -> dict[Check, list[Row]]:
    """What the statements find. Ages are by the workspace's own time, its last activity."""
    last = snapshot.archiving.last_activity(place)
    cutoffs = {
        check: "" if last is None else before(last, days=days)
        for check, days in ((Check.TASKS_WITHOUT_OUTCOME, TASK_DAYS), (Check.NEVER_READ, READ_DAYS))
    }
    asked = [check for check in Check if check not in (Check.CHANGED_FILES, Check.NEAR_DUPLICATES)]
    return {
        check: snapshot.health.found(check, place, cutoff=cutoffs.get(check, ""), bound=HUB_DEGREE)
        for check in asked
    }


def _finding(
    snapshot: Snapshot, place: WorkspaceId, check: Check, rows: Sequence[Row], active: int
) -> Finding:
    # One id a row, or the two ends of what was found.
    ends = 2 if check in _PAIRED else 1
    affected = len({node for row in rows for node in row[:ends]})
    points = WEIGHTS[check] * min(affected / active, 1.0) if active else float(WEIGHTS[check])
    ids = list(dict.fromkeys(row[0] for row in rows))[:EXAMPLES]
    return Finding(
        check,
        len(rows),
        tuple(snapshot.nodes.by_ids(ids)),
        _MENDS[check](snapshot, place, rows[0]),
        WEIGHTS[check],
        affected,
        round(points, 2),
    )


# ── the mends ─────────────────────────────────────────────────────────────────────────────


def call(tool: str, **arguments: Any) -> str:
    """A tool's call as text: its name, its arguments as JSON."""
    given = (f"{name}={json.dumps(value, ensure_ascii=False)}" for name, value in arguments.items())
    return f"{tool}({', '.join(given)})"


def _marking(status: Status) -> Callable[[Snapshot, WorkspaceId, Row], str]:
    return lambda _snapshot, _place, row: call(
        "graph_update_node", node_id=row[0], status=status.value
    )


def _noting(**data: Any) -> Callable[[Snapshot, WorkspaceId, Row], str]:
    return lambda _snapshot, _place, row: call("graph_update_node", node_id=row[0], data=data)


def _command(words: str) -> Callable[[Snapshot, WorkspaceId, Row], str]:
    return lambda _snapshot, place, _row: words.format(place=shlex.quote(place))


def _adopt(snapshot: Snapshot, place: WorkspaceId, row: Row) -> str:
    root = snapshot.nodes.root(place)
    if root is None:  # the next look names what to join to it
        return call("desktop_open", workspace_id=place)
    return call("graph_add_relation", from_id=root.id, to_id=row[0], type="contains")


def _carry(snapshot: Snapshot, place: WorkspaceId, row: Row) -> str:
    """Let what replaced the support give it; where nothing did, mark what rested on it."""
    taker, giver, kind = row
    [stale] = snapshot.nodes.by_ids([giver])
    head = head_of(snapshot, stale)
    if head.status is not Status.ACTIVE:
        return _marking(Status.STALE)(snapshot, place, row)
    ends: tuple[NodeId, NodeId] = (head.id, taker)
    if kind == "derives_from":
        ends = (taker, head.id)
    return call("graph_add_relation", from_id=ends[0], to_id=ends[1], type=kind)


def _mean(_snapshot: Snapshot, _place: WorkspaceId, row: Row) -> str:
    source, target, kind, weight = row
    return call(
        "graph_add_relation",
        from_id=source,
        to_id=target,
        type=kind,
        weight=weight,
        data={"meant": True},
    )


def _read_again(snapshot: Snapshot, place: WorkspaceId, row: Row) -> str:
    [file] = snapshot.nodes.by_ids([row[0]])
    path = path_of(file)
    if row[1] is Freshness.MISSING or path is None:
        return _marking(Status.STALE)(snapshot, place, row)
    if path.suffix.lower() in SUFFIXES:
        return f"cortex ingest {shlex.quote(str(path))} --workspace {shlex.quote(place)}"
    return call("graph_update_node", node_id=file.id, path=str(path))


_PAIRED: Final = (Check.CONTRADICTIONS, Check.OFF_TAXONOMY)
_MENDS: Final = MappingProxyType(
    {
        Check.DANGLING_RELATIONS: _command("cortex health --drop-dangling --workspace {place}"),
        Check.CONTRADICTIONS: _marking(Status.STALE),
        Check.STALE_SUPPORT: _carry,
        Check.CHANGED_FILES: _read_again,
        Check.ORPHANS: _adopt,
        Check.INDEX_LAG: _command("cortex reindex"),
        Check.TASKS_WITHOUT_OUTCOME: _marking(Status.ARCHIVED),
        Check.FACTS_WITHOUT_SOURCE: _noting(source="who or what said so"),
        Check.NEAR_DUPLICATES: _marking(Status.STALE),
        Check.OFF_TAXONOMY: _mean,
        Check.HUBS: _noting(hub=True),
        Check.NEVER_READ: _marking(Status.ARCHIVED),
    }
)
