"""What has come loose is found, exactly, and its mend brings it to nothing."""

from __future__ import annotations

import json
import shlex
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from cortex.cli.app import app
from cortex.config import load_settings
from cortex.domain.instants import later
from cortex.domain.taxonomy import NodeType, RelationType
from cortex.domain.values import NodeId, WorkspaceId, new_id
from cortex.memory import Memory, open_memory
from cortex.services.duplicates import near_duplicates
from cortex.services.fields import Fields
from cortex.services.health import HUB_DEGREE, READ_DAYS, TASK_DAYS, WEIGHTS, Health
from cortex.store.health import Check, Saying
from tests.local import ask
from tests.parity import Clock, embedder

W = WorkspaceId("w")
SOURCED = {"source": "the handbook"}
# Texts that no other one is like.
WORDS = (
    "argon2 hashes passwords",
    "ports below 1024 need root",
    "Kafka keeps seven days",
    "the build takes nine minutes",
    "invoices are rounded down",
    "Ingrid owns the billing service",
)


class World:
    """A memory with a clock of its own, a shell beside it, and a folder of files."""

    def __init__(self, folder: Path) -> None:
        self.clock = Clock()
        self.folder = folder
        settings = load_settings(home=folder / "home", workspace="w", env={}, cwd=folder)
        self.memory = open_memory(settings, clock=self.clock, embedder=embedder())

    def fact(self, text: str, **data: Any) -> str:
        fields = Fields(text=text, data={**SOURCED, **data})
        return self.memory.adding.add_node("fact", fields).id

    def add(self, kind: str, text: str, **more: Any) -> str:
        return self.memory.adding.add_node(kind, Fields(text=text), **more).id

    def join(self, source: str, kind: str, target: str, **data: Any) -> None:
        self.memory.linking.add_relation(source, target, kind, data=data)

    def shell(self, statement: str, *bound: Any) -> None:
        with closing(sqlite3.connect(self.memory.settings.database, isolation_level=None)) as shell:
            shell.execute(statement, bound)

    def read(self, *ids: str) -> None:
        self.memory.reading.get(list(ids), depth=0)
        assert self.memory.history.flush(wait=10)

    def health(self) -> Health:
        assert self.memory.indexing.wait(W, 20.0) == 0
        return self.memory.checkup.health()

    def counts(self) -> dict[Check, int]:
        return {finding.check: finding.count for finding in self.health().findings}

    def mend(self, check: Check) -> None:
        """Do what the finding says, again and again, until it is gone."""
        for _ in range(20):
            [mend] = [each.mend for each in self.health().findings if each.check is check] or [""]
            if not mend:
                return
            if mend.startswith("cortex "):
                cortex(self.memory, *shlex.split(mend)[1:])
            else:
                tool, _, arguments = mend.partition("(")
                known = {"true": True, "false": False, "null": None}
                given = eval(f"dict({arguments}", {"dict": dict, **known})
                ask(self.memory, tool, **given)
        raise AssertionError(f"{check} stays: {mend}")


def cortex(memory: Memory, *arguments: str) -> str:
    done = CliRunner().invoke(
        app, [*arguments, "--home", str(memory.settings.home)], terminal_width=120
    )
    assert done.exit_code == 0, (arguments, done.output, done.exception)
    return done.stdout


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CORTEX_WORKSPACE_ID", "w")
    (tmp_path / ".git").mkdir()
    made = World(tmp_path)
    yield made
    made.memory.close()


# k faults of each kind, and what is like them and no fault


def dangling(world: World) -> int:
    for text in WORDS[:2]:
        near, far = world.fact(text), world.add("note", f"leaves {text}")
        world.join(near, "related_to", far)
        world.shell("UPDATE nodes SET parent_id = NULL WHERE id = ?", far)
        world.shell("UPDATE nodes SET workspace_id = 'v' WHERE id = ?", far)
    return 2


def contradictions(world: World) -> int:
    ids = [world.fact(text) for text in WORDS]
    for near, far in ((0, 1), (2, 3), (4, 5)):
        world.join(ids[near], "contradicts", ids[far])
    world.memory.mutation.update(ids[5], Fields(), status="stale")
    return 2


def stale_support(world: World) -> int:
    for text in WORDS[:3]:
        leg, decision = world.fact(text), world.add("decision", f"so {text}")
        world.join(leg, "supports", decision)
        world.memory.mutation.update(leg, Fields(), status="stale")
    leg, follows = world.fact(WORDS[3]), world.fact(f"from that, {WORDS[4]}")
    world.join(follows, "derives_from", leg)
    world.memory.mutation.supersede(leg, Fields(text="replaced", data=SOURCED))
    archived, decision = world.fact(WORDS[5]), world.add("decision", "not stale, put away")
    world.join(archived, "supports", decision)
    world.memory.mutation.update(archived, Fields(), status="archived")
    return 4


