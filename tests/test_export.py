"""Exports: a memory as lines, and back, byte for byte; and what happens to a broken one."""

from __future__ import annotations

import hashlib
import io
import json
import sqlite3
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cortex.config import load_settings
from cortex.domain.errors import InvalidError, NotFoundError
from cortex.domain.instants import Instant
from cortex.domain.taxonomy import NodeType, RelationType, Status
from cortex.domain.values import NodeId, WorkspaceId
from cortex.memory import Memory, open_memory
from cortex.services.keeping.export_file import dumped
from cortex.services.keeping.reading_export import ReadExport
from cortex.store.exports import KINDS
from cortex.store.schema import MIGRATIONS
from tests.local import ask, run_cortex
from tests.worker_world import Life

W = WorkspaceId("w")
AT = "2026-11-30T17:00:00.000000Z"
# Made again, or of this file alone; why stands in `services/keeping/exporting.py`.
LEFT_OUT = {
    "writer", "embeddings", "index_state", "tallies", "idempotency", "keywords",
}  # fmt: skip
NAMED_OTHERWISE = {"node_key": "node_id"}
TABLES = {
    "nodes": "node", "relations": "relation", "waves": "wave", "accesses": "access",
    "navigation_history": "visit", "changes": "change", "reversals": "reversal", "meta": "meta",
}  # fmt: skip


@contextmanager
def opened(home: Path) -> Iterator[Memory]:
    """A memory without the thread that embeds."""
    memory = open_memory(load_settings(home=home, workspace="w", env={}))
    memory.engine.after_write = lambda: None
    try:
        yield memory
    finally:
        memory.close()


@pytest.fixture
def memory(home: Path) -> Iterator[Memory]:
    with opened(home) as memory:
        yield memory


def exported(memory: Memory, **options: Any) -> bytes:
    out = io.BytesIO()
    memory.exporting.export(out, **options)
    return out.getvalue()


def taken_in(memory: Memory, lines: bytes, **options: Any) -> ReadExport:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "export.jsonl"
        path.write_bytes(lines)
        return memory.exporting.import_file(path, **options)


def sealed(lines: list[dict[str, Any]]) -> bytes:
    """Lines without their footer, with one that fits."""
    body = "".join(dumped(line) + "\n" for line in lines).encode()
    counts = {kind.name: sum(line.get("kind") == kind.name for line in lines) for kind in KINDS}
    end = {"kind": "end", "counts": counts, "sha256": hashlib.sha256(body).hexdigest()}
    return body + (dumped(end) + "\n").encode()


def parsed(lines: bytes) -> list[dict[str, Any]]:
    """Every line but the footer."""
    return [json.loads(line) for line in lines.split(b"\n")[:-2]]


def fill(memory: Memory) -> dict[str, str]:
    """A little of everything; ids by name."""
    ids = {}
    for name in ("a", "b", "c", "gone"):
        text = f"{name} ü\n\u2028"
        ids[name] = ask(memory, "graph_add_node", type="fact", title=name, text=text)["id"]
    ask(memory, "graph_add_relation", from_id=ids["a"], to_id=ids["b"], type="supports",
        weight=0.1 + 0.2)  # fmt: skip
    ask(memory, "desktop_focus", node_id=ids["a"])
    memory.history.flush(wait=10)
    ids["new"] = ask(memory, "graph_supersede", old_id=ids["c"], new_data={"text": "newer"})[
        "new_id"
    ]
    ask(memory, "graph_update_node", node_id=ids["b"], status="archived")
    ask(memory, "graph_delete_node", node_id=ids["gone"])
    ask(memory, "graph_add_node", type="task", title="elsewhere", workspace_id="v")
    with memory.engine.write() as transaction:
        transaction.exports.put(KINDS[3], {
            "node_id": ids["a"], "workspace_id": "w", "amplitude": 1 / 3, "frequency": 0.1,
            "phase": 2.5, "half_life": 168.0, "at": AT})  # fmt: skip
    return ids


# ── byte for byte ─────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("log", [False, True])
def test_an_import_into_an_empty_home_exports_as_the_same_bytes(
    memory: Memory, tmp_path: Path, log: bool
) -> None:
    fill(memory)
    lines = exported(memory, log=log)
    with opened(tmp_path / "other") as other:
        taken_in(other, lines)
        assert exported(other, log=log) == lines


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("log", [False, True])
def test_a_random_life_comes_back_byte_for_byte(tmp_path: Path, seed: int, log: bool) -> None:
    life = Life(tmp_path, seed)
    life.live(40)
    life.close()
    with opened(tmp_path) as memory, opened(tmp_path / "other") as other:
        lines = exported(memory, log=log)
        taken_in(other, lines)
        assert exported(other, log=log) == lines


