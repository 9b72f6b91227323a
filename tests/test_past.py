"""The past is what the log makes it: as-of, and what changed between two moments."""

from __future__ import annotations

import json
import random
import sqlite3
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Final

import pytest
from typer.testing import CliRunner

from cortex.cli.app import app
from cortex.config import load_settings
from cortex.domain.errors import CortexError, InvalidError, NotFoundError
from cortex.domain.instants import as_datetime, later
from cortex.domain.taxonomy import NodeType, RelationType, Status
from cortex.domain.values import WorkspaceId
from cortex.memory import Memory, open_memory
from cortex.services.fields import Fields
from cortex.services.past import GraphThen, apply
from cortex.store.nodes import node_of
from cortex.store.relations import relation_of
from tests.local import ask
from tests.parity import START, Clock
from tests.parity_steps import EDITS
from tests.parity_tables import Row, Rows, Tables

PLACES: Final = ("w", "v")
CHANGES: Final = 1_000
TYPES: Final = [kind.value for kind in NodeType if kind.value not in ("session", "fileref")]
RESTORE: Final = """
INSERT INTO nodes(rowkey, id, type, workspace_id, parent_id, data, status, created_at, updated_at)
VALUES (:rowkey, :id, :type, :workspace_id, NULL, :data, :status, :created_at, :updated_at)
"""


class World:
    """A memory and a foreign shell on one file, to which random things happen."""

    def __init__(self, home: Path, seed: int) -> None:
        self.rng = random.Random(seed)
        self.clock = Clock()
        settings = load_settings(home=home, workspace="w", env={})
        self.memory = open_memory(settings, clock=self.clock)
        self.memory.engine.after_write = lambda: None
        self.shell = sqlite3.connect(settings.database, isolation_level=None)
        self.shell.row_factory = sqlite3.Row
        self.stood: dict[int, Tables] = {}

    def close(self) -> None:
        self.shell.close()
        self.memory.close()

    def look(self) -> Tables:
        """The tables as they are; remembered by the log's end."""
        tables = Tables(self.shell)
        self.stood[tables.seq] = tables
        return tables

    def step(self) -> None:
        """One thing happens, or is refused."""
        tables, rng = self.look(), self.rng
        nodes, relations = list(tables.nodes.values()), list(tables.relations.values())
        self.clock.move(rng.random())
        with suppress(CortexError, sqlite3.IntegrityError):
            if not nodes or rng.random() < 0.3:
                self._add(nodes)
            elif rng.random() < 0.6:
                self._ask(rng.choice(nodes), rng.choice(nodes))
            else:
                self._shell(rng.choice(nodes), rng.choice(nodes), relations)

    def _add(self, nodes: list[Row]) -> None:
        parent = self.rng.choice(nodes) if nodes and self.rng.random() < 0.7 else None
        self.memory.adding.add_node(
            self.rng.choice(TYPES),
            Fields(text=f"text {self.rng.randrange(99)}"),
            parent=parent["id"] if parent else None,
            workspace=parent["workspace_id"] if parent else self.rng.choice(PLACES),
        )

    def _ask(self, node: Row, other: Row) -> None:
        memory, rng, at = self.memory, self.rng, node["id"]
        match rng.randrange(6):
            case 0:
                memory.mutation.update(at, Fields(text=f"text {rng.randrange(99)}"))
            case 1:
                status = rng.choice(list(Status)).value
                cascade = rng.random() < 0.3 and status != "archived"
                memory.mutation.update(at, Fields(), status=status, cascade=cascade)
            case 2:
                memory.mutation.supersede(at, Fields(text="newer"), cascade=rng.random() < 0.3)
            case 3:
                memory.mutation.delete(at, cascade=rng.random() < 0.2)
            case _:
                kind, weight = rng.choice(list(RelationType)).value, round(rng.random(), 3)
                memory.linking.add_relation(at, other["id"], kind, weight=weight)

    def _shell(self, node: Row, other: Row, relations: list[Row]) -> None:
        rng = self.rng
        match rng.randrange(4):
            case 0 if relations:
                key = rng.choice(relations)["rowkey"]
                if rng.random() < 0.5:
                    self.shell.execute("UPDATE relations SET weight = ? WHERE rowkey = ?",
                                       (rng.random(), key))  # fmt: skip
                else:
                    self.shell.execute("DELETE FROM relations WHERE rowkey = ?", (key,))
            case 1:
                self.shell.execute(EDITS["delete"], {"key": node["rowkey"]})
                if rng.random() < 0.5:  # it comes back under its old key and id
                    self.shell.execute(RESTORE, node)
            case _:
                edit = rng.choice(["text", "empty", "tags", "status", "type", "parent", "place"])
                bound = {"key": node["rowkey"], "other": other["id"], "word": "shell", "tag": "t"}
                bound |= {"status": "stale", "type": "note", "place": rng.choice(PLACES)}
                self.shell.execute(EDITS[edit], bound)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    made = World(tmp_path_factory.mktemp("past") / "home", seed=7)
    while made.look().seq < CHANGES:
        made.step()
    yield made
    made.close()


