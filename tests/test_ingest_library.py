"""Ingest as people run it: two at once, and a real library asked by its own words."""

from __future__ import annotations

import ast
import http
import json
import random
import re
import sqlite3
from collections import Counter
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.harness import call, connected
from tests.local import run_cortex, start_cortex

MODULE = '''"""Plane shapes."""


class Shape{number}:
    """A round shape."""

    def area(self):
        """The surface inside."""
'''


def test_two_ingests_at_once_end_as_one(home: Path, tmp_path: Path) -> None:
    folder = tmp_path / "docs"
    folder.mkdir()
    for number in range(8):
        (folder / f"part{number}.py").write_text(MODULE.format(number=number))
    processes = [start_cortex(home, "ingest", str(folder), "--workspace", "w") for _ in range(2)]
    for process in processes:
        _, errors = process.communicate(timeout=60)
        assert process.returncode == 0, errors
    with closing(sqlite3.connect(home / "cortex.db")) as shell:
        paths = shell.execute("SELECT json_extract(data, '$.path') FROM nodes WHERE type='fileref'")
        assert set(Counter(path for (path,) in paths).values()) == {1}
        twice = """SELECT n.parent_id, n.data FROM nodes AS n
                    GROUP BY n.parent_id, n.data HAVING count(*) > 1"""
        assert shell.execute(twice).fetchall() == []
        entities = "SELECT count(*) FROM nodes WHERE type = 'entity' AND status = 'active'"
        assert shell.execute(entities).fetchone() == (8 * 3,)
        rewritten = "SELECT count(*) FROM changes WHERE entity = 'node' AND op = 'update'"
        assert shell.execute(rewritten).fetchone() == (0,)


class Function(NamedTuple):
    """A documented function: where it stands, and the start of what it says."""

    path: str
    line: int
    name: str
    sentence: str


def functions_of(folder: Path) -> list[Function]:
    """Every function with a docstring, as the interpreter's own parser sees it."""
    found = []
    for path in sorted(folder.rglob("*.py")):
        for item in ast.walk(ast.parse(path.read_text())):
            if isinstance(item, ast.FunctionDef) and (text := ast.get_docstring(item)):
                sentence = re.split(r"(?<=\.)\s|\n\n", " ".join(text.split("\n")))[0]
                found.append(Function(path.as_posix(), item.lineno, item.name, sentence))
    return found


@pytest.mark.anyio
async def test_the_first_sentence_of_a_docstring_leads_to_its_def_line(home: Path) -> None:
    folders = [Path(str(package.__file__)).parent for package in (json, http)]
    known: list[Function] = []
    for folder in folders:
        run_cortex(home, "ingest", str(folder), "--workspace", "library")
        known += functions_of(folder)
    sentences = Counter(function.sentence for function in known)
    asked = [f for f in known if sentences[f.sentence] == 1 and len(f.sentence.split()) >= 4]
    chosen = random.Random(20).sample(asked, 20)
    right = []
    async with connected(home, workspace="library", CORTEX_SEARCH_WAIT="60") as client:
        for function in chosen:
            question = re.sub(rf"\b{re.escape(function.name)}\b", "", function.sentence)
            answer = await call(client, "graph_search", query=question)
            places = [(place["path"], place["line"]) for place in answer["files"][:1]]
            right.append(places == [(function.path, function.line)])
    assert sum(right) >= 16, [f for f, good in zip(chosen, right, strict=True) if not good]
