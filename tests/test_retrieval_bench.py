"""The bench of search quality: what it reads, how it scores, what it says without data."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from math import log2
from pathlib import Path
from typing import Any

import pytest

from bench.retrieval.building import build
from bench.retrieval.measuring import COLUMNS, _scores, measure
from bench.retrieval.sets import find_sets, read_set
from bench.retrieval.vectors import KeptEmbedder
from tests.harness import ROOT

TALK: dict[str, Any] = {
    "name": "tiny",
    "corpora": {
        "one": [
            {"id": "D1:1", "text": "I sold my boat", "speaker": "Ann", "session": "1",
             "date": "8 May, 2023", "ts": "2023-05-08T13:56:00"},
            {"id": "D1:2", "text": "For how much?", "speaker": "Bob", "session": "1",
             "date": "8 May, 2023", "ts": "2023-05-08T13:57:00"},
            {"id": "D2:1", "text": "The lighthouse is red", "speaker": "Ann", "session": "2",
             "ts": "not a time"},
        ],
        "two": [{"id": 7, "title": "Ferry", "text": "A ferry carries cars"},
                {"id": 8, "text": "x"}],
    },
    "queries": [
        {"qid": "q1", "cid": "one", "text": "who sold a boat", "gold": ["D1:1"], "category": "a"},
        {"qid": "q2", "cid": "two", "text": "what carries cars", "gold": [7, 8]},
        {"qid": "q3", "cid": "two", "text": "nothing is labelled", "gold": []},
    ],
}  # fmt: skip


@pytest.fixture
def data(tmp_path: Path) -> Path:
    folder = tmp_path / "sets"
    folder.mkdir()
    (folder / "tiny.json.gz").write_bytes(gzip.compress(json.dumps(TALK).encode()))
    (folder / "other.json").write_text(json.dumps({**TALK, "name": "other"}))
    return folder


def test_sets_are_found_by_the_beginning_of_their_names(data: Path) -> None:
    assert [path.name for path in find_sets(data, [])] == ["other.json", "tiny.json.gz"]
    assert [path.name for path in find_sets(data, ["ti"])] == ["tiny.json.gz"]


def test_a_set_is_read_without_its_optional_fields(data: Path) -> None:
    found = read_set(data / "tiny.json.gz")
    assert [len(each) for each in found.corpora.values()] == [3, 2]
    assert [question.gold for question in found.questions] == [{"D1:1"}, {"7", "8"}]
    assert found.corpora["two"][1].title == ""


def test_the_measures_are_those_of_their_definitions() -> None:
    answers = [False, True, False, False, False, True, False, False, False, False]
    best = 1 + 1 / log2(3) + 1 / log2(4) + 1 / log2(5)
    r5, r10, mrr, ndcg = _scores(answers, 4)
    assert (r5, r10, mrr) == (0.25, 0.5, 0.5)
    assert ndcg == pytest.approx((1 / log2(3) + 1 / log2(7)) / best)


def test_a_set_becomes_the_memory_that_its_user_would_have(data: Path, tmp_path: Path) -> None:
    embedder = KeptEmbedder("offline", tmp_path / "cache")
    built = build(read_set(data / "tiny.json.gz"), tmp_path / "cache", embedder)
    with built.memory.engine.database.read() as snapshot:
        nodes = {built.ids[node.id]: node for node in snapshot.nodes.by_ids(list(built.ids))}
        first, second = nodes["D1:1"], nodes["D1:2"]
        [parent] = snapshot.nodes.by_ids([str(first.parent_id)])
        before = snapshot.relations.around([second.id], 16)
    built.memory.close()
    embedder.close()
    assert (first.title, first.created_at) == ("Ann", "2023-05-08T13:56:00.000000Z")
    assert parent.title == "Session 1, 8 May, 2023"
    assert before[second.id] == {first.id: True}
    assert nodes["7"].workspace_id == "two"


def test_a_second_run_builds_and_embeds_nothing_again(data: Path, tmp_path: Path) -> None:
    given = read_set(data / "tiny.json.gz")
    rows = []
    for _ in range(2):
        embedder = KeptEmbedder("offline", tmp_path / "cache")
        built = build(given, tmp_path / "cache", embedder)
        rows.append(measure(given, built, COLUMNS["default"]).row)
        loaded = embedder.loaded
        built.memory.close()
        embedder.close()
    assert rows[0] == rows[1]
    assert rows[0][1] > 0
    assert not loaded


def run(*arguments: str, **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "bench.retrieval", *arguments],
        capture_output=True, text=True, cwd=ROOT, check=False,
        env={"PATH": "/usr/bin:/bin", "PYTHONPATH": str(ROOT), **env},
    )  # fmt: skip


@pytest.mark.parametrize("arguments", [[], ["/nowhere"]])
def test_without_sets_it_says_what_to_pass(arguments: list[str]) -> None:
    done = run(*arguments)
    assert done.returncode == 1
    assert "make bench-retrieval DATA=" in done.stderr
    assert "Traceback" not in done.stderr


def test_it_prints_every_column_and_writes_figures_alone(data: Path, tmp_path: Path) -> None:
    out = tmp_path / "figures.json"
    done = run(
        str(data), "--sets", "tiny", "--out", str(out), CORTEX_BENCH_CACHE=str(tmp_path / "cache")
    )
    assert done.returncode == 0, done.stderr
    figures = json.loads(out.read_text())
    assert list(figures["tiny"]) == [
        "keyword",
        "semantic",
        "rrf 60",
        "convex .5",
        "default",
        "recall",
    ]
    assert all(0 <= value <= 100 for row in figures["tiny"].values() for value in row)
    assert "boat" not in out.read_text() + done.stdout
