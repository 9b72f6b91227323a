"""Partitions in mapped files: what is read back, what is refused, and who writes when."""

from __future__ import annotations

import os
import resource
import signal
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from cortex.domain.values import Generation, NodeId, WorkspaceId
from cortex.vectors.draft import Draft
from cortex.vectors.embedded import EmbeddedIndex
from cortex.vectors.index import Point, VectorFilter
from cortex.vectors.vector_file import BEGIN, Stamp
from tests.vector_file_world import MODEL, any_state, files_in
from tests.vector_world import (
    ALL,
    GENERATION,
    HERE,
    TYPES,
    brute_force,
    name_of,
    names,
    node,
    point,
    random_points,
)

SIZE = 32
LATER = Generation("epoch", 0, 9, 4)
ROOT = Path(__file__).parent.parent


def index_in(folder: Path, **more: object) -> EmbeddedIndex:
    return EmbeddedIndex(SIZE, files_in(folder, SIZE, **more))  # type: ignore[arg-type]  # a test's options


def written(folder: Path, points: list[Point], watermark: Generation = GENERATION) -> Path:
    """The file of a rebuilt partition, whose process is gone."""
    index = index_in(folder)
    index.rebuild(HERE, points, watermark)
    assert index.files is not None
    path = index.files.path(HERE)
    index.close()
    assert path.is_file()
    return path


def taken(folder: Path, usable: Callable[[Stamp], bool] = any_state) -> EmbeddedIndex:
    """The index of a later process, which has looked for a file."""
    index = index_in(folder)
    index.take_file(HERE, usable)
    return index


def vector(seed: int) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(SIZE).astype(np.float32)


# What is read back


@pytest.mark.parametrize(
    "where",
    [ALL, VectorFilter(tags=frozenset({"t7"})), VectorFilter(types=frozenset(TYPES[:10]))],
    ids=["all", "a tag", "most types"],
)
def test_a_file_and_what_came_since_answer_as_brute_force_does(
    tmp_path: Path, where: VectorFilter
) -> None:
    points = random_points(2_000, seed=3)
    written(tmp_path, points)
    index = taken(tmp_path)
    newer = random_points(300, seed=4)  # the first 300 names again
    index.apply(HERE, newer, [item.node_id for item in points[500:700]], LATER)
    present = newer + points[300:500] + points[700:]
    for seed in range(4):
        found = index.search([HERE], vector(seed), 20, where)
        expected = brute_force(present, list(vector(seed)), 20, where)
        assert [(hit.node_id, hit.chunk) for hit in found] == [(one, nr) for one, _, nr in expected]


def test_memory_and_file_give_the_same_answer_to_the_last_bit(tmp_path: Path) -> None:
    points = random_points(700, seed=5)
    written(tmp_path, points)
    mapped, own = taken(tmp_path), EmbeddedIndex(SIZE)
    own.rebuild(HERE, points, GENERATION)
    for seed in range(10):
        one, other = (each.search([HERE], vector(seed), 25, ALL) for each in (mapped, own))
        assert one == other
        assert [hit.spread for hit in one] == [hit.spread for hit in other]


def test_equal_vectors_tie_wherever_they_lie(tmp_path: Path) -> None:
    noise = np.random.default_rng(9).standard_normal((600, SIZE)).astype(np.float32)
    twin = noise[0][None]
    crowd = [point(f"x{nr:03}", row[None]) for nr, row in enumerate(noise[1:])]
    written(tmp_path, [*crowd, *(point(f"t{nr:03}", twin) for nr in range(1, 200, 2))])
    index = taken(tmp_path)
    index.apply(HERE, [point(f"t{nr:03}", twin) for nr in range(0, 200, 2)], [], LATER)
    hits = index.search([HERE], noise[0], 5, ALL)
    assert names(hits) == [f"t{nr:03}" for nr in range(5)]
    assert len({hit.score for hit in hits}) == 1


def test_the_matrix_is_mapped_and_not_held(tmp_path: Path) -> None:
    path = written(tmp_path, random_points(2_000, seed=3))
    index = taken(tmp_path)
    assert index.mapped_bytes() == path.stat().st_size > 2_000 * SIZE * 4
    assert index.memory_bytes() == 2_000, "a byte a slot"


def test_a_rebuild_uses_its_own_file_at_once(tmp_path: Path) -> None:
    index = index_in(tmp_path)
    index.rebuild(HERE, random_points(500, seed=3), GENERATION)
    assert index.mapped_bytes()
    assert index.watermark(HERE) == GENERATION


def test_a_small_partition_has_no_file(tmp_path: Path) -> None:
    index = index_in(tmp_path, smallest=1 << 20)
    index.rebuild(HERE, random_points(100, seed=3), GENERATION)
    assert list(tmp_path.iterdir()) == []
    assert index.mapped_bytes() == 0


