"""Compaction: the log cut short, the space given back, and what follows the log meanwhile."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from cortex.config import load_settings
from cortex.domain.errors import InvalidError, NotFoundError
from cortex.domain.instants import Instant, later
from cortex.memory import Memory, open_memory
from cortex.services.fields import Fields
from cortex.store.shrinking import bytes_on_disk, cut_wal
from tests.harness import ROOT, call, connected
from tests.local import ask, run_cortex, start_cortex


@pytest.fixture
def memory(memory: Memory) -> Memory:
    """Without the thread that embeds: its model would cost each test two seconds."""
    memory.engine.after_write = lambda: None
    return memory


class Clock:
    """A clock that a test moves."""

    def __init__(self) -> None:
        self.at = Instant("2040-01-01T00:00:00.000000Z")

    def __call__(self) -> Instant:
        return self.at

    def move(self, **delta: float) -> None:
        self.at = later(self.at, **delta)


@pytest.fixture
def timed(home: Path) -> Iterator[tuple[Memory, Clock]]:
    clock = Clock()
    memory = open_memory(load_settings(home=home, workspace="w", env={}), clock=clock)
    memory.engine.after_write = lambda: None
    yield memory, clock
    memory.close()


def add(memory: Memory, text: str, **more: Any) -> str:
    return memory.adding.add_node("fact", Fields(text=text), **more).id


def update_often(memory: Memory, node: str, times: int, text: str = "x") -> None:
    """So many rows of the log, few commits; the last one leaves "last"."""
    per = 1000
    for start in range(0, times, per):
        with memory.engine.write() as transaction:
            found = transaction.nodes.find(node)
            assert found
            for n in range(start, min(start + per, times)):
                data = {"text": "last" if n == times - 1 else f"{text} {n}"}
                transaction.nodes.set_data(found.key, data, transaction.at)


def log(memory: Memory) -> tuple[int, int, int]:
    """Floor, first and last change of the log."""
    with closing(sqlite3.connect(memory.settings.database)) as shell:
        (floor,) = shell.execute("SELECT value FROM meta WHERE key = 'log_floor'").fetchone()
        first, last = shell.execute("SELECT MIN(seq), MAX(seq) FROM changes").fetchone()
    return int(floor), first, last


def sound(memory: Memory) -> bool:
    with closing(sqlite3.connect(memory.settings.database)) as shell:
        return bool(shell.execute("PRAGMA integrity_check").fetchone() == ("ok",))


def steady(memory: Memory) -> int:
    memory.indexing.step()  # the first batch of texts to vectors, without the thread
    assert cut_wal(memory.settings.database)
    return bytes_on_disk(memory.settings.database)


def test_five_thousand_updates_leave_less_than_three_times_the_size(memory: Memory) -> None:
    ids = [add(memory, f"Fact {n} of a small memory") for n in range(20)]
    size = steady(memory)
    update_often(memory, ids[7], 5000, "A text that is as long as texts of memories are " * 20)
    assert bytes_on_disk(memory.settings.database) > 10 * size
    done = memory.compacting.compact("0")
    assert done.vacuumed
    assert done.bytes_after == bytes_on_disk(memory.settings.database) <= 3 * size
    assert ask(memory, "graph_get_node", node_id=ids[7])["node"]["text"] == "last"


def test_five_hundred_reindexes_leave_less_than_three_times_the_size(memory: Memory) -> None:
    for n in range(5):
        add(memory, f"Fact {n} of a small memory")
    size = steady(memory)
    for _ in range(500):
        memory.indexing.reindex(None, lambda done, total: None)
    assert memory.compacting.compact("0").bytes_after <= 3 * size
    assert ask(memory, "graph_search", query="small memory")["hits"]


def test_what_is_younger_than_keep_stays_and_as_of_and_undo_reach_there(
    timed: tuple[Memory, Clock],
) -> None:
    memory, clock = timed
    old = add(memory, "old")
    folded = memory.generation()
    clock.move(days=100)
    young = add(memory, "young")
    begin = clock.at
    clock.move(days=1)
    plan = memory.compacting.compact("90d", dry_run=True)
    assert log(memory)[0] == 0
    done = memory.compacting.compact("90d")
    assert (plan.folded, plan.left, plan.floor, plan.reach) == (
        done.folded, done.left, done.floor, done.reach,
    )  # fmt: skip
    assert (done.folded, done.floor, done.reach) == (
        folded, folded, f"The log begins with change {folded + 1} at {begin}",
    )  # fmt: skip
    assert log(memory)[:2] == (folded, folded + 1)
    with pytest.raises(InvalidError, match=f"a time from {begin}"):
        memory.past.as_of("w", "2040-01-01")
    assert memory.past.as_of("w", begin).nodes.keys() >= {old, young}
    assert [node["id"] for node in memory.undoing.undo().nodes] == [young]
    with pytest.raises(NotFoundError, match=f"The log begins with change {folded + 1}"):
        memory.undoing.undo()
    with pytest.raises(InvalidError, match=r"no longer in the log\. The log begins with change"):
        memory.undoing.undo(tx=1)


def test_the_newest_change_stays_so_that_no_generation_goes_back(memory: Memory) -> None:
    fact = add(memory, "one")
    memory.mutation.update(fact, Fields(text="two"))
    generation = memory.generation()
    assert memory.compacting.compact("0").left == 1
    assert memory.compacting.compact("0").folded == 0
    assert memory.generation() == generation
    add(memory, "three")
    assert memory.generation() > generation
    assert log(memory)[:2] == (generation - 1, generation)


def test_a_transaction_that_is_folded_in_part_is_not_taken_back(memory: Memory) -> None:
    add(memory, "with its relation")
    memory.compacting.compact("0")
    with pytest.raises(NotFoundError, match="left to undo"):
        memory.undoing.undo()


def test_what_followed_the_log_rebuilds_when_it_lags_behind_the_floor(
    memory: Memory, home: Path
) -> None:
    """Graph, vectors and the analytics worker of another memory on the same file."""
    task = memory.adding.add_node("task", Fields(text="Keep the cellar dry")).id
    gone = add(memory, "The pump hums", parent=task)
    lagging = open_memory(load_settings(home=home, workspace="w", env={}))

    def seen(by: Memory) -> tuple[Any, ...]:
        below = ask(by, "graph_traverse", start_id=task, relation="contains")["nodes"]
        hits = ask(by, "vector_search", query="what hums in the cellar?")["hits"]
        ranked = ask(by, "graph_centrality", measure="degree")
        return (
            [node["id"] for node in below],
            [(hit["id"], round(hit["score"], 6)) for hit in hits],
            sorted((node["id"], node["score"]) for node in ranked["nodes"]),
        )

    assert gone in seen(lagging)[0]
    memory.mutation.delete(gone)
    new = add(memory, "The fan hums", parent=task)
    update_often(memory, task, 300)
    memory.compacting.compact("0")
    memory.indexing.wait(memory.settings.workspace, 30.0)
    fresh = open_memory(load_settings(home=home, workspace="w", env={}))
    assert seen(lagging) == seen(fresh)
    assert seen(fresh)[0] == [new]
    fresh.close()
    lagging.close()


@pytest.mark.anyio
async def test_a_server_that_lags_behind_the_floor_answers_from_the_present(home: Path) -> None:
    async with connected(home) as client:
        task = (await call(client, "graph_add_node", type="task", title="above"))["id"]
        assert not (await call(client, "graph_traverse", start_id=task))["nodes"]
        run_cortex(home, "relate", task[:8], "supports", _fact(home), "-w", "w")
        run_cortex(home, "compact", "--keep", "0")
        found = await call(client, "graph_traverse", start_id=task)
        assert [node["type"] for node in found["nodes"]] == ["fact"]
        after = (await call(client, "graph_add_node", type="task", title="after"))["id"]
        done = await call(client, "memory_undo")  # of what this client did
        assert [node["id"] for node in done["nodes"]] == [after]


def _fact(home: Path) -> str:
    memory = open_memory(load_settings(home=home, workspace="w", env={}))
    try:
        return add(memory, "of a person")
    finally:
        memory.close()


def test_what_a_shell_changed_is_found_by_keyword_after_a_compaction(memory: Memory) -> None:
    fact, place = add(memory, "before"), memory.settings.workspace
    with closing(sqlite3.connect(memory.settings.database, isolation_level=None)) as shell:
        shell.execute("""UPDATE nodes SET data = '{"text": "zebra"}' WHERE id = ?""", (fact,))
        shell.execute("UPDATE nodes SET status = 'stale' WHERE id = ?", (fact,))
    memory.compacting.compact("0")
    with memory.engine.database.read() as snapshot:
        assert [hit.node_id for hit in snapshot.keywords.search("zebra", [place], 5)] == [fact]


def test_dying_on_the_way_leaves_a_shorter_log_and_a_sound_file(memory: Memory, home: Path) -> None:
    update_often(memory, add(memory, "often"), 25_000)
    with start_cortex(home, "compact", "--keep", "0") as process:
        while log(memory)[0] == 0 and process.poll() is None:
            pass
        process.kill()
    floor, first, last = log(memory)
    assert 0 < floor == first - 1 < last
    assert sound(memory)
    assert memory.compacting.compact("0").left == 1
    assert log(memory)[2] == last


def test_writers_and_readers_go_on_while_it_runs(memory: Memory, home: Path) -> None:
    fact = add(memory, "often")
    update_often(memory, fact, 25_000, "A text of some length " * 5)
    other = open_memory(load_settings(home=home, workspace="w", env={}))
    done: list[Any] = []
    thread = threading.Thread(target=lambda: done.append(memory.compacting.compact("0")))
    thread.start()
    added = []
    while thread.is_alive():
        added.append(add(other, f"Fact {len(added)}"))
        assert ask(other, "graph_get_node", node_id=fact)["node"]["text"] == "last"
    thread.join()
    assert len(done) == 1
    assert added
    with other.engine.database.read() as snapshot:
        assert [node.id for node in snapshot.nodes.by_ids(added)] == added
    assert sound(other)
    other.close()


@pytest.mark.skipif(sys.platform == "win32", reason="limits of a shell")
@pytest.mark.parametrize(
    ("share", "said"), [(0.25, "Check the disk"), (1.0, "its space was not given back")]
)
def test_a_full_disk_is_said_and_the_file_stays_whole(
    memory: Memory, home: Path, share: float, said: str
) -> None:
    """A limit on the size of files stands in for the disk."""
    data = {"filler": "x" * 8000}
    ids = [memory.adding.add_node("fact", Fields(text=f"{n}", data=data)).id for n in range(60)]
    update_often(memory, ids[0], 2000, "A text of some length " * 20)
    cut_wal(memory.settings.database)
    blocks = int(share * bytes_on_disk(memory.settings.database)) // 1024
    run = f"exec {sys.executable} -m cortex compact --keep 0 --home {home}"
    process = subprocess.run(
        ["bash", "-c", f"ulimit -f {blocks}; {run}"],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert process.returncode == 69, process.stderr + process.stdout
    assert said in process.stderr
    assert sound(memory)
    assert ask(memory, "graph_get_node", node_id=ids[0])["node"]["text"] == "last"
    assert memory.compacting.compact("0").left == 1


def test_a_reader_that_holds_the_write_ahead_log_is_said(memory: Memory) -> None:
    update_often(memory, add(memory, "often"), 1000)
    with closing(sqlite3.connect(memory.settings.database, isolation_level=None)) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT COUNT(*) FROM nodes").fetchone()
        notes = memory.compacting.compact("0").notes
    assert notes == ["a reader holds the write-ahead log; it shrinks at a later compaction"]


@pytest.mark.parametrize(
    "keep", ["", "90", "-1d", "90 days", "1y", "9999999d", "999999w", "2999-01-01", "soon"]
)
def test_another_form_of_keep_is_refused_with_the_valid_ones(memory: Memory, keep: str) -> None:
    with pytest.raises(InvalidError, match=r"Valid: (an age|a time)"):
        memory.compacting.compact(keep)


@pytest.mark.parametrize("keep", ["12h", "90d", "8w", "0", "0d", "2020-05-14", "2020-05-14T08:30Z"])
def test_an_age_a_zero_and_a_time_are_forms_of_keep(memory: Memory, keep: str) -> None:
    add(memory, "young")
    everything = keep.startswith("0")
    assert (memory.compacting.compact(keep).folded > 0) is everything


def test_keys_of_requests_that_are_older_than_a_week_go(timed: tuple[Memory, Clock]) -> None:
    memory, clock = timed
    first = add(memory, "one", key="k")
    clock.move(days=8)
    memory.compacting.compact("0")
    assert add(memory, "one", key="k") != first


def test_the_command_says_what_went_and_how_far_back_one_can_look(
    memory: Memory, home: Path
) -> None:
    update_often(memory, add(memory, "often"), 100)
    generation = memory.generation()
    assert f"would fold {generation - 1} changes" in run_cortex(
        home, "compact", "--keep", "0", "--dry-run"
    )
    done = json.loads(run_cortex(home, "compact", "--keep", "0", "--json"))
    assert (done["folded"], done["left"]) == (generation - 1, 1)
    assert done["reach"].startswith(f"The log begins with change {generation} at 20")
