"""Graphs for the tests of measures: tiny ones, random ones, and public ones where they are."""

from __future__ import annotations

import os
import random
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import networkx as nx
import pytest

from analytics.measures import Scores
from analytics.snapshot import GraphSnapshot, from_edges
from cortex.domain.taxonomy import RelationType

BOTH_WAYS = RelationType.RELATED_TO


def name(number: int) -> str:
    """An id that sorts as the number."""
    return f"{number:020d}"


def directed(edges: Iterable[tuple[Any, ...]], nodes: Iterable[int] = ()) -> GraphSnapshot:
    return _snapshot(edges, nodes, RelationType.LEADS_TO)


def undirected(edges: Iterable[tuple[Any, ...]], nodes: Iterable[int] = ()) -> GraphSnapshot:
    return _snapshot(edges, nodes, BOTH_WAYS)


def _snapshot(
    edges: Iterable[tuple[Any, ...]], nodes: Iterable[int], relation: RelationType
) -> GraphSnapshot:
    named = [(name(edge[0]), name(edge[1]), *edge[2:]) for edge in edges]
    return from_edges(named, map(name, nodes), relation=relation)


def multigraph(seed: int, nodes: int = 40, edges: int = 160) -> nx.MultiDiGraph:
    """Directed, weighted, with parallel edges, self-loops and nodes alone."""
    rng = random.Random(seed)
    graph = nx.MultiDiGraph()
    graph.add_nodes_from(range(nodes + 3))
    for _ in range(edges):
        far = int(nodes * rng.random() ** 2)
        graph.add_edge(rng.randrange(nodes), far, weight=round(rng.uniform(0.1, 1), 2))
    return graph


def snapshot_of(graph: nx.MultiDiGraph) -> GraphSnapshot:
    return directed(graph.edges(data="weight"), graph)


def simple_digraph(graph: nx.MultiDiGraph, fold: Any = sum) -> nx.DiGraph:
    """The same without parallel edges, whose weights are folded, and self-loops."""
    simple = nx.DiGraph()
    simple.add_nodes_from(graph)
    weights: dict[tuple[int, int], list[float]] = {}
    for near, far, weight in graph.edges(data="weight"):
        if near != far:
            weights.setdefault((near, far), []).append(weight)
    for (near, far), values in weights.items():
        simple.add_edge(near, far, weight=fold(values))
    return simple


def simple_graph(graph: nx.MultiDiGraph, fold: Any = sum) -> nx.Graph:
    simple = nx.Graph()
    simple.add_nodes_from(graph)
    weights: dict[frozenset[int], list[float]] = {}
    for near, far, weight in graph.edges(data="weight"):
        if near != far:
            weights.setdefault(frozenset((near, far)), []).append(weight)
    for ends, values in weights.items():
        simple.add_edge(*ends, weight=fold(values))
    return simple


def same(scores: Scores, theirs: dict[int, float], tolerance: float = 1e-9) -> None:
    """Every value equals theirs, within the tolerance."""
    wanted = [theirs[node] for node in sorted(theirs)]
    assert scores.values.tolist() == pytest.approx(wanted, rel=tolerance, abs=tolerance)


def data_folder(part: str) -> Path:
    """A folder of public data; the test is skipped where CORTEX_TEST_DATA does not name it."""
    folder = Path(os.environ.get("CORTEX_TEST_DATA", "/nowhere")) / part
    if not folder.is_dir():
        pytest.skip(f"CORTEX_TEST_DATA names no folder with {part}/")
    return folder