def graph_of(rows: tuple[Rows, Rows], place: str, seq: int) -> GraphThen:
    nodes = [node_of(tuple(row.values())) for row in rows[0].values()]
    relations = [relation_of(tuple(row.values())) for row in rows[1].values()]
    return GraphThen(
        WorkspaceId(place),
        seq,
        {node.id: node for node in nodes if node.workspace_id == place},
        {relation.id: relation for relation in relations if relation.workspace_id == place},
    )


def same(one: GraphThen, other: GraphThen) -> bool:
    return (one.workspace_id, one.seq, dict(one.nodes), dict(one.relations)) == (
        other.workspace_id,
        other.seq,
        dict(other.nodes),
        dict(other.relations),
    )


def test_as_of_each_change_is_the_log_undone_one_by_one(world: World) -> None:
    now = Tables(world.shell)
    tables: dict[str, Rows] = {"node": dict(now.nodes), "relation": dict(now.relations)}
    for change in reversed(now.log):
        place = PLACES[change["seq"] % 2]
        then = world.memory.past.as_of(place, change["seq"])
        expected = graph_of((tables["node"], tables["relation"]), place, change["seq"])
        assert same(then, expected), change
        table = tables[change["entity"]]
        table.pop(change["key"], None)
        if change["op"] != "insert":
            before = json.loads(change["before"])
            if change["entity"] == "relation":
                before["weight"] = float(before["weight"])
            table[change["key"]] = before
    assert world.memory.past.as_of("w", 0).nodes == {}


def test_as_of_a_moment_that_was_seen_is_what_was_seen(world: World) -> None:
    assert len(world.stood) > 200
    for seq, tables in world.stood.items():
        for place in PLACES:
            then = world.memory.past.as_of(place, seq)
            assert same(then, graph_of((tables.nodes, tables.relations), place, seq))


def test_a_diff_applied_to_the_graph_before_is_the_graph_after(world: World) -> None:
    rng = random.Random(3)
    past = world.memory.past
    for _ in range(150):
        first, last = sorted(rng.randrange(CHANGES) for _ in range(2))
        place = rng.choice(PLACES)
        diff = past.diff(place, first, last)
        before, after = past.as_of(place, first), past.as_of(place, last)
        assert same(apply(diff, before), after)
        for delta, old, new in (
            (diff.nodes, before.nodes, after.nodes),
            (diff.relations, before.relations, after.relations),
        ):
            assert {item.id for item in delta.added} == new.keys() - old.keys()  # type: ignore[operator]
            assert {item.id for item in delta.removed} == old.keys() - new.keys()  # type: ignore[operator]
            assert all(item.fields for item in delta.changed)


def test_every_instant_names_the_last_change_at_or_before_it(world: World) -> None:
    rows = [dict(row) for row in world.shell.execute("SELECT seq, at FROM changes ORDER BY seq")]
    for row in random.Random(5).sample(rows, 100):
        expected = max(each["seq"] for each in rows if each["at"] <= row["at"])
        assert world.memory.past.as_of("w", row["at"]).seq == expected
    assert world.memory.past.as_of("w", "2100-01-01").seq == rows[-1]["seq"]
    assert world.memory.past.as_of("w", "1999-01-01").seq == 0


@pytest.fixture
def told(home: Path) -> Iterator[tuple[Memory, Clock]]:
    clock = Clock()
    memory = open_memory(load_settings(home=home, workspace="w", env={}), clock=clock)
    yield memory, clock
    memory.close()


def test_what_came_and_went_within_the_window_is_in_no_list(told: tuple[Memory, Clock]) -> None:
    memory, clock = told
    kept = memory.adding.add_node("fact", Fields(text="Stays")).id
    before = clock.at
    clock.move(60)
    gone = memory.adding.add_node("fact", Fields(text="Comes and goes")).id
    memory.mutation.update(kept, Fields(text="Changes, and"))
    memory.mutation.update(kept, Fields(text="Stays"))
    memory.mutation.delete(gone)
    diff = memory.past.diff("w", before)
    assert (diff.nodes.added, diff.nodes.removed, diff.relations.added) == ((), (), ())
    assert [set(each.fields) for each in diff.nodes.changed] == [{"updated_at"}]


def test_a_change_says_its_fields_old_and_new(told: tuple[Memory, Clock]) -> None:
    memory, clock = told
    fact = memory.adding.add_node("fact", Fields(title="Old", data={"status": 1, "n": True})).id
    before = clock.at
    clock.move(60)
    memory.mutation.update(fact, Fields(title="New", data={"status": 2, "n": 1}), status="stale")
    [change] = memory.past.diff("w", before).nodes.changed
    fields = change.fields
    assert fields.pop("updated_at")
    assert fields == {
        "title": ("Old", "New"),
        "status": ("active", "stale"),
        "data.status": (1, 2),
        "n": (True, 1),
    }