TEXTS = (
    '{"a": 1}', '{"a":1.0,"b":1e5}', '{"a":1,"a":2}', ' {"x":"\\u00fc"} ', '{"e":1e400}',
    '{"s":"\\ud800"}', '{"n":-0.0}', '{"z":[[],{}],"t":"\\/"}', "{}",
    '{"big":123456789012345678901234567890}',
)  # fmt: skip
values = st.one_of(
    st.text(), st.floats(allow_nan=False, allow_infinity=False), st.integers(), st.none(),
    st.booleans(),
)  # fmt: skip
texts = st.one_of(
    st.sampled_from(TEXTS), st.dictionaries(st.text(max_size=5), values, max_size=3).map(json.dumps)
)


@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.lists(texts, min_size=1, max_size=4), weight=st.floats(0, 1))
def test_whatever_a_shell_stored_as_data_keeps_its_very_text(
    data: list[str], weight: float
) -> None:
    with (
        tempfile.TemporaryDirectory() as folder,
        opened(Path(folder) / "one") as one,
        opened(Path(folder) / "two") as two,
    ):
        write_as_shell(one, data, weight)
        lines = exported(one)
        taken_in(two, lines)
        assert exported(two) == lines
        assert stored(two) == stored(one)


def write_as_shell(memory: Memory, data: list[str], weight: float) -> None:
    with closing(sqlite3.connect(memory.settings.database)) as shell, shell:
        for number, text in enumerate(data):
            shell.execute(
                "INSERT INTO nodes(id, type, workspace_id, data, created_at, updated_at)"
                " VALUES (?, 'note', 'w', ?, ?, ?)",
                (f"n{number}", text, AT, AT),
            )
        for number in range(1, len(data)):
            shell.execute(
                "INSERT INTO relations(id, workspace_id, from_id, to_id, type, weight,"
                " created_at, updated_at) VALUES (?, 'w', 'n0', ?, 'supports', ?, ?, ?)",
                (f"r{number}", f"n{number}", weight, AT, AT),
            )


def stored(memory: Memory) -> list[Any]:
    with closing(sqlite3.connect(memory.settings.database)) as shell:
        return [
            *shell.execute("SELECT id, data FROM nodes ORDER BY id"),
            *shell.execute("SELECT id, weight FROM relations ORDER BY id"),
        ]


def test_equal_memories_give_equal_exports_whatever_the_order_of_writing(tmp_path: Path) -> None:
    with opened(tmp_path / "one") as one, opened(tmp_path / "two") as two:
        write_as_shell(one, ["{}", '{"a":1}'], 0.5)
        head, *rest = parsed(exported(one))
        nodes = [line for line in rest if line["kind"] == "node"]
        others = [line for line in rest if line["kind"] != "node"]
        taken_in(two, sealed([head, *reversed(nodes), *others]))
        assert exported(two) == exported(one)


def test_every_table_and_column_is_exported_or_left_out_on_purpose(memory: Memory) -> None:
    said = {kind.name: set(kind.columns) for kind in KINDS}
    with closing(sqlite3.connect(memory.settings.database)) as shell:
        for table, sql in shell.execute("SELECT name, sql FROM sqlite_master WHERE type = 'table'"):
            if table in LEFT_OUT or table.startswith(("sqlite_", "keywords_")):
                continue
            assert sql
            columns = {name for _, name, *_ in shell.execute(f"PRAGMA table_info({table})")}
            columns -= {"id"} if table == "navigation_history" else set()
            named = {NAMED_OTHERWISE.get(name, name) for name in columns}
            assert named <= said[TABLES[table]] | {"workspace_id"}, table
    assert MIGRATIONS


