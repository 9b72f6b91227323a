"""Pushing: a vector index outside of the file is brought up to date in the background.

One thread a process follows the log; among processes on one file, whoever holds a short
lease pushes. The index itself says up to where it is (its watermarks), so that a process
that died, or an index that was lost, costs nothing but the pushing again. Upserts and
deletes may be repeated, and a late one of an older state changes nothing.

An outage is told by the index's circuit: it opens, searches are refused at once, and this
thread's next attempt is the probe that closes it.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from cortex.domain.errors import BusyError, CortexError, UnavailableError
from cortex.domain.values import Generation, NodeId, WorkspaceId
from cortex.services.engine import Engine
from cortex.services.meaning.lease import Lease
from cortex.services.meaning.owed_points import Owing
from cortex.services.meaning.points import outdated
from cortex.store.meta import MEMORY_ID
from cortex.vectors.qdrant.index import QdrantIndex

_POLL: Final = 30.0
_OTHERS: Final = 1.0  # until it is looked again whether who holds the lease has finished
_LONGEST: Final = 60.0
_FRESH: Final = 0.02  # for so long, what the index said need not be asked again
_SOON: Final = 512  # more than that is not waited for

Progress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class Target:
    """What is pushed where."""

    owing: Owing
    index: QdrantIndex


@dataclass(frozen=True, slots=True)
class Parity:
    """Nodes with vectors that the index lacks, and points that no such node stands for."""

    missing: frozenset[NodeId]
    extra: frozenset[NodeId]


class _Interrupted(Exception):
    """The process ends, or another one took the lease over."""


class Pushing:
    """`target` gives model and index; it may raise CortexError while there is none."""

    def __init__(self, engine: Engine, target: Callable[[], Target]) -> None:
        self._engine = engine
        self.target = target
        self._lease = Lease(engine)
        self._one = threading.Lock()
        self._starting = threading.Lock()
        self._wake = threading.Event()
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self._known: dict[WorkspaceId, Generation] = {}
        self._asked = -_FRESH
        self._behind = False
        self.problem: str | None = None
        """Why the last attempt failed; None after one that did not."""

    def notify(self) -> None:
        """There may be something to push; starts the thread on first need."""
        if self._stop.is_set():
            return
        with self._starting:
            if self._thread is None or not self._thread.is_alive():
                self._thread = threading.Thread(target=self._run, name="pushing", daemon=True)
                self._thread.start()
        self._wake.set()

    def lag(self, workspace: WorkspaceId | None) -> int:
        """How many nodes with vectors are not in the index as they are now.

        Raises UnavailableError when the index cannot be asked.
        """
        return sum(self.lags([workspace] if workspace else self._places()).values())

    def lags(self, places: Sequence[WorkspaceId]) -> dict[WorkspaceId, int]:
        """The same by workspace."""
        with self._engine.database.read() as snapshot:
            present = snapshot.generation()
        behind = [place for place in places if self._known.get(place) != present]
        self._behind = bool(behind)
        if not behind:
            return dict.fromkeys(places, 0)
        target = self.target()
        if time.monotonic() >= self._asked + _FRESH:
            asked = sorted({*behind, *self._places()})
            self._known = target.index.watermarks(asked) if target.index.exists() else {}
            self._asked = time.monotonic()
        return dict.fromkeys(places, 0) | target.owing.lag(behind, self._known)

    def wait(self, workspace: WorkspaceId | None, seconds: float) -> int:
        """Wait until the index is in step, at most so long; how many nodes it lacks.

        What is too much to come soon is not waited for, nor an index that is out.
        """
        deadline = time.monotonic() + seconds
        pause = 0.005
        while (lag := self.lag_if_known(workspace)) and lag <= _SOON:
            if time.monotonic() >= deadline:
                break
            self._stop.wait(pause)
            pause = min(pause * 2, 0.1)
        return lag

    def lag_if_known(self, workspace: WorkspaceId | None) -> int:
        """As `lag`, with 0 while the index cannot be asked: `problem` says so, as does the
        search that comes next. What lags is pushed."""
        try:
            lag = self.lag(workspace)
        except UnavailableError as error:
            self.problem = error.message
            self.notify()
            return 0
        if self._behind:
            self.notify()
        return lag

    def doubt(self) -> None:
        """The index failed a search: what was known of it may be gone with its collection."""
        self._known = {}
        self.notify()

    def parity(self, workspace: WorkspaceId) -> Parity:
        """Store and index compared, id by id; a pending push shows as a difference."""
        target = self.target()
        there = target.index.ids(workspace)
        with self._engine.database.read() as snapshot:
            here = snapshot.vectored.ids(workspace, target.owing.model)
        return Parity(here - there, there - here)

    def _run(self) -> None:
        pause, failures = 0.0, 0
        while not self._stop.is_set():
            self._wake.wait(pause)
            self._wake.clear()
            try:
                pause = _POLL if self.step() else _OTHERS
                failures, self.problem = 0, None
            except (BusyError, _Interrupted):
                pause = _OTHERS
            except CortexError as error:
                # Kept where status and searches show it, and tried again, ever less.
                self.problem = error.message
                failures = min(failures + 1, 10)
                self._stop.wait(self._pause(failures))
                pause = 0.0

    def _pause(self, failures: int) -> float:
        """Until the circuit lets a probe through; for other errors longer each time."""
        left = self._circuit_left()
        if left:
            return left
        return min(0.5 * 2.0**failures, _LONGEST) * (0.75 + 0.5 * random.random())

    def _circuit_left(self) -> float:
        try:
            return self.target().index.circuit.left()
        except CortexError:
            return 0.0  # the model is out: `problem` says so already

    def step(self) -> bool:
        """Push what is owed; False when another process is at it."""
        with self._one:
            target = self.target()
            places = self._places()
            if self._engine.settings.read_only:
                self._known = target.index.watermarks(places)  # others push; this one probes
                return True
            if not self._due(target, places):
                return True
            if not self._lease.take():
                return False
            try:
                self._push(target, places)
            finally:
                self._lease.release()
            return True

    def _due(self, target: Target, places: Sequence[WorkspaceId]) -> bool:
        """Whether anything is to be pushed, asked without taking the lease."""
        with self._engine.database.read() as snapshot:
            present = snapshot.generation()
            named = snapshot.meta.find(MEMORY_ID) is not None
        if not named or not target.index.exists():
            return bool(places)
        marks = target.index.watermarks(places)
        self._known = marks
        return any(marks.get(place) != present for place in places)

    def _push(self, target: Target, places: Sequence[WorkspaceId]) -> None:
        index, owing = target.index, target.owing
        index.prepare()
        with self._engine.database.read() as snapshot:
            present = snapshot.generation()
        marks = index.watermarks(places)
        rest: list[WorkspaceId] = []
        for place in places:
            if place not in marks or outdated(marks[place], present):
                index.rebuild(place, owing.iter_all(place, self._beat), present)
            elif marks[place] != present:
                rest.append(place)
        if rest:
            behind = [marks[place] for place in rest]
            since = present._replace(
                seq=min(mark.seq for mark in behind),
                embeddings=min(mark.embeddings for mark in behind),
            )
            for page in owing.iter_delta(since, present):
                self._beat()
                index.put(page.points, present)
                index.remove(page.gone)
            index.raise_watermarks(rest, present)
        self._known = dict.fromkeys(places, present)

    def rebuild(self, progress: Progress) -> int:
        """Push everything anew, into a collection beside another's where there is one.

        Returns how many points the index holds. Raises BusyError while another process pushes.
        """
        with self._one:
            target = self.target()
            if not self._lease.take():
                raise BusyError("another process pushes to Qdrant", "", "Call again in a moment")
            try:
                target.index.prepare(beside=True)
                places = self._places()
                with self._engine.database.read() as snapshot:
                    present = snapshot.generation()
                    total = sum(snapshot.vectored.counts(target.owing.model).values())
                done = 0
                for place in places:
                    points = target.owing.iter_all(place, self._beat)
                    target.index.rebuild(place, points, present)
                    done += target.index.count(place)
                    progress(done, max(done, total))
                self._known = dict.fromkeys(places, present)
                return done
            except _Interrupted:
                raise BusyError(
                    "another process took over pushing to Qdrant", "", "Call again in a moment"
                ) from None
            finally:
                self._lease.release()

    def _places(self) -> list[WorkspaceId]:
        with self._engine.database.read() as snapshot:
            return snapshot.nodes.workspaces()

    def _beat(self) -> None:
        """Between two requests: stop where another one pushes by now, or the process ends."""
        if self._stop.is_set() or not self._lease.held():
            raise _Interrupted

    def close(self) -> None:
        """Stop after the request in hand; what is left is pushed by the next process."""
        self._stop.set()
        self._wake.set()
        if self._thread is not None:
            self._thread.join(2.0)