def test_a_day_begins_a_window_with_its_start_and_ends_it_with_its_end(
    told: tuple[Memory, Clock],
) -> None:
    memory, clock = told
    memory.adding.add_node("fact", Fields(text="New Year"))
    clock.at = later(START, days=1)
    memory.adding.add_node("fact", Fields(text="The second"))

    def added(first: str, last: str | None) -> list[str]:
        diff = memory.past.diff("w", first, last)
        return [node.title for node in diff.nodes.added if node.type is NodeType.FACT]

    assert as_datetime(START).isoformat().startswith("2040-01-01")
    assert added("2040-01-01", "2040-01-01") == ["New Year"]
    assert added("2040-01-02", None) == ["The second"]
    assert added("2039-01-01", "2040-01-02") == ["New Year", "The second"]


def test_below_the_log_s_floor_it_is_refused_with_what_can_be_reached(
    told: tuple[Memory, Clock],
) -> None:
    memory, clock = told
    memory.adding.add_node("fact", Fields(text="folded away"))
    floor = memory.generation()
    clock.move(60)
    at = clock.at
    memory.adding.add_node("fact", Fields(text="kept"))
    with closing(sqlite3.connect(memory.settings.database, isolation_level=None)) as shell:
        shell.execute("DELETE FROM changes WHERE seq <= ?", (floor,))
        shell.execute("UPDATE meta SET value = ? WHERE key = 'log_floor'", (str(floor),))
        [first] = shell.execute("SELECT MIN(at) FROM changes").fetchone()
    with pytest.raises(InvalidError, match=rf"from {floor} to {memory.generation()}"):
        memory.past.as_of("w", floor - 1)
    with pytest.raises(InvalidError, match=f"a time from {first}"):
        memory.past.diff("w", at)
    assert len(memory.past.as_of("w", floor).nodes) == 2
    assert [node.title for node in memory.past.diff("w", floor).nodes.added] == ["kept"]
    assert memory.past.as_of("w", first).seq > floor


def test_a_window_turned_round_and_an_unknown_workspace_are_refused(memory: Memory) -> None:
    memory.adding.add_node("fact", Fields(text="x"))
    with pytest.raises(InvalidError, match="Valid: from_time ≤ to_time"):
        memory.past.diff("w", memory.generation(), 0)
    with pytest.raises(InvalidError, match="not a time"):
        memory.past.diff("w", "yesterday-ish")
    with pytest.raises(NotFoundError, match="Valid: w"):
        memory.past.diff("nowhere", 0)


def test_the_tool_says_what_was_added_changed_and_removed(told: tuple[Memory, Clock]) -> None:
    memory, clock = told
    old = memory.adding.add_node("fact", Fields(title="Tokens live a day", text="24 h")).id
    gone = memory.adding.add_node("note", Fields(text="Scratch")).id
    before = clock.at
    clock.move(60)
    new = memory.mutation.supersede(old, Fields(title="Tokens live an hour")).new_id
    memory.mutation.delete(gone)
    answer = ask(memory, "graph_diff", from_time=before)
    added = {item["id"]: item for item in answer["added"]}
    assert added[new]["entity"] == "node"
    assert {item["type"] for item in added.values()} >= {"supersedes", "contains"}
    [changed] = [item for item in answer["changed"] if item["id"] == old]
    assert changed["fields"]["status"] == ["active", "stale"]
    assert gone in [item["id"] for item in answer["removed"]]
    assert answer["totals"]["changed"] == len(answer["changed"])
    assert answer["truncated"] is False


def test_a_large_diff_is_cut_and_says_so(memory: Memory) -> None:
    task = memory.adding.add_node("task", Fields(title="Many")).id
    before = memory.generation()
    memory.adding.decompose(task, [f"step {n} " + "x" * 80 for n in range(300)])
    assert len(memory.past.diff("w", before).nodes.added) == 300
    answer = ask(memory, "graph_diff", from_time="2020-01-01")
    assert answer["truncated"] is True
    assert answer["totals"]["added"] > 300
    assert len(json.dumps(answer, ensure_ascii=False)) < 26_000


def cortex(memory: Memory, *arguments: str) -> str:
    line = [*arguments, "--home", str(memory.settings.home), "--workspace", "w"]
    done = CliRunner().invoke(app, line, terminal_width=120)
    if isinstance(done.exception, CortexError):
        raise done.exception
    assert done.exit_code == 0, done.output
    return done.stdout


def test_the_command_shows_a_window_and_says_where_there_is_nothing(memory: Memory) -> None:
    fact = memory.adding.add_node("fact", Fields(text="Tokens [bold]expire[/bold]")).id
    said = cortex(memory, "diff", "--from", "2020-01-01")
    assert fact[:8] in said
    assert "Tokens [bold]expire[/bold]" in said
    empty = cortex(memory, "diff", "--from", "2020-01-01", "--to", "2020-02-01")
    assert "Nothing changed in 'w'" in empty
    found = json.loads(cortex(memory, "diff", "--from", "2020-01-01", "--json"))
    assert fact in [item["id"] for item in found["added"]]
