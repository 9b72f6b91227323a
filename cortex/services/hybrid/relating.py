"""Joining memories, and what is related to one: stated relations, and neighbours on request.

Two memories that contradict each other interfere: the relation records how much, from their
strengths and phases at that moment (`data.interference` in [−1, 1], destructive below 0), and
neither is changed by it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from cortex.domain.taxonomy import NodeType, RelationType, parse_kind
from cortex.domain.values import Node, Relation
from cortex.domain.waves import opposed
from cortex.graph.expansion import subgraph
from cortex.services.engine import Engine
from cortex.services.history import History
from cortex.services.linking import Linked, link
from cortex.services.neighbours import links_of
from cortex.services.repeating import once
from cortex.services.resolving import resolve_node
from cortex.services.waves import strength_at
from cortex.store.database import Transaction


@dataclass(frozen=True, slots=True)
class Related:
    """What is joined to a memory: nodes with their distance, nearest first, then by creation;
    `neighbours` counts the neighbour links of the start that were not followed."""

    start: Node
    nodes: tuple[tuple[Node, int], ...]
    relations: tuple[Relation, ...]
    total: int
    truncated: bool
    neighbours: int
    generation: int


class Relating:
    """States relations, and follows them."""

    def __init__(self, engine: Engine, history: History) -> None:
        self._engine = engine
        self._history = history

    def relate(
        self,
        from_id: str,
        to_id: str,
        kind: str = "related_to",
        *,
        weight: float = 1.0,
        workspace: str | None = None,
        key: str | None = None,
    ) -> Linked:
        """Join two memories, or refresh what joins them. Errors as in `Linking.add_relation`."""
        place = self._engine.workspace(workspace)
        request = {"from": from_id, "to": to_id, "type": kind, "weight": weight, "hybrid": True}
        with self._engine.write() as transaction:

            def do() -> Linked:
                source = resolve_node(transaction, from_id, place, strict=workspace is not None)
                target = resolve_node(transaction, to_id, place, strict=workspace is not None)
                relation = parse_kind(RelationType, kind, "type")
                data: dict[str, Any] = {}
                if relation is RelationType.CONTRADICTS and source.id != target.id:
                    data = {"interference": _interference(transaction, source, target)}
                return link(transaction, source, target, relation, weight=weight, data=data)

            return once(transaction, place, key, request, Linked, do)

    def related(
        self,
        reference: str,
        *,
        depth: int = 2,
        limit: int = 30,
        derived: bool = False,
        workspace: str | None = None,
    ) -> Related:
        """What is within `depth` relations of a memory, either way, sessions left out and not
        gone through; with `derived` over neighbour links too. Raises NotFoundError."""
        engine = self._engine
        place = engine.workspace(workspace)
        with engine.database.read() as snapshot:
            node = resolve_node(snapshot, reference, place, strict=workspace is not None)
        with engine.graphs.view(engine.database, node.workspace_id) as (snapshot, graph):
            node = resolve_node(snapshot, node.id, node.workspace_id, strict=True)
            found = subgraph(graph, [node.key], depth, limit + depth, include_derived=derived)
            depths = dict(found.nodes)
            nodes = snapshot.nodes.by_keys([key for key, _ in found.nodes])
            kept = [each for each in nodes if each.type is not NodeType.SESSION]
            shown = kept[:limit]
            ids = {node.id, *(each.id for each in shown)}
            relations = snapshot.relations.by_keys(found.relations)
            total = found.total - (len(nodes) - len(kept))
            answer = Related(
                node,
                tuple((each, depths[each.key]) for each in shown),
                tuple(r for r in relations if {r.from_id, r.to_id} <= ids),
                total,
                len(shown) < total or found.truncated,
                0 if derived else len(links_of(snapshot, node.id)),
                snapshot.generation().seq,
            )
        self._history.traversed(node, ["related"], answer.total)
        return answer


def _interference(transaction: Transaction, one: Node, other: Node) -> float:
    states = transaction.waves.of_keys([one.key, other.key])
    first, second = (strength_at(states[node.key], transaction.at) for node in (one, other))
    apart = states[one.key].wave.phase - states[other.key].wave.phase
    return round(opposed(first, second, apart), 4)
