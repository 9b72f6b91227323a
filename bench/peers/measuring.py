"""One peer at one size: loaded, checked, then timed.

Every answer is compared with what is known to be right, in three calls before any is timed and
in the timed ones too. What takes too long is left off and said, not waited for.
"""

from __future__ import annotations

import random
import subprocess
import time
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import anyio
import numpy as np
from mcp import MCPError

from bench.peers.client import CALL_SECONDS, Refused, Reply, Session, serving
from bench.peers.memories import (
    NEIGHBOURS,
    PHRASE,
    SURROUNDINGS,
    TYPED_OUT,
    Memory,
    Way,
    World,
    told,
)
from bench.peers.peer import Peer
from cortex.domain.values import new_id

OPERATION_SECONDS: Final = 12.0  # seven of them, and the slowest call twice, fit in a size
SIZE_SECONDS: Final = 120.0
LOAD: Final = "load"
WRITE: Final = "write"
RARE: Final = "rare word"
APART: Final = "words apart"
COMMON: Final = "common phrase"
OPERATIONS: Final = (
    WRITE,
    RARE,
    APART,
    COMMON,
    *(way.name for way in (NEIGHBOURS, SURROUNDINGS, TYPED_OUT)),
)
_CHECKS: Final = 3
_NOT_LOADED: Final = "not loaded:"


@dataclass(frozen=True, slots=True)
class Figure:
    """One operation of one peer at one size; wall milliseconds unless the note says otherwise.

    `found` says whether every answer was the right one, None where there is none to compare;
    `reply_characters` is the median of the text that a model would read; `ratio` is p50 by
    cortex's p50 of the same operation and size.
    """

    peer: str
    operation: str
    size: int
    p50: float | None = None
    p95: float | None = None
    runs: int = 0
    reply_characters: int | None = None
    pss_mb: float | None = None
    found: bool | None = None
    note: str = ""
    ratio: float | None = None


@dataclass(frozen=True, slots=True)
class Outcome:
    """One turn of an operation."""

    milliseconds: float
    characters: int
    right: bool | None


@dataclass(frozen=True, slots=True)
class Operation:
    """What is asked in each turn, and how often."""

    name: str
    runs: int
    turn: Callable[[int], Awaitable[Outcome | None]]


def summed(replies: tuple[Reply, ...], right: bool | None) -> Outcome:
    """Several calls that make one answer."""
    return Outcome(
        sum(reply.milliseconds for reply in replies),
        sum(len(reply.text) for reply in replies),
        right,
    )


class Questions:
    """The operations against one open server."""

    def __init__(self, peer: Peer, session: Session, world: World, seed: int) -> None:
        self._peer, self._session, self._world, self._seed = peer, session, world, seed
        self._rng = random.Random(seed + 11)

    def operations(self) -> Iterator[Operation]:
        """Traversals before writes, which join the graph that they are compared with.

        The phrase that most have comes last: its replies may need all the time that is left.
        """
        yield Operation(RARE, 20, lambda turn: self._search(turn, lambda each: each.word))
        yield Operation(APART, 20, lambda turn: self._search(turn, lambda each: each.apart))
        for way in (NEIGHBOURS, SURROUNDINGS, TYPED_OUT):
            yield Operation(way.name, 20, self._along(way))
        yield Operation(WRITE, 20, self._write)
        yield Operation(COMMON, 10, self._common)

    async def written_is_found(self) -> bool:
        """Whether a word just written is found by the next question."""
        memory = told(self._rng, new_id())
        await self._peer.write(self._session, memory)
        return self._peer.shows(await self._peer.search(self._session, memory.word), memory)

    async def _write(self, turn: int) -> Outcome:
        reply = await self._peer.write(self._session, told(self._rng, new_id()))
        return summed((reply,), None)

    async def _search(self, turn: int, question: Callable[[Memory], str]) -> Outcome:
        planted = self._world.planted[turn % len(self._world.planted)]
        reply = await self._peer.search(self._session, question(planted))
        return summed((reply,), self._peer.shows(reply, planted))

    async def _common(self, turn: int) -> Outcome:
        reply = await self._peer.search(self._session, PHRASE)
        return summed((reply,), None)

    def _along(self, way: Way) -> Callable[[int], Awaitable[Outcome | None]]:
        starts = self._world.starts(way, 20, self._seed)

        async def turn(number: int) -> Outcome | None:
            start = starts[number % len(starts)]
            got = await self._peer.traverse(self._session, self._world, start, way)
            if got is None:
                return None
            return summed(got.replies, got.names == self._world.reached(start.name, way))

        return turn


