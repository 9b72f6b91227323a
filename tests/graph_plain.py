"""Small graphs, and naive answers from them, for the algorithms to agree with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import rustworkx as rx
from hypothesis import strategies as st

from cortex.domain.instants import Instant
from cortex.domain.taxonomy import (
    NODE_TYPES,
    RELATION_TYPES,
    SYMMETRIC,
    NodeType,
    RelationType,
)
from cortex.domain.values import NodeId, WorkspaceId, new_id
from cortex.graph.breadth_first import Traversal
from cortex.graph.workspace import WorkspaceGraph
from cortex.store.database import Database

R = RelationType
N = NodeType
ALL = 1 << 40


@dataclass
class Plain:
    """The graph as lists, and naive answers from it."""

    graph: WorkspaceGraph
    keys: list[int]  # by the order of making
    kinds: dict[int, NodeType]
    place: dict[int, tuple[str, str]]  # (created_at, id)
    edges: list[tuple[int, int, int, RelationType, bool, float]] = field(default_factory=list)

    def steps(self, wanted: Any, direction: str, derived: bool) -> list[tuple[int, int, int]]:
        """(from, to, relation key) of every step that may be taken."""
        found = []
        for key, source, target, kind, is_derived, _ in self.edges:
            if (wanted is None or kind in wanted) and (derived or not is_derived):
                if direction != "in" or kind in SYMMETRIC:
                    found.append((source, target, key))
                if direction != "out" or kind in SYMMETRIC:
                    found.append((target, source, key))
        return found

    def reach(
        self, starts: Sequence[int], steps: list[Any], depth: int, closed: bool = False
    ) -> tuple[dict[int, int], set[int]]:
        """Least depth of each node, and the relations crossed from those that were expanded."""
        depth_of = dict.fromkeys(starts, 0)
        crossed = set()
        for level in range(1, depth + 1):
            for node in [n for n, d in depth_of.items() if d == level - 1]:
                if closed and self.kinds[node] is N.SESSION and node not in starts:
                    continue
                for near, far, key in steps:
                    if near == node:
                        crossed.add(key)
                        depth_of.setdefault(far, level)
        return depth_of, crossed

    def answer(
        self,
        starts: Sequence[int],
        depth_of: dict[int, int],
        crossed: set[int],
        kinds: Any,
        limit: int,
    ) -> Traversal:
        nodes = sorted(
            (
                (node, depth)
                for node, depth in depth_of.items()
                if depth and (kinds is None or self.kinds[node] in kinds)
            ),
            key=lambda pair: (pair[1], self.place[pair[0]]),
        )
        kept = {*starts, *(node for node, _ in nodes[:limit])}
        relations = [e[0] for e in self.edges if e[0] in crossed and {e[1], e[2]} <= kept]
        return Traversal(nodes[:limit], sorted(relations), len(nodes), len(nodes) > limit)


def make(
    database: Database,
    kinds: Sequence[NodeType],
    edges: Sequence[tuple[Any, ...]],
    times: Sequence[int] = (),
) -> Plain:
    """A workspace of its own: node i of `kinds`; edges (from, to, type[, weight[, derived]])."""
    workspace = WorkspaceId(new_id())
    plain = Plain(WorkspaceGraph(workspace), [], {}, {})
    with database.write("test") as transaction:
        nodes = []
        for number, kind in enumerate(kinds):
            second = times[number] if times else number
            at = Instant(
                f"2026-01-01T{second // 3600:02}:{second // 60 % 60:02}:{second % 60:02}.000000Z"
            )
            node = transaction.nodes.insert(NodeId(new_id()), kind, workspace, None, {}, at)
            nodes.append(node)
            plain.keys.append(node.key)
            plain.kinds[node.key] = kind
            plain.place[node.key] = (node.created_at, node.id)
        for source, target, kind, *rest in edges:
            weight, derived = (*rest, *(1.0, False)[len(rest) :])
            relation = transaction.relations.insert(
                workspace,
                nodes[source].id,
                nodes[target].id,
                kind,
                transaction.at,
                weight,
                {"derived": True} if derived else {},
            )
            plain.edges.append(
                (relation.key, nodes[source].key, nodes[target].key, kind, derived, weight)
            )
    with database.read() as snapshot:
        plain.graph.catch_up(snapshot)
    return plain


EDGE = st.tuples(
    st.integers(0, 11),
    st.integers(0, 11),
    st.sampled_from([*RELATION_TYPES, R.CONTRADICTS, R.RELATED_TO, R.LEADS_TO, R.SEQUEL_TO]),
    st.sampled_from([1.0, 1.0, 0.5, 0.25]),
    st.booleans(),
)


def sound(edges: list[Any], count: int) -> list[Any]:
    """Those that the schema takes: between two nodes there are, each once, one parent, no circle
    of what holds or what replaces."""
    kept: dict[Any, Any] = {}
    for edge in edges:
        source, target, kind = edge[:3]
        if source != target and max(source, target) < count:
            kept[(target, kind) if kind is R.CONTAINS else (source, target, kind)] = edge
    forests = {kind: rx.PyDiGraph(check_cycle=True) for kind in (R.CONTAINS, R.SUPERSEDES)}
    for forest in forests.values():
        forest.add_nodes_from(range(count))
    return [edge for edge in kept.values() if edge[2] not in forests or _grows(forests, edge)]


def _grows(forests: dict[Any, Any], edge: Any) -> bool:
    try:
        forests[edge[2]].add_edge(edge[0], edge[1], None)
    except rx.DAGWouldCycle:
        return False
    return True


@st.composite
def graphs(draw: st.DrawFn) -> tuple[list[NodeType], list[Any], list[int]]:
    # One root at most in a workspace: session nodes beyond the first are not drawn.
    kinds = draw(
        st.lists(
            st.sampled_from([t for t in NODE_TYPES if t is not N.SESSION]), min_size=1, max_size=11
        )
    )
    kinds.insert(draw(st.integers(0, len(kinds))), N.SESSION)
    edges = sound(draw(st.lists(EDGE, max_size=40)), len(kinds))
    times = draw(st.lists(st.integers(0, 3), min_size=len(kinds), max_size=len(kinds)))
    return kinds, edges, times
