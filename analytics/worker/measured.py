"""Whole-graph measures of a workspace, on the mirror's rows; here, where nobody waits for pings.

Idea: the active nodes and the relations between them become one snapshot. Session roots are
left out unless asked for: they contain everything and would win every time. Cost: a read of
the workspace's rows (about a second a million), then the measure's own. Corner: an empty
workspace, or filters that leave no node, give no rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from types import MappingProxyType
from typing import Final

import numpy as np

from analytics.measures.betweenness import betweenness_centrality
from analytics.measures.closeness import closeness_centrality, harmonic_centrality
from analytics.measures.communities import communities as find_communities
from analytics.measures.components import weakly_connected_components
from analytics.measures.cores import core_number
from analytics.measures.degree import degree
from analytics.measures.katz import katz_centrality
from analytics.measures.pagerank import pagerank
from analytics.measures.sampled_betweenness import sampled_betweenness
from analytics.measures.scores import Scores
from analytics.measures.spectral import eigenvector_centrality, hits
from analytics.queries import (
    Centrality,
    Communities,
    CommunityRow,
    Distribution,
    DistributionRow,
    RankRow,
)
from analytics.snapshot import GraphSnapshot, from_columns
from analytics.worker.mirror import View
from cortex.domain.errors import InvalidError, TooLargeError
from cortex.domain.instants import parse_window
from cortex.domain.taxonomy import (
    NODE_CODE,
    RELATION_CODE,
    STATUS_CODE,
    NodeType,
    RelationType,
    Status,
    parse_kind,
)

_NODES: Final = """
SELECT key, id, CAST(type AS VARCHAR), CAST(status AS VARCHAR), created
  FROM nodes WHERE workspace = hash($workspace) AND status = 'active'
"""
_RELATIONS: Final = """
SELECT source, target, CAST(type AS VARCHAR), weight, derived, created
  FROM relations
 WHERE workspace = hash($workspace) AND source IS NOT NULL AND target IS NOT NULL