async def timed(operation: Operation, seconds: float) -> tuple[list[Outcome], bool | None]:
    """Outcomes of the timed turns, and whether all answers were right.

    Where the checks alone take that long, one turn is timed.
    """
    began = time.monotonic()
    checked: list[Outcome | None] = []
    while len(checked) < _CHECKS and time.monotonic() - began < seconds / 2:
        checked.append(await operation.turn(len(checked)))
    outcomes: list[Outcome] = []
    for turn in range(operation.runs):
        outcome = await operation.turn(turn)
        if outcome is None:
            return [], None
        outcomes.append(outcome)
        if time.monotonic() - began > seconds:
            break
    judged = [each.right for each in (*checked, *outcomes) if each and each.right is not None]
    return outcomes, all(judged) if judged else None


def figure(peer: Peer, operation: str, size: int, outcomes: list[Outcome]) -> Figure:
    """The percentiles of outcomes, or a row that says that there is no such call."""
    note = peer.notes.get(operation, "")
    if not outcomes:
        return Figure(peer.name, operation, size, note=note or "no such call over MCP")
    p50, p95 = np.percentile([each.milliseconds for each in outcomes], [50, 95])
    characters = int(np.median([each.characters for each in outcomes]))
    return Figure(
        peer.name, operation, size, round(float(p50), 2), round(float(p95), 2), len(outcomes),
        characters, note=note,
    )  # fmt: skip


async def asked(peer: Peer, session: Session, world: World, seed: int) -> list[Figure]:
    """Figures of one server, as far as it gets in its time."""
    figures: list[Figure] = []
    questions = Questions(peer, session, world, seed)
    ends = time.monotonic() + SIZE_SECONDS
    current = RARE
    try:
        for operation in questions.operations():
            current = operation.name
            left = min(OPERATION_SECONDS, ends - time.monotonic())
            if left <= 0:
                note = f"not asked: the {SIZE_SECONDS:.0f} s of this size were over"
                figures.append(Figure(peer.name, current, world.size, note=note))
                continue
            found = await questions.written_is_found() if current == WRITE else None
            outcomes, right = await timed(operation, left)
            made = figure(peer, current, world.size, outcomes)
            figures.append(replace(made, found=found if current == WRITE else right))
    except TimeoutError:
        note = f"did not finish: one call took more than {CALL_SECONDS:.0f} s"
        figures.append(Figure(peer.name, current, world.size, note=note))
    except (Refused, MCPError) as error:
        figures.append(Figure(peer.name, current, world.size, note=f"answered: {error}"[:200]))
    except (LookupError, ValueError) as error:
        note = f"answered in a form that is not known here: {error!r}"[:200]
        figures.append(Figure(peer.name, current, world.size, note=note))
    held = round(session.megabytes(), 1)
    return [replace(each, pss_mb=held) for each in figures]


def too_slow(before: Figure | None, size: int, load_seconds: float) -> str:
    """Why a peer is not loaded at a size, after its pace at a smaller one, or nothing."""
    if before is None:
        return ""
    if before.p50 is None:
        return (
            before.note if before.note.startswith(_NOT_LOADED) else f"{_NOT_LOADED} {before.note}"
        )
    seconds = before.p50 / 1000
    if seconds * size / before.size <= load_seconds:
        return ""
    return f"{_NOT_LOADED} {before.size:,} memories took {seconds:.0f} s"


async def measured(
    peer: Peer, world: World, home: Path, seed: int, load_seconds: float
) -> list[Figure]:
    """Load a peer, ask it, and let it go; one row that says so where it does not get there."""
    home.mkdir(parents=True)
    late = f"{world.size:,} memories did not finish loading in {load_seconds:.0f} s"
    figures: list[Figure] = []
    began = time.monotonic()
    try:
        await anyio.to_thread.run_sync(peer.load, world, home, load_seconds)
    except subprocess.TimeoutExpired:
        return [Figure(peer.name, LOAD, world.size, note=late)]
    except subprocess.CalledProcessError as error:
        failed = f"its loading ended with exit {error.returncode}"
        return [Figure(peer.name, LOAD, world.size, note=failed)]
    try:
        async with serving(peer.server(home), home / "server.log") as session:
            with anyio.move_on_after(load_seconds) as limit:
                await peer.fill(session, world)
            if limit.cancelled_caught:
                return [Figure(peer.name, LOAD, world.size, note=late)]
            took = time.monotonic() - began
            print(f"  {peer.name} is loaded after {took:.1f} s", flush=True)
            loaded = round(took * 1000)
            figures.append(
                Figure(peer.name, LOAD, world.size, loaded, loaded, 1, note=peer.loading)
            )
            figures += await asked(peer, session, world, seed)
    except* (MCPError, OSError, TimeoutError) as group:
        figures.append(Figure(peer.name, "start", world.size, note=repr(group.exceptions[0])[:200]))
    return figures
