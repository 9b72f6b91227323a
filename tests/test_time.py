"""Time: zones, windows, what is no date; reading is not editing; what archiving leaves alone."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from mcp import Client

from cortex.config import load_settings
from cortex.domain.errors import InvalidError
from cortex.domain.instants import Instant, render
from cortex.domain.taxonomy import Status
from cortex.memory import Memory, open_memory
from tests.harness import call, connected, refused
from tests.local import ask, run_cortex

ZONES = ("Asia/Tokyo", "Europe/Berlin", "America/Los_Angeles")
MOMENTS = (
    "2026-03-08T10:30:00.000000Z",  # half past two in Los Angeles, an hour that day skips
    "2026-03-29T01:30:00.000000Z",  # half past three in Berlin, half an hour after its skip
    "2026-05-13T18:29:59.999999Z",
    "2026-05-13T18:30:00.000000Z",  # midnight in India
    "2026-05-13T23:59:59.999999Z",
    "2026-05-14T00:00:00.000000Z",
    "2026-05-14T12:00:00.000000Z",
    "2026-05-14T23:59:59.999999Z",
    "2026-05-15T00:00:00.000000Z",
)
MAY_14 = MOMENTS[5:8]
WINDOWS = {
    ("2026-05-14", "2026-05-14"): MAY_14,
    ("2026-05-14T00:00:00", "2026-05-14T23:59:59.999999"): MAY_14,
    ("2026-05-14T00:00Z", "2026-05-14T23:59:59.999999Z"): MAY_14,
    ("2026-05-14 00:00", "2026-05-15"): MOMENTS[5:],
    ("2026-05-14T00:00:00+05:30", "2026-05-14T05:29:59.999999+05:30"): MOMENTS[3:5],
    ("2026-05-13T17:00:00-07:00", "2026-05-14"): MAY_14,
    ("2026-03-08", "2026-03-08"): MOMENTS[:1],
    ("2026-03-29T01:30", "2026-03-29T01:30"): MOMENTS[1:2],
    ("2026-03-29T02:30", "2026-03-29T03:30"): (),
    ("", "2026-03-29"): MOMENTS[:2],
}


class Clock:
    """A clock that stands where it was put."""

    def __init__(self, start: str) -> None:
        self.moment = datetime.fromisoformat(start)

    def __call__(self) -> Instant:
        return render(self.moment)

    def put(self, moment: str) -> None:
        self.moment = datetime.fromisoformat(moment)

    def forward(self, **delta: float) -> None:
        self.moment += timedelta(**delta)


def opened_at(home: Path, clock: Clock) -> Memory:
    return open_memory(load_settings(home=home, workspace="w", env={}), clock=clock)


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module")
def dated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A memory with a note made at each of MOMENTS, titled by it."""
    home = tmp_path_factory.mktemp("time") / "home"
    clock = Clock("2026-01-01T00:00:00Z")
    with closing(opened_at(home, clock)) as memory:
        ask(memory, "desktop_open")
        for moment in MOMENTS:
            clock.put(moment)
            ask(memory, "graph_add_node", type="note", title=moment, text="the river rose")
        assert memory.indexing.wait(None, 30) == 0
    return home


@pytest.fixture(scope="module")
async def zoned(dated: Path) -> AsyncIterator[list[Client]]:
    """A server in each of ZONES, all on that memory."""
    async with AsyncExitStack() as stack:
        yield [await stack.enter_async_context(connected(dated, TZ=zone)) for zone in ZONES]


async def titles_of(client: Client, tool: str, **arguments: Any) -> list[str]:
    """Titles of the notes in the answer, oldest first."""
    answer = await call(client, tool, **arguments)
    items = answer.get("events") or answer.get("nodes") or answer.get("hits") or []
    return sorted(item["title"] for item in items if item.get("kind", "created") == "created")


# Zones


@pytest.mark.anyio
@pytest.mark.parametrize("window", WINDOWS, ids=" to ".join)
async def test_a_window_holds_the_same_notes_in_every_zone(
    zoned: list[Client], window: tuple[str, str]
) -> None:
    expected = [*(["w"] if not window[0] else []), *WINDOWS[window]]
    for client in zoned:
        ends = {"from_time": window[0], "to_time": window[1]}
        assert await titles_of(client, "temporal_walk", **ends) == sorted(expected)
        assert await titles_of(client, "session_timeline", **ends) == sorted(expected)
        found = await titles_of(
            client, "vector_search", query="river", time_from=window[0], time_to=window[1]
        )
        assert found == list(WINDOWS[window])


