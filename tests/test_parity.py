"""Whatever is done to the file, by whom and in whatever order: all derived stores follow it.

`PARITY_EXAMPLES` and `PARITY_STEPS` make the random run longer, and then also a new one each
time; by default it is the same run on every machine.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    rule,
    run_state_machine_as_test,
)

from cortex.domain.values import Generation, Node, NodeId, WorkspaceId
from cortex.graph.kept import Kept
from cortex.graph.locator import Locator
from cortex.services.fields import Fields
from cortex.store.changes import Changes, Touched
from cortex.store.embeddings import Embeddings
from cortex.store.keywords import Keywords
from cortex.vectors.embedded import EmbeddedIndex
from cortex.vectors.index import Point
from tests.parity import PLACES, TAGS, WORDS
from tests.parity_steps import EDITS, Operations

SOAK: Final = "PARITY_EXAMPLES" in os.environ
KINDS: Final = ("fact", "note", "entity", "decision", "task", "fileref", "constraint")
LINKS: Final = ("related_to", "supports", "contains", "supersedes", "depends_on", "indexes")
TIMES: Final = ("2039-06-01T00:00:00.000000Z", "2040-01-01T00:00:00.000000Z")

who = st.integers(0, 1)
number = st.integers(0, 40)
maybe = st.none() | number
word = st.sampled_from(WORDS)
place = st.sampled_from((*PLACES, PLACES[0]))
kind = st.sampled_from(KINDS)
link = st.sampled_from(LINKS)
status = st.sampled_from(("active", "stale", "archived"))
weight = st.sampled_from((0.1, 1.0, 1 / 3))
tags = st.lists(st.sampled_from(TAGS), max_size=2, unique=True)
fields = st.one_of(
    st.builds(Fields, text=word, tags=tags),
    st.builds(Fields, title=word, text=word),
    st.builds(Fields, title=word, pinned=st.just(True)),
)


class Parity(RuleBasedStateMachine):
    """Two memories of one file and a shell, each at random; compared after every step."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.twins = Operations(Path(self.folder.name) / "home")

    @initialize(word=word)
    def begin(self, word: str) -> None:
        for text in (word, WORDS[0], WORDS[1]):
            self.twins.add(0, "fact", Fields(text=text), None, PLACES[0])

    @rule(who=who, kind=kind, fields=fields, parent=maybe, place=place)
    def add(self, **drawn: Any) -> None:
        self.twins.add(**drawn)

    @rule(who=who, number=number, fields=fields, status=st.none() | status, cascade=st.booleans())
    def update(self, **drawn: Any) -> None:
        self.twins.update(**drawn)

    @rule(who=who, number=number, status=status, cascade=st.booleans())
    def set_status(self, **drawn: Any) -> None:
        self.twins.update(fields=Fields(), **drawn)

    @rule(who=who, number=number, word=word, cascade=st.booleans())
    def supersede(self, **drawn: Any) -> None:
        self.twins.supersede(**drawn)

    @rule(who=who, number=number, cascade=st.booleans())
    def delete(self, **drawn: Any) -> None:
        self.twins.delete(**drawn)

    @rule(who=who, near=number, far=number, kind=link, weight=weight, derived=st.booleans())
    def relate(self, **drawn: Any) -> None:
        self.twins.relate(**drawn)

    @rule(who=who, number=number, words=st.lists(word, min_size=1, max_size=3))
    def decompose(self, **drawn: Any) -> None:
        self.twins.decompose(**drawn)

    @rule(who=who, number=number)
    def focus(self, **drawn: Any) -> None:
        self.twins.focus(**drawn)

    @rule(who=who, place=place)
    def open(self, **drawn: Any) -> None:
        self.twins.open(**drawn)

    @rule(who=who, place=place)
    def save_graph(self, who: int, place: str) -> None:
        """Its file, which the other memory reads as well."""
        engine = self.twins.memories[who].engine
        engine.graphs.save(engine.database, WorkspaceId(place))

    @rule(who=who)
    def drop_graphs(self, who: int) -> None:
        """So that they come from their files and the log, as in a new process."""
        self.twins.memories[who].engine.graphs.clear()

    @rule(seconds=st.sampled_from((-3600.0, 60.0, 200_000.0)))
    def time_passes(self, seconds: float) -> None:
        self.twins.clock.move(seconds)

    @rule(who=who)
    def index(self, who: int) -> None:
        self.twins.index(who)

    @rule(who=who)
    def reindex(self, who: int) -> None:
        self.twins.reindex(who)

    @rule(who=who, number=number, word=word)
    def roll_back(self, **drawn: Any) -> None:
        self.twins.roll_back(**drawn)

    @rule(kind=kind, word=word, parent=maybe, place=place)
    def shell_insert(self, kind: str, word: str, parent: int | None, place: str) -> None:
        self.twins.shell_insert(kind, {"text": word}, parent, place)

    @rule(
        number=number,
        other=number,
        edit=st.sampled_from(sorted(EDITS)),
        word=word,
        tag=st.sampled_from(TAGS),
        status=status,
        type=kind,
        at=st.sampled_from(TIMES),
        place=place,
    )
    def shell_edit(self, **drawn: Any) -> None:
        self.twins.shell_edit(**drawn)

    @rule()
    def shell_restore(self) -> None:
        self.twins.shell_restore()

    @rule(near=number, far=number, kind=link, weight=weight)
    def shell_relate(self, **drawn: Any) -> None:
        self.twins.shell_relate(**drawn)

    @rule(number=number, edit=st.sampled_from(("weight", "derived", "delete")), weight=weight)
    def shell_edit_relation(self, **drawn: Any) -> None:
        self.twins.shell_edit_relation(**drawn)

    @rule(number=number, word=word)
    def shell_roll_back(self, **drawn: Any) -> None:
        self.twins.shell_roll_back(**drawn)

    @rule(steps=st.integers(1, 4))
    def second_looks_away(self, steps: int) -> None:
        """So that it has several steps to catch up with at once."""
        self.twins.looking_away = steps

    @invariant()
    def all_stores_agree(self) -> None:
        self.twins.check()

    def teardown(self) -> None:
        try:
            self.twins.check_history()
        finally:
            self.twins.close()
            self.folder.cleanup()


