"""What a researcher asks of a file first: its size, its shape, who is central, when it lived."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from analytics.client import Worker
from analytics.queries import (
    Buckets,
    Centrality,
    Churn,
    Communities,
    Counts,
    Distribution,
    IdleTimes,
    Names,
    Workspaces,
)
from cortex.domain.errors import NotFoundError
from cortex.domain.values import shorten

_LONG: Final = 600.0  # seconds that a researcher waits


@dataclass(frozen=True, slots=True)
class Table:
    """A title, the names of its columns, rows of plain values."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]

    def records(self) -> list[dict[str, Any]]:
        """The rows as mappings, for JSON."""
        return [dict(zip(self.columns, row, strict=True)) for row in self.rows]


def workspace_of(worker: Worker, wanted: str | None) -> str:
    """The workspace asked for, else the one with most nodes. Raises NotFoundError."""
    names = [row.workspace for row in worker.ask(Workspaces(), timeout=_LONG).rows]
    if wanted is None and names:
        return names[0]
    if wanted in names and wanted is not None:
        return wanted
    raise NotFoundError(
        f"there is no workspace {wanted!r}" if wanted else "the file holds no memories",
        "Valid: " + (", ".join(names) or "none"),
        "Choose with --workspace",
    )


def summary(worker: Worker, workspace: str) -> Mapping[str, Table]:
    """Counts, components, degrees, PageRank, communities and activity by week."""
    return {
        "workspaces": _workspaces(worker),
        "nodes": _nodes(worker, workspace),
        "relations": _relations(worker, workspace),
        "components": distribution(worker, workspace, "component"),
        "degrees": distribution(worker, workspace, "degree"),
        "pagerank": centrality(worker, workspace, "pagerank", 10),
        "communities": communities(worker, workspace, 10),
        "activity": activity(worker, workspace, "week"),
    }


def _workspaces(worker: Worker) -> Table:
    rows = worker.ask(Workspaces(), timeout=_LONG).rows
    return Table("workspaces", ("workspace", "nodes", "relations"), rows)


def _nodes(worker: Worker, workspace: str) -> Table:
    rows = worker.ask(Counts(workspace), timeout=_LONG).rows
    counts: dict[str, dict[str, int]] = {}
    for row in rows:
        if row.entity == "node" and row.status is not None:
            counts.setdefault(row.type, {})[row.status] = row.total
    states = ("active", "stale", "archived")
    order = sorted(counts, key=lambda kind: (-sum(counts[kind].values()), kind))
    table = [(kind, *(counts[kind].get(state, 0) for state in states)) for kind in order]
    total = sum(sum(by.values()) for by in counts.values())
    return Table(f"{total} nodes by type", ("type", *states), tuple(table))


def _relations(worker: Worker, workspace: str) -> Table:
    rows = worker.ask(Counts(workspace), timeout=_LONG).rows
    table = sorted(
        ((row.type, row.total) for row in rows if row.entity == "relation"),
        key=lambda row: (-row[1], row[0]),
    )
    total = sum(count for _, count in table)
    return Table(f"{total} relations by type", ("type", "relations"), tuple(table))


def distribution(worker: Worker, workspace: str, of: str) -> Table:
    """Active nodes by degree, core or component size: doubling classes, shares of all."""
    rows = worker.ask(Distribution(workspace, of), timeout=_LONG).rows
    classes: dict[int, int] = {}
    for value, nodes in rows:
        first = 0 if value == 0 else 1 << (value.bit_length() - 1)
        classes[first] = classes.get(first, 0) + nodes
    total = sum(classes.values())
    table = [
        (str(first) if first < 2 else f"{first}-{2 * first - 1}", nodes, round(nodes / total, 4))
        for first, nodes in sorted(classes.items())
    ]
    title, column = f"{total} active nodes by {of}", of
    if of == "component":
        number = sum(nodes // size for size, nodes in rows)
        largest = rows[-1].value if rows else 0
        title = f"{number} weak components, the largest of {largest}"
        column = "size"
    return Table(title, (column, "nodes", "share"), tuple(table))


def centrality(worker: Worker, workspace: str, measure: str, take: int) -> Table:
    """The nodes that most hangs on, best first."""
    rows = worker.ask(Centrality(workspace, measure, take=take), timeout=_LONG).rows
    title = f"{measure}: nothing to measure"
    if rows:
        kind = "exact" if rows[0].exact else "approximate"
        if rows[0].error_bound is not None:
            kind += f" within {rows[0].error_bound:.2g}"
        title = f"{measure} of {rows[0].total} nodes, {kind} ({rows[0].source})"
    named = _named(worker, [row.id for row in rows])
    table = tuple((row.score, *named[row.id]) for row in rows)
    return Table(title, ("score", "id", "type", "title"), table)


def _named(worker: Worker, ids: Sequence[str]) -> dict[str, tuple[str, str, str]]:
    """Id, type and title; of a node that was deleted meanwhile, its id alone."""
    unknown = {node: (node, "", "") for node in ids}
    rows = worker.ask(Names(tuple(dict.fromkeys(ids))), timeout=_LONG).rows
    return {**unknown, **{row.id: (row.id, row.type, row.title) for row in rows}}


def communities(worker: Worker, workspace: str, take: int) -> Table:
    """The largest communities with their best joined members."""
    rows = worker.ask(Communities(workspace, take=take, members=3), timeout=_LONG).rows
    title = "communities: nothing to group"
    if rows:
        title = (
            f"{rows[0].total} communities, modularity {rows[0].modularity:.3f} ({rows[0].source})"
        )
    named = _named(worker, [member for row in rows for member in row.members])
    table = tuple(
        (row.number, row.size, "; ".join(shorten(named[member][2], 60) for member in row.members))
        for row in rows
    )
    return Table(title, ("number", "size", "best joined members"), table)


def activity(worker: Worker, workspace: str, unit: str) -> Table:
    """Events by unit of time and kind, oldest first, a column for each kind that occurs."""
    rows = worker.ask(Buckets(workspace, unit), timeout=_LONG).rows
    kinds = sorted({row.kind for row in rows})
    starts: dict[str, dict[str, int]] = {}
    for row in rows:
        starts.setdefault(row.start, {})[row.kind] = row.total
    width = 13 if unit == "hour" else 10
    table: Sequence[tuple[Any, ...]] = [
        (start[:width], *(by.get(kind, 0) for kind in kinds)) for start, by in starts.items()
    ]
    return Table(f"events by {unit}", (unit, *kinds), tuple(table))


def churn(worker: Worker, workspace: str) -> Table:
    """What came and went by week, oldest first."""
    rows = worker.ask(Churn(workspace), timeout=_LONG).rows
    columns = ("week", "created", "superseded", "archived", "deleted")
    return Table("churn", columns, tuple((row.week[:10], *row[1:]) for row in rows))


def idle(worker: Worker, workspace: str, take: int) -> Table:
    """Active nodes, the longest idle first, with their last sign of life."""
    rows = worker.ask(IdleTimes(workspace, take), timeout=_LONG).rows
    named = _named(worker, [row.id for row in rows])
    table = tuple(
        (round(row.idle_seconds / 86_400, 2), row.last_at, row.what, *named[row.id]) for row in rows
    )
    columns = ("days idle", "last", "what", "id", "type", "title")
    return Table("the longest idle", columns, table)