def test_an_id_that_the_stream_gives_twice_is_the_last_one(tmp_path: Path) -> None:
    noise = vector(1)[None]
    written(tmp_path, [point("a", -noise), point("b", noise), point("a", noise, tags=("new",))])
    index = taken(tmp_path)
    assert names(index.search([HERE], noise[0], 5, ALL)) == ["a", "b"]
    index.apply(HERE, [], [node("a")], LATER)
    assert index.ids(HERE) == {node("b")}


def test_ids_that_are_no_uuids_are_kept(tmp_path: Path) -> None:
    ids = [NodeId("task-1"), NodeId("задача"), NodeId(str(node("a")))]
    points = [point("x", vector(nr)[None]) for nr in range(3)]
    renamed = [
        Point(one, *[getattr(each, name) for name in Point.__slots__[1:]])
        for one, each in zip(ids, points, strict=True)
    ]
    written(tmp_path, renamed)
    index = taken(tmp_path)
    assert index.ids(HERE) == set(ids)
    index.apply(HERE, [], ids[:2], LATER)
    assert index.ids(HERE) == {ids[2]}


def test_folder_and_file_are_their_owners_alone(tmp_path: Path) -> None:
    path = written(tmp_path / "derived", random_points(5, seed=1))
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


# What is refused


def cut(path: Path) -> None:
    os.truncate(path, path.stat().st_size - 100)


def empty(path: Path) -> None:
    os.truncate(path, 0)


def scribble(path: Path, at: int) -> None:
    with path.open("r+b") as file:
        file.seek(at)
        file.write(b"scribble")


def damaged_header(path: Path) -> None:
    scribble(path, 40)


def damaged_columns(path: Path) -> None:
    scribble(path, path.stat().st_size - 60)


def another_kind(path: Path) -> None:
    path.write_bytes(b"SQLite format 3\0" * 1000)


def no_permission(path: Path) -> None:
    path.unlink()
    path.mkdir()


@pytest.mark.parametrize(
    "harm", [cut, empty, damaged_header, damaged_columns, another_kind, no_permission]
)
def test_a_file_that_cannot_be_trusted_is_not_used(
    tmp_path: Path, harm: Callable[[Path], None]
) -> None:
    path = written(tmp_path, random_points(200, seed=1))
    harm(path)
    index = taken(tmp_path)
    assert index.watermark(HERE) is None
    index.rebuild(HERE, [point("a", vector(1)[None])], LATER)
    assert names(index.search([HERE], vector(1), 5, ALL)) == ["a"]


def test_a_file_of_another_model_or_workspace_is_not_used(tmp_path: Path) -> None:
    path = written(tmp_path, random_points(20, seed=1))
    other = EmbeddedIndex(SIZE, files_in(tmp_path, SIZE, model="another"))
    assert other.files is not None
    path.rename(other.files.path(HERE))
    other.take_file(HERE, any_state)
    assert other.watermark(HERE) is None


def test_a_state_that_the_caller_finds_unusable_is_not_used(tmp_path: Path) -> None:
    written(tmp_path, random_points(20, seed=1))
    asked: list[Stamp] = []
    index = taken(tmp_path, lambda stamp: bool(asked.append(stamp)))
    assert asked == [Stamp("epoch", 1, 1, "1")]
    assert index.watermark(HERE) is None


def test_an_older_file_does_not_replace_a_newer_one(tmp_path: Path) -> None:
    old = written(tmp_path / "old", random_points(20, seed=1))
    index = index_in(tmp_path / "new")
    index.rebuild(HERE, random_points(30, seed=2), LATER)
    assert index.files is not None
    old.replace(index.files.path(HERE))
    index.take_file(HERE, any_state)
    assert index.watermark(HERE) == LATER


def test_rows_that_changed_on_the_disk_are_noticed(tmp_path: Path) -> None:
    path = written(tmp_path, random_points(200, seed=1))
    assert taken(tmp_path).file_is_whole(HERE)
    scribble(path, BEGIN + 1_000)
    assert not taken(tmp_path).file_is_whole(HERE)


# Where the disk refuses


