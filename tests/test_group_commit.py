"""Many writers at once: short writes share a commit, and processes write in turn."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest

from cortex.domain.errors import BusyError, ConflictError, CortexError
from cortex.domain.taxonomy import NodeType
from cortex.domain.values import NodeId, WorkspaceId, new_id
from cortex.memory import Memory
from cortex.services.adding import insert_child
from cortex.services.fields import Fields
from cortex.services.linking import ensure_root
from cortex.services.meaning import yielding
from cortex.services.similar import settle, sight
from cortex.store import turnstile, writing
from cortex.store.database import Database, Transaction
from cortex.store.refusals import is_busy
from cortex.store.turns import Turns
from cortex.store.turnstile import Turnstile

W = WorkspaceId("w")
ROOT = Path(__file__).parent.parent
Block = Callable[[Transaction], object]


@pytest.fixture
def database(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Database]:
    monkeypatch.setattr(writing, "_SPAN", 3600.0)  # a slow machine ends no group of these tests
    with closing(Database(tmp_path / "cortex.db")) as made:
        with made.write("setup") as transaction:
            ensure_root(transaction, W)
        yield made


def add(text: str) -> Block:
    def block(transaction: Transaction) -> NodeId:
        root, _ = ensure_root(transaction, W)
        return insert_child(transaction, NodeType.FACT, W, root, {"text": text}).id

    return block


def fail(error: BaseException) -> Block:
    def block(transaction: Transaction) -> None:
        add("taken back")(transaction)
        raise error

    return block


class Line:
    """Writers that stand in line, in this order, behind a first one that waits for them all."""

    def __init__(self, database: Database, *blocks: tuple[Block, bool]) -> None:
        self.errors: dict[int, BaseException] = {}
        self.said: list[str] = []
        database._writer.set_trace_callback(self.said.append)
        turns, lined_up = database._writing._turns, threading.Event()

        def write(number: int, block: Block, short: bool) -> None:
            try:
                with database.write(f"actor {number}", short=short) as transaction:
                    if number == 0:
                        assert lined_up.wait(30)
                    block(transaction)
            except BaseException as error:  # noqa: BLE001 - each test asks for the one it means
                self.errors[number] = error

        threads = []
        for number, (block, short) in enumerate(blocks):
            threads.append(threading.Thread(target=write, args=(number, block, short)))
            threads[-1].start()
            until(partial(self._in_line, turns, number))
        lined_up.set()
        for thread in threads:
            thread.join()
        database._writer.set_trace_callback(None)

    @staticmethod
    def _in_line(turns: Turns, number: int) -> bool:
        return turns.taken and turns.waiting == number

    @property
    def commits(self) -> int:
        return self.said.count("COMMIT")


def until(done: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 30
    while not done():
        assert time.monotonic() < deadline
        time.sleep(0.001)


def written(database: Database) -> list[tuple[str, int]]:
    """Actor and transaction of each node, as another process finds them in the log."""
    with closing(sqlite3.connect(database.path)) as shell:
        return shell.execute(
            "SELECT actor, tx FROM changes WHERE entity = 'node' AND actor <> 'setup' ORDER BY seq"
        ).fetchall()


def test_members_share_one_commit_and_have_a_transaction_each(database: Database) -> None:
    line = Line(database, *((add(f"text {number}"), True) for number in range(5)))
    assert line.errors == {}
    assert line.commits == 1
    rows = written(database)
    assert [actor for actor, _ in rows] == [f"actor {number}" for number in range(5)]
    assert len({tx for _, tx in rows}) == 5


def test_no_member_is_let_go_before_the_commit(database: Database) -> None:
    seen: list[int] = []

    def write() -> None:
        with database.write("first", short=True) as transaction:
            add("one")(transaction)
            until(lambda: database._writing._turns.waiting == 1)
        seen.append(len(written(database)))

    first = threading.Thread(target=write)
    first.start()
    until(lambda: database._writing._turns.taken)
    with database.write("second", short=True) as transaction:
        add("two")(transaction)
        time.sleep(0.05)
        assert seen == []
    first.join()
    assert seen == [2]


def test_one_that_fails_takes_back_its_own_part_alone(database: Database) -> None:
    broken = fail(ValueError("mine"))
    line = Line(database, (add("alpha"), True), (broken, True), (add("omega"), True))
    assert str(line.errors.pop(1)) == "mine"
    assert line.errors == {}
    assert [actor for actor, _ in written(database)] == ["actor 0", "actor 2"]
    assert line.commits == 1


def test_what_was_taken_back_is_in_no_index(database: Database) -> None:
    Line(
        database,
        (add("albatross"), True),
        (fail(ValueError("mine")), True),
        (add("nightingale"), True),
    )
    with database.read() as snapshot:
        keys = {node.key for node in snapshot.nodes.page(W, 0, 50)}
        rows = database_rows(database, "SELECT rowid >> 11 FROM keywords")
        assert {key for (key,) in rows} <= keys
        assert len(snapshot.keywords.alike("nightingale", W, 8)) == 1
    with closing(sqlite3.connect(database.path)) as shell:
        shell.execute("INSERT INTO keywords(keywords) VALUES ('integrity-check')")


def database_rows(database: Database, query: str) -> list[tuple[int]]:
    with closing(sqlite3.connect(database.path)) as shell:
        return shell.execute(query).fetchall()


@pytest.mark.parametrize("place", [0, 1, 2])
def test_an_interrupt_in_one_block_leaves_the_others(database: Database, place: int) -> None:
    blocks = [(add("a"), True), (add("b"), True), (add("c"), True)]
    blocks[place] = (fail(KeyboardInterrupt()), True)
    line = Line(database, *blocks)
    assert list(line.errors) == [place]
    assert isinstance(line.errors[place], KeyboardInterrupt)
    assert len(written(database)) == 2


def test_a_commit_that_fails_fails_every_member_and_leaves_nothing(database: Database) -> None:
    database._writer.executescript(
        "CREATE TEMP TABLE above (id INTEGER PRIMARY KEY);"
        "CREATE TEMP TABLE below (above REFERENCES above(id) DEFERRABLE INITIALLY DEFERRED);"
    )

    def broken(transaction: Transaction) -> None:
        add("two")(transaction)
        database._writer.execute("INSERT INTO below VALUES (7)")  # refused by COMMIT alone

    line = Line(database, (add("one"), True), (broken, True), (add("three"), True))
    assert [type(line.errors[number]) for number in range(3)] == [ConflictError] * 3
    assert written(database) == []
    Line(database, (add("four"), True))
    assert len(written(database)) == 1


def test_a_transaction_that_sqlite_undid_fails_every_member(database: Database) -> None:
    def undo(_: Transaction) -> None:
        database._writer.execute("INSERT OR ROLLBACK INTO meta VALUES ('epoch', 'x')")

    line = Line(database, (add("one"), True), (undo, True), (add("three"), True))
    assert isinstance(line.errors[0], CortexError)
    assert isinstance(line.errors[1], CortexError)
    assert [actor for actor, _ in written(database)] == ["actor 2"]  # it began anew
    assert 2 not in line.errors


def test_a_long_write_shares_no_commit_and_is_not_overtaken(database: Database) -> None:
    shorts = [True, True, False, True, True]
    line = Line(database, *((add(f"text {n}"), short) for n, short in enumerate(shorts)))
    assert line.commits == 3
    assert [actor for actor, _ in written(database)] == [f"actor {n}" for n in range(5)]


def test_a_write_is_long_unless_it_says_otherwise(database: Database) -> None:
    with database.write("one") as transaction:
        add("one")(transaction)
        assert not database._writing._group.open  # type: ignore[union-attr]  # it is open now


def test_a_group_takes_no_more_than_its_bound(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writing, "MOST_MEMBERS", 2)
    line = Line(database, *((add(f"text {number}"), True) for number in range(5)))
    assert line.commits == 3


def test_a_late_member_sees_what_an_earlier_one_wrote(database: Database) -> None:
    ids: list[object] = []

    def look(transaction: Transaction) -> None:
        ids.append(len(transaction.nodes.page(W, 0, 50)))

    Line(database, (add("one"), True), (look, True))
    assert ids == [2]  # the root, and the other's


def test_a_write_within_a_write_is_refused_at_once(database: Database) -> None:
    with database.write("outer", short=True) as transaction:
        add("kept")(transaction)
        with pytest.raises(BusyError), database.write("inner", wait=3600):
            pass
    assert len(written(database)) == 1


def test_a_foreign_lock_is_busy_after_the_wait(database: Database) -> None:
    with closing(sqlite3.connect(database.path, isolation_level=None)) as shell:
        shell.execute("BEGIN IMMEDIATE")
        with pytest.raises(BusyError), database.write("one", wait=0.2, short=True):
            pass
        shell.execute("ROLLBACK")
    Line(database, (add("after it"), True))
    assert len(written(database)) == 1


def test_who_gives_up_waiting_loses_no_turn(database: Database) -> None:
    with database.write("holder", short=True):
        errors: list[BaseException] = []

        def wait() -> None:
            try:
                with database.write("impatient", wait=0.05):
                    pass
            except BusyError as error:
                errors.append(error)

        thread = threading.Thread(target=wait)
        thread.start()
        thread.join()
        assert len(errors) == 1
    Line(database, (add("after it"), True))
    assert len(written(database)) == 1


def test_closing_waits_for_a_group(database: Database) -> None:
    closer = threading.Thread(target=database.close)
    with database.write("one", short=True) as transaction:
        add("kept")(transaction)
        closer.start()
        until(lambda: database._writing._turns.waiting == 1)
    closer.join()
    assert len(written(database)) == 1


def test_processes_pass_in_turn(tmp_path: Path) -> None:
    first, second = Turnstile(tmp_path), Turnstile(tmp_path)
    assert first.pass_within(0)
    assert not second.pass_within(0)  # it has the place at the door now
    first.leave()
    if turnstile._LOCKS:
        assert not first.pass_within(0)
    assert second.pass_within(0)
    second.leave()
    assert first.pass_within(0)


def test_a_process_that_was_stopped_at_the_door_holds_up_nobody(database: Database) -> None:
    stopped = Turnstile(database.path.with_name("cortex.db.derived"))
    assert stopped.pass_within(0)
    Line(database, (add("one"), True))
    assert len(written(database)) == 1


def test_without_a_folder_to_lock_in_writes_go_on(tmp_path: Path) -> None:
    (tmp_path / "cortex.db.derived").write_text("a file in the folder's place")
    with closing(Database(tmp_path / "cortex.db")) as database:
        with database.write("one", short=True) as transaction:
            ensure_root(transaction, W)
        assert len(written(database)) == 1


_WRITERS = """
import sys, threading
from cortex.config import load_settings
from cortex.memory import open_memory
from cortex.services.fields import Fields
from pathlib import Path
memory = open_memory(load_settings(home=Path(sys.argv[1]), workspace="w", env={}))
memory.indexing.close()
lock = threading.Lock()
def write(thread):
    for turn in range(100_000):
        made = memory.adding.add_node("fact", Fields(text=f"thread {thread} turn {turn}"))
        with lock:
            print(made.id, flush=True)
