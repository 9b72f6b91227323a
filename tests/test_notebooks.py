"""The notebooks as they are committed; `make test` executes them too, with nbmake."""

from __future__ import annotations

import ast
import getpass
import json
from pathlib import Path
from typing import Any

import pytest

FOLDER = Path(__file__).parent.parent / "notebooks"
FILES = sorted(FOLDER.glob("*.ipynb"))
SUBJECTS = {"graph_health", "centrality_and_communities", "a_life_in_time", "search_quality"}

each_notebook = pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.stem))


def code_cells(file: Path) -> list[dict[str, Any]]:
    cells: list[dict[str, Any]] = json.loads(file.read_text("utf-8"))["cells"]
    return [cell for cell in cells if cell["cell_type"] == "code"]


def outputs(file: Path) -> list[dict[str, Any]]:
    return [output for cell in code_cells(file) for output in cell["outputs"]]


def test_every_subject_has_its_notebook() -> None:
    assert {file.stem for file in FILES} == SUBJECTS


@each_notebook
def test_a_notebook_defines_no_function_and_no_class(file: Path) -> None:
    for cell in code_cells(file):
        for node in ast.walk(ast.parse("".join(cell["source"]))):
            assert not isinstance(
                node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda
            ), ast.unparse(node)


@each_notebook
def test_a_notebook_imports_the_packages(file: Path) -> None:
    source = "\n".join("".join(cell["source"]) for cell in code_cells(file))
    roots = {
        node.module.partition(".")[0]
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.ImportFrom) and node.module
    }
    assert roots & {"analytics", "bench", "cortex"}


@each_notebook
def test_a_notebook_is_committed_as_it_ran_from_top_to_bottom(file: Path) -> None:
    counts = [cell["execution_count"] for cell in code_cells(file)]
    assert counts == list(range(1, len(counts) + 1))


@each_notebook
def test_a_notebook_is_committed_with_a_picture_and_without_an_error(file: Path) -> None:
    assert any("image/png" in output.get("data", {}) for output in outputs(file))
    assert not [output for output in outputs(file) if output["output_type"] == "error"]


@each_notebook
def test_a_notebook_says_nothing_of_the_machine_it_ran_on(file: Path) -> None:
    said = json.dumps(
        [
            {kind: text for kind, text in output.get("data", output).items() if kind[:5] != "image"}
            for output in outputs(file)
        ]
    )
    for trace in (f"/{getpass.getuser()}/", "/home/", "/tmp/", "/Users/", "site-packages", "\\\\"):
        assert trace not in said.replace("\\n", " ")


@each_notebook
def test_a_notebook_stays_small_and_names_only_the_common_kernel(file: Path) -> None:
    assert file.stat().st_size < 400_000
    metadata = json.loads(file.read_text("utf-8"))["metadata"]
    assert metadata["kernelspec"]["name"] == "python3"
    assert set(metadata) == {"kernelspec", "language_info"}


def test_the_picture_of_the_readme_is_small_and_there() -> None:
    picture = FOLDER / "communities.png"
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert picture.stat().st_size < 60_000
    assert "notebooks/communities.png" in (FOLDER.parent / "README.md").read_text("utf-8")
