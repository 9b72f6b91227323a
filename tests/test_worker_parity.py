"""What the analytics worker answers is what SQLite answers, over random lives."""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from datetime import timedelta
from pathlib import Path

import pytest

from analytics.client import Worker
from analytics.queries import (
    ActivityByType,
    Buckets,
    Chronological,
    Churn,
    Counts,
    Events,
    Idle,
    IdleTimes,
    Lineage,
)
from cortex.domain.errors import InvalidError, NotFoundError
from cortex.domain.instants import Instant, as_datetime, before, later, render
from cortex.domain.taxonomy import NodeType, RelationType, Status
from cortex.domain.values import NodeId, new_id
from tests.worker_world import ACTORS, ALL, PLACES, Life, rows, same_events

HERE = PLACES[0]


@pytest.fixture(scope="module")
def life(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Life]:
    """A memory that has lived for a while; the tests read it alone."""
    made = Life(tmp_path_factory.mktemp("life's #1"), seed=11)
    made.live(150)
    yield made
    made.close()


@pytest.fixture(scope="module")
def worker(life: Life) -> Iterator[Worker]:
    with Worker(life.file) as started:
        yield started


@pytest.fixture
def young(tmp_path: Path) -> Iterator[tuple[Life, Worker]]:
    """A memory of the test's own, with a worker."""
    made = Life(tmp_path, seed=5)
    with Worker(made.file) as started:
        yield made, started
    made.close()


def test_after_every_step_of_a_random_life_events_and_idle_nodes_are_the_same(
    young: tuple[Life, Worker],
) -> None:
    life, worker = young
    for turn in range(60):
        life.live(1 + turn % 4)
        if turn % 25 == 24:
            life.compact(0.4)
        for place in PLACES:
            assert same_events(life, worker, Events(place, take=ALL))
            cutoff = before(life.clock(), days=life.rng.randrange(20))
            found = sorted(row.key for row in worker.ask(Idle(place, cutoff, 3)).rows)
            assert found == life.idle(place, cutoff, 3, [])
    with Worker(life.file) as fresh:
        for query in (Events(HERE, take=ALL), Buckets(HERE), Churn(HERE), Counts(HERE)):
            assert fresh.ask(query) == worker.ask(query)


def test_pages_of_events_are_the_same_wherever_they_begin(life: Life, worker: Worker) -> None:
    total = len(life.events(HERE))
    assert total > 300
    for skip in range(0, total + 7, 7):
        assert same_events(life, worker, Events(HERE, take=7, skip=skip))


@pytest.mark.parametrize("actor", [*ACTORS, "nobody"])
def test_the_events_of_one_actor_are_the_same(life: Life, worker: Worker, actor: str) -> None:
    for place in PLACES:
        assert same_events(life, worker, Events(place, actor=actor, take=ALL))


def test_windows_that_begin_and_end_at_an_event_hold_it(life: Life, worker: Worker) -> None:
    moments = sorted({Instant(row.at) for row in life.events(HERE)})
    for first, last in zip(moments[::9], moments[4::9], strict=False):
        assert same_events(life, worker, Events(HERE, first, last, take=ALL))
        assert same_events(life, worker, Events(HERE, later(first, microseconds=1), last))


def test_buckets_count_the_events_that_the_list_shows(life: Life, worker: Worker) -> None:
    for unit, begin in {
        "hour": lambda at: at.replace(minute=0, second=0, microsecond=0),
        "day": lambda at: at.replace(hour=0, minute=0, second=0, microsecond=0),
        "week": lambda at: (
            at.replace(hour=0, minute=0, second=0, microsecond=0) - timedelta(days=at.weekday())
        ),
    }.items():
        wanted = Counter(
            (render(begin(as_datetime(Instant(row.at)))), row.kind) for row in life.events(HERE)
        )
        found = rows(worker, Buckets(HERE, unit))
        assert found == sorted(found)
        assert {(row.start, row.kind): row.total for row in found} == wanted
        focuses = rows(worker, Buckets(HERE, unit, kind="focus"))
        assert focuses == [row for row in found if row.kind == "focus"]


def test_activity_by_type_counts_the_events_that_the_list_shows(life: Life, worker: Worker) -> None:
    kinds = dict(life.sql("SELECT id, type FROM nodes"))
    wanted: Counter[tuple[object, str]] = Counter()
    for row in life.events(HERE):
        wanted[row.detail if row.kind == "deleted" else kinds.get(row.id), row.kind] += 1
    found = rows(worker, ActivityByType(HERE))
    assert {(row.type, row.kind): row.total for row in found} == wanted
    assert [row.total for row in found] == sorted(wanted.values(), reverse=True)


