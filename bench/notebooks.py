"""Executes every notebook anew and keeps its outputs: `make notebooks`.

Nothing of the machine is kept: no times, no counts of earlier runs, no warnings on stderr.
Run: python -m bench.notebooks [NAME …].
"""

from __future__ import annotations

import argparse
import base64
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient

FOLDER = Path(__file__).parent.parent / "notebooks"
PICTURE = "centrality_and_communities"  # whose first picture the README shows
_LONGEST = 600  # seconds a cell


def execute(file: Path) -> None:
    """Raises CellExecutionError where a cell fails; the file then stays as it was."""
    notebook = nbformat.read(file, as_version=4)
    client = NotebookClient(
        notebook,
        timeout=_LONGEST,
        kernel_name="python3",
        record_timing=False,
        resources={"metadata": {"path": str(file.parent)}},
    )
    client.execute()
    for cell in notebook.cells:
        cell.metadata = {}
        if cell.cell_type == "code":
            cell.outputs = [each for each in cell.outputs if _says_something(each)]
    notebook.metadata = {
        "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
        "language_info": {"name": "python"},
    }
    nbformat.write(notebook, file)
    if file.stem == PICTURE:
        first = next(picture for cell in notebook.cells for picture in _pictures(cell))
        file.with_name("communities.png").write_bytes(base64.b64decode(first))


def _pictures(cell: Mapping[str, Any]) -> Iterator[str]:
    for output in cell.get("outputs", ()):
        if "image/png" in output.get("data", {}):
            yield output["data"]["image/png"]


def _says_something(output: Mapping[str, Any]) -> bool:
    """Warnings do not, nor the script that networkit puts into a page when it is imported."""
    return output.get("name") != "stderr" and "text/html" not in output.get("data", {})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="without the ending; all unless given")
    given = parser.parse_args()
    files = [FOLDER / f"{name}.ipynb" for name in given.names] or sorted(FOLDER.glob("*.ipynb"))
    for file in files:
        began = time.perf_counter()
        execute(file)
        print(f"{file.name}: {time.perf_counter() - began:.0f} s, {file.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
