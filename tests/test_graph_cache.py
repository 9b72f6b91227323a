"""The graph cache says what the store says, after whatever happened to the store."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest
from graph_world import HERE, THERE, World, add_node, differences, opened, shell_on
from hypothesis import given, settings
from hypothesis import strategies as st

from cortex.domain.errors import NotFoundError
from cortex.domain.instants import Instant
from cortex.domain.taxonomy import (
    NodeType,
    RelationType,
    Status,
)
from cortex.domain.values import WorkspaceId, new_id
from cortex.graph import row_cache
from cortex.graph import workspace as workspace_module
from cortex.graph.graphs import Graphs
from cortex.graph.kept import Kept
from cortex.graph.locator import Locator
from cortex.graph.row_cache import RowCache
from cortex.graph.traversal import traverse
from cortex.graph.workspace import WorkspaceGraph
from cortex.store.database import Database, Snapshot
from cortex.store.meta import EPOCH, LOG_FLOOR
from cortex.store.nodes import BriefNode

AMPLE = 1 << 30

OPERATIONS = sorted(name[3:] for name in dir(World) if name.startswith("op_"))
NUMBER = st.integers(0, 40)
STEP = st.tuples(
    st.sampled_from([*OPERATIONS, "insert", "relate", "relate", "relate", "replace"]),
    st.integers(0, 1),
    NUMBER,
    NUMBER,
    NUMBER,
    st.integers(0, 3),
)


def disagreement(
    steps: list[tuple[str, int, int, int, int, int]],
    make: Callable[[WorkspaceId], WorkspaceGraph],
) -> list[str]:
    """The first differences that two processes' graphs show on the way through the steps.

    The last number of a step says which of the two look after it: none, one, or both.
    """
    with opened(2) as (path, databases):
        world = World(path, databases)
        graphs = [(database, make(ws)) for database in databases for ws in (HERE, THERE)]
        world.op_insert(databases[0], 2, 0, 1)
        for name, who, a, b, c, look in [*steps, ("status", 0, 0, 1, 0, 3)]:
            world.apply(name, who, a, b, c)
            for number, (database, graph) in enumerate(graphs):
                if look >> (number // 2) & 1:
                    with database.read() as snapshot:
                        graph.catch_up(snapshot)
                        if found := differences(snapshot, graph):
                            return [name, *found]
        world.shell.close()
    return []


@settings(max_examples=80, deadline=None)
@given(st.lists(STEP, max_size=40))
def test_the_graph_says_what_the_store_says_after_any_operations(
    steps: list[tuple[str, int, int, int, int, int]],
) -> None:
    assert disagreement(steps, WorkspaceGraph) == []


@settings(max_examples=40, deadline=None)
@given(st.lists(STEP, max_size=40))
def test_rows_say_what_the_store_says_however_often_their_notes_are_merged(
    steps: list[tuple[str, int, int, int, int, int]],
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(row_cache, "_LEAST_NOTES", 3)
        patch.setattr(row_cache, "_WORTH", 1)
        assert disagreement(steps, WorkspaceGraph) == []


class SkipsADelta(WorkspaceGraph):
    """Planted fault: the second delta is taken for granted."""

    deltas = 0

    def _follow(self, snapshot: Snapshot, touched: Any) -> None:
        self.deltas += 1
        if self.deltas != 2:
            super()._follow(snapshot, touched)


class AppendsAlways(WorkspaceGraph):
    """Planted fault: a new node is thought to stand behind all others."""

    def _put_node(self, node: BriefNode) -> tuple[str, int] | None:
        if self._nodes.find(node.key) is None:
            index = len(self.key)
            self.graph.add_node(node.key)
            self._nodes.add(node.key, index)
            self._take(index)
        return super()._put_node(node)


class ForgetsToNote(WorkspaceGraph):
    """Planted fault: the kept rows are not told of a relation that was put in."""

    def _put_relation(self, relation: Any) -> None:
        cache, self.row_cache = self.row_cache, RowCache(self.graph)
        super()._put_relation(relation)
        self.row_cache = cache


class KeepsOldRows(WorkspaceGraph):
    """Planted fault: the rows beside the graph are not told of what changed."""

    def _follow(self, snapshot: Snapshot, touched: Any) -> None:
        kept, self.kept = self.kept, Kept()
        super()._follow(snapshot, touched)
        self.kept = kept


STORY = [
    ("insert", 0, 2, 0, 1, 3),
    ("relate", 1, 0, 1, 4, 3),
    ("relate", 0, 2, 3, 5, 3),
    ("delete", 1, 0, 0, 0, 3),
    ("insert", 0, 1, 5, 1, 3),
    ("relate", 0, 1, 4, 6, 3),
]


def test_the_story_of_the_planted_faults_is_followed_by_a_sound_graph() -> None:
    assert disagreement(STORY, WorkspaceGraph) == []


@pytest.mark.parametrize("fault", [SkipsADelta, AppendsAlways, ForgetsToNote, KeepsOldRows])
def test_the_comparison_sees_a_planted_fault(fault: type[WorkspaceGraph]) -> None:
    try:
        found = disagreement(STORY, fault)
    except (IndexError, OverflowError, ValueError, AssertionError) as error:
        found = [repr(error)]
    assert found


def test_a_write_is_followed_and_not_rebuilt(monkeypatch: pytest.MonkeyPatch) -> None:
    builds = []
    build = WorkspaceGraph._build
    monkeypatch.setattr(
        WorkspaceGraph, "_build", lambda self, s: (builds.append(1), build(self, s))
    )
    with opened() as (_, [database]):
        graphs = Graphs(AMPLE)
        for _ in range(20):
            with database.write("test") as transaction:
                add_node(transaction)
            with graphs.view(database, HERE) as (snapshot, graph):
                assert differences(snapshot, graph) == []
    assert len(builds) == 1


def test_another_workspace_s_flood_does_not_rebuild_this_one() -> None:
    with opened() as (_, [database]):
        graph = WorkspaceGraph(HERE)
        with database.write("test") as transaction:
            for _ in range(100):
                add_node(transaction)
        with database.read() as snapshot:
            graph.catch_up(snapshot)
            before = graph.graph
        with database.write("test") as transaction:
            for _ in range(150):
                add_node(transaction, workspace=THERE)
        with database.read() as snapshot:
            graph.catch_up(snapshot)
            assert graph.graph is before
            assert differences(snapshot, graph) == []


def test_a_large_delta_is_a_rebuild() -> None:
    with opened() as (_, [database]):
        graph = WorkspaceGraph(HERE)
        with database.read() as snapshot:
            graph.catch_up(snapshot)
            before = graph.graph
        with database.write("test") as transaction:
            for _ in range(500):
                add_node(transaction)
        with database.read() as snapshot:
            graph.catch_up(snapshot)
            assert graph.graph is not before
            assert differences(snapshot, graph) == []


def test_a_failure_on_the_way_leaves_a_graph_that_is_built_anew(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with opened() as (_, [database]):
        graph = WorkspaceGraph(HERE)
        with database.read() as snapshot:
            graph.catch_up(snapshot)
        with database.write("test") as transaction:
            first, second = add_node(transaction), add_node(transaction)
            transaction.relations.insert(
                HERE, first[1], second[1], RelationType.BLOCKS, transaction.at
            )
        with monkeypatch.context() as patch, database.read() as snapshot:
            patch.setattr(WorkspaceGraph, "_put_relation", lambda self, relation: 1 / 0)
            with pytest.raises(ZeroDivisionError):
                graph.catch_up(snapshot)
            assert graph.seq == workspace_module.UNBUILT
        with database.read() as snapshot:
            graph.catch_up(snapshot)
            assert differences(snapshot, graph) == []


def test_another_epoch_is_a_rebuild() -> None:
    with opened() as (_, [database]):
        graph = WorkspaceGraph(HERE)
        with database.read() as snapshot:
            graph.catch_up(snapshot)
            before = graph.graph
        with database.write("test") as transaction:
            transaction.meta.set(EPOCH, new_id())
        with database.read() as snapshot:
            graph.catch_up(snapshot)
            assert graph.graph is not before


def test_a_compacted_log_is_a_rebuild_once() -> None:
    with opened() as (path, [database]):
        graph = WorkspaceGraph(HERE)
        with database.write("test") as transaction:
            add_node(transaction)
        with database.read() as snapshot:
            graph.catch_up(snapshot)
        with database.write("test") as transaction:
            add_node(transaction)
        with database.write("test") as transaction:
            transaction.meta.set(LOG_FLOOR, str(transaction.tx - 1))
        with sqlite3.connect(path) as shell:
            shell.execute("DELETE FROM changes")
        shell.close()
        for _ in range(2):
            with database.read() as snapshot:
                graph.catch_up(snapshot)
                assert differences(snapshot, graph) == []
        before = graph.graph
        with database.write("test") as transaction:
            add_node(transaction)
        with database.read() as snapshot:
            graph.catch_up(snapshot)
            assert graph.graph is before
            assert differences(snapshot, graph) == []


def test_an_older_snapshot_is_shown_as_it_was() -> None:
    with opened() as (_, [database]):
        graphs = Graphs(AMPLE)
        with database.read() as old:
            old.generation()
            with database.write("test") as transaction:
                key, _ = add_node(transaction)
            with graphs.view(database, HERE) as (_, graph):
                assert graph.find(key) is not None
            with graphs.within(old, HERE) as graph:
                assert graph.find(key) is None
        with graphs.view(database, HERE) as (_, graph):
            assert graph.find(key) is not None


def test_a_writer_s_own_changes_never_enter_the_graph_before_the_commit() -> None:
    with opened() as (_, [database]):
        graphs = Graphs(AMPLE)
        with database.write("test") as transaction:
            key, _ = add_node(transaction)
            with pytest.raises(RuntimeError), graphs.within(transaction, HERE):
                pass
            transaction.nodes.delete([key])
        with database.write("test") as transaction:
            with graphs.within(transaction, HERE) as graph:
                assert graph.size() == 0
            add_node(transaction)
        with graphs.view(database, HERE) as (_, graph):
            assert graph.size() == 1


def test_a_view_inside_a_view_is_refused_and_the_outer_one_goes_on() -> None:
    with opened() as (_, [database]):
        graphs = Graphs(AMPLE)
        with graphs.view(database, HERE) as (snapshot, graph):
            with pytest.raises(RuntimeError), graphs.view(database, THERE):
                pass
            assert differences(snapshot, graph) == []
        with graphs.view(database, THERE):
            pass


def test_what_was_not_used_for_longest_goes_first() -> None:
    with opened() as (_, [database]):
        names = [WorkspaceId(name) for name in ("one", "two", "three")]
        with database.write("test") as transaction:
            for name in names:
                for _ in range(200):
                    add_node(transaction, workspace=name)
        probe = Graphs(AMPLE)
        with probe.view(database, names[0]):
            pass
        graphs = Graphs(int(probe.memory_bytes() * 2.5))
        seen = {}
        for name in (*names[:2], names[0], names[2]):
            with graphs.view(database, name) as (_, graph):
                seen[name] = graph
        assert graphs.memory_bytes() <= probe.memory_bytes() * 2.5
        with graphs.view(database, names[0]) as (_, graph):
            assert graph is seen[names[0]]
        with graphs.view(database, names[1]) as (_, graph):
            assert graph is not seen[names[1]]


def test_a_graph_above_the_budget_stays_while_it_is_the_one_in_use() -> None:
    with opened() as (_, [database]):
        with database.write("test") as transaction:
            key, _ = add_node(transaction)
        graphs = Graphs(1)
        with graphs.view(database, HERE) as (_, first):
            assert first.index(key) == 0
        with graphs.view(database, HERE) as (_, second):
            assert second is first


def test_a_node_of_another_workspace_is_not_found() -> None:
    with opened() as (_, [database]):
        with database.write("test") as transaction:
            key, _ = add_node(transaction, workspace=THERE)
        with Graphs(AMPLE).view(database, HERE) as (_, graph), pytest.raises(NotFoundError):
            graph.index(key)


def test_the_next_call_shows_what_another_process_wrote() -> None:
    with opened(2) as (_, [ours, theirs]):
        with ours.write("a") as transaction:
            x, y, z, w = (add_node(transaction) for _ in range(4))
            transaction.relations.insert(HERE, x[1], z[1], RelationType.LEADS_TO, transaction.at)
        graphs = Graphs(AMPLE)
        options: dict[str, Any] = {
            "relations": None,
            "depth": 3,
            "direction": "out",
            "node_types": None,
            "limit": 10,
        }
        with graphs.view(ours, HERE) as (_, graph):
            assert traverse(graph, x[0], **options).nodes == [(z[0], 1)]
        with theirs.write("b") as transaction:
            transaction.relations.insert(HERE, x[1], y[1], RelationType.LEADS_TO, transaction.at)
            transaction.nodes.delete([z[0]])
            transaction.nodes.set_status([w[0]], Status.STALE, transaction.at)
            head = add_node(transaction)
            transaction.relations.insert(
                HERE, head[1], w[1], RelationType.SUPERSEDES, transaction.at
            )
        with graphs.view(ours, HERE) as (_, graph):
            assert traverse(graph, x[0], **options).nodes == [(y[0], 1)]
            assert traverse(graph, head[0], **options).nodes == [(w[0], 1)]
            assert (w[0], NodeType.FACT, Status.STALE) in graph.nodes()


def test_two_types_between_the_same_two_nodes_are_two_relations() -> None:
    with opened() as (_, [database]):
        graphs = Graphs(AMPLE)
        with database.write("test") as transaction:
            a, b = add_node(transaction), add_node(transaction)
            first = transaction.relations.insert(
                HERE, a[1], b[1], RelationType.SUPPORTS, transaction.at
            )
        for step in range(50):
            with database.write("test") as transaction:
                transaction.relations.refresh(first.key, step / 100, {}, transaction.at)
            with graphs.view(database, HERE) as (_, graph):
                assert graph.weight(first.key) == step / 100
        with database.write("test") as transaction:
            transaction.relations.insert(HERE, a[1], b[1], RelationType.ANSWERS, transaction.at)
        with graphs.view(database, HERE) as (_, graph):
            assert [edge[3] for edge in graph.edges()] == ["supports", "answers"]


def test_a_hub_that_loses_all_its_relations_is_alone() -> None:
    with opened() as (_, [database]):
        graphs = Graphs(AMPLE)
        with database.write("test") as transaction:
            hub = add_node(transaction)
            spokes = [add_node(transaction) for _ in range(300)]
            for spoke in spokes:
                transaction.relations.insert(
                    HERE, hub[1], spoke[1], RelationType.LEADS_TO, transaction.at
                )
        with graphs.view(database, HERE) as (_, graph):
            before = graph.graph
        with database.write("test") as transaction:
            transaction.relations.delete(range(1, 151))
        with graphs.view(database, HERE) as (snapshot, graph):
            assert graph.graph is before
            assert graph.graph.out_degree(graph.index(hub[0])) == 150
            assert differences(snapshot, graph) == []


def test_a_node_that_a_shell_took_away_and_brought_back_has_its_relations_again() -> None:
    with opened() as (path, [database]):
        graph = WorkspaceGraph(HERE)
        with database.write("test") as transaction:
            a, b = add_node(transaction), add_node(transaction)
            transaction.relations.insert(HERE, a[1], b[1], RelationType.BLOCKS, transaction.at)
        for workspace, relations in ((HERE, 1), (THERE, 0), (HERE, 1)):
            move = "UPDATE nodes SET workspace_id = ? WHERE id = ?"
            shell_on(path, (move, (workspace, b[1])))
            with database.read() as snapshot:
                graph.catch_up(snapshot)
                assert graph.edges().total() == relations
                assert differences(snapshot, graph) == []


def test_a_node_whose_date_a_shell_changed_stands_at_its_new_place() -> None:
    with opened() as (path, [database]):
        graph = WorkspaceGraph(HERE)
        with database.write("test") as transaction:
            for second in range(5):
                add_node(transaction, at=Instant(f"2020-01-01T00:00:0{second}.000000Z"))
        with database.read() as snapshot:
            graph.catch_up(snapshot)
        for key, at in ((3, "3.5"), (1, "9.0"), (5, "0.0"), (2, "4.0")):
            redate = "UPDATE nodes SET created_at = ? WHERE rowkey = ?"
            shell_on(path, (redate, (f"2020-01-01T00:00:0{at}00000Z", key)))
            with database.read() as snapshot:
                graph.catch_up(snapshot)
                assert differences(snapshot, graph) == []


def test_a_relation_whose_key_a_shell_gave_to_another_is_the_other() -> None:
    with opened() as (path, [database]):
        graph = WorkspaceGraph(HERE)
        with database.write("test") as transaction:
            a, b = add_node(transaction), add_node(transaction)
            transaction.relations.insert(HERE, a[1], b[1], RelationType.BLOCKS, transaction.at)
        with database.read() as snapshot:
            graph.catch_up(snapshot)
        insert = """INSERT INTO relations(rowkey, id, workspace_id, from_id, to_id, type,
                                          created_at, updated_at)
                    SELECT 1, 'other', workspace_id, id, ?, 'blocks', created_at, updated_at
                      FROM nodes WHERE id = ?"""
        shell_on(path, ("DELETE FROM relations WHERE rowkey = 1", ()), (insert, (a[1], b[1])))
        with database.read() as snapshot:
            graph.catch_up(snapshot)
            assert differences(snapshot, graph) == []


def test_many_late_nodes_stand_where_their_time_says() -> None:
    with opened() as (_, [database]):
        graph = WorkspaceGraph(HERE)
        for number in (40, 20, 60, 0, 70, 10):
            with database.write("test") as transaction:
                for offset in range(60):
                    at = Instant(f"2020-01-01T00:00:{offset:02}.0000{number:02}Z")
                    add_node(transaction, at=at)
            with database.read() as snapshot:
                graph.catch_up(snapshot)
                assert differences(snapshot, graph) == []


def test_a_full_gap_in_the_order_is_renumbered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cortex.graph.chronology.GAP", 4)
    with opened() as (_, [database]):
        graph = WorkspaceGraph(HERE)
        with database.write("test") as transaction:
            add_node(transaction)
        for number in range(30):
            with database.write("test") as transaction:
                at = Instant(f"2020-01-01T00:00:00.0000{50 + number * (-1) ** number:02}Z")
                add_node(transaction, at=at)
            with database.read() as snapshot:
                graph.catch_up(snapshot)
                assert differences(snapshot, graph) == []


@settings(max_examples=50, deadline=None)
@given(st.lists(st.tuples(st.booleans(), st.integers(0, 60)), max_size=200), st.integers(1, 8))
def test_a_locator_answers_as_a_dict_would(steps: list[tuple[bool, int]], recent: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("cortex.graph.locator._RECENT", recent)
        locator = Locator(range(0, 60, 3))
        model = {key: index for index, key in enumerate(range(0, 60, 3))}
        for number, (add, key) in enumerate(steps):
            if add and key not in model:
                locator.add(key, number)
                model[key] = number
            elif not add and key in model:
                locator.remove(key)
                del model[key]
            assert len(locator) == len(model)
            assert {k: locator.find(k) for k in range(61)} == {k: model.get(k) for k in range(61)}


def test_readers_and_writers_at_once_never_see_a_half_truth() -> None:
    with opened(2) as (_, databases):
        shared = [Graphs(AMPLE), Graphs(AMPLE)]
        stop = threading.Event()
        problems: list[Any] = []

        def write(database: Database) -> None:
            for number in range(60):
                with database.write("test") as transaction:
                    a, b = add_node(transaction), add_node(transaction)
                    transaction.relations.insert(
                        HERE, a[1], b[1], RelationType.LEADS_TO, transaction.at
                    )
                    if number % 3 == 0:
                        transaction.nodes.delete([a[0] - 3])

        def read(number: int) -> None:
            while not stop.is_set():
                with shared[number].view(databases[number], HERE) as (snapshot, graph):
                    problems.extend(differences(snapshot, graph))

        readers = [threading.Thread(target=read, args=(n % 2,)) for n in range(4)]
        writers = [threading.Thread(target=write, args=(database,)) for database in databases]
        for thread in readers + writers:
            thread.start()
        for thread in writers:
            thread.join()
        stop.set()
        for thread in readers:
            thread.join()
        assert problems == []


@pytest.mark.parametrize(("own", "others"), [(3, 0), (3, 40)])
def test_a_small_and_a_large_part_of_the_file_are_read_alike(own: int, others: int) -> None:
    with opened() as (_, [database]):
        with database.write("test") as transaction:
            for _ in range(others):
                add_node(transaction, workspace=THERE)
            nodes = [add_node(transaction) for _ in range(own)]
            for near, far in pairwise(nodes):
                transaction.relations.insert(
                    HERE, near[1], far[1], RelationType.BLOCKS, transaction.at
                )
        graph = WorkspaceGraph(HERE)
        with database.read() as snapshot:
            graph.catch_up(snapshot)
            assert differences(snapshot, graph) == []