"""
_EXACT: Final = 3_000  # nodes; above, betweenness is sampled: exact takes their square
_PATHS: Final = 5_000  # nodes; all-pairs distances above it would take minutes


def _betweenness(snapshot: GraphSnapshot) -> Scores:
    if len(snapshot) <= _EXACT:
        return betweenness_centrality(snapshot)
    return sampled_betweenness(snapshot)


def _all_pairs(measure: Callable[[GraphSnapshot], Scores]) -> Callable[[GraphSnapshot], Scores]:
    def bounded(snapshot: GraphSnapshot) -> Scores:
        if len(snapshot) > _PATHS:
            raise TooLargeError(
                f"{len(snapshot):,} nodes are too many for a measure of all distances",
                f"Valid: up to {_PATHS:,}; narrow by node_types or relations",
                "Ask for pagerank or betweenness, which is sampled",
            )
        return measure(snapshot)

    return bounded


_Measure = Callable[[GraphSnapshot], Scores]
MEASURES: Final[Mapping[str, _Measure]] = MappingProxyType(
    {
        "pagerank": lambda snapshot: pagerank(snapshot),
        "degree": lambda snapshot: degree(snapshot, "total"),
        "in_degree": lambda snapshot: degree(snapshot, "in"),
        "out_degree": lambda snapshot: degree(snapshot, "out"),
        "betweenness": _betweenness,
        "closeness": _all_pairs(lambda snapshot: closeness_centrality(snapshot)),
        "harmonic": _all_pairs(lambda snapshot: harmonic_centrality(snapshot)),
        "eigenvector": lambda snapshot: eigenvector_centrality(snapshot),
        "katz": lambda snapshot: katz_centrality(snapshot),
        "hubs": lambda snapshot: hits(snapshot).hubs,
        "authorities": lambda snapshot: hits(snapshot).authorities,
        "core": lambda snapshot: core_number(snapshot),
    }
)
# Those that count something; their values are whole numbers.
_WHOLE: Final = ("degree", "in_degree", "out_degree", "core")
_BUT_ROOTS: Final = [kind for kind in NodeType if kind is not NodeType.SESSION]


def centrality(view: View, query: Centrality) -> Callable[[], Iterable[RankRow]]:
    """The best nodes by a measure, best first."""
    measure = MEASURES.get(query.measure)
    if measure is None:
        raise InvalidError(f"measure {query.measure!r} is unknown", "Valid: " + ", ".join(MEASURES))
    return partial(_ranked, _snapshot(view, query), measure, query.take)


def _ranked(snapshot: GraphSnapshot, measure: _Measure, take: int) -> Iterable[RankRow]:
    if not len(snapshot):
        return []
    scores = measure(snapshot)
    return [
        RankRow(
            snapshot.id[at],
            float(scores.values[at]),
            scores.exact,
            scores.error_bound,
            scores.source,
            len(snapshot),
        )
        for at in scores.ranking(take).tolist()
    ]


def communities(view: View, query: Communities) -> Callable[[], Iterable[CommunityRow]]:
    """The largest communities, each with its members of highest degree."""
    return partial(_grouped, _snapshot(view, query), query.take, query.members)


def _grouped(snapshot: GraphSnapshot, take: int, shown: int) -> Iterable[CommunityRow]:
    if not len(snapshot):
        return []
    found = find_communities(snapshot)
    within = degree(snapshot, "total").values
    rows = []
    for group in range(min(take, len(found.groups))):
        members = found.groups.members(group)
        best = members[np.argsort(-within[members], kind="stable")][:shown]
        rows.append(
            CommunityRow(
                group,
                int(found.groups.size[group]),
                [snapshot.id[at] for at in best.tolist()],
                float(found.modularity),
                len(found.groups),
                found.groups.source,
            )
        )
    return rows


def distribution(view: View, query: Distribution) -> Callable[[], Iterable[DistributionRow]]:
    """How many active nodes have which value, the least value first."""
    if query.of != "component" and query.of not in _WHOLE:
        valid = ", ".join((*_WHOLE, "component"))
        raise InvalidError(f"{query.of!r} has no distribution", f"Valid: {valid}")
    snapshot = _active(view, query.workspace).filtered(node_types=_BUT_ROOTS)
    return partial(_distributed, snapshot, query.of)


def _distributed(snapshot: GraphSnapshot, of: str) -> Iterable[DistributionRow]:
    if not len(snapshot):
        return []
    if of == "component":
        size = weakly_connected_components(snapshot).size
        values = np.repeat(size, size)
    else:
        values = MEASURES[of](snapshot).values.astype(np.int64)
    found, nodes = np.unique(values, return_counts=True)
    return [
        DistributionRow(value, count)
        for value, count in zip(found.tolist(), nodes.tolist(), strict=True)
    ]


def _active(view: View, workspace: str) -> GraphSnapshot:
    """The active graph of a workspace."""
    nodes = view.rows(_NODES, workspace=workspace)
    relations = view.rows(_RELATIONS, workspace=workspace)
    keys, ids, kinds, states, made = zip(*nodes, strict=True) if nodes else ((),) * 5
    near, far, types, weights, derived, at = (
        zip(*relations, strict=True) if relations else ((),) * 6
    )
    return from_columns(
        (
            keys,
            ids,
            [NODE_CODE[NodeType(kind)] for kind in kinds],
            [STATUS_CODE[Status(state)] for state in states],
            made,
        ),
        (near, far, [RELATION_CODE[RelationType(kind)] for kind in types], weights, derived, at),
    )


def _snapshot(view: View, query: Centrality | Communities) -> GraphSnapshot:
    """The active graph of a workspace, filtered as asked."""
    start, stop = parse_window(query.from_time, query.to_time)
    return _active(view, query.workspace).filtered(
        node_types=[parse_kind(NodeType, name, "node_types") for name in query.node_types]
        or _BUT_ROOTS,
        relation_types=[parse_kind(RelationType, name, "relations") for name in query.relations]
        or None,
        from_time=start,
        to_time=stop,
    )
