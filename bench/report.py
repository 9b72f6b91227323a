"""What a run leaves: one table for people, one JSON file a size, with all that made them."""

from __future__ import annotations

import importlib.metadata
import json
import os
import platform
import sqlite3
import subprocess
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from cortex.cli.timing import COLUMNS, Figure

FOLDER: Final = Path(__file__).parent / "results"
_PACKAGES: Final = ("mcp", "rustworkx", "numpy", "scipy", "duckdb", "onnxruntime", "fastembed")


def about(seed: int, command: Sequence[str]) -> dict[str, Any]:
    """What a figure needs to be taken again: seed, versions, machine, command, commit."""
    return {
        "date": datetime.now(UTC).date().isoformat(),
        "command": " ".join(command),
        "seed": seed,
        "commit": commit(),
        "machine": f"{os.cpu_count()} × {processor()}, {platform.system()} {platform.machine()}",
        "load_before": round(os.getloadavg()[0], 2) if hasattr(os, "getloadavg") else None,
        "versions": {
            "python": platform.python_version(),
            "sqlite": sqlite3.sqlite_version,
            **{name: importlib.metadata.version(name) for name in _PACKAGES},
        },
    }


def commit() -> str | None:
    """The commit of this checkout, marked where files differ from it; None outside of one."""
    try:
        done = subprocess.run(
            ["git", "describe", "--always", "--dirty"],
            cwd=FOLDER.parent, capture_output=True, text=True, check=True,
        )  # fmt: skip
    except (OSError, subprocess.CalledProcessError):
        return None
    return done.stdout.strip()


def processor() -> str:
    """The processor's name."""
    info = Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or "unknown processor"


def keep(folder: Path, nodes: int, told: dict[str, Any], figures: Iterable[Figure]) -> Path:
    """Write nodes-N.json: figures of the run, and of earlier ones those that it left out.

    Each figure says the command that it was taken with; the rest is of the last run.
    """
    file = folder / f"nodes-{nodes}.json"
    taken = [{**figure.plain(), "command": told["command"]} for figure in figures]
    names = {_key(figure) for figure in taken}
    before = json.loads(file.read_text("utf-8"))["figures"] if file.exists() else []
    kept = [figure for figure in before if _key(figure) not in names]
    folder.mkdir(parents=True, exist_ok=True)
    told = {**told, "nodes": nodes, "figures": kept + taken}
    file.write_text(json.dumps(told, indent=1, ensure_ascii=False) + "\n", "utf-8")
    return file


def _key(figure: dict[str, Any]) -> tuple[Any, ...]:
    return figure["subject"], figure["where"], figure["clients"]


def heading() -> str:
    """The first two lines of the table."""
    names = ("nodes", "subject", *COLUMNS[1:])
    return f"| {' | '.join(names)} |\n|{'---|' * len(names)}"


def row(figure: Figure) -> str:
    """A line of it."""
    return f"| {figure.nodes:,} | {' | '.join(figure.cells)} |"


def verdict(figures: Sequence[Figure]) -> str:
    """How many promises were kept, and which were not."""
    promised = [figure for figure in figures if figure.met is not None]
    missed = [figure for figure in promised if not figure.met]
    lines = [f"{len(promised) - len(missed)} of {len(promised)} promises kept"]
    lines += [
        f"missed: {each.subject}, {each.where}, {each.clients} at once, {each.nodes:,} nodes: "
        f"{each.target}"
        for each in missed
    ]
    return "\n".join(lines)