def test_every_store_says_the_same_after_any_steps() -> None:
    run_state_machine_as_test(
        Parity,
        settings=settings(
            max_examples=int(os.environ.get("PARITY_EXAMPLES", "100")),
            stateful_step_count=int(os.environ.get("PARITY_STEPS", "30")),
            deadline=None,
            derandomize=not SOAK,
            database=None,
            report_multiple_bugs=False,
            phases=(Phase.generate, Phase.shrink),
            suppress_health_check=list(HealthCheck),
        ),
    )


@contextmanager
def opened(home: Path) -> Iterator[Operations]:
    twins = Operations(home)
    try:
        yield twins
    finally:
        twins.close()


# ── lives that once went wrong ────────────────────────────────────────────────────────────


def test_a_superseded_node_comes_back_from_the_archive_stale(home: Path) -> None:
    with opened(home) as twins:
        twins.add(0, "fact", Fields(text=WORDS[0]), None, PLACES[0])
        twins.check()
        twins.supersede(0, 1, WORDS[1], False)
        twins.update(0, 1, Fields(), "archived", False)
        twins.focus(1, 1)
        twins.check()
        assert twins.tables.nodes[2]["status"] == "stale"


def test_a_node_that_a_shell_empties_leaves_the_vector_index_at_once(home: Path) -> None:
    with opened(home) as twins:
        twins.add(0, "fact", Fields(text=WORDS[0]), None, PLACES[0])
        twins.index(0)
        twins.check()
        twins.shell_edit(1, 1, "empty")
        twins.check()  # which ends with a write that mends what the shell left
        twins.check()


