"""Checks of the file as a file: what runs it, who may read it, its pages, log and schema."""

from __future__ import annotations

import os
import platform
import stat
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Final

from cortex.services.doctor.findings import (
    BY_FIX,
    RESTORE,
    Case,
    Finding,
    State,
    fine,
    found,
    skipped,
)
from cortex.store.schema import MIGRATIONS
from cortex.store.sqlite_version import SQLITE_VERSION

_LEAST_SQLITE: Final = (3, 38)
_PRODUCT: Final = "mcp-cortex"
_ENGINE: Final = "duckdb"
_SCANNER: Final = "duckdb-extension-sqlite-scanner"
_OTHERS: Final = stat.S_IRWXG | stat.S_IRWXO


def check_versions() -> Finding:
    """Python, SQLite and DuckDB with its extension, of which both must be of one version."""
    wrong: list[str] = []
    if SQLITE_VERSION < _LEAST_SQLITE:
        wrong.append(f"SQLite {_dotted(SQLITE_VERSION)} is older than {_dotted(_LEAST_SQLITE)}")
    engine, scanner = _installed(_ENGINE), _installed(_SCANNER)
    if engine is None or scanner is None:
        wrong.append(f"{_ENGINE if engine is None else _SCANNER} is not installed")
    elif engine != scanner:
        wrong.append(f"{_ENGINE} is {engine}, {_SCANNER} {scanner}")
    product = _installed(_PRODUCT) or "of a checkout"
    said = (
        f"cortex {product}, schema {len(MIGRATIONS)}, Python {platform.python_version()}, "
        f"SQLite {_dotted(SQLITE_VERSION)}, DuckDB {engine or 'none'}"
    )
    if wrong:
        return found("versions", wrong, said, "pip install --upgrade mcp-cortex")
    return fine("versions", 5, said)


def check_permissions(case: Case) -> Finding:
    """The folder and the files are their owner's alone: 0700, 0600."""
    if os.name != "posix":
        return skipped("permissions", "this system has no file modes")
    paths = list(_private(case.settings.home, case.settings.database))
    open_ = [(path, mode) for path in paths if (mode := _mode(path)) & _OTHERS]
    if open_:
        said = "others than the owner may read or write"
        wrong = [f"{path} has mode {mode:04o}" for path, mode in open_]
        return found("permissions", wrong, said, BY_FIX, rows=[path for path, _ in open_])
    return fine("permissions", len(paths), "for the owner alone")


def _private(home: Path, file: Path) -> Iterator[Path]:
    yield home
    for path in sorted(home.iterdir()):
        if path.name.startswith((file.name, "before-restore-")) and path.is_file():
            yield path


def _mode(path: Path) -> int:
    try:
        return stat.S_IMODE(path.stat().st_mode)
    except FileNotFoundError:  # a log goes with its last user
        return 0


def check_wal(case: Case) -> Finding:
    """The write-ahead log is cut short by whoever writes; one that grows says that a reader
    holds it."""
    log = case.settings.database.with_name(case.settings.database.name + "-wal")
    size = log.stat().st_size if log.exists() else 0
    if size > case.wal_bound:
        said = f"above {case.wal_bound:,} bytes; readers that never end hold it"
        wrong = [f"{log.name} has {size:,} bytes"]
        return found("write-ahead log", wrong, said, BY_FIX, state=State.WARNING)
    return fine("write-ahead log", 1, f"{size:,} bytes")


def check_pages(case: Case) -> list[Finding]:
    """SQLite's integrity check: `pages`, then `indexes`; pages at fault end the examination."""
    with case.engine.database.read() as snapshot:
        problems = snapshot.integrity.problems()
        nodes, relations = snapshot.integrity.counts() if not problems.pages else (0, 0)
    if problems.pages:
        return [found("pages", problems.pages, "the file is damaged", RESTORE)]
    said = "PRAGMA integrity_check"
    pages = fine("pages", nodes + relations, said)
    if problems.indexes:
        said = "an index differs from its table"
        return [pages, found("indexes", problems.indexes, said, BY_FIX)]
    return [pages, fine("indexes", nodes + relations, said)]


def check_schema(case: Case) -> Finding:
    """Tables, indexes and triggers as this version makes them; extra ones are but told."""
    with case.engine.database.read() as snapshot:
        differences = snapshot.integrity.differences()
    wrong = [each for each in differences if each.state != "extra"]
    if wrong:
        mendable = all(
            each.kind in ("trigger", "index") or each.name == "keywords" for each in wrong
        )
        return found(
            "schema",
            [f"{each.kind} {each.name} is {each.state}" for each in wrong],
            "what keeps the rules is not in place",
            BY_FIX if mendable else RESTORE,
            rows=wrong,
        )
    if differences:
        names = [f"{each.kind} {each.name}" for each in differences]
        said = "not of cortex; a trigger of others may change what is written"
        return found("schema", names, said, "DROP it in a SQL shell", state=State.WARNING)
    return fine("schema", len(MIGRATIONS), "as the migrations make it")


def _installed(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _dotted(numbers: tuple[int, ...]) -> str:
    return ".".join(map(str, numbers))
