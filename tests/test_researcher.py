"""`python -m analytics FILE`, and answers as Arrow tables and DataFrames."""

from __future__ import annotations

import doctest
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest

from analytics.client import Worker
from analytics.queries import (
    QUERIES,
    Centrality,
    Churn,
    Communities,
    Counts,
    Distribution,
    Names,
    Query,
    Workspaces,
)
from cortex.domain.errors import InvalidError, TooLargeError, UnavailableError
from cortex.domain.taxonomy import NodeType
from cortex.domain.values import NodeId, new_id
from tests.harness import ROOT
from tests.worker_world import PLACES, Life, rows

HERE = PLACES[0]
README = (ROOT / "README.md").read_text("utf-8")


@pytest.fixture(scope="module")
def life(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Life]:
    made = Life(tmp_path_factory.mktemp("a life"), seed=8)
    made.live(60)
    yield made
    made.close()


@pytest.fixture(scope="module")
def worker(life: Life) -> Iterator[Worker]:
    with Worker(life.file) as started:
        yield started


def analytics(*arguments: str) -> subprocess.CompletedProcess[str]:
    """`python -m analytics …` as a researcher would run it."""
    return subprocess.run(
        [sys.executable, "-m", "analytics", *arguments],
        env={"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_the_summary_counts_what_the_file_holds_and_changes_nothing(life: Life) -> None:
    before = life.file.read_bytes()
    done = analytics(str(life.file), "--json")
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    assert life.file.read_bytes() == before
    held = dict(life.sql("SELECT workspace_id, COUNT(*) FROM nodes GROUP BY workspace_id"))
    assert {row["workspace"]: row["nodes"] for row in said["workspaces"]["rows"]} == held
    assert said["workspace"] == max(held, key=lambda place: held[place])
    happened = life.events(PLACES[list(PLACES).index(said["workspace"])])
    weeks = [sum(v for k, v in row.items() if k != "week") for row in said["activity"]["rows"]]
    assert sum(weeks) == len(happened)
    assert {"nodes", "relations", "components", "degrees", "pagerank", "communities"} < said.keys()


@pytest.mark.parametrize(
    "what",
    ["summary", "centrality", "churn", "idle"],  # the others are parts of the first
)
def test_every_table_is_printed(life: Life, what: str) -> None:
    done = analytics(str(life.file), what, "-w", HERE)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(f"workspace {HERE}\n")
    assert len(done.stdout.splitlines()) > 3


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("-w", "nowhere"), "no workspace 'nowhere'. Valid: "),
        (("centrality", "--measure", "fame"), "measure 'fame' is unknown. Valid: pagerank"),
    ],
)
def test_what_cannot_be_shown_is_one_line_with_what_is_valid(
    life: Life, arguments: tuple[str, ...], said: str
) -> None:
    done = analytics(str(life.file), *arguments)
    assert done.returncode == 1
    assert said in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    done = analytics(str(tmp_path / "none.db"))
    assert done.returncode == 1
    assert "there is no memory at" in done.stderr


def test_workspaces_are_listed_by_size_and_nodes_by_name(life: Life, worker: Worker) -> None:
    found = rows(worker, Workspaces())
    assert [row.nodes for row in found] == sorted((row.nodes for row in found), reverse=True)
    assert {row.workspace for row in found} == set(PLACES)
    ids = [str(node) for (node,) in life.sql("SELECT id FROM nodes ORDER BY id DESC LIMIT 5")]
    assert [row.id for row in rows(worker, Names((*ids, "nobody")))] == ids


@pytest.mark.parametrize("of", ["degree", "in_degree", "out_degree", "core", "component"])
def test_a_distribution_counts_every_active_node_but_roots_once(
    life: Life, worker: Worker, of: str
) -> None:
    found = rows(worker, Distribution(HERE, of))
    ((active,),) = life.sql(
        "SELECT COUNT(*) FROM nodes WHERE workspace_id = :place AND status = 'active'"
        " AND type <> 'session'", place=HERE)  # fmt: skip
    assert sum(row.nodes for row in found) == active
    assert [row.value for row in found] == sorted({row.value for row in found})
    if of == "component":
        assert all(row.nodes % row.value == 0 for row in found)


def test_what_has_no_distribution_is_refused_with_what_has(worker: Worker) -> None:
    with pytest.raises(InvalidError, match="degree, in_degree"):
        worker.ask(Distribution(HERE, "pagerank"))


def test_a_refusal_for_size_comes_through_the_pipe(tmp_path: Path) -> None:
    life = Life(tmp_path, seed=1)
    with life.database.write("crowd") as transaction:
        for _ in range(5_001):
            transaction.nodes.insert(
                NodeId(new_id()), NodeType.NOTE, HERE, None, {}, transaction.at
            )
    with Worker(life.file) as worker, pytest.raises(TooLargeError, match="5,001 nodes"):
        worker.ask(Centrality(HERE, "closeness"))
    life.close()


# Arrow and DataFrames


def test_the_example_of_the_readme_runs(life: Life, monkeypatch: pytest.MonkeyPatch) -> None:
    [example] = re.findall(r"^```pycon\n(.*?)^```", README, re.M | re.S)
    monkeypatch.chdir(life.file.parent)
    names: dict[str, Any] = {}
    test = doctest.DocTestParser().get_doctest(example, names, "README", None, None)
    assert doctest.DocTestRunner().run(test, clear_globs=False).failed == 0
    assert test.globs["frame"].columns.tolist()[0] == "week"


def test_an_arrow_table_holds_the_rows_with_instants_as_timestamps(
    life: Life, worker: Worker
) -> None:
    table = worker.arrow(Churn(HERE))
    assert table.schema.field("week").type == pa.timestamp("us", tz="UTC")
    wanted = rows(worker, Churn(HERE))
    weeks = [f"{at:%Y-%m-%dT%H:%M:%S.%f}Z" for at in table["week"].to_pylist()]
    assert weeks == [row.week for row in wanted]
    assert table["created"].to_pylist() == [row.created for row in wanted]


def test_a_frame_says_none_where_the_row_does(life: Life, worker: Worker) -> None:
    frame = worker.pandas(Counts(HERE))
    assert isinstance(frame, pd.DataFrame)
    assert frame.columns.tolist() == ["entity", "type", "status", "total"]
    assert frame["status"].isna().tolist() == [
        row.status is None for row in rows(worker, Counts(HERE))
    ]
    assert worker.arrow(Communities(HERE)).schema.field("members").type == pa.list_(pa.string())


@pytest.mark.parametrize("kind", QUERIES.values(), ids=QUERIES)
def test_every_answer_has_typed_columns_even_when_it_is_empty(kind: type[Query]) -> None:
    from analytics.frames import to_arrow

    table = to_arrow(kind, ())
    assert table.column_names == list(kind.row._fields)
    assert pa.null() not in table.schema.types


def test_without_the_extra_the_error_names_it(
    worker: Worker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(UnavailableError, match=r"pip install 'mcp-cortex\[frames\]'"):
        worker.arrow(Counts(HERE))
