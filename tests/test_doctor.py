"""The doctor: faults planted in a copy of a memory by a raw shell, found, and mended."""

# ruff: noqa: S608 - the SQL is a shell's that plants faults; nothing of it comes from outside

from __future__ import annotations

import json
import shutil
import sqlite3
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path
from typing import Final, NamedTuple

import pytest
from qdrant_client.http import models

from cortex.config import Settings, load_settings
from cortex.domain.errors import NotFoundError, UnavailableError
from cortex.domain.values import WorkspaceId
from cortex.graph.workspace import WorkspaceGraph
from cortex.memory import open_memory
from cortex.services.doctor.caches import differences
from cortex.services.doctor.examining import Doctor, Examined
from cortex.services.doctor.findings import BY_FIX, COMPACT, RESTORE, Finding, State
from cortex.services.doctor.truth import in_cycles
from cortex.services.fields import Fields
from tests.local import start_cortex
from tests.original_schema import make_original
from tests.qdrant_stand_in import standing_in
from tests.worker_world import Life

W: Final = WorkspaceId("w")
AT: Final = "2026-11-30T12:00:00.000000Z"


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A memory with a bit of everything, embedded, undone, compacted and closed."""
    home = tmp_path_factory.mktemp("sound") / "home"
    memory = open_memory(load_settings(home=home, workspace="w", env={}))
    made = [
        memory.adding.add_node("fact", Fields(text=f"the gate number {n} is {n * 7}"), workspace=W)
        for n in range(8)
    ]
    memory.adding.add_node("note", Fields(title="long", text="one word after another. " * 60))
    memory.adding.add_node("task", Fields(title="a task", text="paint the gate"))
    memory.linking.add_relation(made[0].id, made[1].id, "supports", weight=0.5)
    memory.linking.add_relation(made[2].id, made[1].id, "related_to")
    memory.mutation.supersede(made[3].id, Fields(text="the gate number 3 is closed"))
    memory.mutation.delete(made[4].id)
    memory.undoing.undo(1)
    memory.mutation.delete(made[5].id)
    memory.viewport.focus(made[6].id)
    assert memory.indexing.wait(None, 60.0) == 0
    memory.close()
    return home


@pytest.fixture
def ill(sound: Path, tmp_path: Path) -> Settings:
    """A copy of it, to be made ill."""
    shutil.copytree(sound, tmp_path / "home")
    return load_settings(home=tmp_path / "home", workspace="w", env={})


def plant(settings: Settings, statements: str, without: Iterable[str] = ()) -> None:
    """Run SQL as a shell that heeds no rule, `without` these triggers meanwhile."""
    with closing(sqlite3.connect(settings.database, isolation_level=None)) as shell:
        shell.execute("PRAGMA ignore_check_constraints = ON")
        shell.execute("PRAGMA writable_schema = ON")
        dropped = []
        for name in without:
            asked = shell.execute("SELECT sql FROM sqlite_master WHERE name = ?", (name,))
            dropped.append(asked.fetchone()[0])
            shell.execute(f"DROP TRIGGER {name}")
        shell.executescript(statements)
        for sql in dropped:
            shell.execute(sql)


def wrong(examined: Examined) -> dict[str, Finding]:
    """By check, what is neither well nor skipped."""
    bad = (State.FAULT, State.WARNING)
    return {each.check: each for each in examined.findings if each.state in bad}


class Fault(NamedTuple):
    """What is planted, which check is to find it, and what is to mend it."""

    check: str
    plant: str
    without: tuple[str, ...] = ()
    mend: str = BY_FIX
    count: int = 1


ONE: Final = "(SELECT MIN(rowkey) FROM nodes WHERE type = 'fact' AND status = 'active')"
ONE_ID: Final = f"(SELECT id FROM nodes WHERE rowkey = {ONE})"
ROOT: Final = "(SELECT id FROM nodes WHERE type = 'session')"
LINK: Final = "(SELECT rowkey FROM relations WHERE type = 'supports')"
OLD: Final = "(SELECT to_id FROM relations WHERE type = 'supersedes')"
NEW: Final = "(SELECT from_id FROM relations WHERE type = 'supersedes')"


def relation(source: str, kind: str, target: str) -> str:
    return (
        "INSERT INTO relations(id, workspace_id, from_id, to_id, type, created_at, updated_at) "
        f"VALUES ('planted', 'w', {source}, {target}, '{kind}', '{AT}', '{AT}');"
    )


FAULTS: Final = {
    "a status that is none": Fault(
        "values", f"UPDATE nodes SET status = 'done' WHERE rowkey = {ONE}"
    ),
    "a type that is none": Fault("values", f"UPDATE nodes SET type = 'idea' WHERE rowkey = {ONE}"),
    "data that is no object": Fault(
        "values", f"UPDATE nodes SET data = '[1]' WHERE rowkey = {ONE}"
    ),
    "a time in another form": Fault(
        "values", f"UPDATE nodes SET created_at = '2026-11-30' WHERE rowkey = {ONE}"
    ),
    "a weight above 1": Fault("values", f"UPDATE relations SET weight = 7 WHERE rowkey = {LINK}"),
    "a relation of an unknown type": Fault(
        "values", f"UPDATE relations SET type = 'likes' WHERE rowkey = {LINK}", ("relations_fixed",)
    ),
    "a relation to nowhere": Fault(
        "foreign keys", relation(ONE_ID, "supports", "'gone'"), ("relations_within",)
    ),
    "a vector of no node": Fault(
        "foreign keys",
        "INSERT INTO embeddings(node_key, model, chunk, text_hash, vector) "
        "VALUES (9999, 'm', 0, 'h', x'00')",
    ),
    "a wave of no node": Fault(
        "foreign keys",
        f"INSERT INTO waves(node_key, at) VALUES (9999, '{AT}')",
        ("waves_stay", "waves_insert"),
    ),
    "a relation of another workspace": Fault(
        "workspaces", f"UPDATE relations SET workspace_id = 'v' WHERE rowkey = {LINK}"
    ),
    "a node moved from under its relation": Fault(
        "workspaces",
        f"DELETE FROM relations WHERE to_id = {ONE_ID}; "
        f"UPDATE nodes SET workspace_id = 'v' WHERE rowkey = {ONE}",
        mend="cortex health --drop-dangling --workspace w",
    ),
    "a cycle of contains": Fault(
        "forest",
        relation(ONE_ID, "contains", ROOT),
        ("relations_acyclic",),
        "delete one of these relations, in a SQL shell: which one is yours to say",
        2,
    ),
    "a parent that contains it not": Fault(
        "parents",
        f"DELETE FROM relations WHERE to_id = {ONE_ID} AND type = 'contains'",
        ("contains_clears_parent",),
    ),
    "a contained node without its parent": Fault(
        "parents",
        f"UPDATE nodes SET parent_id = NULL WHERE rowkey = {ONE}",
        ("parent_moves_contains",),
    ),
    "a cycle of supersedes": Fault(
        "supersedes",
        relation(OLD, "supersedes", NEW),
        ("relations_acyclic",),
        "delete one of these relations, in a SQL shell: which one is yours to say",
        2,
    ),
    "a superseded node made active": Fault(
        "superseded",
        f"UPDATE nodes SET status = 'active' WHERE id = {OLD}",
        ("superseded_stays_stale",),
    ),
    "a tally that is off": Fault("tallies", "UPDATE tallies SET nodes = nodes + 5", count=2),
    "a writer who is gone": Fault("writer", "UPDATE writer SET tx = 1, actor = 'a'"),
    "a change that is not logged": Fault(
        "log", f"DELETE FROM changes WHERE entity = 'node' AND key = {ONE}"
    ),
    "a deletion that is not logged": Fault(
        "log", f"DELETE FROM relations WHERE rowkey = {LINK}", ("relations_delete",), COMPACT
    ),
    "a deletion that was none": Fault(
        "log",
        "INSERT INTO changes(at, tx, actor, workspace_id, entity, key, op, before) "
        f"SELECT '2099-01-01T00:00:00.000000Z', 999, 'x', 'w', 'relation', rowkey, 'delete', "
        f"json_object('rowkey', rowkey, 'id', id) FROM relations WHERE rowkey = {LINK}",
        mend=COMPACT,
    ),
    "an image of another row": Fault(
        "log",
        "UPDATE changes SET before = json_set(before, '$.rowkey', 777) "
        "WHERE seq = (SELECT MAX(seq) FROM changes WHERE before IS NOT NULL)",
        mend=COMPACT,
    ),
    "a time that goes back": Fault(
        "log",
        "UPDATE changes SET at = '2099-01-01T00:00:00.000000Z' WHERE seq = 3",
        mend=COMPACT,
    ),
    "a follower ahead of the log": Fault(
        "log", "UPDATE meta SET value = '999999' WHERE key = 'derived_seq'"
    ),
    "a floor above the log's first row": Fault(
        "log", "UPDATE meta SET value = '1' WHERE key = 'log_floor'"
    ),
    "a row that the keyword index lacks": Fault(
        "keywords", f"DELETE FROM keywords WHERE rowid = {ONE} << 11"
    ),
    "a row that the keyword index has of no node": Fault(
        "keywords", "INSERT INTO keywords(rowid, title, body) VALUES (9999 << 11, 'a', 'b')"
    ),
    "a keyword row with other words": Fault(
        "keywords", f"UPDATE keywords SET body = 'zebra' WHERE rowid = {ONE} << 11"
    ),
    "a keyword index that is not of its content": Fault(
        "keywords",
        "UPDATE keywords_content SET c1 = c1 || ' zebra' WHERE id = (SELECT MIN(id) FROM "
        "keywords_content)",
        count=2,
    ),
    "a keyword index that is torn": Fault(
        "keywords", "UPDATE keywords_data SET block = zeroblob(40) WHERE id > 10"
    ),
    "a text missing from the outbox": Fault(
        "outbox", f"DELETE FROM index_state WHERE node_key = {ONE}"
    ),
    "an older text in the outbox": Fault(
        "outbox", f"UPDATE index_state SET text_hash = 'old' WHERE node_key = {ONE}"
    ),
    "a text that could not be embedded": Fault(
        "outbox",
        f"UPDATE index_state SET state = 'failed', problem = 'why' WHERE node_key = {ONE}",
        mend="cortex reindex",
    ),
    "a ready node without a vector": Fault(
        "vectors", f"DELETE FROM embeddings WHERE node_key = {ONE}"
    ),
    "a chunk without its vector": Fault("vectors", "DELETE FROM embeddings WHERE chunk = 1"),
    "a vector of another dimension": Fault(
        "vectors", f"UPDATE embeddings SET vector = x'0102' WHERE node_key = {ONE}"
    ),
    "a vector of length 0": Fault(
        "vectors", f"UPDATE embeddings SET vector = zeroblob(768) WHERE node_key = {ONE}"
    ),
    "a vector of another model": Fault(
        "vectors",
        "INSERT INTO embeddings(node_key, model, chunk, text_hash, vector) "
        f"VALUES ({ONE}, 'other', 0, 'h', x'00')",
        mend="cortex reindex",
    ),
    "a fingerprint that says nothing": Fault(
        "fingerprint",
        "UPDATE meta SET value = '{}' WHERE key = 'fingerprint'",
        mend="cortex reindex",
    ),
    "a trigger that is gone": Fault("schema", "DROP TRIGGER relations_delete"),
    "an index that is gone": Fault("schema", "DROP INDEX relations_one_parent"),
    "a trigger of another's": Fault(
        "schema",
        "CREATE TRIGGER theirs AFTER INSERT ON nodes BEGIN SELECT 1; END",
        mend="DROP it in a SQL shell",
    ),
}
faults = pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS.keys())
MENDED: Final = {name: fault for name, fault in FAULTS.items() if fault.mend == BY_FIX}


def test_a_sound_memory_has_no_fault_and_nothing_is_left_out(sound: Path) -> None:
    examined = Doctor(load_settings(home=sound, env={})).examine()
    assert [each for each in examined.findings if each.state is not State.OK] == []
    assert len({each.check for each in examined.findings}) == 24


@faults
def test_exactly_what_was_planted_is_found(ill: Settings, fault: Fault) -> None:
    plant(ill, fault.plant, fault.without)
    found = wrong(Doctor(ill).examine())
    assert {check: (each.count, each.mend) for check, each in found.items()} == {
        fault.check: (fault.count, fault.mend)
    }


@pytest.mark.parametrize("fault", MENDED.values(), ids=MENDED.keys())
def test_what_fix_says_it_mends_is_well_afterwards(ill: Settings, fault: Fault) -> None:
    plant(ill, fault.plant, fault.without)
    examined = Doctor(ill).mend()
    assert examined.mended == (fault.check,)
    assert wrong(examined) == {}


def test_fix_deletes_no_node_and_keeps_what_it_replaces(ill: Settings) -> None:
    plant(ill, f"UPDATE nodes SET type = 'idea', status = 'done' WHERE rowkey = {ONE}")
    with closing(sqlite3.connect(ill.database)) as shell:
        before = shell.execute("SELECT COUNT(*) FROM nodes").fetchone()
        Doctor(ill).mend()
        assert shell.execute("SELECT COUNT(*) FROM nodes").fetchone() == before
        kept = shell.execute("SELECT type, status, data FROM nodes WHERE data LIKE '%idea%'")
        [(kind, status, data)] = kept
    assert (kind, status) == ("entity", "active")
    assert json.loads(data)["kind"] == "idea"
    assert json.loads(data)["original_status"] == "done"


def test_an_index_that_differs_from_its_table_is_made_again(ill: Settings) -> None:
    hidden = "SELECT type, name, tbl_name, rootpage, sql FROM sqlite_master WHERE name = :name"
    index = {"name": "nodes_by_updated"}
    with closing(sqlite3.connect(ill.database, isolation_level=None)) as shell:
        kept = shell.execute(hidden, index).fetchone()
        plant(ill, "DELETE FROM sqlite_master WHERE name = 'nodes_by_updated'")
    plant(ill, f"UPDATE nodes SET updated_at = '{AT}' WHERE rowkey = {ONE}")
    with closing(sqlite3.connect(ill.database, isolation_level=None)) as shell:
        shell.execute("PRAGMA writable_schema = ON")
        shell.execute("INSERT INTO sqlite_master VALUES (?, ?, ?, ?, ?)", kept)
    assert wrong(Doctor(ill).examine()).keys() == {"indexes"}
    examined = Doctor(ill).mend()
    assert (examined.mended, wrong(examined)) == (("indexes",), {})


def test_a_second_root_goes_below_the_first(ill: Settings) -> None:
    statements = (
        "DROP INDEX nodes_one_root; INSERT INTO nodes(id, type, workspace_id, data, created_at, "
        f"updated_at) VALUES ('second', 'session', 'w', '{{}}', '{AT}', '{AT}')"
    )
    plant(ill, statements, ("nodes_stay",))
    assert wrong(Doctor(ill).examine()).keys() == {"roots", "schema"}
    assert wrong(Doctor(ill).mend()) == {}


def test_a_second_parent_is_left_for_a_person_to_judge(ill: Settings) -> None:
    other = f"(SELECT id FROM nodes WHERE type = 'task' AND id <> {ONE_ID})"
    plant(
        ill,
        "DROP INDEX relations_one_parent;" + relation(other, "contains", ONE_ID),
        ("relations_stay", "contains_sets_parent"),
    )
    left = wrong(Doctor(ill).mend())
    assert "forest" in left
    assert "more than one parent" in left["forest"].examples[0]


def test_a_damaged_file_is_left_as_it_is_and_sent_to_its_backup(ill: Settings) -> None:
    with ill.database.open("r+b") as file:
        file.seek(60_000)
        file.write(b"\xff" * 30_000)
    before = ill.database.read_bytes()
    examined = Doctor(ill).mend()
    assert {check: each.mend for check, each in wrong(examined).items()} == {"pages": RESTORE}
    assert ill.database.read_bytes() == before


def test_a_file_that_is_no_database_is_told_so(ill: Settings) -> None:
    ill.database.write_bytes(b"hello" * 1000)
    found = wrong(Doctor(ill).examine())["pages"]
    assert "not a SQLite database" in found.examples[0]
    assert found.mend == RESTORE


def test_a_file_that_may_not_be_opened_is_no_damaged_one(ill: Settings) -> None:
    with closing(sqlite3.connect(ill.database)) as shell:
        shell.execute("PRAGMA user_version = 99")
    with pytest.raises(UnavailableError, match="newer cortex"):
        Doctor(ill).examine()


def test_files_that_others_may_read_are_closed_to_them(ill: Settings) -> None:
    ill.database.chmod(0o644)
    ill.home.chmod(0o755)
    assert wrong(Doctor(ill).examine())["permissions"].count == 4, "its log and index too"
    assert wrong(Doctor(ill).mend()) == {}
    assert ill.database.stat().st_mode & 0o777 == 0o600


def test_a_write_ahead_log_above_its_bound_is_a_warning_that_fix_ends(ill: Settings) -> None:
    with closing(sqlite3.connect(ill.database, isolation_level=None)) as shell:
        shell.execute("UPDATE accesses SET count = count + 1")
        examined = Doctor(ill, wal_bound=1).examine()
        assert wrong(examined)["write-ahead log"].state is State.WARNING
        assert examined.faults == 0
        mended = Doctor(ill, wal_bound=1).mend()
    assert "write-ahead log" in mended.mended


def test_a_graph_that_has_not_followed_differs(ill: Settings) -> None:
    memory = open_memory(ill)
    memory.engine.after_write = lambda: None
    graph = WorkspaceGraph(W)
    with memory.engine.database.read() as snapshot:
        graph.catch_up(snapshot)
        assert list(differences(snapshot, graph)) == []
    made = memory.adding.add_node("fact", Fields(text="a new one"), workspace=W)
    with memory.engine.database.read() as snapshot:
        found = list(differences(snapshot, graph))
    memory.close()
    assert len(found) == 2, "the node and its contains"
    assert any("node" in line for line in found), made.id


def test_a_point_that_qdrant_lost_is_found_and_pushed_again(tmp_path: Path) -> None:
    with standing_in() as server:
        env = {"CORTEX_QDRANT_URL": server.url}
        settings = load_settings(home=tmp_path / "home", workspace="w", env=env)
        memory = open_memory(settings)
        made = memory.adding.add_node("fact", Fields(text="the kettle is blue"), workspace=W)
        assert memory.indexing.wait(None, 60.0) == 0
        memory.close()
        server.local.delete("cortex_memory", models.PointIdsList(points=[made.id]))
        [lost] = wrong(Doctor(settings).examine()).values()
        assert (lost.check, lost.examples) == ("vector index", (f"{made.id} of w is missing",))
        assert wrong(Doctor(settings).mend()) == {}


def test_a_qdrant_that_does_not_answer_is_left_out_and_said(ill: Settings) -> None:
    env = {"CORTEX_QDRANT_URL": "http://127.0.0.1:9", "CORTEX_QDRANT_TIMEOUT": "0.5"}
    settings = load_settings(home=ill.home, workspace="w", env=env)
    examined = Doctor(settings).examine()
    assert wrong(examined) == {}
    [left] = [each for each in examined.findings if each.state is State.SKIPPED]
    assert left.check == "vector index"


def test_what_a_shell_changed_is_no_fault_before_the_next_write(ill: Settings) -> None:
    plant(ill, f'UPDATE nodes SET data = \'{{"text": "by hand"}}\' WHERE rowkey = {ONE}')
    examined = Doctor(ill).examine()
    assert wrong(examined) == {}
    said = {each.check: each.said for each in examined.findings}
    assert said["keywords"].endswith("1 changed by a shell, followed at the next write")


def test_the_examination_changes_nothing(ill: Settings) -> None:
    before = ill.database.read_bytes()
    Doctor(ill).examine()
    assert ill.database.read_bytes() == before


def test_a_memory_of_the_original_schema_is_told_and_by_fix_upgraded(tmp_path: Path) -> None:
    settings = load_settings(home=tmp_path, env={})
    tmp_path.chmod(0o700)
    make_original(settings.database, count=300).chmod(0o600)
    assert "original schema" in wrong(Doctor(settings).examine())["pages"].examples[0]
    assert wrong(Doctor(settings).mend()) == {}


@pytest.mark.parametrize("seed", range(3))
def test_a_random_life_leads_to_no_fault(tmp_path: Path, seed: int) -> None:
    tmp_path.chmod(0o700)
    life = Life(tmp_path, seed)
    life.live(60)
    life.compact(0.5)
    life.live(30)
    life.close()
    found = wrong(Doctor(load_settings(home=tmp_path, env={})).examine())
    assert {check: each.examples for check, each in found.items()} == {}


def test_the_command_exits_with_1_until_it_has_mended(ill: Settings) -> None:
    plant(ill, FAULTS["a tally that is off"].plant)
    codes, answers = [], []
    for options in ((), ("--fix",), ()):
        with start_cortex(ill.home, "doctor", "--json", *options) as process:
            out, _ = process.communicate(timeout=60)
        codes.append(process.returncode)
        answers.append(json.loads(out))
    assert codes == [1, 0, 0]
    assert [answer["faults"] for answer in answers] == [1, 0, 0]
    assert answers[1]["mended"] == ["tallies"]


def test_no_memory_is_no_well_memory(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match="no memory"):
        Doctor(load_settings(home=tmp_path, env={})).examine()


def test_what_lies_on_a_cycle_is_told_from_what_leads_there() -> None:
    ring = [("a", "b"), ("b", "c"), ("c", "a")]
    assert in_cycles([("x", "a"), *ring, ("c", "y"), ("p", "q")]) == ring
    assert in_cycles([("a", "b"), ("b", "c"), ("a", "c")]) == []