# ── planted faults ────────────────────────────────────────────────────────────────────────


def fixed_steps(twins: Operations) -> Iterator[None]:
    """A short life in which each kind of follower has something to miss."""
    for text in WORDS[:4]:
        twins.add(0, "fact", Fields(text=text, tags=["red"]), None, PLACES[0])
        yield
    while twins.memories[0].indexing.step():
        yield
    twins.relate(1, 1, 2, "related_to", 0.5, False)
    yield
    twins.update(1, 2, Fields(text=WORDS[5]), None, False)
    yield
    twins.delete(0, 1, False)
    yield
    twins.shell_edit(2, 2, "status", status="archived")
    yield
    twins.add(1, "note", Fields(text=WORDS[6]), None, PLACES[0])
    yield


def run_fixed(twins: Operations, fault: Callable[[Operations], None]) -> None:
    """Check the twins, plant the fault, and check after every fixed step."""
    twins.check()
    fault(twins)
    for _ in fixed_steps(twins):
        twins.check()
    twins.check_history()


def test_the_fixed_steps_alone_keep_every_store_equal(home: Path) -> None:
    with opened(home) as twins:
        run_fixed(twins, lambda _: None)


def skip_one_delta(patch: pytest.MonkeyPatch, _: Operations) -> None:
    real = Changes.touched

    def touched(self: Changes, since: int, until: int) -> Touched:
        touched = real(self, since, until)
        return touched._replace(nodes=touched.nodes[1:])

    patch.setattr(Changes, "touched", touched)


def forget_to_log_updates(_: pytest.MonkeyPatch, twins: Operations) -> None:
    twins.sql("DROP TRIGGER nodes_update")


def forget_to_log_relations_of_the_deleted(_: pytest.MonkeyPatch, twins: Operations) -> None:
    twins.sql("DROP TRIGGER relations_delete")


def keep_a_stale_graph_index(patch: pytest.MonkeyPatch, _: Operations) -> None:
    patch.setattr(Locator, "remove", lambda self, key: None)


def keep_old_rows(patch: pytest.MonkeyPatch, _: Operations) -> None:
    patch.setattr(Kept, "drop", lambda self, touched: None)


def skip_a_keyword_row(patch: pytest.MonkeyPatch, _: Operations) -> None:
    real = Keywords.put

    def put(self: Keywords, node: Node) -> None:
        if node.text != WORDS[5]:
            real(self, node)

    patch.setattr(Keywords, "put", put)


def skip_vector_deletions(patch: pytest.MonkeyPatch, _: Operations) -> None:
    real = EmbeddedIndex.apply

    def apply(
        self: EmbeddedIndex,
        workspace: WorkspaceId,
        upserts: Sequence[Point],
        deletes: Sequence[NodeId],
        watermark: Generation,
    ) -> None:
        real(self, workspace, upserts, [], watermark)

    patch.setattr(EmbeddedIndex, "apply", apply)


def pay_debts_without_vectors(patch: pytest.MonkeyPatch, _: Operations) -> None:
    patch.setattr(Embeddings, "put", lambda *_: None)


FAULTS: Final = {
    skip_one_delta: "of the graph",
    forget_to_log_updates: "a change is not in the log",
    forget_to_log_relations_of_the_deleted: "a change is not in the log",
    keep_a_stale_graph_index: "the graph finds node",
    keep_old_rows: "rows beside the graph",
    skip_a_keyword_row: "the nodes that say",
    skip_vector_deletions: "vectors of w",
    pay_debts_without_vectors: "a vector is not of the words",
}


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.__name__)
def test_a_planted_fault_is_noticed(
    fault: Callable[[pytest.MonkeyPatch, Operations], None],
    home: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Fault injection, no mock: the real product, broken in one place, must be caught."""
    with opened(home) as twins, pytest.raises(AssertionError, match=FAULTS[fault]):
        run_fixed(twins, lambda twins: fault(monkeypatch, twins))