def test_an_export_has_every_type_status_and_relation(tmp_path: Path) -> None:
    with opened(tmp_path / "one") as one, opened(tmp_path / "two") as two:
        with one.engine.write() as transaction:
            for number, kind in enumerate(NodeType):
                transaction.nodes.insert(
                    NodeId(f"n{number}"), kind, W, None, {}, transaction.at,
                    tuple(Status)[number % 3],
                )  # fmt: skip
            for number, link in enumerate(RelationType):
                ends = sorted((f"n{number % 16}", f"n{number % 16 + 1}"))
                transaction.relations.insert(W, NodeId(ends[0]), NodeId(ends[1]), link, Instant(AT))
        lines = exported(one)
        taken_in(two, lines)
        assert exported(two) == lines
    said = parsed(lines)[1:]
    assert {line["type"] for line in said} == {*NodeType, *RelationType}
    assert {line["status"] for line in said if line["kind"] == "node"} == set(Status)


# ── with the log ──────────────────────────────────────────────────────────────────────────────


def test_the_past_and_the_way_back_come_with_the_log(memory: Memory, tmp_path: Path) -> None:
    ids = fill(memory)
    first = memory.past.diff("w", "2000-01-01")
    made = ask(memory, "graph_get_node", node_id=ids["b"])
    moment = made["node"]["created_at"]
    then = memory.past.as_of("w", moment)
    with opened(tmp_path / "other") as other:
        taken_in(other, exported(memory, log=True))
        again = other.past.diff("w", "2000-01-01")
        assert again == first
        assert other.past.as_of("w", moment) == then
        assert ask(other, "graph_get_node", node_id=ids["b"])["node"]["status"] == "archived"
        undone = other.undoing.undo(1, workspace="v")
        assert undone


def test_keys_that_were_used_are_not_used_again(memory: Memory, tmp_path: Path) -> None:
    fill(memory)
    last = ask(memory, "graph_add_node", type="fact", text="last")["id"]
    ask(memory, "graph_delete_node", node_id=last)
    memory.compacting.compact("0", shrink=False)
    with opened(tmp_path / "other") as other:
        lines = exported(memory, log=True)
        taken_in(other, lines)
        assert exported(other, log=True) == lines
        for each in (memory, other):
            ask(each, "graph_add_node", type="fact", text="next")
        assert [keys(memory), keys(other)] == [keys(memory)] * 2


def keys(memory: Memory) -> list[Any]:
    with closing(sqlite3.connect(memory.settings.database)) as shell:
        return shell.execute(
            "SELECT name, seq FROM sqlite_sequence"
            " WHERE name IN ('nodes', 'relations', 'changes') ORDER BY name"
        ).fetchall()


def test_after_an_import_with_its_log_everything_derived_is_there(
    memory: Memory, tmp_path: Path
) -> None:
    ids = fill(memory)
    memory.compacting.compact("0", shrink=False)  # the log names no node any more
    with opened(tmp_path / "other") as other:
        before = other.status()["epoch"]
        taken_in(other, exported(memory, log=True))
        assert other.status()["epoch"] != before
        found = other.search.graph_search("newer", workspace="w")
        assert ids["new"] in {hit.node.id for hit in found.hits}
        index = other.status()["index"]
        assert index["pending"] + index["ready"] == 4
        assert ask(other, "graph_traverse", start_id=ids["a"], relation="supports")["nodes"]


def test_a_log_finds_only_a_memory_that_never_held_anything(memory: Memory, tmp_path: Path) -> None:
    fill(memory)
    lines = exported(memory, log=True)
    with opened(tmp_path / "other") as other:
        ask(other, "graph_add_node", type="fact", text="mine", workspace_id="mine")
        with pytest.raises(InvalidError, match="--no-log"):
            taken_in(other, lines)
        taken_in(other, lines, log=False)
        assert exported(other, workspace="w") == exported(memory, workspace="w")


def test_a_log_is_of_the_whole_memory(memory: Memory) -> None:
    fill(memory)
    with pytest.raises(InvalidError, match="whole memory"):
        exported(memory, workspace="w", log=True)
    with pytest.raises(InvalidError, match="--no-log"):
        taken_in(memory, exported(memory, log=True), workspace="w")


# ── one workspace, and memories in use ────────────────────────────────────────────────────────


def test_one_workspace_moves_alone(memory: Memory, tmp_path: Path) -> None:
    fill(memory)
    with opened(tmp_path / "other") as other:
        taken_in(other, exported(memory), workspace="v")
        assert exported(other) == exported(memory, workspace="v")
        with pytest.raises(NotFoundError, match="It has: v, w"):
            taken_in(other, exported(memory), workspace="x")


