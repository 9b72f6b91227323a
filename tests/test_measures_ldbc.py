"""LDBC Graphalytics: its 24 expected outputs, and the same semantics on graphs done by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from measures_data import data_folder, directed, name, undirected

from analytics.measures import ldbc
from analytics.snapshot import GraphSnapshot

ALGORITHMS = ("BFS", "CDLP", "LCC", "PR", "SSSP", "WCC")
CASES = [
    (f"{graph}-{way}", algorithm)
    for algorithm in ALGORITHMS
    for graph in ("example", f"test-{algorithm.lower()}")
    for way in ("directed", "undirected")
]


def properties(folder: Path, graph: str) -> dict[str, str]:
    lines = (folder / f"{graph}.properties").read_text().splitlines()
    pairs = (line.split("=", 1) for line in lines if "=" in line and not line.startswith("#"))
    return {key.strip().removeprefix(f"graph.{graph}."): value.strip() for key, value in pairs}


def load(folder: Path, graph: str, way: str) -> GraphSnapshot:
    nodes = [int(line) for line in (folder / f"{graph}.v").read_text().split()]
    rows = (line.split() for line in (folder / f"{graph}.e").read_text().splitlines())
    edges = [(int(row[0]), int(row[1]), *map(float, row[2:])) for row in rows]
    return (directed if way == "true" else undirected)(edges, nodes)


def run(snapshot: GraphSnapshot, algorithm: str, given: dict[str, str]) -> Any:
    def source() -> int:
        return snapshot.position(name(int(given[f"{algorithm.lower()}.source-vertex"])))

    match algorithm:
        case "BFS":
            return ldbc.bfs(snapshot, source())
        case "SSSP":
            return ldbc.sssp(snapshot, source())
        case "WCC":
            return ldbc.wcc(snapshot)
        case "CDLP":
            label = ldbc.cdlp(snapshot, iterations=int(given["cdlp.max-iterations"]))
            return [int(snapshot.id[each]) for each in label]
        case "LCC":
            return ldbc.lcc(snapshot).values
    damping = float(given["pr.damping-factor"])
    return ldbc.pr(snapshot, iterations=int(given["pr.num-iterations"]), damping=damping).values


@pytest.mark.parametrize(("graph", "algorithm"), CASES)
def test_the_expected_output_is_reproduced(graph: str, algorithm: str) -> None:
    folder = data_folder("ldbc")
    given = properties(folder, graph)
    snapshot = load(folder, graph, given["directed"])
    rows = [line.split() for line in (folder / f"{graph}-{algorithm}").read_text().splitlines()]
    assert len(rows) == len(snapshot)
    at = [snapshot.position(name(int(row[0]))) for row in rows]
    found = np.asarray(run(snapshot, algorithm, given))[at]
    if algorithm in ("BFS", "CDLP"):
        assert found.tolist() == [int(row[1]) for row in rows]
    elif algorithm == "WCC":
        pairs = set(zip(found.tolist(), (row[1] for row in rows), strict=True))
        assert len(pairs) == len({row[1] for row in rows}) == len(set(found.tolist()))
    else:
        assert found.tolist() == pytest.approx([float(row[1]) for row in rows], rel=1e-4, abs=0)


# 0 → 1 → 2 → 0 is a cycle, 2 → 3 leaves it, 4 stands alone.
CYCLE = [(0, 1, 0.5), (1, 2, 2.0), (2, 0, 1.0), (2, 3, 4.0)]


def test_bfs_counts_hops_and_says_what_it_cannot_reach() -> None:
    distance = ldbc.bfs(directed(CYCLE, range(5)), 0)
    assert distance.tolist() == [0, 1, 2, 3, ldbc.UNREACHABLE]
    assert ldbc.bfs(directed(CYCLE, range(5)), 3).tolist()[3:] == [0, ldbc.UNREACHABLE]


def test_sssp_reads_weights_as_lengths_and_takes_the_shorter_of_parallel_relations() -> None:
    snapshot = directed([*CYCLE, (2, 3, 1.5), (0, 2, 2.5)], range(5))
    assert ldbc.sssp(snapshot, 0).tolist() == [0.0, 0.5, 2.5, 4.0, np.inf]


def test_sssp_follows_a_relation_of_length_zero() -> None:
    assert ldbc.sssp(directed([(0, 1, 0.0), (1, 2, 1.0)]), 0).tolist() == [0.0, 0.0, 1.0]


def test_wcc_names_each_component_by_its_smallest_node() -> None:
    assert ldbc.wcc(directed([(3, 1), (4, 2), (5, 4)], range(6))).tolist() == [0, 1, 2, 1, 2, 2]


def test_pr_spreads_what_stands_on_dangling_nodes_over_all() -> None:
    # 0 → 1, 1 dangles: after one round 1 has (1 - d)/2 + d(1/2 + 1/4), 0 has (1 - d)/2 + d/4.
    rank = ldbc.pr(directed([(0, 1)]), iterations=1, damping=0.8).values
    assert rank.tolist() == pytest.approx([0.1 + 0.2, 0.1 + 0.6])
    assert ldbc.pr(directed([(0, 1)]), iterations=0).values.tolist() == [0.5, 0.5]


def test_cdlp_breaks_ties_by_the_smallest_label_and_keeps_lonely_nodes() -> None:
    # On the path 0 - 1 - 2 node 1 sees labels 0 and 2 once each, and takes 0; both ends take 1.
    snapshot = undirected([(0, 1), (1, 2)], range(4))
    assert ldbc.cdlp(snapshot, iterations=1).tolist() == [1, 0, 1, 3]
    assert ldbc.cdlp(snapshot, iterations=2).tolist() == [0, 1, 0, 3]


def test_cdlp_lets_a_reciprocal_neighbour_vote_twice() -> None:
    # 3 hears 0 once and 1 twice; were each heard once, 0 would win.
    snapshot = directed([(0, 3), (1, 3), (3, 1)], range(4))
    assert ldbc.cdlp(snapshot, iterations=1).tolist()[3] == 1


def test_lcc_divides_directed_edges_among_neighbours_by_ordered_pairs() -> None:
    # Neighbours of 0 are 1, 2, 3; among them 1 → 2, 2 → 1, 2 → 3: three of six.
    edges = [(0, 1), (2, 0), (0, 3), (1, 2), (2, 1), (2, 3)]
    assert ldbc.lcc(directed(edges)).values.tolist() == pytest.approx([0.5, 0.5, 1 / 3, 0.5])
    assert ldbc.lcc(undirected([(0, 1), (1, 2), (0, 2), (2, 3)])).values.tolist() == pytest.approx(
        [1.0, 1.0, 1 / 3, 0.0]
    )


def test_self_loops_and_parallel_relations_change_nothing_but_sssp() -> None:
    plain, doubled = directed(CYCLE), directed([*CYCLE, *CYCLE, (1, 1)])
    for algorithm in (
        lambda each: ldbc.bfs(each, 0),
        ldbc.wcc,
        lambda each: ldbc.pr(each, iterations=3).values,
        lambda each: ldbc.cdlp(each, iterations=3),
        lambda each: ldbc.lcc(each).values,
    ):
        assert algorithm(plain).tolist() == algorithm(doubled).tolist()