def changed_files(world: World) -> int:
    world.fact(WORDS[5])  # so that the log stands at the clock of these tests
    for name, text in zip(("a.md", "b.md", "c.go", "d.go", "e.go"), WORDS, strict=False):
        (world.folder / name).write_text(f"# {text}\n\n{text.upper()}.\n")
    for name in ("a.md", "b.md"):
        cortex(world.memory, "ingest", str(world.folder / name))
    for name in ("c.go", "d.go", "e.go", "never-there.go"):
        world.memory.adding.add_node("fileref", Fields(path=name))
    (world.folder / "a.md").write_text("# Elsewhere\n\nAbout something else.\n")
    (world.folder / "c.go").write_text("package longer\n")
    (world.folder / "d.go").unlink()
    return 3


def orphans(world: World) -> int:
    world.fact(WORDS[0])
    for text in WORDS[1:4]:
        world.shell("UPDATE nodes SET parent_id = NULL WHERE id = ?", world.fact(text))
    related = world.fact(WORDS[4])
    world.join(related, "related_to", world.fact(WORDS[5]))
    world.shell("UPDATE nodes SET parent_id = NULL WHERE id = ?", related)
    return 3


def index_lag(world: World) -> int:
    world.memory.indexing.close()
    for text in WORDS[:4]:
        world.fact(text)
    world.memory.mutation.update(world.fact(WORDS[5]), Fields(), status="archived")
    return 4


def tasks_without_outcome(world: World) -> int:
    for text in WORDS[:2]:
        world.add("task", text)
    done = world.add("task", WORDS[2])
    world.memory.adding.add_node("note", Fields(text="it is done"), parent=done)
    led = world.add("task", WORDS[3])
    world.join(led, "leads_to", world.add("action", WORDS[4]))
    world.clock.at = later(world.clock.at, days=TASK_DAYS + 1)
    world.add("task", WORDS[5])
    return 2


def facts_without_source(world: World) -> int:
    for text in WORDS[:2]:
        world.add("fact", text)
    world.fact(WORDS[2])
    world.add("fact", WORDS[3], files=["src/x.py:3"])
    supported = world.add("fact", WORDS[4])
    world.join(world.add("thought", "seen in the log"), "supports", supported)
    return 2


def near_duplicate_texts(world: World) -> int:
    text = "Access tokens expire after 24 hours and are renewed by the gateway"
    for other in (text, text.replace("24", "12"), text + ".", "Access is by badge"):
        world.fact(other)
    world.add("note", text)
    return 2


def off_taxonomy(world: World) -> int:
    ids = [world.fact(text) for text in WORDS]
    world.join(ids[0], "resolves", ids[1])
    world.join(ids[2], "depends_on", ids[3])
    world.join(ids[4], "depends_on", ids[5], meant=True)
    return 2


def hubs(world: World) -> int:
    hub, busy = NodeId(world.fact(WORDS[0])), NodeId(world.fact(WORDS[1]))
    with world.memory.engine.write() as transaction:
        nodes, relations, at = transaction.nodes, transaction.relations, transaction.at
        for number in range(HUB_DEGREE + 1):
            data = {"title": f"n {number}"}
            other = nodes.insert(NodeId(new_id()), NodeType.NOTE, W, None, data, at).id
            near, far = (hub, other) if number % 2 else (other, hub)
            relations.insert(W, near, far, RelationType.LEADS_TO, at)
            if number < HUB_DEGREE:
                relations.insert(W, busy, other, RelationType.TRIGGERS, at)
    return 1


def never_read(world: World) -> int:
    for text in WORDS[:3]:
        world.fact(text)
    world.read(world.fact(WORDS[3]))
    world.fact(WORDS[4], pinned=True)
    world.clock.at = later(world.clock.at, days=READ_DAYS + 1)
    world.fact(WORDS[5])
    return 3


PLANTED: list[tuple[Check, Callable[[World], int]]] = [
    (Check.DANGLING_RELATIONS, dangling),
    (Check.CONTRADICTIONS, contradictions),
    (Check.STALE_SUPPORT, stale_support),
    (Check.CHANGED_FILES, changed_files),
    (Check.ORPHANS, orphans),
    (Check.TASKS_WITHOUT_OUTCOME, tasks_without_outcome),
    (Check.FACTS_WITHOUT_SOURCE, facts_without_source),
    (Check.NEAR_DUPLICATES, near_duplicate_texts),
    (Check.OFF_TAXONOMY, off_taxonomy),
    (Check.HUBS, hubs),
    (Check.NEVER_READ, never_read),
]