@pytest.mark.parametrize("relation", [None, RelationType.CONTAINS, RelationType.SUPERSEDES])
@pytest.mark.parametrize("types", [(), (NodeType.FACT, NodeType.GOAL, NodeType.TASK)])
def test_the_chronological_walk_is_that_of_the_store(
    life: Life, worker: Worker, relation: RelationType | None, types: tuple[NodeType, ...]
) -> None:
    with life.database.read() as snapshot:
        nodes = snapshot.nodes.chronological(HERE, None, None, types, ("", ""), ALL)
        if relation is not None:
            joined = snapshot.relations.of_type([node.id for node in nodes], relation)
            ends = {end for each in joined for end in (each.from_id, each.to_id)}
            nodes = [node for node in nodes if node.id in ends]
    walked: list[str] = []
    after: tuple[str | None, str] = (None, "")
    while True:
        page = rows(
            worker,
            Chronological(HERE, types=types, relation=relation, after_at=after[0],
                          after_id=after[1], take=5),
        )  # fmt: skip
        walked += [row.id for row in page]
        if len(page) < 5:
            break
        after = (page[-1].created_at, page[-1].id)
    assert walked == [node.id for node in nodes]
    assert walked


def test_idle_nodes_are_those_that_archiving_takes(life: Life, worker: Worker) -> None:
    taken = 0
    for days in (0, 1, 3, 7, 30, 60):
        cutoff = before(life.clock(), days=days)
        for keep in (0, 5, 40):
            everyone = life.idle(HERE, cutoff, 0, [])
            hot = [str(life.sql("SELECT id FROM nodes WHERE rowkey = :key", key=key)[0][0])
                   for key in everyone[::3]]  # fmt: skip
            found = worker.ask(Idle(HERE, cutoff, keep, tuple(hot))).rows
            assert sorted(row.key for row in found) == life.idle(HERE, cutoff, keep, hot)
            assert all(row.last_at < cutoff and row.idle_seconds > 0 for row in found)
            taken += len(found)
    assert taken > 50


def test_the_last_sign_of_life_is_named_with_what_it_was(young: tuple[Life, Worker]) -> None:
    life, worker = young
    with life.database.write("a") as transaction:
        made = transaction.at
        top, child, other, read = (
            transaction.nodes.insert(NodeId(new_id()), NodeType.NOTE, HERE, None, {}, made)
            for _ in range(4)
        )
        transaction.relations.insert(HERE, top.id, child.id, RelationType.CONTAINS, made)
    life.clock.forward(days=1)
    with life.database.write("a") as transaction:
        edited = transaction.at
        transaction.nodes.set_data(child.key, {"text": "new"}, edited)
    life.clock.forward(days=1)
    with life.database.write("a") as transaction:
        opened = transaction.at
        transaction.navigation.touch([read.id], opened)
    life.clock.forward(days=1)
    with life.database.write("a") as transaction:
        transaction.nodes.insert(NodeId(new_id()), NodeType.GOAL, HERE, None, {}, transaction.at)
    signs = {row.id: row[2:6] for row in rows(worker, Idle(HERE, life.clock(), 0))}
    day = 86_400.0
    assert signs == {
        top.id: (edited, "changed", 1, 2 * day),
        child.id: (edited, "changed", 0, 2 * day),
        other.id: (made, "created", 0, 3 * day),
        read.id: (opened, "opened", 0, 1 * day),
    }
    times = rows(worker, IdleTimes(HERE, take=2))
    assert [row.idle_seconds for row in times] == [3 * day, 2 * day]


def test_what_happened_before_1970_comes_through(young: tuple[Life, Worker]) -> None:
    life, worker = young
    life.clock.moment = as_datetime(Instant("1969-07-20T20:17:40.000001Z"))
    with life.database.write("a") as transaction:
        node = transaction.nodes.insert(
            NodeId(new_id()), NodeType.NOTE, HERE, None, {}, transaction.at
        )
    assert same_events(life, worker, Events(HERE))
    (idle,) = rows(worker, Idle(HERE, later(node.created_at, microseconds=1), 0))
    assert idle == (node.key, node.id, node.created_at, "created", 0, 0.0, 1)
    (bucket,) = rows(worker, Buckets(HERE, "week"))
    assert bucket.start == "1969-07-14T00:00:00.000000Z"