@pytest.mark.anyio
async def test_what_is_stored_is_canonical_utc_in_every_zone(
    zoned: list[Client], dated: Path
) -> None:
    before = render(datetime.now(UTC))
    for client in zoned:
        node = await call(client, "graph_add_node", type="note", text="x", workspace_id="now")
        await call(client, "desktop_focus", node_id=node["id"], workspace_id="now")
    after = render(datetime.now(UTC))
    with closing(sqlite3.connect(dated / "cortex.db")) as connection:
        rows = connection.execute(
            "SELECT created_at, updated_at FROM nodes WHERE workspace_id = 'now' UNION ALL "
            "SELECT created_at, created_at FROM navigation_history WHERE workspace_id = 'now' "
            "UNION ALL SELECT at, at FROM changes WHERE workspace_id = 'now'"
        ).fetchall()
    assert len(rows) >= 4 + 3 + 4
    assert all(before <= at <= after and len(at) == 27 for row in rows for at in row)


def test_the_clock_of_the_command_line_is_utc_too(tmp_path: Path) -> None:
    home, before = tmp_path / "home", render(datetime.now(UTC))
    run_cortex(home, "open", "--json", TZ="Asia/Tokyo")
    with closing(sqlite3.connect(home / "cortex.db")) as connection:
        ((at,),) = connection.execute("SELECT created_at FROM nodes").fetchall()
    assert before <= at <= render(datetime.now(UTC))


# What is no window

BAD = ("March 2026", "2026-13-40", "2026-02-30", "yesterday", "14.05.2026", "2026-05-14T25:00")
TIMED = {
    "session_timeline": ("from_time", "to_time"),
    "temporal_walk": ("from_time", "to_time"),
    "vector_search": ("time_from", "time_to"),
}


@pytest.mark.anyio
@pytest.mark.parametrize("tool", TIMED)
async def test_what_is_not_a_date_is_refused_with_the_accepted_forms(
    zoned: list[Client], tool: str
) -> None:
    query = {"query": "river"} if tool == "vector_search" else {}
    for name in TIMED[tool]:
        for text in BAD:
            said = await refused(zoned[0], tool, **query, **{name: text})
            assert said.startswith("invalid:")
            assert text in said
            assert "2026-05-14T08:30:00Z" in said


@pytest.mark.anyio
@pytest.mark.parametrize("tool", TIMED)
async def test_a_window_turned_round_is_refused(zoned: list[Client], tool: str) -> None:
    query = {"query": "river"} if tool == "vector_search" else {}
    start, stop = TIMED[tool]
    for ends in (("2026-05-15", "2026-05-14"), ("2026-05-14T10:00Z", "2026-05-14T10:00+05:30")):
        said = await refused(zoned[0], tool, **query, **{start: ends[0], stop: ends[1]})
        assert said.startswith("invalid:")
        assert ends[0] in said
        assert ends[1] in said


def test_the_error_names_the_argument_that_was_sent(memory: Memory) -> None:
    with pytest.raises(InvalidError, match="time_to"):
        ask(memory, "vector_search", query="river", time_to="March 2026")


# Reading is not editing


def test_reading_in_every_way_moves_no_updated_at(home: Path) -> None:
    clock = Clock("2026-05-01T00:00:00Z")
    with closing(opened_at(home, clock)) as memory:
        first = ask(memory, "graph_add_node", type="fact", text="the river rose")["id"]
        ask(memory, "graph_add_node", type="fact", text="rain", relations=[f"leads_to:{first}"])
        clock.forward(days=1)
        for tool, arguments in {
            "desktop_open": {},
            "desktop_focus": {"node_id": first},
            "graph_get_node": {"node_id": first},
            "graph_traverse": {"start_id": first, "direction": "both"},
            "graph_walk": {"start_id": first},
            "graph_search": {"query": "river"},
            "vector_search": {"query": "river"},
            "session_timeline": {},
            "temporal_walk": {},
            "desktop_history": {},
        }.items():
            ask(memory, tool, **arguments)
        memory.indexing.reindex(None, lambda done, total: None)
        memory.history.flush(wait=10)
    with closing(sqlite3.connect(home / "cortex.db")) as connection:
        updated = "SELECT updated_at FROM nodes UNION SELECT updated_at FROM relations"
        assert connection.execute(updated).fetchall() == [("2026-05-01T00:00:00.000000Z",)]
        assert connection.execute("SELECT MAX(last_at) > '2026-05-02' FROM accesses").fetchone()[0]


# Archiving


