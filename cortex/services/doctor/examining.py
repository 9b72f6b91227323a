"""The examination: every check in order, and with `mend` what can be made right, then all again.

Read only, beside live servers: each check reads in transactions of its own, and none of them
takes the write lock. Cost: the checks are scans; the walk over the texts is most of it.

Corners: a damaged file ends it after the check of its pages, since nothing further could be
told or mended. Where a row holds what cannot be read as a value, the checks that read values
are skipped, and say so.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, replace
from typing import Any, Final

from cortex.config import Settings
from cortex.domain.errors import NotFoundError, UnavailableError
from cortex.graph.graphs import Graphs
from cortex.services.doctor import caches, derived, place, truth
from cortex.services.doctor.findings import (
    BY_FIX,
    RESTORE,
    Case,
    Finding,
    State,
    found,
    skipped,
)
from cortex.services.doctor.mending import MENDERS
from cortex.services.doctor.saved_graphs import check_saved_graphs
from cortex.services.engine import Engine
from cortex.services.meaning.semantic import Semantic
from cortex.store.database import Database

WAL_BOUND: Final = 64 << 20
"""Bytes of the write-ahead log above which a reader must be holding it; 4 MB are usual."""

Progress = Callable[[str, int, int], None]
Check = Callable[[Case], Finding]

_TRUTH: Final[tuple[tuple[str, Check], ...]] = (
    ("schema", place.check_schema),
    ("values", truth.check_values),
    ("foreign keys", truth.check_foreign_keys),
    ("workspaces", truth.check_workspaces),
    ("forest", truth.check_forest),
    ("parents", truth.check_parents),
    ("supersedes", truth.check_supersedes),
    ("superseded", truth.check_superseded),
    ("roots", truth.check_roots),
    ("tallies", truth.check_tallies),
    ("writer", truth.check_writer),
    ("log", truth.check_log),
)
_OF_VALUES: Final = ("keywords", "outbox", "vectors", "graph", "saved graphs", "vector index")


@dataclass(frozen=True, slots=True)
class Examined:
    """The findings in the order of the checks; `mended` names what --fix worked on."""

    file: str
    findings: tuple[Finding, ...]
    mended: tuple[str, ...] = ()

    @property
    def faults(self) -> int:
        """How many checks found a fault."""
        return sum(finding.state is State.FAULT for finding in self.findings)

    @property
    def warnings(self) -> int:
        """How many checks found something to look at."""
        return sum(finding.state is State.WARNING for finding in self.findings)

    def rendered(self) -> dict[str, Any]:
        """As JSON shows it."""
        return {
            "file": self.file,
            "faults": self.faults,
            "warnings": self.warnings,
            "mended": list(self.mended),
            "checks": [finding.rendered() for finding in self.findings],
        }


class Doctor:
    """Examines the memory of one home, and mends it."""

    def __init__(
        self,
        settings: Settings,
        *,
        progress: Progress = lambda check, done, total: None,
        wal_bound: int = WAL_BOUND,
    ) -> None:
        self._settings = settings
        self._progress = progress
        self._wal_bound = wal_bound

    def examine(self) -> Examined:
        """Every check; writes nothing.

        Raises NotFoundError where there is no memory, UnavailableError where its file may not
        be read or is of a newer cortex.
        """
        return self._run(mend=False)

    def mend(self) -> Examined:
        """Examine, mend what --fix can, and examine again: what is left is left.

        Raises the same, and BusyError where another writer holds the file for 10 s; what was
        mended until then stays so.
        """
        return self._run(mend=True)

    def _run(self, *, mend: bool) -> Examined:
        file = self._settings.database
        if not file.exists():
            raise NotFoundError(f"there is no memory at {file}", "", "Name its home with --home")
        try:
            opened = self._open(mend=mend)
        except UnavailableError as error:
            finding = _unopened(error)
            return Examined(str(file), (place.check_versions(), finding))
        with closing(opened) as database:
            engine = Engine(replace(self._settings, read_only=not mend), database, Graphs(0), _me())
            with closing(Semantic(engine)) as semantic:
                case = Case(engine.settings, engine, semantic, self._wal_bound)
                findings = self._examine(case)
                if not mend or _damaged(findings):
                    return Examined(str(file), tuple(findings))
                mended = self._mend(case, findings)
                return Examined(
                    str(file), tuple(self._examine(case) if mended else findings), mended
                )

    def _open(self, *, mend: bool) -> Database:
        return Database(self._settings.database, read_only=not mend)

    def _examine(self, case: Case) -> list[Finding]:
        findings = [place.check_versions(), place.check_permissions(case), place.check_wal(case)]
        self._progress("pages", 0, 0)
        findings += place.check_pages(case)
        if _damaged(findings):
            return findings
        for name, check in _TRUTH:
            self._progress(name, 0, 0)
            findings.append(check(case))
        findings.append(derived.check_fingerprint(case))
        unreadable = [each for each in findings if each.check == "values" and each.count]
        if unreadable and unreadable[0].state is State.FAULT:
            return [*findings, *(skipped(name, "values cannot be read") for name in _OF_VALUES)]
        findings += derived.Walk(self._told(case, "texts")).run().findings()
        vectors = findings[-1]
        findings.append(caches.check_graph(self._told(case, "graph")))
        findings.append(check_saved_graphs(self._told(case, "saved graphs")))
        if vectors.state is State.FAULT:
            return [*findings, skipped("vector index", "the vectors are at fault")]
        return [*findings, caches.check_index(self._told(case, "vector index"))]

    def _told(self, case: Case, name: str) -> Case:
        def step(done: int, total: int) -> None:
            self._progress(name, done, total)

        return Case(case.settings, case.engine, case.semantic, case.wal_bound, step)

    def _mend(self, case: Case, findings: list[Finding]) -> tuple[str, ...]:
        wrong = {each.check: each for each in findings if each.state in _MENDABLE}
        done: dict[str, None] = {}
        for check, mender in MENDERS:
            if check in wrong and (wrong[check].mend == BY_FIX or check in _IN_PART):
                mender(self._told(case, f"mending {check}"), wrong[check])
                done[check] = None
        return tuple(done)


_MENDABLE: Final = (State.FAULT, State.WARNING)
_IN_PART: Final = ("log", "workspaces")
"""Of which --fix mends what it can, though something is left for a person."""


def _unopened(error: UnavailableError) -> Finding:
    """A file that cannot be opened for what is in it; other reasons are the caller's to see."""
    mends = {"original schema": BY_FIX, "damaged": RESTORE, "not a SQLite database": RESTORE}
    for sign, mend in mends.items():
        if sign in error.message:
            return found("pages", [error.message], "the file cannot be opened", mend)
    raise error


def _me() -> str:
    return f"doctor#{os.getpid()}"


def _damaged(findings: list[Finding]) -> bool:
    return any(each.check == "pages" and each.state is State.FAULT for each in findings)
