"""The memory that the worker's database may take: bounded, and by all rows of the file."""

from __future__ import annotations

import sqlite3
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import psutil
import pytest

from analytics.client import Worker
from analytics.queries import Counts
from analytics.worker.attached import Attached
from analytics.worker.mirror import Mirror
from cortex.domain.errors import UnavailableError
from tests.worker_world import PLACES, Life

# A hash table of some 300 MB: more than the 192 of a small file, less than a large one's.
LARGE = "SELECT COUNT(DISTINCT range) FROM range(8000000)"
MANY = 10_000_000


@pytest.fixture
def life(tmp_path: Path) -> Iterator[Life]:
    made = Life(tmp_path, seed=3)
    made.live(10)
    yield made
    made.close()


@pytest.fixture
def mirror(life: Life) -> Mirror:
    return Mirror(Attached(life.file))


def pretend(life: Life, table: str) -> None:
    """The newest row of a table gets the key that it has where ten million were made."""
    with closing(sqlite3.connect(life.file, isolation_level=None)) as shell:
        shell.execute(f"DROP TRIGGER {table}_fixed")
        newest = f"(SELECT MAX(rowkey) FROM {table})"  # noqa: S608 - one of two names
        shell.execute(f"UPDATE {table} SET rowkey = ? WHERE rowkey = {newest}", (MANY,))  # noqa: S608


def ask_for_much(mirror: Mirror) -> int:
    with mirror.snapshot() as view:
        return int(view.rows(LARGE)[0][0])


def test_what_does_not_fit_into_the_memory_of_a_small_file_is_refused(mirror: Mirror) -> None:
    with pytest.raises(UnavailableError, match="does not fit"):
        ask_for_much(mirror)


def test_the_mirror_answers_on_after_something_did_not_fit(mirror: Mirror) -> None:
    with pytest.raises(UnavailableError):
        ask_for_much(mirror)
    with mirror.snapshot() as view:
        assert view.rows("SELECT COUNT(*) > 0 FROM nodes") == [(True,)]


@pytest.mark.parametrize("table", ["nodes", "relations"])
def test_a_file_of_many_rows_gets_more_memory_though_its_log_is_folded_away(
    life: Life, table: str
) -> None:
    pretend(life, table)
    life.compact(1.0)
    assert ask_for_much(Mirror(Attached(life.file))) == 8_000_000


def test_a_mirror_whose_file_grows_gets_more_memory(life: Life, mirror: Mirror) -> None:
    with mirror.snapshot():
        pass
    pretend(life, "nodes")
    life.live(1)
    assert ask_for_much(mirror) == 8_000_000


@pytest.mark.skipif(sys.platform != "linux", reason="looks into what a process maps")
def test_a_worker_takes_no_memory_for_the_libraries_of_notebooks(life: Life) -> None:
    with Worker(life.file) as worker:
        worker.ask(Counts(PLACES[0]))
        assert worker.pid is not None
        mapped = " ".join(each.path for each in psutil.Process(worker.pid).memory_maps())
    assert "duckdb" in mapped
    assert "pandas" not in mapped
    assert "arrow" not in mapped
