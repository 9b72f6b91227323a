"""The bench of peers, as far as it goes without installing one."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from mcp import StdioServerParameters

from bench.graph_engine import Bench
from bench.peers.__main__ import with_ratios
from bench.peers.client import Reply, Session
from bench.peers.cortex_server import Cortex
from bench.peers.graph_rows import read
from bench.peers.in_process import CASES, question
from bench.peers.installing import find_python
from bench.peers.measuring import LOAD, OPERATIONS, Figure, measured, too_slow
from bench.peers.memories import (
    NEIGHBOURS,
    SURROUNDINGS,
    Memory,
    Relation,
    Way,
    World,
    build,
)
from bench.peers.peer import NotHere, Peer
from bench.peers.server_memory import lines, stepped
from bench.peers.table import number, peers_table, tables
from bench.peers.whole_graphs import NetworkxWhole
from bench.peers.with_networkx import NetworkxGraphs

ROOT = Path(__file__).parent.parent
RESULTS = ROOT / "bench" / "results" / "peers.json"


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CORTEX_BENCH_CACHE", str(tmp_path / "cache"))


def small() -> World:
    """a contains b, b supports c, d contains a."""
    memories = [Memory(name, "fact", f"text of {name}") for name in "abcd"]
    ends = (("a", "b", "contains"), ("b", "c", "supports"), ("d", "a", "contains"))
    return World(4, Path(), memories, [Relation(*each) for each in ends], [])


class NeverLoads(Peer):
    """A stand-in for a peer that is too slow."""

    name = "slow"
    loading = "never"

    def install(self, cache: Path) -> str:
        return "0"

    def load(self, world: World, home: Path, seconds: float) -> None:
        raise subprocess.TimeoutExpired("load", seconds)

    def server(self, home: Path) -> StdioServerParameters:
        raise AssertionError("nothing is started that did not load")

    async def write(self, session: Session, memory: Memory) -> Reply:
        raise NotImplementedError

    async def search(self, session: Session, question: str) -> Reply:
        raise NotImplementedError


def test_a_way_of_one_hop_goes_both_ways_over_every_kind() -> None:
    assert small().reached("a", NEIGHBOURS) == {"b", "d"}
    assert small().reached("a", SURROUNDINGS) == {"b", "c", "d"}


def test_a_typed_way_goes_out_over_its_kinds_alone() -> None:
    assert small().reached("a", Way("", 2, frozenset({"contains"}), both=False)) == {"b"}


def test_steps_over_a_peers_relations_are_those_of_the_world() -> None:
    world = small()
    relations = [line for line in lines(world) if line["type"] == "relation"]
    assert stepped(relations, {"a"}, NEIGHBOURS) == world.reached("a", NEIGHBOURS)


def test_an_invented_word_stands_in_one_memory_alone(tmp_path: Path) -> None:
    world, bench = build(tmp_path / "home", 200, 1)
    bench.sql.close()
    bench.database.close()
    for planted in world.planted:
        assert [each for each in world.memories if planted.word in each.text] == [planted]


def test_networkx_answers_as_the_engine_does(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "cortex.db", 1000, 3000, 1)
    rows = read(bench.sql)
    libraries = (NetworkxWhole(rows), NetworkxGraphs(rows))
    for case in bench.cases():
        for library in libraries if case.name in CASES else ():
            call = question(library, case.name)
            for start in case.starts:
                assert case.alike(call(start)) == case.alike(case.engine(start)), case.name
    bench.sql.close()
    bench.database.close()


@pytest.mark.anyio
async def test_cortex_gives_the_right_answer_to_every_operation(tmp_path: Path) -> None:
    world, bench = build(tmp_path / "world", 200, 1)
    bench.sql.close()
    bench.database.close()
    figures = await measured(Cortex(), world, tmp_path / "home", 1, 60)
    assert {each.operation for each in figures} == {LOAD, *OPERATIONS}
    assert all(each.p50 and (each.pss_mb or each.operation == LOAD) for each in figures)
    assert all(each.found is not False for each in figures), figures


@pytest.mark.anyio
async def test_a_peer_that_loads_too_slowly_is_said_not_waited_for(tmp_path: Path) -> None:
    [figure] = await measured(NeverLoads(), small(), tmp_path / "home", 1, 5)
    assert figure.note == "4 memories did not finish loading in 5 s"
    assert "did not finish loading" in peers_table([figure_row(figure)], 4)[2]


def figure_row(figure: Figure) -> dict[str, object]:
    return {name: getattr(figure, name) for name in Figure.__slots__}


def test_a_pace_that_needs_too_long_at_the_next_size_is_said() -> None:
    before = Figure("other", LOAD, 1000, p50=61_000)
    assert too_slow(before, 10_000, 600) == "not loaded: 1,000 memories took 61 s"
    assert too_slow(before, 10_000, 620) == ""
    said = Figure("other", LOAD, 10_000, note=too_slow(before, 10_000, 600))
    assert too_slow(said, 100_000, 600) == said.note


def test_a_ratio_is_the_peers_time_by_that_of_cortex() -> None:
    ours = Figure("cortex", "write", 10, p50=4.0)
    theirs = Figure("other", "write", 10, p50=10.0)
    silent = Figure("other", "rare word", 10)
    assert [each.ratio for each in with_ratios([ours, theirs, silent])] == [1.0, 2.5, None]


def test_a_python_that_nobody_has_is_a_reason() -> None:
    with pytest.raises(NotHere, match=r"no Python 9\.9 or newer with loadable"):
        find_python((9, 9), extensions=True)


def test_numbers_keep_three_figures() -> None:
    assert [number(each) for each in (1234.5, 12.34, 0.0123)] == ["1,234", "12.3", "0.0123"]


def test_the_readme_shows_the_kept_figures() -> None:
    kept = json.loads(RESULTS.read_text("utf-8"))
    readme = (ROOT / "README.md").read_text("utf-8")
    for table in tables(kept["figures"], [100_000]).split("\n\n"):
        assert table in readme
