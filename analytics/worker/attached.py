"""DuckDB beside the SQLite file: the pinned extension, loaded by path, the file read only.

Every read goes through `sqlite_query`, which runs SQL in the SQLite that the extension
carries (3.38): filters and joins use the file's own indexes, and all reads of one DuckDB
transaction see one snapshot. Scans of attached tables push no filter down.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import duckdb

from cortex.domain.errors import BusyError, CortexError, UnavailableError

_WHEEL: Final = "duckdb-extension-sqlite-scanner"
_PACKAGE: Final = "duckdb_extension_sqlite_scanner"
_BINARY: Final = "extensions/*/sqlite_scanner.duckdb_extension"

# Without the first, one table is read over several connections, which see different
# commits; without the second, 1.5.5 confuses attached tables of the same layout.
_SETTINGS: Final = (
    "SET sqlite_disable_multithreaded_scans = true",
    "SET disabled_optimizers = 'common_subplan'",
    "SET preserve_insertion_order = false",
    # The mirror's own tables: in memory, packed to a seventh at each checkpoint.
    "ATTACH ':memory:' AS mirror (COMPRESS)",
    "USE mirror",
)
_CONFIG: Final[dict[str, str | bool | int | float | list[str]]] = {
    "threads": 1,  # answers take milliseconds; the processors belong to the writers
    "temp_directory": "",  # nothing of a memory is spilled to the disk elsewhere
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    # What packing frees goes back to the system: half of the process at a million rows.
    "allocator_background_threads": "true",
    "allocator_bulk_deallocation_flush_threshold": "8MB",
}
_BATCH: Final = 4096
_ASK: Final = "SELECT * FROM sqlite_query('s', $source)"
_ASK_WITH: Final = "SELECT * FROM sqlite_query('s', $source, params = row($bound))"


class Attached:
    """A DuckDB connection with the file attached as `s`."""

    def __init__(self, file: Path) -> None:
        """Raises UnavailableError when the extension or the file is not there."""
        if not file.exists():
            raise UnavailableError(f"there is no memory at {file} yet", "", "Write to it first")
        self.file = file
        binary = extension()
        with self._translated():
            self._duck = duckdb.connect(config=_CONFIG)
            self._duck.execute(f"LOAD {_quoted(binary)}")
            for setting in _SETTINGS:
                self._duck.execute(setting)
            self._duck.execute(f"ATTACH {_quoted(file)} AS s (TYPE sqlite, READ_ONLY)")

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """One snapshot of the file. None stays open: it would hold up the checkpoint."""
        self.execute("BEGIN")
        try:
            yield
        except BaseException:
            self._duck.rollback()
            raise
        self.execute("COMMIT")

    def execute(self, statement: str, **bound: Any) -> None:
        with self._translated():
            self._duck.execute(statement, bound or None)

    def iter_rows(self, statement: str, **bound: Any) -> Iterator[tuple[Any, ...]]:
        """Rows of a statement over the mirror, to be read before the next statement."""
        self.execute(statement, **bound)
        while True:
            with self._translated():
                batch = self._duck.fetchmany(_BATCH)
            if not batch:
                return
            yield from batch

    def rows(self, statement: str, **bound: Any) -> list[tuple[Any, ...]]:
        """All rows of a statement over the mirror."""
        return list(self.iter_rows(statement, **bound))

    def source(self, statement: str, bound: str | None = None) -> list[tuple[Any, ...]]:
        """All rows of a statement over the file itself; every value is text or None.

        `bound` is its ?1.
        """
        if bound is None:
            return self.rows(_ASK, source=statement)
        return self.rows(_ASK_WITH, source=statement, bound=bound)

    def pack(self) -> None:
        """Compress the mirror's tables, and free the rows that were deleted."""
        self.execute("CHECKPOINT mirror")

    def limit_memory(self, megabytes: int) -> None:
        self.execute(f"SET memory_limit = '{megabytes:d}MB'")

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except duckdb.Error as error:
            raise _translate(error, self.file) from error


def extension() -> Path:
    """The extension's binary, in the wheel of this very DuckDB.

    Raises UnavailableError that says what to install; nothing is ever downloaded.
    """
    wanted = f"{_WHEEL}=={duckdb.__version__}"
    then = f"Run: pip install {wanted}"
    found = importlib.util.find_spec(_PACKAGE)
    if found is None or found.origin is None:
        raise UnavailableError("DuckDB's extension for SQLite files is not installed", "", then)
    version = importlib.metadata.version(_WHEEL)
    if version != duckdb.__version__:
        raise UnavailableError(
            f"DuckDB's extension for SQLite files is of version {version}",
            f"Valid: {duckdb.__version__}, as DuckDB itself",
            then,
        )
    binary = next(Path(found.origin).parent.glob(_BINARY), None)
    if binary is None:
        raise UnavailableError(
            f"{_WHEEL} {version} holds no binary for this platform", "", f"Reinstall it. {then}"
        )
    return binary


def _quoted(path: Path) -> str:
    return "'" + str(path).replace("'", "''") + "'"


_REASONS: Final[tuple[tuple[str, str, str], ...]] = (
    ("no such table", "is no memory of this version", "Open it once with cortex, which upgrades"),
    ("no such column", "is no memory of this version", "Open it once with cortex, which upgrades"),
    ("not a database", "is not a SQLite database", "Move it away, or restore a backup"),
    ("malformed", "is damaged", "Restore a backup; the file was not changed"),
    ("unable to open", "cannot be opened", "Check that the folder can be written"),
    ("out of memory", "does not fit into the worker's memory", "Ask for a shorter window"),
)


def _translate(error: duckdb.Error, file: Path) -> CortexError:
    text = str(error).lower()
    if "locked" in text or "busy" in text:
        return BusyError("another process holds the memory", "", "Call again in a moment")
    for sign, wrong, then in _REASONS:
        if sign in text:
            return UnavailableError(f"{file} {wrong}", "", f"{then} ({error})")
    return UnavailableError(f"DuckDB gave an error on {file} ({error})", "", "Call again")
