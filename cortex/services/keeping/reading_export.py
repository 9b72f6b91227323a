"""Taking an export in: restored as it was where it finds nothing, else merged.

Where its workspaces hold nothing here, every row comes back as it was, ids and times included:
an export of them is the same file again. A workspace that holds memories already is merged as
one of another database is (`merging.py`): what is here stays. The log comes back into a memory
that never held anything alone: its rows name keys and follow each other in time, and a
second history cannot be laid between. One transaction: a broken line leaves nothing.
"""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cortex.domain.errors import ConflictError, InvalidError, NotFoundError
from cortex.domain.values import new_id
from cortex.services.engine import Engine
from cortex.services.keeping.export_file import Advance, ExportFile, dumped
from cortex.services.keeping.merging import merge_file
from cortex.services.keeping.rehearsing import rehearsal
from cortex.store.database import Database, Transaction
from cortex.store.exports import CHANGE, KEY, KINDS, NODE, RELATION, Kind
from cortex.store.meta import DERIVED_SEQ, EPOCH, LOG_FLOOR

Progress = Callable[[int, int], None]


@dataclass(slots=True)
class ReadExport:
    """What came in, or with `dry_run` would: rows by kind.

    Of a merge, `present` counts what was here already and `refused` what would break a rule
    here; then only nodes, relations and visits are counted.
    """

    file: str
    workspaces: list[str]
    dry_run: bool
    merged: bool
    log: bool
    counts: dict[str, int]
    present: int = 0
    refused: int = 0
    notes: list[str] = field(default_factory=list)


def read_export(
    engine: Engine,
    path: Path,
    *,
    workspace: str | None,
    log: bool,
    dry_run: bool,
    progress: Progress,
) -> ReadExport:
    """Take in every workspace of the file, or the one named, in one transaction.

    `log` False leaves the log of a file out that has one. Raises InvalidError naming the
    broken line, and for a log that finds a memory in use; NotFoundError for a workspace that
    the file has not.
    """
    with ExportFile(path) as file:
        places = _places(file, workspace)
        logged = log and file.log is not None
        if logged and workspace is not None:
            raise InvalidError(
                f"{path.name} has a log, which is of the whole memory",
                "Valid: without a workspace, or without the log",
                "Leave the log out: --no-log",
            )
        with engine.database.read() as snapshot:
            if logged and snapshot.exports.ever_written():
                raise InvalidError(
                    f"{path.name} has a log, and the memory at {engine.settings.home} has its own",
                    "Valid: a new --home for memories with their log",
                    "Or leave the log out, and it is merged: --no-log",
                )
            merged = any(snapshot.exports.holds(place) for place in places)
        report = ReadExport(str(path), places, dry_run, merged, logged, {})
        if merged:
            _merge(engine, file, report, workspace, progress)
            return report
        with rehearsal(engine, dry_run) as transaction:
            _refuse_filled(transaction, places, logged)
            loader = _Loader(transaction, file, places, logged)
            loader.load(lambda done: progress(done, file.size))
            report.counts = dict(loader.counts)
    return report


def _places(file: ExportFile, workspace: str | None) -> list[str]:
    if workspace is None:
        return file.workspaces
    if workspace not in file.workspaces:
        raise NotFoundError(
            f"{file.path.name} has no workspace {workspace!r}",
            f"It has: {', '.join(file.workspaces) or 'none'}",
            "Name one of these, or none to take all",
        )
    return [workspace]


def _refuse_filled(transaction: Transaction, places: Sequence[str], logged: bool) -> None:
    rows = transaction.exports
    if any(rows.holds(place) for place in places) or (logged and rows.ever_written()):
        raise ConflictError(
            "another process has begun to write there meanwhile",
            "",
            "Import again, and it is merged",
        )


def _merge(
    engine: Engine, file: ExportFile, report: ReadExport, workspace: str | None, progress: Progress
) -> None:
    """By way of a database of its own, which is checked whole before this memory is locked."""
    home = engine.settings.home
    with tempfile.TemporaryDirectory(dir=home, prefix="import-") as folder:
        aside = Path(folder) / "export.db"
        with closing(Database(aside)) as database, database.write("import") as transaction:
            loader = _Loader(transaction, file, report.workspaces, False)
            loader.load(lambda done: progress(done, file.size))
        with rehearsal(engine, report.dry_run) as transaction:
            done = merge_file(transaction, home, aside, workspace, report.dry_run)
    report.counts = {"node": done.nodes, "relation": done.relations, "visit": done.history}
    report.present, report.refused = done.present, done.refused


