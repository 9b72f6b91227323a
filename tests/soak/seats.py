"""Servers that are killed and started again, each with a real client that two tasks share."""

from __future__ import annotations

import os
import random
import signal
from collections import Counter
from pathlib import Path
from typing import Final

import anyio
import psutil
from mcp import Client
from mcp.shared.exceptions import MCPError

from tests.harness import connected

_MARK: Final = "CORTEX_SOAK_SEAT"


class Seat:
    """A place where a server runs; when it dies, another takes it."""

    def __init__(self, home: Path, number: int) -> None:
        self._home = home
        self._name = f"{os.getpid()}-{number}"
        self._turn = 0
        self._up = anyio.Event()
        self._down = anyio.Event()
        self._client: Client | None = None
        self.process: psutil.Process | None = None
        self.killed: set[int] = set()
        """Turns that ended by a kill; a connection lost in another one is a fault."""

    async def serve(self, stop: anyio.Event) -> None:
        """Run servers one after the other until `stop`."""
        while not stop.is_set():
            self._turn += 1
            self._down = anyio.Event()
            try:
                async with connected(self._home, **{_MARK: f"{self._name}-{self._turn}"}) as client:
                    self.process = self._find()
                    self._client = client
                    self._up.set()
                    await self._down.wait()
                    self._leave()
            except MCPError:
                if self._turn not in self.killed:
                    raise
            self._leave()

    def _leave(self) -> None:
        if self._up.is_set():
            self._up = anyio.Event()
        self._client = self.process = None

    def _find(self) -> psutil.Process:
        wanted = f"{self._name}-{self._turn}"
        return next(
            child
            for child in psutil.Process().children()
            if child.is_running() and mark_of(child) == wanted
        )

    async def client(self) -> tuple[Client, int]:
        """A connection, waited for, and the turn that it is of."""
        while self._client is None:
            await self._up.wait()
            await anyio.sleep(0)
        return self._client, self._turn

    def lost(self, turn: int) -> bool:
        """The connection of a turn is gone: whether that was to be expected."""
        if turn == self._turn:
            self._down.set()
        return turn in self.killed

    def end(self) -> None:
        """Let the server go as a host does."""
        self._down.set()


class Killer:
    """Kills a random server, or its worker, at random moments."""

    def __init__(self, seats: list[Seat], dice: random.Random) -> None:
        self._seats = seats
        self._dice = dice
        self.kills: Counter[str] = Counter()
        self.orphans: list[psutil.Process] = []
        """Children of killed servers: they are to end by themselves."""

    async def run(self, kills: int, seconds: float) -> None:
        """That many kills, spread over the time."""
        mean = seconds / kills
        while self.kills.total() < kills:
            await anyio.sleep(self._dice.uniform(0.3, 1.7) * mean)
            while not any(seat.process for seat in self._seats):
                await anyio.sleep(0.05)
            self._kill_one()

    def _kill_one(self) -> None:
        seat = self._dice.choice([seat for seat in self._seats if seat.process])
        process = seat.process
        assert process is not None
        workers = process.children(recursive=True)
        if workers and self._dice.random() < 0.5:
            self._dice.choice(workers).kill()
            self.kills["worker"] += 1
            return
        seat.killed.add(seat._turn)
        self.orphans += workers
        process.send_signal(signal.SIGKILL)
        self.kills["server"] += 1
        seat.lost(seat._turn)


def mark_of(process: psutil.Process) -> str:
    """Which seat a process was started for; "" for none, and where it is gone."""
    try:
        return str(process.environ().get(_MARK, ""))
    except (psutil.NoSuchProcess, psutil.AccessDenied):
        return ""


def left_behind() -> list[int]:
    """Processes of any seat of this run that are still there."""
    mine = f"{os.getpid()}-"
    return [each.pid for each in psutil.process_iter() if mark_of(each).startswith(mine)]