for thread in range(8):
    threading.Thread(target=write, args=(thread,)).start()
"""


def test_a_killed_process_of_eight_writers_loses_nothing_acknowledged(home: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", _WRITERS, str(home)],
        stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    assert process.stdout is not None
    ids = [process.stdout.readline().strip() for _ in range(200)]
    process.kill()
    ids += process.stdout.read().split("\n")[:-1]  # what follows the last newline was cut off
    process.wait()
    process.stdout.close()
    with closing(Database(home / "cortex.db")) as database, database.read() as snapshot:
        assert len(ids) >= 200
        assert len(snapshot.nodes.by_ids([NodeId(each) for each in ids])) == len(ids)


def test_a_near_duplicate_written_after_the_look_is_told(memory: Memory) -> None:
    text = {"text": f"the deployment of {new_id()} waits for its certificate"}
    place = memory.engine.workspace(None)
    with memory.engine.database.read() as snapshot:
        sighted = sight(snapshot, place, text)
    other = memory.adding.add_node("fact", Fields(text=text["text"]))
    with memory.engine.database.write("one", short=True) as transaction:
        [similar] = settle(transaction, place, text, sighted)
    assert similar["id"] == other.id


def test_a_near_duplicate_that_was_changed_after_the_look_is_not_told(memory: Memory) -> None:
    text = {"text": f"the deployment of {new_id()} waits for its certificate"}
    place = memory.engine.workspace(None)
    other = memory.adding.add_node("fact", Fields(text=text["text"]))
    with memory.engine.database.read() as snapshot:
        sighted = sight(snapshot, place, text)
    memory.mutation.update(other.id, Fields(text="something else altogether"))
    with memory.engine.database.write("one", short=True) as transaction:
        assert settle(transaction, place, text, sighted) == []


@pytest.fixture
def patient(memory: Memory, monkeypatch: pytest.MonkeyPatch) -> Memory:
    """Here each pause between writes is too short for embedding to begin."""
    monkeypatch.setattr(yielding, "_QUIET", 3600.0)
    return memory


def pending(memory: Memory) -> int:
    with memory.engine.database.read() as snapshot:
        return snapshot.outbox.pending(None)


def test_embedding_does_not_give_way_for_ever(
    patient: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(yielding, "_PATIENCE", 0.3)
    patient.adding.add_node("fact", Fields(text="the harbour freezes in January"))
    assert pending(patient) == 1
    until(lambda: pending(patient) == 0)


def test_embedding_gives_way_between_the_batches_of_a_burst_that_outlasts_its_patience(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(yielding, "_PATIENCE", 0.01)
    monkeypatch.setattr(yielding, "_BETWEEN", 3600.0)
    writers = yielding.Yielding(lambda: 0.0)  # one wrote just now, whenever it is asked
    writers.begin()
    between = threading.Thread(target=writers.give_way)
    between.start()
    between.join(0.1)
    assert between.is_alive()
    writers.end()
    between.join()


def test_a_batch_that_a_burst_comes_upon_is_left_for_the_next_pause(patient: Memory) -> None:
    for place in range(9):
        patient.adding.add_node("fact", Fields(text=f"the harbour freezes at pier {place}"))
    batch = threading.Thread(target=patient.indexing.step)
    batch.start()
    batch.join()
    assert pending(patient) == 8


def test_who_embeds_gives_way_to_others_and_not_to_its_own_writes(database: Database) -> None:
    def write() -> None:
        with database.write("other"):
            pass

    other = threading.Thread(target=write)
    other.start()
    other.join()
    time.sleep(0.05)
    write()
    assert database.idle_seconds() >= 0.05


def test_what_an_earlier_process_left_waits_for_a_longer_pause_than_what_is_written_now(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(yielding, "_PATIENCE", 3600.0)
    monkeypatch.setattr(yielding, "_SETTLED", 3600.0)
    writers = yielding.Yielding(lambda: 60.0)  # none wrote for a minute
    writers.owe(old=True)
    between = threading.Thread(target=writers.give_way)
    between.start()
    between.join(0.1)
    assert between.is_alive()
    writers.owe(old=False)
    between.join()


def test_who_waits_for_the_index_goes_before_the_writers(
    patient: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(yielding, "_PATIENCE", 3600.0)
    patient.adding.add_node("fact", Fields(text="the harbour freezes in January"))
    assert pending(patient) == 1
    assert patient.indexing.wait(None, 30.0) == 0


# Interrupts, of a person at a prompt, at the worst moments


def writes_again(database: Database) -> None:
    """This process and another one can write."""
    with database.write("after", wait=5) as transaction:
        add("after")(transaction)
    with closing(sqlite3.connect(database.path, timeout=1, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")


def interrupting(monkeypatch: pytest.MonkeyPatch, owner: object, name: str) -> None:
    """The next call of it does its work, and then an interrupt comes."""
    real = getattr(owner, name)

    def call(*args: object, **named: object) -> None:
        monkeypatch.setattr(owner, name, real)
        real(*args, **named)
        raise KeyboardInterrupt

    monkeypatch.setattr(owner, name, call)


@pytest.mark.parametrize("where", ["in line", "after BEGIN", "before the commit"])
def test_an_interrupt_keeps_neither_the_turn_nor_the_lock(
    database: Database, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    inner = database._writing
    owner, name = {
        "in line": (inner._turns, "take"),
        "after BEGIN": (inner, "_lock_file"),
        "before the commit": (inner._turns, "hand_to_short"),
    }[where]
    interrupting(monkeypatch, owner, name)
    with pytest.raises(KeyboardInterrupt), database.write("one", short=True) as transaction:
        add("interrupted")(transaction)
    writes_again(database)


class Interrupting:
    """A connection of which one statement is interrupted once it is done, in one thread."""

    def __init__(self, connection: sqlite3.Connection, statement: str) -> None:
        self._real, self._statement = connection, statement

    def __getattr__(self, name: str) -> object:
        return getattr(self._real, name)

    def execute(self, statement: str, *bound: object) -> sqlite3.Cursor:
        done = self._real.execute(statement, *bound)  # type: ignore[arg-type]  # handed through
        if statement == self._statement:
            raise KeyboardInterrupt
        return done


def test_an_interrupt_after_a_member_s_release_leaves_the_others(database: Database) -> None:
    inner = database._writing
    real = inner._connection
    inner._connection = Interrupting(real, writing._END_MEMBER)  # type: ignore[assignment]
    line = Line(database, (add("kept"), True), (add("interrupted"), True))
    inner._connection = real
    assert isinstance(line.errors.pop(1), KeyboardInterrupt)
    assert line.errors == {}
    assert written(database)[0][0] == "actor 0"
    writes_again(database)


def test_one_who_recovers_the_log_is_waited_for_as_any_writer() -> None:
    recovering = sqlite3.OperationalError("database is locked")
    recovering.sqlite_errorcode = sqlite3.SQLITE_BUSY_RECOVERY
    assert is_busy(recovering)
    recovering.sqlite_errorcode = sqlite3.SQLITE_IOERR
    assert not is_busy(recovering)
