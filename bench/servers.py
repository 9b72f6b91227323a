"""Real servers over stdio, driven by the real client from synchronous code.

The clients live in one event loop of a thread; calls are timed inside that loop, so that the
step between the threads is in no figure. 32 clients are 8 in each of 4 servers.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, Final, NamedTuple

import anyio
import psutil
from anyio.from_thread import BlockingPortal, start_blocking_portal
from mcp import Client, StdioServerParameters
from mcp.shared.exceptions import MCPError

from bench.prepared import PLACE

ROOT: Final = Path(__file__).parent.parent
EACH: Final = 8  # clients of one server
WARMING: Final = 3  # calls that are not counted

Arguments = Callable[[int], dict[str, Any]]


class Beside(NamedTuple):
    """Wall ms of a tool and of the empty one, and CPU ms of one call of the tool."""

    times: list[float]
    empty: list[float]
    cpu: float = 0.0


class CallFailedError(Exception):
    """A tool that is timed must not fail: its error is what would be timed."""


class Servers:
    """One or several servers on one home, each with a client."""

    def __init__(
        self, portal: BlockingPortal, clients: Sequence[Client], processes: Sequence[psutil.Process]
    ) -> None:
        self._portal = portal
        self._clients = clients
        self.processes = processes
        self._empty_cpu: float | None = None

    def call(self, name: str, **arguments: Any) -> dict[str, Any]:
        """The structured answer of the first server."""
        return self._portal.call(_call, self._clients[0], name, arguments)

    def beside_empty(self, name: str, arguments: Arguments, runs: int) -> Beside:
        """A tool, and the empty one called in turn with it; one call at a time."""
        if self._empty_cpu is None:
            self._empty_cpu = self._cpu_of(lambda: self._beside("empty", lambda _: {}, 100)) / 200
        self._beside(name, arguments, WARMING)  # what is loaded first is nobody's cost
        both: list[Beside] = []
        used = self._cpu_of(lambda: both.append(self._beside(name, arguments, runs)))
        return both[0]._replace(cpu=max(used / runs - self._empty_cpu, 0.0))

    def _beside(self, name: str, arguments: Arguments, runs: int) -> Beside:
        return self._portal.call(_beside_empty, self._clients[0], name, arguments, runs)

    def _cpu_of(self, work: Callable[[], object]) -> float:
        """CPU ms of the first server and its children while the work is done."""
        before = cpu_of(self.processes[0])
        work()
        return (cpu_of(self.processes[0]) - before) * 1000

    def together(self, name: str, arguments: Arguments, runs: int, clients: int) -> list[float]:
        """Wall ms of `runs` calls with `clients` under way all the time, over all the servers.

        Each client calls again as soon as it is answered. Needs as many servers as `clients`
        are eights.
        """
        servers = max(1, clients // EACH)
        return self._portal.call(
            _together, self._clients[:servers], name, arguments, runs, clients // servers
        )

    def until_killed(self, name: str, arguments: Arguments, seconds: float) -> list[str]:
        """Ids that the first server acknowledged to EACH clients before it was killed."""
        return self._portal.call(
            _until_killed, self._clients[0], self.processes[0], name, arguments, seconds
        )

    def pss(self) -> float:
        """Proportional set size of all the servers and their children, in MB."""
        return sum(pss_of(each) for each in self.processes)


@contextmanager
def serving(home: Path, count: int = 1, *, empty: bool = True) -> Iterator[Servers]:
    """Start `count` servers on the home; they are ended with their clients."""
    module = "bench.empty_server" if empty else "cortex"
    target = StdioServerParameters(
        command=sys.executable,
        args=["-m", module, "serve", "--home", str(home), "--workspace", PLACE],
        env={**os.environ, "PYTHONPATH": str(ROOT), "CORTEX_RATE": "0"},
        cwd=home,
    )
    with ExitStack() as stack:
        portal = stack.enter_context(start_blocking_portal())
        clients, processes = [], []
        for _ in range(count):
            before = set(psutil.Process().children())
            client = Client(target, mode="legacy")  # what hosts speak today
            clients.append(stack.enter_context(portal.wrap_async_context_manager(client)))
            processes += [each for each in psutil.Process().children() if each not in before]
            portal.call(client.list_tools)
        yield Servers(portal, clients, processes)


def pss_of(process: psutil.Process) -> float:
    """Proportional set size of a process and all below it, in MB.

    What several processes share is divided among them. Where the system does not know it
    (it does on Linux), the resident set.
    """
    family = [process, *process.children(recursive=True)]
    whole = (each.memory_full_info() for each in family)
    return float(sum(getattr(each, "pss", each.rss) for each in whole)) / 1e6


def cpu_of(process: psutil.Process) -> float:
    """CPU seconds that a process and all below it have used, those that have ended included."""
    times = [each.cpu_times() for each in (process, *process.children(recursive=True))]
    ended = sum(getattr(each, "children_user", 0) + getattr(each, "children_system", 0)
                for each in times)  # fmt: skip
    return float(sum(each.user + each.system for each in times) + ended)


async def _call(client: Client, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    done = await client.call_tool(name, arguments)
    if done.is_error:
        said = " ".join(block.text for block in done.content if block.type == "text")
        raise CallFailedError(f"{name} {arguments}: {said}")
    return dict(done.structured_content or {})


async def _one(client: Client, name: str, arguments: dict[str, Any]) -> float:
    began = time.perf_counter()
    done = await client.call_tool(name, arguments)
    took = (time.perf_counter() - began) * 1000
    if done.is_error:
        await _call(client, name, arguments)
        raise CallFailedError(f"{name} {arguments} failed once")
    return took


async def _beside_empty(client: Client, name: str, arguments: Arguments, runs: int) -> Beside:
    both = Beside([], [])
    for turn in range(runs):
        both.empty.append(await _one(client, "empty", {}))
        both.times.append(await _one(client, name, arguments(turn)))
    return both


async def _together(
    clients: Sequence[Client], name: str, arguments: Arguments, runs: int, each: int
) -> list[float]:
    for client in clients:
        await _one(client, name, arguments(0))
    left = iter(range(1, runs + 1))
    times: list[float] = []

    async def ask(client: Client) -> None:
        for turn in left:
            times.append(await _one(client, name, arguments(turn)))

    async with anyio.create_task_group() as group:
        for client in clients:
            for _ in range(each):
                group.start_soon(ask, client)
    return times


async def _until_killed(
    client: Client, process: psutil.Process, name: str, arguments: Arguments, seconds: float
) -> list[str]:
    turns = iter(range(1 << 30))
    acknowledged: list[str] = [(await _call(client, name, arguments(next(turns))))["id"]]

    async def ask() -> None:
        with suppress(MCPError):  # the connection ends with the server
            for turn in turns:
                acknowledged.append((await _call(client, name, arguments(turn)))["id"])

    async with anyio.create_task_group() as group:
        for _ in range(EACH):
            group.start_soon(ask)
        await anyio.sleep(seconds)
        process.kill()
    return acknowledged
