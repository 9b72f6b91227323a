"""What an answer must know of the ids that it shows: their short forms, and which to doubt.

Asked within the transaction that found them; the disk is looked at once that is over.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import NamedTuple

from cortex.domain.values import Node
from cortex.graph.workspace import WorkspaceGraph
from cortex.services.drift import Drifted, Rests
from cortex.services.engine import Engine
from cortex.services.reach import Reach
from cortex.store.database import Snapshot


class Known(NamedTuple):
    """`unique`: whether the first 8 characters of an id name it alone in this memory;
    `drifted`: the nodes that rest on a file which is not as it was noted."""

    unique: Mapping[str, bool] = MappingProxyType({})
    drifted: Drifted = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Asked:
    """What the store says of the ids, before the disk is asked."""

    unique: Mapping[str, bool]
    rests: Rests

    def known(self) -> Known:
        """Asks the disk: not to be called within a transaction."""
        return Known(self.unique, self.rests.differing())


def ask(engine: Engine, snapshot: Snapshot, ids: Sequence[str]) -> Asked:
    """What this transaction knows of the ids; two queries."""
    if not ids:
        return Asked({}, Rests((), {}, Reach(())))
    return Asked(snapshot.nodes.unique_prefixes(ids), engine.drift.rests(snapshot, ids))


def ask_within(
    engine: Engine, snapshot: Snapshot, graph: WorkspaceGraph, nodes: Sequence[Node]
) -> Asked:
    """The same of nodes of the graph's workspace; no query for what the graph knows."""
    ids = [node.id for node in nodes]
    return Asked(
        graph.kept.unique_prefixes(snapshot, ids),
        engine.drift.rests_within(snapshot, graph, nodes),
    )
