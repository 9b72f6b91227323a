"""What a subject measures on: one size of memory, open in this process and behind servers."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any, Final

from bench.prepared import PLACE, Prepared, Starts, starts_of
from bench.sentences import note
from bench.servers import Arguments, Servers, serving
from cortex.cli.serving import calm_collector
from cortex.cli.timing import Figure, Target, figure_of, timed
from cortex.config import load_settings
from cortex.memory import Memory, open_memory
from cortex.store.meta import LAST_GC

RATIO: Final = 1.5  # of a local graph tool to the empty one, both at their p50
AGAIN: Final = 20  # places that an agent comes back to
LOCAL: Final = (Target(10),)
ENGINE: Final = (Target(2),)


class Context:
    """A copy of the memory of its own; what is open on it is opened when first asked for.

    `runs` is how often a quick call is repeated; slow ones take a share of it.
    """

    def __init__(self, prepared: Prepared, folder: Path, runs: int) -> None:
        self.prepared = prepared
        self.nodes = prepared.nodes
        self.seed = prepared.seed
        self.runs = runs
        self.home = prepared.copy_to(folder / str(prepared.nodes))
        # What is idle was archived today: an opening that did it would weigh on what follows.
        memory = self.memory_at(self.home)
        with memory.engine.database.write("bench") as transaction:
            transaction.meta.set(LAST_GC + PLACE, memory.engine.now()[:10])
        memory.close()
        self.starts: Starts = starts_of(self.home, prepared.seed)
        self._random = random.Random(prepared.seed)
        self._asked: list[str] = []
        self._servers: Servers | None = None
        self._leave: Callable[..., object] | None = None

    @cached_property
    def memory(self) -> Memory:
        """The engine in this process, as the server holds it; it embeds nothing by itself."""
        memory = self.memory_at(self.home)
        calm_collector()
        return memory

    @contextmanager
    def apart(self) -> Iterator[Memory]:
        """Another copy, open as on any morning; it is removed at the end."""
        home = self.prepared.copy_to(self.home.with_name("apart"))
        memory = self.memory_at(home)
        try:
            yield memory
        finally:
            memory.close()
            shutil.rmtree(home)

    @staticmethod
    def memory_at(home: Path) -> Memory:
        """The memory of a home; it embeds nothing by itself."""
        memory = open_memory(load_settings(home=home, workspace=PLACE, env={}))
        memory.indexing.close()
        return memory

    def servers(self, count: int = 1) -> Servers:
        """`count` servers or more, which stay until `stop`."""
        if self._servers is None or len(self._servers.processes) < count:
            self.stop()
            entered = serving(self.home, count)
            self._servers = entered.__enter__()
            self._leave = entered.__exit__
        return self._servers

    def stop(self) -> None:
        """End the servers."""
        leave, self._leave, self._servers = self._leave, None, None
        if leave is not None:
            leave(None, None, None)

    def close(self) -> None:
        """End what was opened and remove the copy."""
        self.stop()
        self.close_memory()
        shutil.rmtree(self.home)

    def close_memory(self) -> None:
        """Close the engine of this process; asked for again, it opens anew."""
        if "memory" in vars(self):
            self.memory.close()
            del self.memory

    def questions(self, count: int) -> list[str]:
        """Sentences that were not asked before: none is answered from a cache."""
        return [f"{note(self._random)[:-1]}?" for _ in range(count)]

    def texts(self, count: int) -> list[str]:
        """Texts that no memory has yet."""
        return [f"{self._random.getrandbits(32):08x} {note(self._random)}" for _ in range(count)]

    def engine(
        self,
        subject: str,
        call: Callable[[int], object],
        *,
        runs: int | None = None,
        note: str = "",
        targets: Sequence[Target] = ENGINE,
    ) -> Figure:
        """A call in this process."""
        return timed(subject, call, runs or self.runs, note=note, targets=targets, nodes=self.nodes)

    def stdio(
        self,
        subject: str,
        tool: str,
        arguments: Arguments,
        *,
        runs: int | None = None,
        note: str = "",
        targets: Sequence[Target] = LOCAL,
        ratio: float | None = None,
    ) -> Figure:
        """A tool through the server, one call at a time, in turn with the empty tool."""
        taken = self.servers().beside_empty(tool, arguments, runs or self.runs)
        return figure_of(
            subject, taken.times, note=note, targets=targets, where="stdio", nodes=self.nodes,
            cpu=taken.cpu, empty=taken.empty, ratio_limit=ratio,
        )  # fmt: skip

    def together(
        self,
        subject: str,
        tool: str,
        arguments: Arguments,
        clients: int,
        *,
        runs: int | None = None,
        note: str = "",
        targets: Sequence[Target] = (),
    ) -> Figure:
        """A tool with that many calls under way all the time, 8 in each server."""
        servers = self.servers(max(1, clients // 8))
        times = servers.together(tool, arguments, runs or 2 * self.runs, clients)
        return figure_of(
            subject, times, note=note, targets=targets, where="stdio", clients=clients,
            nodes=self.nodes,
        )  # fmt: skip


def each(name: str, values: Sequence[str], **others: Any) -> Arguments:
    """Arguments that name one value after another, again and again."""
    return lambda turn: {name: values[turn % len(values)], **others}