def test_a_workspace_that_is_empty_here_comes_in_as_it_was(memory: Memory, tmp_path: Path) -> None:
    fill(memory)
    with opened(tmp_path / "other") as other:
        ask(other, "graph_add_node", type="fact", text="mine", workspace_id="mine")
        taken_in(other, exported(memory, workspace="w"))
        assert exported(other, workspace="w") == exported(memory, workspace="w")


def test_an_import_again_changes_nothing(memory: Memory) -> None:
    fill(memory)
    lines = exported(memory)
    done = taken_in(memory, lines)
    assert done.merged
    assert (done.counts["node"], done.counts["relation"], done.counts["visit"]) == (0, 0, 0)
    assert exported(memory) == lines


def test_a_workspace_in_use_is_merged_and_keeps_what_it_has(memory: Memory, tmp_path: Path) -> None:
    ids = fill(memory)
    with opened(tmp_path / "other") as other:
        mine = ask(other, "graph_add_node", type="fact", text="mine")["id"]
        root = ask(other, "desktop_open")["session_id"]
        done = taken_in(other, exported(memory))
        assert done.merged
        assert ask(other, "graph_get_node", node_id=mine)["node"]["text"] == "mine"
        held = ask(other, "graph_get_node", node_id=ids["a"])
        assert held["node"]["text"].startswith("a ")
        assert ask(other, "desktop_open")["session_id"] == root
        waves = [line for line in parsed(exported(other)) if line.get("kind") == "wave"]
        assert [wave["amplitude"] for wave in waves] == [1 / 3]


def test_a_dry_run_says_what_would_come_and_leaves_nothing(memory: Memory, tmp_path: Path) -> None:
    fill(memory)
    for log in (False, True):
        with opened(tmp_path / f"other{log}") as other:
            empty = exported(other)
            done = taken_in(other, exported(memory, log=log), dry_run=True)
            assert done.counts["node"] == 7
            assert exported(other) == empty
            assert other.generation() == 0


# ── broken ────────────────────────────────────────────────────────────────────────────────────

Break = Callable[[list[dict[str, Any]]], Any]


def at(which: str, **changes: Any) -> Break:
    """Changes the last line of this kind."""

    def change(lines: list[dict[str, Any]]) -> None:
        line = [each for each in lines if each.get("kind") == which][-1]
        line.update(changes)

    return change


def cycle(lines: list[dict[str, Any]]) -> None:
    link = next(each for each in lines if each.get("type") == "contains")
    turned = {"from_id": link["to_id"], "to_id": link["from_id"], "id": "cycle"}
    lines.insert(lines.index(link) + 1, {**link, **turned})


def orphan(lines: list[dict[str, Any]]) -> None:
    lines.remove(next(each for each in lines if each.get("type") == "contains"))


BROKEN: dict[str, tuple[Break, str]] = {
    "an unknown kind": (at("visit", kind="dream"), "kind 'dream' is unknown"),
    "an unknown type": (at("node", type="poem"), "type IN"),
    "an unknown relation type": (at("relation", type="likes"), "type IN"),
    "a relation to nowhere": (at("relation", to_id="nowhere"), "two nodes of its own workspace"),
    "a cycle": (cycle, "no cycle"),
    "no contains": (orphan, "from its parent"),
    "no time": (at("node", created_at="yesterday"), "created_at"),
    "a weight over 1": (at("relation", weight=1.5), "weight"),
    "a weight that is text": (at("relation", weight="much"), "REAL"),
    "a list as id": (at("node", id=["x"]), "cannot be kept"),
    "a huge number": (at("access", count=1 << 70), "cannot be kept"),
    "half a character": (at("node", id="\ud800"), "cannot be kept"),
    "a missing field": (lambda lines: lines[1].pop("status"), "lacks status"),
    "a strange field": (at("node", colour="red"), "has colour"),
    "another workspace": (at("node", workspace_id="z"), "not in the header"),
    "a wave of no node": (at("wave", node_id="none"), "of no node"),
    "data that is no object": (at("node", data=[1]), "json_type"),
}


@pytest.mark.parametrize("what", BROKEN)
def test_a_broken_line_is_named_and_leaves_nothing(
    memory: Memory, tmp_path: Path, what: str
) -> None:
    change, why = BROKEN[what]
    fill(memory)
    lines = parsed(exported(memory))
    change(lines)
    with opened(tmp_path / "other") as other:
        empty = exported(other)
        body = "".join(json.dumps(line) + "\n" for line in lines).encode()
        with pytest.raises(InvalidError, match=rf"export\.jsonl line \d+: .*{why}"):
            taken_in(other, body if what == "half a character" else sealed(lines))
        assert exported(other) == empty
        assert other.generation() == 0


