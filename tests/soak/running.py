"""The soak: servers, clients, kills and maintenance for some time, then the reckoning."""

from __future__ import annotations

import random
import sqlite3
import time
from collections import Counter
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import anyio
import psutil

from cortex.config import load_settings
from cortex.services.doctor.examining import Doctor, Examined
from cortex.services.doctor.findings import State
from tests.local import start_cortex
from tests.soak.client import SoakClient, Tally
from tests.soak.ledger import Expected, expected
from tests.soak.seats import Killer, Seat, left_behind
from tests.soak.upkeep import Upkeep

SERVERS: Final = 4
CLIENTS: Final = 8
_GRACE: Final = 15.0  # seconds for the worker of a killed server to end
_NODES: Final = "SELECT id, json_extract(data, '$.text') FROM nodes"
_LINKS: Final = "SELECT from_id, to_id FROM relations WHERE type = 'supports'"


@dataclass
class Outcome:
    """What a soak did, and everything that it holds against the product."""

    seed: int
    seconds: float
    times: dict[str, list[float]]
    kills: Counter[str]
    ended: Counter[str]
    errors: Counter[str]
    lost: int
    acknowledged: int
    faults: list[str] = field(default_factory=list)

    @property
    def operations(self) -> int:
        return sum(map(len, self.times.values()))


async def soak(folder: Path, seconds: float, kills: int, seed: int) -> Outcome:
    """Run it in an empty folder; `kills` are those of servers and workers."""
    home = folder / "home"
    tally, dice = Tally(), random.Random(seed)
    seats = [Seat(home, number) for number in range(SERVERS)]
    clients = [SoakClient(number, seats, folder, seed, tally) for number in range(CLIENTS)]
    killer = Killer(seats, dice)
    upkeep = Upkeep(home, folder, random.Random(seed + 1))
    upkeep.prepare()
    begun = time.monotonic()
    await _drive(seats, clients, killer, upkeep, seconds, kills)
    took = time.monotonic() - begun
    upkeep.finish()
    owed = [expected(client.path) for client in clients]
    outcome = Outcome(
        seed,
        took,
        dict(tally.times),
        killer.kills + upkeep.kills,
        upkeep.ended,
        tally.errors,
        tally.lost,
        sum(each.acknowledged for each in owed),
        [*upkeep.faults],
    )
    outcome.faults += _against(tally)
    outcome.faults += _lost(home, owed)
    outcome.faults += _left(killer)
    outcome.faults += _ill(home)
    return outcome


async def _drive(
    seats: list[Seat],
    clients: list[SoakClient],
    killer: Killer,
    upkeep: Upkeep,
    seconds: float,
    kills: int,
) -> None:
    stop = anyio.Event()
    ended = anyio.Event()
    async with anyio.create_task_group() as servers:
        for seat in seats:
            servers.start_soon(seat.serve, ended)
        async with anyio.create_task_group() as work:
            for client in clients:
                work.start_soon(client.run, stop)
            work.start_soon(upkeep.run, stop)
            await killer.run(kills, seconds)
            stop.set()
        ended.set()
        for seat in seats:
            seat.end()


def _against(tally: Tally) -> list[str]:
    """What clients may not have seen."""
    faults = [f"{count} errors at clients: {kind}" for kind, count in tally.errors.items() if count]
    if faults:
        faults += sorted(set(tally.said))[:10]
    if tally.unexpected:
        faults.append(f"{tally.unexpected} connections lost of servers that nobody killed")
    if tally.stale:
        faults.append(f"acknowledged, and not shown by another server: {tally.stale[:5]}")
    return faults


def _lost(home: Path, owed: list[Expected]) -> list[str]:
    """Acknowledged writes that are not there, and requests that were done twice."""
    with closing(sqlite3.connect(home / "cortex.db")) as shell:
        there: dict[str, str] = dict(shell.execute(_NODES))
        links: set[tuple[str, str]] = set(shell.execute(_LINKS))
    faults = []
    often = Counter(there.values())
    for each in owed:
        for node, texts in each.nodes.items():
            if there.get(node) not in texts:
                faults.append(f"lost: {node} is {there.get(node)!r}, acknowledged {texts}")
        for source, target in each.links:
            if source in there and target in there and (source, target) not in links:
                faults.append(f"lost: {source} supports {target}")
        # An edit gives a node another text, so one that was made may have none of it left.
        faults += [f"twice: {text}" for text, (_, most) in each.made.items() if often[text] > most]
    return faults


def _left(killer: Killer) -> list[str]:
    """Processes that outlived their server."""
    _, alive = psutil.wait_procs(killer.orphans, timeout=_GRACE)
    faults = [f"the worker {each.pid} outlived its killed server" for each in alive]
    deadline = time.monotonic() + _GRACE
    while (left := left_behind()) and time.monotonic() < deadline:
        time.sleep(0.1)
    return faults + [f"process {pid} is left behind" for pid in left]


def _ill(home: Path) -> list[str]:
    """What the doctor says, by call and by command."""
    examined: Examined = Doctor(load_settings(home=home, env={})).examine()
    faults = [
        f"doctor: {each.check}: {each.said} {each.examples}"
        for each in examined.findings
        if each.state is State.FAULT
    ]
    with start_cortex(home, "doctor", "--json") as process:
        process.communicate(timeout=120)
    if process.returncode:
        faults.append(f"cortex doctor ended with {process.returncode}")
    return faults