class _Loader:
    """The rows of one file on their way into an empty place, within one transaction."""

    def __init__(
        self, transaction: Transaction, file: ExportFile, places: Sequence[str], logged: bool
    ) -> None:
        self._transaction = transaction
        self._file = file
        self._places = frozenset(places)
        self._whole = self._places == frozenset(file.workspaces)
        self._logged = logged
        self._last: tuple[int, str] | None = None
        self.counts: Counter[str] = Counter({kind.name: 0 for kind in KINDS})

    def load(self, advance: Advance) -> None:
        for kind, record in self._file.iter_rows(advance):
            values = self._values(kind, record)
            if not self._wanted(kind, values):
                continue
            if kind is CHANGE:
                self._follow(values)
            try:
                self._transaction.exports.put(kind, values)
            except InvalidError as error:
                raise self._file.broken(error.message) from error
            self.counts[kind.name] += 1
        for place in sorted(self._places):
            lost = self._transaction.exports.disagreeing(place)
            if lost is not None:
                raise self._file.broken(
                    "no relation of type contains leads here from its parent",
                    self._file.line_of(lost),
                )
        if self._logged:
            self._end_log()

    def _values(self, kind: Kind, record: dict[str, Any]) -> dict[str, Any]:
        """The columns of a line, their JSON text as it was."""
        if kind.text is not None and kind.text in record and record[kind.text] is not None:
            record[kind.text] = dumped(record[kind.text])
        elif kind.text is not None and f"{kind.text}_text" in record:
            record[kind.text] = record.pop(f"{kind.text}_text")
        expected = set(kind.columns)
        keyed = kind is NODE or kind is RELATION
        if keyed:
            if self._file.log is None:
                expected.remove(KEY)
            elif type(record.get(KEY)) is not int:
                raise self._file.broken(f"its {KEY} is no whole number")
        if set(record) != expected:
            missing, strange = expected - set(record), set(record) - expected
            why = f"lacks {', '.join(sorted(missing))}" if missing else (
                f"has {', '.join(sorted(strange))}, which is unknown"
            )  # fmt: skip
            raise self._file.broken(f"the {kind.name} {why}")
        if keyed and not self._logged:
            record[KEY] = None  # given anew
        return record

    def _wanted(self, kind: Kind, values: dict[str, Any]) -> bool:
        if kind.logged:
            return self._logged
        if not kind.placed:
            return self._whole
        if values["workspace_id"] in self._places:
            return True
        if self._whole:
            raise self._file.broken(f"workspace {values['workspace_id']!r} is not in the header")
        return False

    def _follow(self, change: dict[str, Any]) -> None:
        """Check that the log goes on (invariant 5); before its first row, make room for it."""
        seq, at = change["seq"], change["at"]
        if type(seq) is not int or not isinstance(at, str):
            raise self._file.broken("the change has no seq or no time")
        if self._last is None:
            # Now, while the triggers' rows still name every node.
            self._transaction.derive()
            self._transaction.exports.clear_log()
        elif seq <= self._last[0] or at < self._last[1]:
            raise self._file.broken("the log goes back")
        self._last = (seq, at)

    def _end_log(self) -> None:
        assert self._file.log is not None  # or there would be none to take in
        if self._last is None and self.counts[NODE.name]:
            raise self._file.broken("its log is empty, though there are nodes")
        meta, rows = self._transaction.meta, self._transaction.exports
        seq = 0 if self._last is None else self._last[0]
        meta.set(LOG_FLOOR, str(self._file.log["floor"]))
        meta.set(DERIVED_SEQ, str(seq))
        meta.set(EPOCH, new_id())  # invariant 3: who followed the empty log begins anew
        rows.set_counter("changes", seq)
        for table in ("nodes", "relations"):
            rows.set_counter(table, self._file.log[table])