class Life:
    """A memory of 300 old notes and of four nodes that matter, lived with day by day."""

    def __init__(self, home: Path) -> None:
        self.clock = Clock("2026-01-10T09:00:00Z")
        self.memory = opened_at(home, self.clock)
        self.mornings: list[dict[str, Any]] = []
        self.matter = {
            "goal": self.add("goal", "ship it"),
            "constraint": self.add("constraint", "never on Fridays"),
            "pinned": self.add("note", "the map of it all", pinned=True),
            "session": str(self.open()["session_id"]),
        }
        self.old = [self.add_later(f"old note {number} of the zeppelin") for number in range(300)]
        self.first_day = [self.open()["archive"]["count"] for _ in range(2)]
        self.clock.forward(days=30)
        self.after_absence = [self.open()["archive"]["count"] for _ in range(2)]
        self.after_absence_at = self.clock()
        self.new = self.work()
        self.after_a_day = self.archived()
        for _ in range(6):
            self.new += self.work()
        self.brought_back = ask(self.memory, "desktop_focus", node_id=self.old[7])
        for _ in range(3):
            self.new += self.work()
        self.last = self.open()

    def add(self, kind: str, text: str, **more: Any) -> str:
        return str(ask(self.memory, "graph_add_node", type=kind, text=text, **more)["id"])

    def add_later(self, text: str) -> str:
        self.clock.forward(seconds=1)
        return self.add("note", text)

    def open(self) -> dict[str, Any]:
        shown = ask(self.memory, "desktop_open")
        self.memory.viewport.drain()
        return shown

    def work(self) -> list[str]:
        """A day with ten new notes, one of them in focus; the next morning's opening too."""
        made = [self.add_later(f"new note {number}") for number in range(10)]
        ask(self.memory, "desktop_focus", node_id=made[-1])
        self.clock.forward(days=1)
        self.mornings.append(self.open())
        return made

    def archived(self) -> set[str]:
        """Ids, read without opening a node, which would keep it from being idle."""
        nodes = [self.memory.reading.whole(node) for node in (*self.old, *self.matter.values())]
        return {node.id for node in nodes if node.status == "archived"}


@pytest.fixture(scope="module")
def life(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Life]:
    lived = Life(tmp_path_factory.mktemp("life") / "home")
    yield lived
    lived.memory.close()


def test_nothing_is_archived_on_the_first_day(life: Life) -> None:
    assert life.first_day == [0, 0]


def test_nothing_is_archived_by_absence_alone(life: Life) -> None:
    assert life.after_absence == [0, 0]


def test_after_a_day_of_work_all_but_the_newest_hundred_are_archived(life: Life) -> None:
    assert life.after_a_day == set(life.old[:210])


def test_after_ten_days_all_old_notes_are_archived_but_the_one_in_use(life: Life) -> None:
    assert life.archived() == set(life.old) - {life.old[7]}


@pytest.mark.parametrize("kind", ["goal", "constraint", "pinned", "session"])
def test_what_matters_is_never_archived(life: Life, kind: str) -> None:
    assert life.matter[kind] not in life.archived()


def test_each_archived_memory_is_told_of_once(life: Life) -> None:
    told = sum(shown["archived_now"] for shown in (*life.mornings, life.last))
    assert told == life.last["archive"]["count"] + 1  # one was brought back


def test_what_was_used_since_it_was_found_idle_is_not_archived(life: Life) -> None:
    place, since = life.memory.engine.settings.workspace, life.after_absence_at
    used, unused = (life.memory.reading.whole(life.old[at]) for at in (7, 250))
    with life.memory.engine.database.write("test") as transaction:
        transaction.nodes.set_status([unused.key], Status.ACTIVE)
        assert transaction.archiving.still([used.key, unused.key], place, since) == [unused.key]
        transaction.nodes.set_status([unused.key], Status.ARCHIVED)


def test_new_notes_are_not_archived(life: Life) -> None:
    assert all(life.memory.reading.whole(node).status == "active" for node in life.new)


def test_the_desktop_counts_what_is_archived(life: Life) -> None:
    archive = life.open()["archive"]
    assert archive["count"] == len(life.archived())
    assert archive["oldest"] == life.memory.reading.whole(life.old[0]).created_at


@pytest.mark.parametrize("tool", ["vector_search", "graph_search"])
def test_an_archived_note_is_found_and_labelled(life: Life, tool: str) -> None:
    assert life.memory.indexing.wait(None, 60) == 0
    hits = ask(life.memory, tool, query="old note 3 of the zeppelin", top_k=3)["hits"]
    found = {hit["id"]: hit["status"] for hit in hits}
    assert found[life.old[3]] == "archived"


def test_a_focus_brings_an_archived_note_back(life: Life) -> None:
    assert life.old[7] in life.after_a_day
    assert life.brought_back["restored"] is True
    assert life.brought_back["node"]["status"] == "active"


def test_archiving_is_no_edit(life: Life) -> None:
    node = life.memory.reading.whole(life.old[0])
    assert node.status == "archived"
    assert node.updated_at == node.created_at