@pytest.fixture
def full_disk() -> object:
    """No file can grow beyond 100,000 bytes: a disk that refuses in the middle of a write."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.usefixtures("full_disk")
@pytest.mark.parametrize("count", [320, 800], ids=["in the columns", "in the rows"])
def test_a_full_disk_leaves_the_partition_in_memory(tmp_path: Path, count: int) -> None:
    points = random_points(count, seed=1)
    index = index_in(tmp_path, smallest=10_000)
    index.rebuild(HERE, points, GENERATION)
    assert index.mapped_bytes() == 0
    assert list(tmp_path.iterdir()) == []
    assert index.ids(HERE) == {item.node_id for item in points}
    expected = brute_force(points, list(vector(1)), 9, ALL)
    assert [hit.node_id for hit in index.search([HERE], vector(1), 9, ALL)] == [
        one for one, _, _ in expected
    ]


def test_a_folder_that_cannot_be_made_leaves_the_partition_in_memory(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "derived").write_text("a file in the way")
    index = index_in(tmp_path / "derived")
    for number in range(3):
        index.apply(HERE, random_points(50, seed=number), [], GENERATION)
        index.wait_written(10.0)
        index.rebuild(HERE, random_points(50, seed=number), GENERATION)
    assert len(index.ids(HERE)) == 50
    assert len(caplog.records) == 1, "told once"


def test_who_only_reads_writes_no_file(tmp_path: Path) -> None:
    files = files_in(tmp_path, SIZE)
    files.read_only = True
    index = EmbeddedIndex(SIZE, files)
    index.rebuild(HERE, random_points(50, seed=1), GENERATION)
    assert not index.write_file(HERE)
    assert list(tmp_path.iterdir()) == []


# Who writes when


def test_what_came_since_is_written_once_it_is_more_than_a_quarter(tmp_path: Path) -> None:
    path = written(tmp_path, random_points(400, seed=1))
    index, first = taken(tmp_path), path.stat().st_ino
    index.apply(HERE, random_points(40, seed=2), [], GENERATION._replace(seq=2))
    index.wait_written(10.0)
    assert path.stat().st_ino == first
    index.apply(HERE, random_points(120, seed=3), [], LATER)
    index.wait_written(10.0)
    assert path.stat().st_ino != first
    assert index.memory_bytes() > 20_000
    index.take_file(HERE, any_state)
    assert index.memory_bytes() == 400
    assert index.watermark(HERE) == LATER


def test_a_new_file_holds_the_living_alone(tmp_path: Path) -> None:
    points = random_points(400, seed=1)
    path = written(tmp_path, points)
    before, index = path.stat().st_size, taken(tmp_path)
    index.apply(HERE, [], [item.node_id for item in points[100:]], LATER)
    index.wait_written(10.0)
    later = taken(tmp_path)
    assert later.ids(HERE) == {item.node_id for item in points[:100]}
    assert path.stat().st_size < before / 2
    tagged = later.search([HERE], vector(1), 99, VectorFilter(tags=frozenset({"t7"})))
    assert sorted(names(tagged)) == ["00007", "00057"]


def test_everything_deleted_makes_a_file_that_finds_nothing(tmp_path: Path) -> None:
    points = random_points(20, seed=1)
    written(tmp_path, points)
    index = taken(tmp_path)
    index.apply(HERE, [], [item.node_id for item in points], LATER)
    index.wait_written(10.0)
    later = taken(tmp_path)
    assert later.watermark(HERE) == LATER
    assert later.search([HERE], vector(1), 5, ALL) == []


def test_another_processs_newer_file_is_taken_and_the_old_mapping_lives_on(tmp_path: Path) -> None:
    written(tmp_path, random_points(50, seed=1))
    index = taken(tmp_path)
    written(tmp_path, [point("a", vector(1)[None])], LATER)
    assert len(index.ids(HERE)) == 50
    index.take_file(HERE, any_state)
    assert [name_of(one) for one in index.ids(HERE)] == ["a"]


def test_a_process_killed_while_it_writes_leaves_the_old_file(tmp_path: Path) -> None:
    path = written(tmp_path, random_points(50, seed=1))
    before = path.read_bytes()
    script = (
        "import os, signal, sys, pathlib, numpy\n"
        "from cortex.vectors.draft import Draft\n"
        "draft = Draft(pathlib.Path(sys.argv[1]), 32)\n"
        "draft.append(numpy.ones((9000, 32), numpy.float32))\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    killed = subprocess.run([sys.executable, "-c", script, str(path)], cwd=ROOT, check=False)
    assert killed.returncode == -signal.SIGKILL
    assert path.read_bytes() == before
    assert len(list(tmp_path.iterdir())) == 2
    assert len(taken(tmp_path).ids(HERE)) == 50


def test_what_a_killed_process_left_goes_a_day_later(tmp_path: Path) -> None:
    old, young = tmp_path / ".vectors-x.bin.0.part", tmp_path / ".vectors-x.bin.1.part"
    for path in (old, young):
        path.touch()
    os.utime(old, (1_000_000, 1_000_000))
    Draft(tmp_path / "vectors-x.bin", SIZE).discard()
    assert list(tmp_path.iterdir()) == [young]


def test_files_of_other_workspaces_and_models_are_removed(tmp_path: Path) -> None:
    kept = written(tmp_path, random_points(5, seed=1))
    (tmp_path / "vectors-0123.bin").touch()
    (tmp_path / "graph-0123.bin").touch()
    files_in(tmp_path, SIZE, model=MODEL).keep_only([HERE, WorkspaceId("there")])
    assert sorted(tmp_path.iterdir()) == [tmp_path / "graph-0123.bin", kept]
