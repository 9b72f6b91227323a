"""Installs of peers, each into a folder of its own that a later run uses again."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from bench.peers.peer import NotHere

_MINUTES: Final = 15
_ASK: Final = (
    "import sqlite3, sys; "
    "print(sys.version_info[0] * 100 + sys.version_info[1], "
    "int(hasattr(sqlite3.Connection, 'enable_load_extension')))"
)


def _run(command: Sequence[str | Path], what: str) -> None:
    """Run an installer; its registry's word is kept, without addresses."""
    try:
        done = subprocess.run(
            [str(word) for word in command],
            capture_output=True,
            text=True,
            timeout=60 * _MINUTES,
            check=False,
        )
    except FileNotFoundError:
        raise NotHere(f"{Path(command[0]).name} is not installed") from None
    except subprocess.TimeoutExpired:
        raise NotHere(f"{what} was not installed within {_MINUTES} minutes") from None
    if done.returncode:
        code = re.search(r"npm error code (\w+)", done.stderr)
        line = re.search(r"ERROR: (No matching distribution[^\n]*)", done.stderr)
        reason = code.group(1) if code else line.group(1) if line else f"exit {done.returncode}"
        raise NotHere(f"{what} could not be installed ({reason})")


def pythons() -> Iterator[str]:
    """Interpreters of this machine, this one first."""
    yield sys.executable
    for name in ("python3.13", "python3.12", "python3.11", "python3"):
        found = shutil.which(name)
        if found:
            yield found
    root = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    yield from map(str, sorted(root.glob("versions/3.1*/bin/python3"), reverse=True))
    yield "/usr/bin/python3"  # Debian's has loadable extensions where pyenv's has not


def find_python(at_least: tuple[int, int], *, extensions: bool = False) -> str:
    """The first interpreter of that version, and with loadable SQLite extensions if asked for."""
    for python in pythons():
        done = subprocess.run([python, "-c", _ASK], capture_output=True, text=True, check=False)
        if done.returncode:
            continue
        version, loads = map(int, done.stdout.split())
        if version >= at_least[0] * 100 + at_least[1] and (loads or not extensions):
            return python
    wanted = " with loadable SQLite extensions" if extensions else ""
    raise NotHere(f"there is no Python {at_least[0]}.{at_least[1]} or newer{wanted}")


def venv(folder: Path, python: str, *packages: str) -> Path:
    """The interpreter of a virtual environment that has these packages."""
    inside, mark = folder / "bin" / "python", folder / "installed.json"
    if not mark.exists() or json.loads(mark.read_text("utf-8")) != list(packages):
        shutil.rmtree(folder, ignore_errors=True)
        _run([python, "-m", "venv", folder], "virtual environment")
        _run([inside, "-m", "pip", "install", "--quiet", *packages], packages[0])
        mark.write_text(json.dumps(packages), "utf-8")
    return inside


def version_of(python: Path, package: str) -> str:
    """The version of a distribution in that environment."""
    ask = f"from importlib.metadata import version; print(version({package!r}))"
    done = subprocess.run([python, "-c", ask], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def importable(folder: Path, *packages: str) -> None:
    """Make packages importable here without touching this environment: they lie in `folder`."""
    if not folder.is_dir():
        fresh = folder.with_suffix(".part")
        shutil.rmtree(fresh, ignore_errors=True)
        _run(
            [sys.executable, "-m", "pip", "install", "--quiet", "--target", fresh, *packages],
            packages[0],
        )
        fresh.rename(folder)
    sys.path.append(str(folder))


def npm(folder: Path, package: str) -> tuple[Path, str]:
    """The program of an npm package, installed without its scripts, and its version."""
    place = folder / "node_modules" / package
    if not place.is_dir():
        folder.mkdir(parents=True, exist_ok=True)
        quiet = ("--no-audit", "--no-fund", "--ignore-scripts", "--loglevel=error")
        _run(["npm", "install", *quiet, "--prefix", folder, package], package)
    said = json.loads((place / "package.json").read_text("utf-8"))
    programs = said["bin"]
    program = programs if isinstance(programs, str) else next(iter(programs.values()))
    return place / program, str(said["version"])