def test_what_is_cut_off_or_changed_is_named_and_leaves_nothing(
    memory: Memory, tmp_path: Path
) -> None:
    fill(memory)
    whole = exported(memory)
    count = whole.count(b"\n")
    cases = (
        (whole[: whole.rindex(b"\n", 0, -1) + 1], f"line {count - 1}: it has no footer"),
        (whole[:900], r"line \d+: it is cut off"),
        (whole.replace(b'"a ', b'"x ', 1), f"line {count}: the checksum does not fit"),
        (whole + b"{}\n", f"line {count + 1}: something follows"),
        (whole.replace(b'{"kind":"node"', b"{kind:node", 1), "line 2: not JSON"),
        (whole.replace(b'"version":1', b'"version":2', 1), "version 2"),
        (b"".join(whole.splitlines(keepends=True)[:2] + whole.splitlines(keepends=True)[3:]),
         r"line \d+: "),
    )  # fmt: skip
    with opened(tmp_path / "other") as other:
        for lines, why in cases:
            with pytest.raises(InvalidError, match=why):
                taken_in(other, lines)
        assert other.generation() == 0


def test_a_broken_line_leaves_a_memory_in_use_as_it_was(memory: Memory) -> None:
    fill(memory)
    before = exported(memory)
    lines = parsed(before)
    at("relation", to_id="nowhere")(lines)
    with pytest.raises(InvalidError, match="line"):
        taken_in(memory, sealed(lines))
    assert exported(memory) == before
    assert not list(memory.settings.home.glob("import-*"))


def test_a_log_that_goes_back_is_refused(memory: Memory, tmp_path: Path) -> None:
    fill(memory)
    for change in (at("change", at="2000-01-01T00:00:00.000000Z"), at("change", seq=1)):
        lines = parsed(exported(memory, log=True))
        change(lines)
        with (
            opened(tmp_path / "other") as other,
            pytest.raises(InvalidError, match="the log goes back"),
        ):
            taken_in(other, sealed(lines))


# ── files and the command line ────────────────────────────────────────────────────────────────


def test_an_export_replaces_an_older_one_and_nothing_else(memory: Memory, tmp_path: Path) -> None:
    fill(memory)
    target = tmp_path / "e.jsonl"
    for _ in range(2):
        memory.exporting.export_file(target)
    note = tmp_path / "note.txt"
    note.write_text("mine")
    wal = memory.settings.database.with_name("cortex.db-wal")
    for other in (note, memory.settings.database, wal):
        with pytest.raises(InvalidError, match="not touched"):
            memory.exporting.export_file(other)
    assert note.read_text() == "mine"
    assert target.read_bytes() == exported(memory)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["e.jsonl", "home", "note.txt"]


def test_the_command_line_exports_imports_and_exports_the_same(
    memory: Memory, home: Path, tmp_path: Path
) -> None:
    fill(memory)
    lines = run_cortex(home, "export", "--log")
    (tmp_path / "e.jsonl").write_bytes(lines.encode())
    other = tmp_path / "other"
    done = json.loads(run_cortex(other, "import", str(tmp_path / "e.jsonl"), "--json"))
    assert done["counts"]["node"] == 7
    run_cortex(other, "export", str(tmp_path / "again.jsonl"), "--log")
    assert (tmp_path / "again.jsonl").read_bytes() == lines.encode()


def test_text_that_is_not_utf_8_is_said_and_not_written(memory: Memory, tmp_path: Path) -> None:
    fill(memory)
    with closing(sqlite3.connect(memory.settings.database)) as shell, shell:
        shell.execute(
            "UPDATE nodes SET data = CAST(x'7b2261223a22ff227d' AS TEXT) WHERE rowkey = 2"
        )
    with pytest.raises(InvalidError, match="not UTF-8"):
        memory.exporting.export_file(tmp_path / "e.jsonl")
    assert not list(tmp_path.glob("*e.jsonl*"))


def test_an_unknown_workspace_is_refused_with_the_known(memory: Memory) -> None:
    fill(memory)
    with pytest.raises(NotFoundError, match="Known: v, w"):
        exported(memory, workspace="x")
