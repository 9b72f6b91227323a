"""Reading a folder into memory, and again: nothing double, nothing lost, every line right."""

from __future__ import annotations

import os
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from cortex.config import load_settings
from cortex.domain.errors import NotFoundError
from cortex.memory import Memory, open_memory
from cortex.services.fields import Fields
from cortex.services.ingest.writing import Ingested

SHAPES = '''"""Plane shapes."""


class Circle:
    """A round shape."""

    def area(self):
        """The surface inside."""


@property
def perimeter():
    """The length around."""
'''
GUIDE = """# Guide

How to begin.

## Install

Run the installer.

## Use

Draw a circle.
"""


class Known(NamedTuple):
    """What memory holds of one piece."""

    id: str
    title: str
    text: str
    status: str


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "docs"
    made.mkdir()
    (made / "shapes.py").write_text(SHAPES)
    (made / "guide.md").write_text(GUIDE)
    return made


def read(memory: Memory, folder: Path) -> Ingested:
    return memory.ingest.ingest(folder)


def rows(memory: Memory, question: str, **bound: Any) -> list[Any]:
    """Rows of the file, read beside the product."""
    with closing(sqlite3.connect(memory.engine.database.path)) as shell:
        return shell.execute(question, bound).fetchall()


def pieces(memory: Memory) -> dict[str, Known]:
    """Every piece by its key within its file."""
    found = rows(
        memory,
        """SELECT json_extract(data, '$.key'), id, json_extract(data, '$.title'),
                  json_extract(data, '$.text'), status
             FROM nodes WHERE json_extract(data, '$.key') IS NOT NULL""",
    )
    assert len({key for key, *_ in found}) == len(found), "a piece stands twice"
    return {key: Known(*rest) for key, *rest in found}


def edit(file: Path, old: str, new: str) -> None:
    text = file.read_text()
    assert old in text
    file.write_text(text.replace(old, new))


# ── what is written ───────────────────────────────────────────────────────────────────────


def test_every_piece_points_to_its_file_at_its_def_line(memory: Memory, folder: Path) -> None:
    read(memory, folder)
    found = rows(
        memory,
        """SELECT json_extract(n.data, '$.key'), r.type, json_extract(f.data, '$.path'),
                  json_extract(r.data, '$.line')
             FROM nodes AS n JOIN relations AS r ON r.from_id = n.id
             JOIN nodes AS f ON f.id = r.to_id AND f.type = 'fileref'
            WHERE r.type <> 'contains'""",
    )
    source = (folder / "shapes.py").read_text().split("\n")
    lines = {key: source[line - 1].strip() for key, _, path, line in found if path.endswith(".py")}
    assert lines == {
        "<module>": '"""Plane shapes."""',
        "Circle": "class Circle:",
        "Circle.area": "def area(self):",
        "perimeter": "def perimeter():",
    }
    assert {(kind, Path(path).name) for _, kind, path, _ in found} == {
        ("indexes", "shapes.py"),
        ("extracted_from", "guide.md"),
    }


def test_the_parent_of_a_piece_is_what_contains_it(memory: Memory, folder: Path) -> None:
    read(memory, folder)
    found = rows(
        memory,
        """SELECT COALESCE(json_extract(n.data, '$.key'), json_extract(n.data, '$.path')),
                  COALESCE(json_extract(p.data, '$.key'), json_extract(p.data, '$.path'))
             FROM relations AS r JOIN nodes AS n ON n.id = r.to_id
             JOIN nodes AS p ON p.id = r.from_id
            WHERE r.type = 'contains' AND p.id = n.parent_id""",
    )
    parents = {Path(piece).name: Path(above).name for piece, above in found if above}
    assert parents["shapes.py"] == parents["guide.md"] == "docs"
    assert parents["<module>"] == "shapes.py"
    assert parents["Circle"] == parents["perimeter"] == "<module>"
    assert parents["Circle.area"] == "Circle"


def test_what_was_read_is_found_with_its_place(memory: Memory, folder: Path) -> None:
    read(memory, folder)
    found = memory.search.graph_search("surface inside a round shape", top_k=3)
    places = [(Path(place.path).name, place.line) for place in found.files]
    assert ("shapes.py", 7) in places


def test_a_path_that_is_not_there_is_not_found(memory: Memory, folder: Path) -> None:
    with pytest.raises(NotFoundError):
        read(memory, folder / "nowhere")
    assert memory.generation() == 0


# ── again ─────────────────────────────────────────────────────────────────────────────────


def test_a_second_run_over_the_same_files_writes_nothing(memory: Memory, folder: Path) -> None:
    read(memory, folder)
    before = memory.generation()
    again = read(memory, folder)
    assert (again.unchanged, again.files, again.nodes) == (2, 0, 0)
    assert memory.generation() == before


def test_a_file_with_a_new_time_and_the_same_words_writes_nothing(
    memory: Memory, folder: Path
) -> None:
    read(memory, folder)
    before = memory.generation()
    os.utime(folder / "shapes.py", (1, 1))
    report = read(memory, folder)
    assert (report.unchanged, report.files) == (2, 0)
    assert memory.generation() == before


def test_a_file_of_the_same_size_and_time_is_not_even_read(memory: Memory, folder: Path) -> None:
    read(memory, folder)
    time = (folder / "guide.md").stat().st_mtime_ns
    (folder / "guide.md").write_text(GUIDE.replace("Draw", "Move"))
    os.utime(folder / "guide.md", ns=(time, time))
    assert read(memory, folder).unchanged == 2


