"""Weeks in the life of an agent, written through the real services on a clock of its own.

An agent works in sessions on a few topics that hardly know of each other: it opens its desktop,
focuses on a task, notes questions, thoughts, facts, errors, decisions and what it did, links
them, and now and then supersedes a decision. A few faults are planted, and counted. The same
seed gives the same texts, times, kinds and links; ids differ from run to run.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

from cortex.config import load_settings
from cortex.domain.instants import Instant, render
from cortex.memory import Memory, open_memory
from cortex.services.fields import Fields

START: Final = datetime(2026, 3, 2, 9, tzinfo=UTC)  # a Monday

TOPICS: Final = {
    "login": "tokens sessions passwords cookies scopes keys redirects accounts",
    "billing": "invoices refunds currencies discounts receipts taxes ledgers payouts",
    "search": "queries synonyms rankings stemmers snippets filters facets postings",
    "deployment": "containers rollbacks probes secrets regions pipelines images replicas",
    "import": "spreadsheets encodings delimiters headers duplicates batches uploads columns",
    "reports": "charts exports totals quarters pivots schedules templates legends",
}
_VERBS: Final = (
    "reject", "outlive", "duplicate", "need", "break", "hide", "replace", "follow", "lock", "delay",
    "rename", "merge", "skip", "confirm", "inherit", "overwrite",
)  # fmt: skip
_WHEN: Final = (
    "after a restart",
    "when two writers meet",
    "on the last day of a month",
    "for customers abroad",
    "in the nightly run",
    "while a migration is under way",
    "below a gigabyte of memory",
    "once the cache is cold",
    "if the clock runs behind",
    "for names outside ASCII",
    "under a slow network",
    "before the first backup",
)
_STEPS: Final = ("question", "thought", "fact", "fact", "hypothesis", "error", "decision", "action")


class Clock:
    """Moves when told."""

    def __init__(self) -> None:
        self.moment = START

    def __call__(self) -> Instant:
        return render(self.moment)

    def forward(self, **delta: float) -> None:
        self.moment += timedelta(**delta)


@dataclass(slots=True)
class Life:
    """What was lived: the open memory, the topic of each node by id, and the planted faults."""

    memory: Memory
    clock: Clock
    topic: dict[str, str] = field(default_factory=dict)
    contradictions: int = 0
    repeated: int = 0
    superseded: int = 0

    def close(self) -> None:
        self.memory.close()


def live(home: Path, weeks: int = 10, seed: int = 1, archive_days: float = 7) -> Life:
    """A new memory in `home`, workspace `agent`, after so many weeks; the caller closes it.

    Four sessions a week, about ten nodes each; nodes idle for `archive_days` are archived.
    """
    clock = Clock()
    settings = replace(
        load_settings(home=home, workspace="agent", env={}), archive_days=archive_days
    )
    life = Life(open_memory(settings, client="agent", clock=clock), clock)
    agent = _Agent(life, random.Random(seed))
    for week in range(weeks):
        for day in (0, 1, 3, 4):
            clock.moment = START + timedelta(weeks=week, days=day)
            agent.session()
    life.memory.history.flush()
    return life


class _Agent:
    """Works in sessions."""

    def __init__(self, life: Life, rng: random.Random) -> None:
        self._life = life
        self._rng = rng
        self._topics = list(TOPICS)
        self._topic = self._topics[0]
        self._tasks: dict[str, str] = {}
        self._done: dict[str, dict[str, list[str]]] = {name: {} for name in TOPICS}

    def session(self) -> None:
        """Open the desktop, work, and leave."""
        rng, memory = self._rng, self._life.memory
        memory.viewport.open(None)
        if rng.random() < 0.5:
            self._topic = rng.choice(self._topics)
        task = self._task()
        memory.viewport.focus(task)
        before = ""
        for _ in range(rng.randrange(7, 13)):
            self._life.clock.forward(minutes=rng.randrange(3, 20))
            before = self._step(rng.choice(_STEPS), task, before)
        if rng.random() < 0.5:
            self._change_mind()
        self._plant()

    def _task(self) -> str:
        if self._topic not in self._tasks or self._rng.random() < 0.15:
            title = f"Make the {self._noun()} of {self._topic} reliable"
            self._tasks[self._topic] = self._add("task", Fields(title=title), None, ())
        return self._tasks[self._topic]

    def _step(self, kind: str, task: str, before: str) -> str:
        rng = self._rng
        relations = [self._toward(before)] if before else []
        known = self._done[self._topic]
        if rng.random() < 0.6 and known.get("fact"):
            relations.append(f"related_to:{rng.choice(known['fact'])}")
        if rng.random() < 0.04:
            abroad = self._done[rng.choice(self._topics)]
            relations += [f"related_to:{at}" for at in abroad.get("decision", ())[-1:]]
        made = self._add(kind, Fields(text=self._sentence()), task, relations)
        known.setdefault(kind, []).append(made)
        for other in relations[1:]:
            self._life.memory.viewport.focus(other.partition(":")[2])
        return made

    def _toward(self, before: str) -> str:
        return f"{self._rng.choice(('derives_from', 'derives_from', 'sequel_to'))}:{before}"

    def _change_mind(self) -> None:
        decisions = self._done[self._topic].get("decision", [])
        if not decisions:
            return
        at = self._rng.randrange(len(decisions))
        self._life.clock.forward(minutes=5)
        done = self._life.memory.mutation.supersede(decisions[at], Fields(text=self._sentence()))
        assert done.new_id is not None  # it was no dry run
        self._life.topic[done.new_id] = self._topic
        decisions[at] = done.new_id
        self._life.superseded += 1

    def _plant(self) -> None:
        """Now and then two facts that exclude each other, and one that is told twice."""
        facts = self._done[self._topic].get("fact", [])
        if len(facts) > 1 and self._rng.random() < 0.15:
            one, other = self._rng.sample(facts, 2)
            self._life.memory.linking.add_relation(one, other, "contradicts")
            self._life.contradictions += 1
        if facts and self._rng.random() < 0.15:
            again = self._life.memory.reading.whole(self._rng.choice(facts))
            self._add("fact", Fields(text=again.text), self._tasks[self._topic], ())
            self._life.repeated += 1

    def _add(self, kind: str, fields: Fields, parent: str | None, relations: Sequence[str]) -> str:
        added = self._life.memory.adding.add_node(kind, fields, parent=parent, relations=relations)
        self._life.topic[added.id] = self._topic
        return added.id

    def _noun(self) -> str:
        return self._rng.choice(TOPICS[self._topic].split())

    def _sentence(self) -> str:
        one, other = self._rng.sample(TOPICS[self._topic].split(), 2)
        said = f"{one} {self._rng.choice(_VERBS)} {other} {self._rng.choice(_WHEN)}"
        return f"{said[0].upper()}{said[1:]}"
