"""The mirror: native tables that follow the file's log, brought up to date before each answer.

Idea: compare generations, read what the log names since, answer, all in one transaction and
so of one snapshot of the file. Cost: two milliseconds where nothing changed, ten more for a
few changes; a build 2 µs of CPU a row. Corners: another epoch, a log that was folded away
past our place or that is shorter than ours builds anew; so does a backlog of half the log.
Replaced rows keep their memory in DuckDB until the tables are packed again.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from analytics.queries import Mirrored
from analytics.worker import sources, tables
from analytics.worker.attached import Attached
from cortex.domain.errors import BusyError, UnavailableError

_LEAST_MEMORY: Final = 192  # MB
_ROW: Final = 128  # bytes of memory allowed for each row of the file
_BASE: Final = 48  # MB
_SLACK: Final = 50_000  # changes that are worth neither packing nor a rebuild
_ATTEMPTS: Final = 3


class View:
    """The mirror at one moment, within its transaction."""

    def __init__(self, attached: Attached, generation: Mirrored, *, sound: bool) -> None:
        self.generation = generation
        self._attached = attached
        self._sound = sound

    def rows(self, statement: str, **bound: Any) -> list[tuple[Any, ...]]:
        """Rows of a statement over the mirror."""
        return self._attached.rows(statement, **bound)

    def iter_rows(self, statement: str, **bound: Any) -> Iterator[tuple[Any, ...]]:
        """The same, read bit by bit, before the next statement."""
        return self._attached.iter_rows(statement, **bound)

    def source(self, statement: str, bound: str | None = None) -> list[tuple[Any, ...]]:
        """Rows of a statement over the file, as it was at the same moment; `bound` is ?1."""
        return self._attached.source(statement, bound)

    def unread(self) -> tuple[str, ...]:
        """The cells that could not be read, the first 20, as table, key and column."""
        if self._sound:
            return ()
        return tuple(
            f"{origin} {key}: {cell} cannot be read"
            for origin, key, cell in self.rows(tables.UNREAD)
        )


class Mirror:
    """Follows one file; for one thread."""

    def __init__(self, attached: Attached) -> None:
        self._attached = attached
        self._at: Mirrored | None = None
        self._replaced = 0
        self._memory = 0
        self._sound = True  # no cell was bad since the build
        for statement in tables.KINDS:
            attached.execute(statement)

    @contextmanager
    def snapshot(self) -> Iterator[View]:
        """The mirror as the file is now."""
        for _ in range(_ATTEMPTS):
            with self._attached.transaction():
                now = self._generation()
                near = self._near(now)
                if near is not None:
                    self._catch_up(near, now)
                    yield View(self._attached, now, sound=self._sound)
                    break  # which commits
            self._build()
        else:
            raise BusyError("the memory is replaced again and again", "", "Call again later")
        self._replaced += now.seq - near.seq
        self._at = now
        if self._replaced > _SLACK:
            self._attached.pack()
            self._replaced = 0

    def _generation(self) -> Mirrored:
        ((epoch, floor, seq, navigation),) = self._attached.source(sources.GENERATION)
        if epoch is None:
            raise UnavailableError(
                f"{self._attached.file} has no epoch", "", "Open it once with cortex"
            )
        return Mirrored(epoch, int(floor or 0), int(seq or 0), int(navigation or 0))

    def _near(self, now: Mirrored) -> Mirrored | None:
        """Where the mirror stands, if the log leads on from there in a few steps."""
        at = self._at
        if at is None or at.epoch != now.epoch or at.navigation > now.navigation:
            return None
        place = max(at.seq, at.floor)  # a log that a shell emptied ends where it was folded to
        if not now.floor <= place <= max(now.seq, now.floor):
            return None
        return at if now.seq - at.seq <= max(at.seq // 2, _SLACK) else None

    def _build(self) -> None:
        """Fill empty tables, each in a transaction of its own and packed before the next: all at
        once they take five times as much.

        They are then of different moments, the log's the first, from which catching up leads to
        the one that is answered.
        """
        self._at = None
        self._sound = True
        for statement in tables.TABLES:
            self._attached.execute(statement)
        everything = sources.LEAST
        with self._attached.transaction():
            log = self._generation()
            self._allow_memory(log)
            self._fill(tables.FILL_CHANGES, sources.CHANGES, everything)
        self._attached.pack()
        with self._attached.transaction():
            visits = self._generation()
            self._visit(everything)
        self._attached.pack()
        for statement, source in (
            (tables.FILL_NODES, sources.NODES_ALL),
            (tables.FILL_RELATIONS, sources.RELATIONS_ALL),
        ):
            with self._attached.transaction():
                self._fill(statement, source, everything)
            self._attached.pack()
        with self._attached.transaction():
            self._name_bad()
        self._at = log._replace(navigation=visits.navigation)
        self._replaced = 0

    def _catch_up(self, at: Mirrored, now: Mirrored) -> None:
        """Bring the tables from one generation to the next."""
        if now.floor > at.floor:
            self._attached.execute(tables.FOLD_CHANGES, floor=now.floor)
        if (now.seq, now.navigation) == (at.seq, at.navigation):
            return
        self._allow_memory(now)
        self._fill(tables.FILL_CHANGES, sources.CHANGES, at.seq)
        self._visit(at.navigation)
        if now.seq > at.seq:
            if not self._sound:
                self._attached.execute(tables.FORGET_UNREAD, since=at.seq)
            self._attached.execute(tables.FORGET_NODES, since=at.seq)
            self._attached.execute(tables.FORGET_RELATIONS, since=at.seq)
            self._fill(tables.FILL_NODES, sources.NODES_SINCE, at.seq)
            self._fill(tables.FILL_RELATIONS, sources.RELATIONS_SINCE, at.seq)
        self._name_bad()

    def _visit(self, navigation: int) -> None:
        self._fill(tables.FILL_NAVIGATION, sources.NAVIGATION, navigation)
        self._attached.execute(tables.FILL_FOCUSES, since=navigation)

    def _fill(self, statement: str, source: str, since: int) -> None:
        self._attached.execute(statement, source=source, since=since)

    def _name_bad(self) -> None:
        ((bad,),) = self._attached.rows(tables.BAD)
        if not bad:
            return
        self._sound = False
        for statement in tables.NAME_BAD:
            self._attached.execute(statement)

    def _allow_memory(self, now: Mirrored) -> None:
        ((held,),) = self._attached.source(sources.HELD)
        rows = now.seq - now.floor + now.navigation + int(held or 0)
        wanted = max(_LEAST_MEMORY, _BASE + rows * _ROW // 1_000_000)
        if wanted > self._memory * 1.05:
            self._attached.limit_memory(wanted)
            self._memory = wanted