def test_a_changed_docstring_updates_its_node_and_no_other(memory: Memory, folder: Path) -> None:
    read(memory, folder)
    before = pieces(memory)
    edit(folder / "shapes.py", "A round shape.", "A shape without corners.")
    report = read(memory, folder)
    after = pieces(memory)
    assert (report.nodes, report.updated, report.gone) == (0, 1, 0)
    assert after["Circle"].id == before["Circle"].id
    assert "without corners" in after["Circle"].text
    assert {key: piece for key, piece in after.items() if key != "Circle"} == {
        key: piece for key, piece in before.items() if key != "Circle"
    }


def test_a_line_above_moves_the_place_and_not_the_node(memory: Memory, folder: Path) -> None:
    read(memory, folder)
    before = pieces(memory)
    updated = "SELECT updated_at FROM nodes WHERE id = :id"
    [was] = rows(memory, updated, id=before["Circle.area"].id)
    edit(folder / "shapes.py", "class Circle", "LIMIT = 1\n\n\nclass Circle")
    read(memory, folder)
    assert pieces(memory) == before
    assert rows(memory, updated, id=before["Circle.area"].id) == [was]
    line = """SELECT json_extract(data, '$.line') FROM relations
               WHERE from_id = :id AND type = 'indexes'"""
    assert rows(memory, line, id=before["Circle.area"].id) == [(10,)]


def test_a_function_that_is_gone_turns_stale_and_comes_back_as_itself(
    memory: Memory, folder: Path
) -> None:
    read(memory, folder)
    old = pieces(memory)["perimeter"]
    text = (folder / "shapes.py").read_text()
    (folder / "shapes.py").write_text(text.partition("@property")[0])
    assert read(memory, folder).gone == 1
    assert pieces(memory)["perimeter"] == old._replace(status="stale")
    (folder / "shapes.py").write_text(text)
    read(memory, folder)
    assert pieces(memory)["perimeter"] == old


def test_a_renamed_heading_is_a_new_section_and_the_old_one_is_stale(
    memory: Memory, folder: Path
) -> None:
    read(memory, folder)
    before = pieces(memory)
    [install] = [key for key in before if "Install" in key]
    edit(folder / "guide.md", "## Install", "## Set up")
    report = read(memory, folder)
    after = pieces(memory)
    [set_up] = [key for key in after if "Set up" in key]
    assert (report.nodes, report.gone) == (1, 1)
    assert after[install] == before[install]._replace(status="stale")
    assert after[set_up].text == before[install].text
    assert after[set_up].status == "active"


def test_a_retired_piece_that_an_agent_superseded_stays_stale(memory: Memory, folder: Path) -> None:
    read(memory, folder)
    old = pieces(memory)["Circle"]
    new = memory.mutation.supersede(old.id, Fields(text="A circle is an ellipse.")).new_id
    edit(folder / "shapes.py", "The surface inside.", "The surface it covers.")
    assert read(memory, folder).updated == 1
    statuses = dict(rows(memory, "SELECT id, status FROM nodes"))
    assert (statuses[old.id], statuses[new]) == ("stale", "active")


# ── what cannot be read ───────────────────────────────────────────────────────────────────


def test_a_syntax_error_keeps_what_is_known_of_the_file(memory: Memory, folder: Path) -> None:
    read(memory, folder)
    before, generation = pieces(memory), memory.generation()
    edit(folder / "shapes.py", "class Circle:", "class Circle(:")
    report = read(memory, folder)
    assert report.problems
    assert report.problems[0].startswith("shapes.py:4:")
    assert pieces(memory) == before
    assert memory.generation() == generation


def test_a_new_file_with_a_syntax_error_is_read_once_it_is_mended(
    memory: Memory, folder: Path
) -> None:
    (folder / "late.py").write_text('def late(:\n    """Too late."""\n')
    assert len(read(memory, folder / "late.py").problems) == 1
    edit(folder / "late.py", "late(:", "late():")
    assert read(memory, folder / "late.py").problems == []
    assert pieces(memory)["late"].status == "active"


def test_a_file_that_is_deleted_or_became_binary_keeps_what_is_known(
    memory: Memory, folder: Path
) -> None:
    read(memory, folder)
    before = pieces(memory)
    (folder / "guide.md").unlink()
    (folder / "shapes.py").write_bytes(b"\0\0")
    report = read(memory, folder)
    assert report.skipped == {"binary content": 1}
    assert pieces(memory) == before


@contextmanager
def nobody() -> Iterator[Path]:
    """A folder in which this process has no more rights than its files give."""
    with tempfile.TemporaryDirectory() as name:
        was = os.geteuid()
        if was == 0:
            os.chown(name, 65534, 65534)
            os.seteuid(65534)
        try:
            yield Path(name)
        finally:
            os.seteuid(was)


@pytest.mark.skipif(not hasattr(os, "seteuid"), reason="needs POSIX permissions")
def test_what_became_unreadable_keeps_what_is_known() -> None:
    with nobody() as place:
        root = place / "docs"
        (root / "sub").mkdir(parents=True)
        (root / "sub" / "shapes.py").write_text(SHAPES)
        (root / "guide.md").write_text(GUIDE)
        with closing(open_memory(load_settings(home=place / "home", env={}))) as memory:
            memory.engine.after_write = lambda: None
            read(memory, root)
            before, generation = pieces(memory), memory.generation()
            (root / "sub").chmod(0)
            (root / "guide.md").chmod(0)
            report = read(memory, root)
            (root / "sub").chmod(0o700)
            assert [Path(name).name for name in report.unreadable] == ["guide.md", "sub"]
            assert (pieces(memory), memory.generation()) == (before, generation)
