"""Snapshots: what is kept of a graph, what a filter leaves, what the simple matrix holds."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest
from graph_plain import make
from measures_data import directed, undirected

from analytics.live_graph import from_workspace_graph
from analytics.measures import pagerank
from analytics.snapshot import UNKNOWN_TIME, from_edges, from_rows
from cortex.domain.errors import InvalidError, NotFoundError
from cortex.domain.instants import Instant, as_microseconds
from cortex.domain.taxonomy import (
    NODE_CODE,
    NODE_TYPES,
    RELATION_CODE,
    STATUS_CODE,
    NodeType,
    RelationType,
    Status,
)
from cortex.domain.values import NodeId, new_id
from cortex.store.database import Database

N, R = NodeType, RelationType
DAYS = [Instant(f"2026-05-{day:02d}T12:00:00.000000Z") for day in range(10, 14)]
TIMES = [as_microseconds(day) for day in DAYS]
NODES = [
    (7, "c", NODE_CODE[N.FACT], STATUS_CODE[Status.ACTIVE], TIMES[2]),
    (3, "a", NODE_CODE[N.TASK], STATUS_CODE[Status.ACTIVE], TIMES[0]),
    (5, "b", NODE_CODE[N.FACT], STATUS_CODE[Status.ARCHIVED], TIMES[1]),
]
RELATIONS = [
    (7, 5, RELATION_CODE[R.SUPPORTS], 0.5, False, TIMES[2]),
    (3, 7, RELATION_CODE[R.CONTAINS], 1.0, False, TIMES[3]),
    (5, 7, RELATION_CODE[R.RELATED_TO], 0.25, True, TIMES[2]),
    (3, 99, RELATION_CODE[R.CONTAINS], 1.0, False, TIMES[3]),
]


def test_nodes_stand_in_order_of_id_whatever_the_order_of_rows() -> None:
    one = from_rows(NODES, RELATIONS)
    assert (one.id, one.key.tolist()) == (("a", "b", "c"), [3, 5, 7])
    assert list(zip(one.source.tolist(), one.target.tolist(), strict=True)) == [
        (0, 2),
        (1, 2),
        (2, 1),
    ]
    other = from_rows(NODES[::-1], RELATIONS[::-1])
    for field in ("key", "node_type", "created", "source", "target", "weight", "relation_created"):
        assert getattr(one, field).tolist() == getattr(other, field).tolist()


def test_a_relation_without_one_of_its_ends_is_left_out() -> None:
    assert len(from_rows(NODES, RELATIONS).source) == 3


def test_a_position_is_found_by_id_and_a_strange_id_is_refused() -> None:
    snapshot = from_rows(NODES, RELATIONS)
    assert [snapshot.position(each) for each in "abc"] == [0, 1, 2]
    with pytest.raises(NotFoundError):
        snapshot.position("bb")


def test_arrays_cannot_be_changed() -> None:
    with pytest.raises(ValueError, match="read-only"):
        from_rows(NODES, RELATIONS).weight[0] = 2.0


@pytest.mark.parametrize(
    ("nodes", "relations"),
    [
        ([*NODES, NODES[0]], []),
        (NODES, [(3, 5, 0, -0.1, False, 0)]),
        (NODES, [(3, 5, 0, float("nan"), False, 0)]),
    ],
)
def test_rows_that_contradict_themselves_are_refused(nodes: list, relations: list) -> None:
    with pytest.raises(InvalidError):
        from_rows(nodes, relations)


def test_filters_leave_derived_relations_out_unless_asked() -> None:
    snapshot = from_rows(NODES, RELATIONS)
    assert len(snapshot.filtered().source) == 2
    assert len(snapshot.filtered(include_derived=True).source) == 3


def test_a_filter_keeps_what_passes_and_the_relations_between() -> None:
    snapshot = from_rows(NODES, RELATIONS)
    facts = snapshot.filtered(node_types=[N.FACT])
    assert (facts.id, facts.source.tolist(), facts.target.tolist()) == (("b", "c"), [1], [0])
    assert snapshot.filtered(status=[Status.ACTIVE]).id == ("a", "c")
    assert len(snapshot.filtered(relation_types=[R.SUPPORTS]).source) == 1
    assert len(snapshot.filtered(node_types=[]).id) == 0


def test_a_window_holds_its_ends_for_nodes_and_relations() -> None:
    snapshot = from_rows(NODES, RELATIONS)
    window = snapshot.filtered(from_time=DAYS[1], to_time=DAYS[2])
    assert (window.id, len(window.source)) == (("b", "c"), 1)
    past = snapshot.filtered(to_time=DAYS[2])
    assert (past.id, len(past.source)) == (("a", "b", "c"), 1)


def test_a_window_over_unknown_instants_is_refused() -> None:
    with pytest.raises(InvalidError):
        directed([(0, 1)]).filtered(from_time=DAYS[0])


def test_the_simple_matrix_folds_parallel_relations_as_asked() -> None:
    snapshot = directed([(0, 1, 0.5), (0, 1, 0.25), (1, 1, 0.7), (1, 0, 1.0), (1, 2, 0.0)])
    assert snapshot.simple(True, "max").toarray()[:2, :2].tolist() == [[0, 0.5], [1, 0]]
    assert snapshot.simple(True, "min")[0, 1] == 0.25
    assert snapshot.simple(True, "sum")[0, 1] == 0.75
    assert snapshot.simple(True, "none")[0, 1] == 1
    assert snapshot.simple(False, "sum").toarray()[:2, :2].tolist() == [[0, 1.75], [1.75, 0]]
    assert snapshot.simple(True, "max").nnz == 3, "a relation of weight 0 is one"


def test_a_symmetric_relation_counts_both_ways_and_once_undirected() -> None:
    snapshot = undirected([(0, 1, 0.5)])
    assert snapshot.simple(True, "sum").toarray().tolist() == [[0, 0.5], [0.5, 0]]
    assert snapshot.simple(False, "sum").toarray().tolist() == [[0, 0.5], [0.5, 0]]


def test_the_simple_matrix_agrees_with_a_dictionary() -> None:
    rng = random.Random(5)
    edges = [(rng.randrange(20), rng.randrange(20), rng.random()) for _ in range(300)]
    found = directed(edges, range(20)).simple(True, "sum")
    wanted = np.zeros((20, 20))
    for near, far, weight in edges:
        wanted[near, far] += weight * (near != far)
    assert found.toarray() == pytest.approx(wanted)
    assert found.has_sorted_indices


def test_no_nodes_give_an_empty_snapshot() -> None:
    snapshot = from_edges([])
    assert len(snapshot) == 0
    assert snapshot.simple().shape == (0, 0)
    assert len(snapshot.filtered()) == 0


def test_a_snapshot_of_the_live_graph_survives_indices_that_were_used_before(
    tmp_path: Path,
) -> None:
    database = Database(tmp_path / "cortex.db")
    edges = [(0, 1, R.SUPPORTS, 0.5), (2, 3, R.RELATED_TO, 1.0, True), (3, 4, R.LEADS_TO, 0.25)]
    world = make(database, [N.FACT, N.TASK, N.NOTE, N.GOAL, N.FACT], edges)
    workspace = world.graph.workspace
    with database.write("test") as transaction:
        transaction.nodes.delete([world.keys[1]])
        made = transaction.nodes.insert(
            NodeId(new_id()), N.ERROR, workspace, None, {}, transaction.at
        )
    ids = {key: place[1] for key, place in world.place.items()} | {made.key: made.id}
    with database.read() as view:
        world.graph.catch_up(view)
    snapshot = from_workspace_graph(world.graph, ids)
    found = {
        (int(key), NODE_TYPES[kind])
        for key, kind in zip(snapshot.key, snapshot.node_type, strict=True)
    }
    assert found == {(key, kind) for key, kind, _ in world.graph.nodes()}
    assert snapshot.id == tuple(sorted(ids[key] for key, _ in found))
    key, rows = snapshot.key, zip(snapshot.source, snapshot.target, snapshot.weight, strict=True)
    assert {(int(key[a]), int(key[b]), float(w)) for a, b, w in rows} == {
        (near, far, weight) for _, near, far, _, _, weight in world.edges[1:]
    }
    assert snapshot.derived.tolist().count(True) == 1
    database.close()


def test_ids_in_another_order_move_no_score() -> None:
    edges = [(0, 1), (1, 2), (2, 0), (3, 0)]
    rank = pagerank(directed(edges)).values
    turned = pagerank(directed([(9 - a, 9 - b) for a, b in edges])).values
    assert turned[::-1].tolist() == pytest.approx(rank.tolist(), abs=2e-6)


def test_plain_edges_have_no_instants() -> None:
    assert set(from_edges([("a", "b")]).created.tolist()) == {UNKNOWN_TIME}
