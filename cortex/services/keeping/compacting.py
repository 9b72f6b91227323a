"""Compaction: what the log holds from before a time is folded away, its space given back.

The nodes and relations stay as they are; what goes is the way back to how they were. It
runs beside readers and writers: the log goes in pieces, each a transaction that raises the
floor with it, so that dying on the way leaves a shorter log and nothing else. A follower
that lags behind the floor rebuilds at its next look (invariant 3).
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Final

from cortex.domain.errors import BusyError, InvalidError, UnavailableError
from cortex.domain.instants import Instant, before, parse_instant
from cortex.services.engine import Engine
from cortex.services.keeping.undoing import said
from cortex.store.database import Snapshot, Transaction
from cortex.store.shrinking import bytes_on_disk, cut_wal, vacuum

KEEP: Final = "90d"
_PIECE: Final = 20_000  # rows a transaction: about a tenth of a second for others to wait
_PAUSE: Final = 0.02
_PAGES: Final = 500  # pages of the keyword index written anew a transaction
_FREE: Final = 0.25  # share of free pages from which the file is written anew
_AGE: Final = re.compile(r"(\d{1,6})\s*([hdw])")
_HOURS: Final = {"h": 1, "d": 24, "w": 168}

Progress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class Compacted:
    """What went, or with `dry_run` would go.

    `folded` and `left` are rows of the log, `floor` the last change that is folded away,
    `reach` what as-of, diff and undo can still go back to. Bytes are those of the file and
    its write-ahead log; equal before and after in a dry run.
    """

    folded: int
    left: int
    floor: int
    reach: str
    bytes_before: int
    bytes_after: int
    vacuumed: bool
    notes: list[str]
    dry_run: bool


class Compacting:
    """Shortens the log and the file."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def compact(
        self,
        keep: str = KEEP,
        *,
        dry_run: bool = False,
        shrink: bool = True,
        progress: Progress = lambda done, total: None,
    ) -> Compacted:
        """Fold the log of the whole file, every workspace, up to `keep` before now.

        `keep` is an age (12h, 90d, 8w), 0 for everything, or an ISO 8601 time; the newest row
        of the log stays always. With `shrink`, the file is written anew where a quarter of it
        is free. Raises InvalidError for another form or a time to come, BusyError where a
        writer holds the file for 10 s, UnavailableError for a full disk: the file is whole
        then, with what was folded so far.
        """
        database = self._engine.database
        size = bytes_on_disk(database.path)
        cutoff = _cutoff(keep, self._engine.now())
        with database.read() as snapshot:
            upto = _last_before(snapshot, cutoff)
            doomed = snapshot.folding.rows(upto)
            reach = snapshot.past.reach()
            if dry_run:
                left = snapshot.folding.rows(reach.seq) - doomed
                floor = max(upto, reach.floor)
                first = snapshot.past.reach_from(floor)
                return Compacted(doomed, left, floor, said(first), size, size, False, [], True)
        folded = self._fold(upto, doomed, progress)
        self._tidy()
        notes: list[str] = []
        vacuumed = shrink and self._shrink(notes)
        if not cut_wal(database.path):
            notes.append("a reader holds the write-ahead log; it shrinks at a later compaction")
        with database.read() as snapshot:
            reach = snapshot.past.reach()
            left = snapshot.folding.rows(reach.seq)
        return Compacted(
            folded,
            left,
            reach.floor,
            said(reach),
            size,
            bytes_on_disk(database.path),
            vacuumed,
            notes,
            False,
        )

    def _fold(self, upto: int, doomed: int, progress: Progress) -> int:
        with self._write():
            pass  # whose end brings the keyword index and the outbox up to the log's end
        folded = 0
        while folded < doomed:
            with self._write() as transaction:
                gone = transaction.folding.fold(upto, _PIECE)
            if not gone:
                break  # another compaction has been here
            folded += gone
            progress(folded, doomed)
            time.sleep(_PAUSE)  # SQLite's waiters poll: without it they would never get in
        return folded

    def _tidy(self) -> None:
        """Keys of requests older than a week, and what the keyword index has deleted."""
        with self._write() as transaction:
            transaction.idempotency.expire(transaction.at)
            more = transaction.folding.merge_keywords(-_PAGES)
        while more:
            with self._write() as transaction:
                more = transaction.folding.merge_keywords(_PAGES)
            time.sleep(_PAUSE)

    def _write(self) -> AbstractContextManager[Transaction]:
        """A transaction that wakes nobody: no memory changes in it."""
        return self._engine.database.write(self._engine.actor)

    def _shrink(self, notes: list[str]) -> bool:
        database = self._engine.database
        with database.read() as snapshot:
            pages = snapshot.folding.pages()
        if pages.free < pages.total * _FREE:
            return False
        try:
            vacuum(database.path)
        except BusyError:
            notes.append(
                f"the file still has {pages.free * pages.size} free bytes, which new memories "
                "use: another writer held it; call again to give them back"
            )
            return False
        except UnavailableError as error:
            need = 2 * (pages.total - pages.free) * pages.size
            raise UnavailableError(
                f"the log is folded, but its space was not given back ({error.message})",
                f"The file is whole; writing it anew takes about {need} bytes for a while",
                "Make room and call again, or pass --no-vacuum",
            ) from error
        return True


def _cutoff(keep: str, now: Instant) -> Instant | None:
    """The time from which on the log stays; None where nothing has to."""
    text = keep.strip().lower()
    valid = "Valid: an age (12h, 90d, 8w), 0 for all of it, or a time as 2026-05-14"
    if text == "0":
        return None
    age = _AGE.fullmatch(text)
    if age is not None:
        hours = int(age[1]) * _HOURS[age[2]]
        try:
            return before(now, hours=hours) if hours else None
        except OverflowError:
            raise InvalidError(f"keep {keep!r} is before all time", valid, "Lower it") from None
    try:
        moment = parse_instant(keep, "keep")
    except InvalidError:
        raise InvalidError(
            f"keep {keep!r} is neither an age nor a time", valid, "Send one of these forms"
        ) from None
    if moment > now:
        raise InvalidError(f"keep {keep!r} is yet to come", valid, "Name a time that has been")
    return moment


def _last_before(snapshot: Snapshot, cutoff: Instant | None) -> int:
    """The last change before the cutoff; never the newest of all."""
    newest = snapshot.past.reach().seq
    if cutoff is None:
        return newest - 1
    return min(snapshot.past.seq_at(before(cutoff, microseconds=1)), newest - 1)