@pytest.mark.parametrize(("check", "plant"), PLANTED, ids=[check.value for check, _ in PLANTED])
def test_as_many_are_found_as_were_planted_and_the_mend_leaves_none(
    world: World, check: Check, plant: Callable[[World], int]
) -> None:
    planted = plant(world)
    assert world.counts() == {check: planted}
    world.mend(check)
    assert world.counts() == {}
    assert world.health().score == 100.0


def test_what_the_index_owes_is_found_and_reindex_settles_it(world: World) -> None:
    planted = index_lag(world)
    [finding] = world.memory.checkup.health().findings
    assert (finding.check, finding.count, finding.mend) == (
        Check.INDEX_LAG,
        planted,
        "cortex reindex",
    )
    cortex(world.memory, *shlex.split(finding.mend)[1:])
    assert world.memory.checkup.health().findings == ()


def test_every_check_is_planted() -> None:
    assert {check for check, _ in PLANTED} | {Check.INDEX_LAG} == set(Check) == set(WEIGHTS)


def test_an_empty_memory_and_a_clean_one_are_whole(world: World) -> None:
    assert world.health().score == 100.0
    task = world.add("task", "Harden the login")
    world.memory.adding.add_node("fact", Fields(text=WORDS[0], data=SOURCED), parent=task)
    world.memory.adding.decompose(task, ["first", "second"])
    health = world.health()
    assert (health.score, health.findings) == (100.0, ())


def test_the_score_is_a_hundred_less_the_weighted_fractions(world: World) -> None:
    contradictions(world)
    orphan = world.fact("alone in the world")
    world.shell("UPDATE nodes SET parent_id = NULL WHERE id = ?", orphan)
    health = world.health()
    [first, second] = health.findings
    # 8 nodes, one of them stale: the session root, five facts, and the orphan.
    assert health.nodes == 7
    assert (first.affected, first.points) == (4, round(20 * 4 / 7, 2))
    assert (second.affected, second.points) == (1, round(15 / 7, 2))
    assert health.score == round(100 - first.points - second.points, 1)


def test_stale_support_is_carried_to_what_replaced_it(world: World) -> None:
    leg, decision = world.fact(WORDS[0]), world.add("decision", "so we do")
    world.join(leg, "supports", decision)
    new = world.memory.mutation.supersede(leg, Fields(text=WORDS[1], data=SOURCED)).new_id
    [finding] = world.health().findings
    assert finding.mend == (
        f'graph_add_relation(from_id="{new}", to_id="{decision}", type="supports")'
    )


def test_examples_are_five_at_most_in_an_order_that_stays(world: World) -> None:
    for number in range(7):
        world.add("fact", f"{number} {WORDS[number % 6]} {number * 7919}")
    [finding] = [f for f in world.health().findings if f.check is Check.FACTS_WITHOUT_SOURCE]
    assert finding.count == 7
    ids = [node.id for node in finding.examples]
    assert (len(ids), ids) == (5, sorted(ids))


def test_other_workspaces_do_not_count(world: World) -> None:
    world.memory.adding.add_node("fact", Fields(text="no source"), workspace="v")
    world.fact(WORDS[0])
    assert world.counts() == {}
    there = world.memory.checkup.health("v").findings
    assert Check.FACTS_WITHOUT_SOURCE in [finding.check for finding in there]


def test_near_duplicates_name_each_older_text_once_however_many_there_are() -> None:
    text = "the same text over and over again"
    same = [Saying(NodeId(str(n)), "fact", text) for n in range(100)]
    assert near_duplicates(same) == [(str(n), "0") for n in range(1, 100)]
    assert (
        near_duplicates([Saying(NodeId("a"), "fact", text), Saying(NodeId("b"), "note", text)])
        == []
    )


def test_the_tool_and_the_command_say_check_count_examples_and_mend(world: World) -> None:
    facts_without_source(world)
    world.health()
    answer = ask(world.memory, "graph_health")
    [finding] = answer["findings"]
    assert (finding["check"], finding["count"]) == ("facts_without_source", 2)
    assert finding["mend"].startswith("graph_update_node(")
    assert {item["title"] for item in finding["examples"]} == set(WORDS[:2])
    said = cortex(world.memory, "health")
    assert "facts_without_source: 2" in said
    assert finding["mend"] in said
    assert json.loads(cortex(world.memory, "health", "--json"))["score"] == answer["score"]


def test_a_new_memory_s_health_is_said_and_not_guessed(tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["health", "--home", str(tmp_path / "new"), "-w", "w"])
    assert done.exit_code == 0
    assert "nothing has come loose" in done.stdout
