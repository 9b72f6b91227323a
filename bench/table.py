"""The README's table of speed, from the results: `python -m bench.table [--write]`.

One line a promise or tool, one column a size; p50 / p95, or one value with its unit.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from bench.report import FOLDER

README: Final = Path(__file__).parent.parent / "README.md"
Key = tuple[str, str, int]
_BEGIN: Final = "| | where | at once |"

ROWS: Final[tuple[Key, ...]] = (
    ("open, the day's first", "engine", 1),
    ("open", "stdio", 1),
    ("get", "stdio", 1),
    ("get again", "stdio", 1),
    ("answer that is ready", "stdio", 1),
    ("get", "engine", 1),
    ("focus", "stdio", 1),
    ("traverse", "stdio", 1),
    ("traverse again", "stdio", 1),
    ("traverse", "engine", 1),
    ("traverse", "stdio", 8),
    ("traverse", "stdio", 32),
    ("walk", "stdio", 1),
    ("walk", "engine", 1),
    ("path", "stdio", 1),
    ("cascade, planned", "stdio", 1),
    ("timeline", "stdio", 1),
    ("search, keyword", "engine", 1),
    ("search, meaning", "stdio", 1),
    ("search", "stdio", 1),
    ("search", "stdio", 32),
    ("add", "stdio", 1),
    ("add", "stdio", 32),
    ("empty", "stdio", 32),
    ("acknowledged writes lost", "stdio", 8),
    ("initialize, tools/list", "stdio", 1),
    ("tools/list", "stdio", 1),
    ("first graph answer", "stdio", 1),
    ("first graph answer, from rows", "stdio", 1),
    ("pagerank", "engine", 1),
    ("components", "engine", 1),
    ("betweenness, sampled", "engine", 1),
    ("server, its own", "stdio", 1),
    ("worker, a history of a million", "stdio", 1),
    ("graph", "engine", 1),
    ("graph built", "engine", 1),
)


def taken(folder: Path) -> dict[int, dict[Key, dict[str, Any]]]:
    """The figures of every size for which there are results, smallest first."""
    runs = [json.loads(file.read_text("utf-8")) for file in folder.glob("nodes-*.json")]
    return {
        run["nodes"]: {
            (figure["subject"], figure["where"], figure["clients"]): figure
            for figure in run["figures"]
        }
        for run in sorted(runs, key=lambda run: int(run["nodes"]))
    }


def table(folder: Path, least: int = 10_000) -> str:
    """The table, of memories of at least so many nodes."""
    sizes = {nodes: found for nodes, found in taken(folder).items() if nodes >= least}
    lines = [
        f"{_BEGIN} target | {' | '.join(f'{nodes:,}' for nodes in sizes)} |",
        "|---" * (4 + len(sizes)) + "|",
    ]
    for key in ROWS:
        found = [figures.get(key) for figures in sizes.values()]
        target = next((each["target"] for each in found if each and each["target"]), "")
        cells = " | ".join(_cell(each) for each in found)
        if any(found):
            lines.append(f"| {key[0]} | {key[1]} | {key[2]} | {target} | {cells} |")
    return "\n".join(lines)


def _cell(figure: Mapping[str, Any] | None) -> str:
    if figure is None:
        return "–"
    ratio = "" if not figure["ratio"] or "empty" not in figure["target"] else (
        f" ({figure['ratio']:.1f}×)"
    )  # fmt: skip
    if figure["unit"] != "ms" or figure["runs"] == 1:
        unit = "" if figure["unit"] == "ms" else f" {figure['unit']}"
        return f"{figure['p50']:g}{unit}"
    return f"{figure['p50']:g} / {figure['p95']:g}{ratio}"


def put(readme: Path, new: str) -> None:
    """Put the table in the place of the one that the README has."""
    lines = readme.read_text("utf-8").split("\n")
    first = next(at for at, line in enumerate(lines) if line.startswith(_BEGIN))
    last = next(at for at in range(first, len(lines)) if not lines[at].startswith("|"))
    lines[first:last] = new.split("\n")
    readme.write_text("\n".join(lines), "utf-8")


def main() -> None:
    """Print the table, and put it where it is read."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="into the README, too")
    made = table(FOLDER)
    print(made)
    if parser.parse_args().write:
        put(README, made)


if __name__ == "__main__":
    main()
