"""The bench: seeded memories, figures with their promises, one table, one file a size."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from bench.growth import growth
from bench.picture import draw, lines, peer_lines
from bench.prepared import PLACE, Prepared, prepare, starts_of
from bench.report import FOLDER, about, keep
from bench.servers import serving
from bench.table import put, table
from cortex.cli.timing import Figure, Target, figure_of, quantile, timed, value_of
from cortex.config import load_settings
from cortex.memory import open_memory
from tests.harness import ROOT


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Prepared:
    cache = tmp_path_factory.mktemp("cache")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CORTEX_BENCH_CACHE", str(cache))
        return prepare(300, 900, 7)


def run(*arguments: str, **env: str) -> str:
    """`python -m bench …`; it must succeed."""
    done = subprocess.run(
        [sys.executable, "-m", *arguments],
        env={**os.environ, "PYTHONPATH": str(ROOT), **env},
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


def plain(subject: str, nodes: int, p50: float, where: str = "stdio") -> dict[str, Any]:
    return figure_of(subject, [p50], where=where, nodes=nodes).plain()


def test_a_figure_keeps_its_promise_where_every_limit_and_the_ratio_hold() -> None:
    both = (Target(10), Target(30, "max"))
    assert figure_of("x", [1, 2, 3], targets=both).met
    assert not figure_of("x", [1] * 99 + [31], targets=both).met
    assert figure_of("x", [3], empty=[2], ratio_limit=1.5).met
    assert not figure_of("x", [3.1], empty=[2], ratio_limit=1.5).met
    assert figure_of("x", [1]).met is None


def test_quantiles_are_interpolated_between_the_ordered_values() -> None:
    assert quantile([4, 1, 3, 2], 0.5) == 2.5
    assert quantile([4, 1, 3, 2], 0) == 1
    assert quantile([7], 0.95) == 7


def test_a_timed_call_is_told_its_turn_and_warmed_before() -> None:
    turns: list[int] = []
    figure = timed("x", turns.append, 5)
    assert turns == [0, 1, 2, 0, 1, 2, 3, 4]
    assert figure.runs == 5
    assert figure.cpu is not None


def test_one_seed_makes_one_memory_with_a_vector_for_every_text(prepared: Prepared) -> None:
    home = prepared.copy_to(prepared.file.parent / "copy")
    memory = open_memory(load_settings(home=home, workspace=PLACE, env={}))
    index = memory.status()["index"]
    memory.close()
    assert (prepared.nodes, index["pending"]) == (300, 0)
    assert index["ready"] > 200


def test_a_memory_in_the_cache_is_not_made_again(
    prepared: Prepared, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CORTEX_BENCH_CACHE", str(prepared.file.parent.parent))
    made = prepared.file.stat().st_mtime_ns
    assert prepare(300, 900, 7).file == prepared.file
    assert prepared.file.stat().st_mtime_ns == made


def test_starts_are_a_seeded_choice_of_ids(prepared: Prepared, tmp_path: Path) -> None:
    home = prepared.copy_to(tmp_path)
    starts = starts_of(home, 7)
    assert starts == starts_of(home, 7)
    assert starts.leaves != starts_of(home, 8).leaves
    assert starts.archive not in starts.leaves


def test_the_empty_tool_goes_the_way_of_every_other(prepared: Prepared, tmp_path: Path) -> None:
    home = prepared.copy_to(tmp_path / "home")
    with serving(home) as servers:
        assert servers.call("empty") == {}
        taken = servers.beside_empty("desktop_open", lambda _: {}, 2)
        assert len(taken.times) == len(taken.empty) == 2
        assert len(servers.together("empty", lambda _: {}, 20, 8)) == 20
        assert servers.pss() > 50
    log = "".join(file.read_text() for file in (home / "logs").iterdir())
    assert "call empty: ok" in log


def test_a_killed_server_had_acknowledged_what_is_in_the_file(
    prepared: Prepared, tmp_path: Path
) -> None:
    home = prepared.copy_to(tmp_path / "home")
    with serving(home) as servers:
        ids = servers.until_killed(
            "graph_add_node", lambda turn: {"type": "fact", "text": f"fact {turn}"}, 0.3
        )
    memory = open_memory(load_settings(home=home, workspace=PLACE, env={}))
    with memory.engine.database.read() as snapshot:
        found = snapshot.nodes.by_ids(ids)
    memory.close()
    assert len(found) == len(ids) > 0


def test_a_run_prints_a_table_and_keeps_what_made_it(prepared: Prepared, tmp_path: Path) -> None:
    cache = str(prepared.file.parent.parent)
    said = run("bench", "--sizes", "300", "--seed", "7", "--subjects", "walk,cascade",
               "--runs", "2", "--out", str(tmp_path), CORTEX_BENCH_CACHE=cache)  # fmt: skip
    assert "| 300 | walk | stdio | 1 |" in said
    assert "promises kept" in said
    kept = json.loads((tmp_path / "nodes-300.json").read_text())
    assert {"seed", "nodes", "command", "versions", "machine", "figures"} <= kept.keys()
    assert kept["command"].startswith("python -m bench --sizes 300")
    assert {"python", "sqlite", "mcp", "numpy", "duckdb", "onnxruntime"} <= kept["versions"].keys()
    assert all(figure["p50"] > 0 for figure in kept["figures"])


def test_a_run_of_some_subjects_keeps_the_figures_of_others(tmp_path: Path) -> None:
    told = about(1, ["python", "-m", "bench"])
    keep(tmp_path, 300, told, [figure_of("walk", [5]), figure_of("open", [1])])
    file = keep(tmp_path, 300, told, [figure_of("walk", [6])])
    figures = {each["subject"]: each["p50"] for each in json.loads(file.read_text())["figures"]}
    assert figures == {"open": 1, "walk": 6}


def test_growth_is_promised_from_a_hundred_thousand_to_a_million() -> None:
    def at(nodes: int, p50: float) -> Figure:
        return figure_of("get", [p50], where="stdio", nodes=nodes)

    small, large = growth([at(10_000, 2), at(100_000, 3), at(1_000_000, 6)])
    assert (small.p50, small.met) == (1.5, None)
    assert (large.p50, large.met) == (2, False)


def test_lines_join_one_subject_over_the_sizes() -> None:
    figures = [plain("open", 10_000, 2), plain("open", 1_000, 1), plain("add", 1_000, 3)]
    assert lines(figures, "stdio") == {"open": [(1_000, 1), (10_000, 2)]}
    assert lines(figures, "engine") == {}
    theirs = [
        {"peer": "server-memory", "operation": "write", "size": size, "p50": 9} for size in (1, 2)
    ]
    assert peer_lines(
        [*theirs, {**theirs[0], "peer": "cortex"}, {**theirs[0], "operation": "load"}]
    ) == {"server-memory, write": [(1, 9), (2, 9)]}


def test_the_same_results_make_the_same_picture(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    figures = [plain("open", size, 1.0) for size in (1_000, 10_000)]
    for name in ("a.svg", "b.svg"):
        draw(figures, [], tmp_path / name)
    assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "b.svg").read_bytes()


def test_a_single_value_says_its_unit_and_its_limit() -> None:
    held = value_of("server", 412.3, "MB", below=500)
    assert held.met
    assert held.cells[3:6] == ("412.3 MB", "412.3 MB", "412.3 MB")
    assert held.target == "max < 500"


def test_the_table_of_speed_in_the_readme_is_that_of_the_results() -> None:
    assert table(FOLDER) in (ROOT / "README.md").read_text("utf-8")


def test_putting_a_table_replaces_the_old_one_alone(tmp_path: Path) -> None:
    readme = tmp_path / "README.md"
    readme.write_text("before\n\n| | where | at once | x |\n|---|\n| old |\n\nafter\n")
    put(readme, "| | where | at once | y |\n| new |")
    assert readme.read_text() == "before\n\n| | where | at once | y |\n| new |\n\nafter\n"


def test_a_build_that_takes_ten_times_as_long_for_ten_times_the_nodes_grew_linearly() -> None:
    built = [value_of("graph built", ms, "ms", nodes=nodes)
             for nodes, ms in ((100_000, 200.0), (1_000_000, 2_100.0))]  # fmt: skip
    [grown] = growth(built)
    assert grown.p50 == pytest.approx(1.05)
    assert grown.met
