"""What the whole graph says of its nodes: who is central, what belongs together.

The sums are done by the analytics worker, in a process of its own; here their ids become
nodes again. `Measurer` is what that worker offers, so that nothing here imports it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from cortex.domain.values import Node
from cortex.services.engine import Engine


class Ranked(Protocol):
    """One node by a measure; `total` nodes were measured."""

    @property
    def id(self) -> str: ...
    @property
    def score(self) -> float: ...
    @property
    def exact(self) -> bool: ...
    @property
    def error_bound(self) -> float | None: ...
    @property
    def source(self) -> str: ...
    @property
    def total(self) -> int: ...


class Grouped(Protocol):
    """One community of `total`, with its best joined members' ids."""

    @property
    def number(self) -> int: ...
    @property
    def size(self) -> int: ...
    @property
    def members(self) -> Sequence[str]: ...
    @property
    def modularity(self) -> float: ...
    @property
    def total(self) -> int: ...
    @property
    def source(self) -> str: ...


class Measurer(Protocol):
    """Measures of a workspace's active graph; the second value is the log's seq they reflect."""

    def rank(
        self,
        workspace: str,
        measure: str,
        relations: Sequence[str],
        node_types: Sequence[str],
        from_time: str | None,
        to_time: str | None,
        limit: int,
    ) -> tuple[Sequence[Ranked], int]: ...

    def group(
        self,
        workspace: str,
        relations: Sequence[str],
        node_types: Sequence[str],
        limit: int,
        members: int,
    ) -> tuple[Sequence[Grouped], int]: ...


@dataclass(frozen=True, slots=True)
class Ranking:
    """Nodes best first with their scores; of `total` that were measured."""

    nodes: tuple[tuple[Node, float], ...]
    exact: bool
    error_bound: float | None
    source: str
    total: int
    generation: int


@dataclass(frozen=True, slots=True)
class Community:
    """Its size and the members that are best joined within the graph."""

    number: int
    size: int
    members: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Parting:
    """The largest communities of `total`; `modularity` in [-0.5, 1] of all of them."""

    communities: tuple[Community, ...]
    modularity: float
    total: int
    source: str
    generation: int


class Measures:
    """Asks the worker and names what it answers."""

    def __init__(self, engine: Engine, measurer: Measurer) -> None:
        self._engine = engine
        self._measurer = measurer

    def centrality(
        self,
        measure: str = "pagerank",
        *,
        relations: Sequence[str] = (),
        node_types: Sequence[str] = (),
        from_time: str | None = None,
        to_time: str | None = None,
        limit: int = 20,
        workspace: str | None = None,
    ) -> Ranking:
        """The most central active nodes. Raises InvalidError for an unknown measure."""
        place = self._engine.workspace(workspace)
        rows, seq = self._measurer.rank(
            place, measure, relations, node_types, from_time, to_time, limit
        )
        with self._engine.database.read() as snapshot:
            nodes = {str(node.id): node for node in snapshot.nodes.by_ids([row.id for row in rows])}
        first = rows[0] if rows else None
        return Ranking(
            tuple((nodes[row.id], row.score) for row in rows if row.id in nodes),
            first.exact if first else True,
            first.error_bound if first else None,
            first.source if first else "",
            first.total if first else 0,
            seq,
        )

    def communities(
        self,
        *,
        relations: Sequence[str] = (),
        node_types: Sequence[str] = (),
        limit: int = 10,
        members: int = 8,
        workspace: str | None = None,
    ) -> Parting:
        """What belongs together: the largest communities of the active graph."""
        place = self._engine.workspace(workspace)
        rows, seq = self._measurer.group(place, relations, node_types, limit, members)
        ids = [member for row in rows for member in row.members]
        with self._engine.database.read() as snapshot:
            nodes = {str(node.id): node for node in snapshot.nodes.by_ids(ids)}
        return Parting(
            tuple(
                Community(
                    row.number,
                    row.size,
                    tuple(nodes[member] for member in row.members if member in nodes),
                )
                for row in rows
            ),
            rows[0].modularity if rows else 0.0,
            rows[0].total if rows else 0,
            rows[0].source if rows else "",
            seq,
        )
