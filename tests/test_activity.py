"""What happened, counted: the worker's rows and SQLite's are the same, and an outage is said."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, cast

import pytest
from typer.testing import CliRunner

from analytics.client import Worker
from analytics.history import WorkerHistory
from analytics.queries import Lineage
from cortex.cli.app import app
from cortex.config import load_settings
from cortex.domain.activity import Told, Unit
from cortex.domain.errors import InvalidError, UnavailableError
from cortex.domain.instants import Instant, before
from cortex.memory import Memory, open_memory
from cortex.services import timeline
from cortex.services.activity import Activity, Counted, HistorySource, Idling
from cortex.services.fields import Fields
from cortex.services.timeline import Timeline
from tests.local import ask, told
from tests.parity import Clock, embedder
from tests.worker_world import ALL, PLACES, Life

HERE = PLACES[0]


@pytest.fixture(scope="module", params=[1, 2], ids="seed {}".format)
def lived(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Life]:
    """A random life; the tests read it alone."""
    made = Life(tmp_path_factory.mktemp("lived"), seed=request.param)
    made.live(100)
    yield made
    made.close()


@pytest.fixture(scope="module")
def worker(lived: Life) -> Iterator[WorkerHistory]:
    with Worker(lived.file) as started:
        yield WorkerHistory(started)


def windows(life: Life) -> Sequence[tuple[Instant | None, Instant | None]]:
    moments = sorted({Instant(row.at) for row in life.events(HERE)})
    third = len(moments) // 3
    return (None, None), (moments[third], moments[2 * third]), (moments[-1], None)


def test_both_count_the_same_by_time_type_and_week(lived: Life, worker: WorkerHistory) -> None:
    for place in PLACES:
        for start, stop in windows(lived):
            with lived.database.read() as snapshot:
                here = snapshot.activity
                for unit in Unit:
                    told = worker.buckets(place, unit, None, start, stop)
                    assert told.rows == here.buckets(place, unit, None, start, stop)
                focuses = worker.buckets(place, Unit.DAY, "focus", start, stop)
                assert focuses.rows == here.buckets(place, Unit.DAY, "focus", start, stop)
                assert worker.by_type(place, start, stop).rows == here.by_type(place, start, stop)
                assert worker.churn(place, start, stop).rows == here.churn(place, start, stop)


def test_both_say_the_same_of_what_lies_idle(lived: Life, worker: WorkerHistory) -> None:
    for place in PLACES:
        with lived.database.read() as snapshot:
            last = snapshot.archiving.last_activity(place)
            assert last is not None
            for take in (7, ALL):
                assert worker.idle(place, take).rows == snapshot.idleness.rows(
                    place, last, None, take
                )
            for days in (0, 3, 10, 30):
                cutoff = before(last, days=days)
                keys = snapshot.archiving.idle(place, cutoff, 5, "[]")
                assert worker.candidates(place, cutoff, 5, [], 20).rows == snapshot.idleness.rows(
                    place, last, keys, 20
                )


class Out:
    """A stand-in for a worker that cannot run: every question is refused."""

    def __getattr__(self, name: str) -> Callable[..., Any]:
        def refuse(*_: object) -> Told[Any]:
            raise UnavailableError("the extension is not installed", "", "Install it")

        return refuse


@pytest.fixture
def busy(memory: Memory, monkeypatch: pytest.MonkeyPatch) -> Memory:
    """A memory with a chain of three facts; any history counts as a long one."""
    monkeypatch.setattr(timeline, "_LONG", 0)
    first = memory.adding.add_node("fact", Fields(text="tokens last a day")).id
    second = memory.mutation.supersede(
        first, Fields(text="tokens last an hour", data={"reason": "one leaked"})
    ).new_id
    memory.mutation.supersede(second, Fields(text="tokens last ten minutes"))
    memory.viewport.focus(second)
    task = memory.adding.add_node("task", Fields(text="rotate the key")).id
    memory.mutation.update(task, Fields(), status="archived")
    return memory


def every(activity: Activity) -> list[Counted[Any] | Idling]:
    return [
        *(activity.buckets(unit) for unit in Unit),
        activity.by_type(),
        activity.churn(),
        activity.idle(),
        activity.archive_candidates(),
    ]


def test_without_a_worker_every_count_is_the_same_and_says_why(busy: Memory) -> None:
    served = every(busy.activity)
    alone = every(Activity(busy.engine, busy.history, cast(HistorySource, Out())))
    assert {each.degraded for each in served} == {None}
    for each in alone:
        assert each.degraded is not None
        assert "the extension is not installed" in each.degraded
    assert [replace(each, degraded=None) for each in alone] == served


def test_a_process_that_asks_once_asks_sqlite_and_is_not_degraded(busy: Memory) -> None:
    once = every(Activity(busy.engine, busy.history, None))
    assert once == every(busy.activity)


@pytest.mark.parametrize("session", ["current", "all"])
def test_a_session_s_pages_are_the_same_from_both(
    busy: Memory, session: Literal["current", "all"]
) -> None:
    alone = Timeline(busy.engine, busy.history, None)
    cursor, pages = None, 0
    while True:
        page = busy.timeline.session_timeline(session=session, limit=3, cursor=cursor)
        assert page == alone.session_timeline(session=session, limit=3, cursor=cursor)
        cursor, pages = page.next_cursor, pages + 1
        if cursor is None:
            break
    assert pages > 2


def test_a_walk_along_one_relation_is_the_same_from_both(busy: Memory) -> None:
    alone = Timeline(busy.engine, busy.history, None)
    cursor, walked = None, []
    while True:
        page = busy.timeline.temporal_walk(relation_type="supersedes", limit=2, cursor=cursor)
        assert page == alone.temporal_walk(relation_type="supersedes", limit=2, cursor=cursor)
        walked += [node.text for node in page.nodes]
        cursor = page.next_cursor
        if cursor is None:
            break
    assert walked == ["tokens last a day", "tokens last an hour", "tokens last ten minutes"]


def test_a_page_without_its_worker_is_whole_and_says_so(busy: Memory) -> None:
    out = Timeline(busy.engine, busy.history, cast(HistorySource, Out()))
    page = out.session_timeline(session="current")
    assert page.degraded is not None
    assert replace(page, degraded=None) == busy.timeline.session_timeline(session="current")
    assert out.session_timeline().degraded is None, "everyone's newest page is SQLite's"
    walk = out.temporal_walk(relation_type="supersedes")
    assert walk.degraded is not None
    assert len(walk.nodes) == 3


def test_a_lineage_has_its_dates_and_reasons_from_each_of_its_links(busy: Memory) -> None:
    chain = busy.activity.lineage(found_id(busy))
    assert [link.node.text for link in chain] == [
        "tokens last a day", "tokens last an hour", "tokens last ten minutes"]  # fmt: skip
    assert [link.reason for link in chain] == ["one leaked", None, None]
    assert [link.superseded_by for link in chain] == [chain[1].node, chain[2].node, None]
    assert [link.at for link in chain][:2] == [chain[1].node.created_at, chain[2].node.created_at]
    for link in chain:
        assert busy.activity.lineage(link.node.id) == chain


def test_the_worker_s_lineage_is_sqlite_s(busy: Memory) -> None:
    node = busy.activity.lineage(found_id(busy))[0].node.id
    with busy.engine.database.read() as snapshot:
        assert busy.analytics.ask(Lineage(node)).rows == snapshot.activity.lineage(node)


def found_id(memory: Memory) -> str:
    return memory.timeline.temporal_walk(relation_type="supersedes").nodes[0].id


def test_archive_candidates_are_what_opening_archives(tmp_path: Path) -> None:
    clock = Clock()
    settings = replace(load_settings(home=tmp_path, workspace="w", env={}), keep_newest=1)
    memory = open_memory(settings, clock=clock, embedder=embedder())
    old = [memory.adding.add_node("note", Fields(text=text)).id for text in ("one", "two")]
    clock.move(8 * 86_400)
    memory.adding.add_node("note", Fields(text="new"))
    due = memory.activity.archive_candidates()
    assert [node.id for node, _ in due.nodes] == old
    assert {(row.what, row.below, round(row.idle_seconds / 86_400)) for _, row in due.nodes} == {
        ("created", 0, 8)
    }
    ask(memory, "desktop_open")
    memory.viewport.drain()
    assert ask(memory, "desktop_open")["archive"]["count"] == due.total == 2
    assert memory.activity.archive_candidates().nodes == ()
    memory.close()


def test_the_tool_counts_by_time_and_by_type(busy: Memory) -> None:
    answer = ask(busy, "session_timeline", by="week")
    kinds = {row["kind"]: row["total"] for row in answer["counts"]}
    assert (kinds["created"], kinds["focus"], kinds["status"]) == (5, 1, 3)
    assert answer["total"] == sum(kinds.values())
    assert answer["degraded"] is None
    types = ask(busy, "session_timeline", by="type")["counts"]
    assert {"type": "fact", "kind": "created", "total": 3} in types
    with pytest.raises(InvalidError, match="everyone"):
        ask(busy, "session_timeline", by="day", session="current")


def test_the_tool_says_what_to_install_where_the_extension_is_missing(
    busy: Memory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = ask(busy, "session_timeline", by="day")
    busy.analytics.end()
    (tmp_path / "sitecustomize.py").write_text(
        "import sys; sys.modules['duckdb_extension_sqlite_scanner'] = None"
    )
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    answer = ask(busy, "session_timeline", by="day")
    assert "pip install duckdb-extension-sqlite-scanner" in answer.pop("degraded")
    assert answer == {name: value for name, value in wanted.items() if name != "degraded"}
    assert "degraded: " in told(busy, "session_timeline", by="day")


def test_fifty_reads_beside_a_held_write_lock_all_succeed_and_none_is_degraded(
    busy: Memory,
) -> None:
    node = found_id(busy)
    asked: list[tuple[str, dict[str, Any]]] = [
        ("session_timeline", {"by": "day"}),
        ("session_timeline", {"by": "type"}),
        ("session_timeline", {"session": "current"}),
        ("temporal_walk", {"relation_type": "supersedes"}),
        ("graph_get_node", {"node_id": node}),
    ]
    with closing(sqlite3.connect(busy.settings.database, isolation_level=None)) as shell:
        shell.execute("BEGIN IMMEDIATE")
        for tool, arguments in asked * 10:
            assert ask(busy, tool, **arguments).get("degraded") is None
        assert busy.history.waiting + busy.history.dropped >= 10, "noted later, not now"
        shell.execute("ROLLBACK")
    assert busy.history.flush(wait=10)  # whatever else waited for the lock may have it first


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("timeline", "--by", "day"), "5 created"),
        (("timeline", "--by", "type"), "3 created"),
        (("timeline",), "rotate the key"),
        (("churn",), "superseded"),
        (("idle",), "2 of 2 active memories"),
        (("idle", "--candidates"), "Nothing is due for the archive"),
    ],
)
def test_the_commands_print_tables_and_json(
    busy: Memory, words: tuple[str, ...], said: str
) -> None:
    home = busy.settings.home
    busy.history.flush(wait=10)
    assert said in cortex(home, *words)
    assert isinstance(json.loads(cortex(home, *words, "--json")), dict)


def test_the_command_lineage_shows_when_and_why(busy: Memory) -> None:
    node = found_id(busy)
    said = cortex(busy.settings.home, "lineage", node[:8])
    assert "one leaked" in said
    assert said.index("a day") < said.index("an hour") < said.index("ten minutes")
    links = json.loads(cortex(busy.settings.home, "lineage", node, "--json"))
    assert [link["reason"] for link in links] == ["one leaked", None, None]


def cortex(home: Path, *arguments: str) -> str:
    done = CliRunner().invoke(app, [*arguments, "--home", str(home), "-w", "w"])
    assert done.exit_code == 0, (arguments, done.output, done.exception)
    return done.stdout
