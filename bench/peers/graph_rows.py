"""One workspace's graph as plain rows, for the libraries that are timed beside the engine."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from bench.graph_engine import TYPED
from cortex.domain.taxonomy import REASONING, RelationType

PAGE: Final = 50
TYPED_NAMES: Final = frozenset(kind.value for kind in TYPED)
BELOW_NAMES: Final = frozenset({RelationType.CONTAINS.value, RelationType.DECOMPOSES_TO.value})
WALK_NAMES: Final = frozenset(kind.value for kind in REASONING)
_NODES: Final = "SELECT rowkey, type FROM nodes ORDER BY created_at, id"
_RELATIONS: Final = """
SELECT f.rowkey, t.rowkey, r.type, r.weight, r.rowkey,
       r.data <> '{}' AND json_extract(r.data, '$.derived') IS 1
  FROM relations AS r JOIN nodes AS f ON f.id = r.from_id JOIN nodes AS t ON t.id = r.to_id
 ORDER BY r.rowkey
"""


@dataclass(frozen=True, slots=True)
class Edge:
    """A relation between two nodes' keys; `key` is its own."""

    near: int
    far: int
    kind: str
    weight: float
    key: int
    derived: bool


@dataclass(frozen=True, slots=True)
class GraphRows:
    """Place of each key in order of creation, the sessions' keys, and all relations."""

    place: Mapping[int, int]
    sessions: frozenset[int]
    edges: tuple[Edge, ...]

    def of(self, kinds: frozenset[str]) -> Iterable[Edge]:
        return (edge for edge in self.edges if edge.kind in kinds)

    def reasoning(self) -> Iterable[Edge]:
        return (edge for edge in self.of(WALK_NAMES) if not edge.derived)

    def both_ways(self) -> Iterable[tuple[int, int]]:
        """Pairs to step over either way, none derived, and none that leaves a session's root."""
        for edge in self.edges:
            if not edge.derived:
                if edge.near not in self.sessions:
                    yield edge.near, edge.far
                if edge.far not in self.sessions:
                    yield edge.far, edge.near

    def ordered(self, depths: Mapping[int, int], limit: int | None = None) -> list[int]:
        """Keys by depth, then by creation, as the engine and the CTE give them."""
        return sorted(depths, key=lambda key: (depths[key], self.place[key]))[:limit]


def read(connection: sqlite3.Connection) -> GraphRows:
    """All rows of a file with one workspace."""
    nodes = connection.execute(_NODES).fetchall()
    edges = tuple(
        Edge(near, far, kind, weight, key, bool(derived))
        for near, far, kind, weight, key, derived in connection.execute(_RELATIONS)
    )
    place = {key: position for position, (key, _) in enumerate(nodes)}
    return GraphRows(place, frozenset(key for key, kind in nodes if kind == "session"), edges)