def test_a_week_counts_what_came_and_what_went(young: tuple[Life, Worker]) -> None:
    life, worker = young
    life.clock.moment = as_datetime(Instant("2026-05-04T00:00:00.000000Z"))  # a Monday
    with life.database.write("a") as transaction:
        one, two, three = (
            transaction.nodes.insert(
                NodeId(new_id()), NodeType.FACT, HERE, None, {}, transaction.at
            )
            for _ in range(3)
        )
        transaction.relations.insert(HERE, two.id, one.id, RelationType.SUPERSEDES, transaction.at)
    life.clock.forward(days=6, hours=23)
    with life.database.write("a") as transaction:
        transaction.nodes.set_status([one.key, three.key], Status.ARCHIVED)
    life.clock.forward(hours=1)
    with life.database.write("a") as transaction:
        transaction.nodes.set_status([three.key], Status.ACTIVE)
        transaction.nodes.delete([three.key])
    assert [tuple(row) for row in rows(worker, Churn(HERE))] == [
        ("2026-05-04T00:00:00.000000Z", 3, 1, 2, 0),
        ("2026-05-11T00:00:00.000000Z", 0, 0, 0, 1),
    ]


def test_a_lineage_is_the_same_from_each_of_its_links(young: tuple[Life, Worker]) -> None:
    life, worker = young
    chain = []
    for number in range(4):
        life.clock.forward(hours=1)
        with life.database.write("a") as transaction:
            node = transaction.nodes.insert(
                NodeId(new_id()), NodeType.FACT, HERE, None, {"text": str(number)}, transaction.at
            )
            if chain:
                old = chain[-1]
                transaction.relations.insert(
                    HERE, node.id, old.id, RelationType.SUPERSEDES, transaction.at
                )
            chain.append(node)
    wanted = [
        (node.id, "fact", "active" if new is None else "stale", node.created_at,
         new and new.id, new and new.created_at)
        for node, new in zip(chain, [*chain[1:], None], strict=True)
    ]  # fmt: skip
    for node in chain:
        assert [row[:6] for row in rows(worker, Lineage(node.id))] == wanted
    with pytest.raises(NotFoundError):
        worker.ask(Lineage("nobody"))


def test_counts_are_those_of_the_tables(life: Life, worker: Worker) -> None:
    nodes = life.sql(
        "SELECT 'node', type, status, COUNT(*) FROM nodes WHERE workspace_id = :place"
        " GROUP BY type, status ORDER BY type, status", place=HERE)  # fmt: skip
    links = life.sql(
        "SELECT 'relation', type, NULL, COUNT(*) FROM relations WHERE workspace_id = :place"
        " GROUP BY type ORDER BY type", place=HERE)  # fmt: skip
    assert [tuple(row) for row in rows(worker, Counts(HERE))] == [*nodes, *links]


def test_an_answer_names_the_generation_that_it_reflects(life: Life, worker: Worker) -> None:
    generation = worker.ask(Counts(HERE)).generation
    with life.database.read() as snapshot:
        assert generation[:3] == tuple(snapshot.generation())[:3]
    assert life.sql("SELECT MAX(id) FROM navigation_history") == [(generation.navigation,)]


def test_a_file_that_was_restored_is_read_anew(
    young: tuple[Life, Worker], tmp_path_factory: pytest.TempPathFactory
) -> None:
    life, worker = young
    life.live(5)
    worker.ask(Counts(HERE))
    other = Life(tmp_path_factory.mktemp("backup"), seed=6)
    other.live(30)  # its log is the longer one, so that its seq alone would look like progress
    with closing(sqlite3.connect(other.file)) as source, closing(sqlite3.connect(life.file)) as to:
        source.backup(to)
    with Worker(other.file) as fresh:
        for query in (Counts(HERE), Churn(HERE), Events(HERE, take=ALL)):
            assert worker.ask(query) == fresh.ask(query)
    other.close()


def test_an_empty_memory_gives_empty_answers(young: tuple[Life, Worker]) -> None:
    _, worker = young
    for query in (Events(HERE), Buckets(HERE), Churn(HERE), Chronological(HERE), Counts(HERE),
                  ActivityByType(HERE), IdleTimes(HERE),
                  Idle(HERE, "2026-01-01T00:00:00.000000Z", 0)):  # fmt: skip
        assert worker.ask(query).rows == ()


def test_a_unit_that_is_none_is_refused(worker: Worker) -> None:
    with pytest.raises(InvalidError, match="hour, day, week"):
        worker.ask(Buckets(HERE, "month"))


def test_texts_of_any_kind_come_through(young: tuple[Life, Worker]) -> None:
    life, worker = young
    data = {"text": "naïve — 日本語 🙂 \u2028 'quoted' \"too\"\n\ttab"}
    with life.database.write("an actor's name") as transaction:
        transaction.nodes.insert(
            NodeId("an id; with 'quotes'"), NodeType.NOTE, HERE, None, data, transaction.at
        )
    (event,) = rows(worker, Events(HERE, actor="an actor's name"))
    assert (event.id, json.loads(event.title or "")) == ("an id; with 'quotes'", data)
