"""Maintenance beside the servers, killed on its way: what it leaves must be whole.

Reindex, compaction and backup work on the memory in use. Migration and restore have homes
of their own, since they begin from other files: after each kill the home is examined, and
holds the old content or the new one.
"""

from __future__ import annotations

import random
import shutil
import sqlite3
import time
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Final

import anyio
import anyio.to_thread
import psutil

from cortex.config import load_settings
from cortex.memory import open_memory
from cortex.services.doctor.examining import Doctor, Examined
from cortex.services.doctor.findings import State
from cortex.services.fields import Fields
from cortex.services.keeping.backing_up import BackingUp
from tests.local import start_cortex
from tests.original_schema import make_original

_ORIGINAL: Final = 400
_GUESS: Final = 1.5  # seconds that a command has the file open, before one came to its end
_COUNT: Final = "SELECT COUNT(*) FROM nodes"
_TEXTS: Final = "SELECT json_extract(data, '$.text') FROM nodes WHERE type = 'fact' ORDER BY 1"


class Upkeep:
    """Runs the five kinds in turn, and kills most of them."""

    def __init__(self, home: Path, folder: Path, dice: random.Random) -> None:
        self._home = home
        self._folder = folder
        self._dice = dice
        self._takes: dict[str, float] = {}
        self._stopping = False
        self.kills: Counter[str] = Counter()
        self.ended: Counter[str] = Counter()
        self.faults: list[str] = []

    def prepare(self) -> None:
        """An original file, and a home with a backup that differs from it."""
        make_original(self._folder / "original.db", count=_ORIGINAL).chmod(0o600)
        home = self._folder / "before"
        settings = load_settings(home=home, workspace="w", env={})
        for text in ("in the backup", "later"):
            memory = open_memory(settings)
            memory.engine.after_write = lambda: None
            for number in range(30):
                memory.adding.add_node("fact", Fields(text=f"{text} {number} " * 40))
            memory.close()
            if text == "in the backup":
                BackingUp(settings).back_up(self._folder / "restored.db")

    async def run(self, stop: anyio.Event) -> None:
        kinds: tuple[Callable[[], object], ...] = (
            lambda: self._attempt("reindex", self._home, "reindex"),
            lambda: self._attempt("compact", self._home, "compact", "--keep", "0"),
            lambda: self._attempt("backup", self._home, "backup", str(self.backup)),
            self._migrate,
            self._restore,
            self._examine,
        )
        async with anyio.create_task_group() as group:
            group.start_soon(self._watch, stop)
            while not stop.is_set():
                for act in kinds:
                    if not stop.is_set():
                        await anyio.to_thread.run_sync(act)

    async def _watch(self, stop: anyio.Event) -> None:
        await stop.wait()
        self._stopping = True

    @property
    def backup(self) -> Path:
        return self._folder / "backup.db"

    def finish(self) -> None:
        """Each kind on the memory in use, once more and to its end."""
        for kind, options in (
            ("reindex", ()),
            ("compact", ("--keep", "0")),
            ("backup", (str(self.backup),)),
        ):
            self._attempt(kind, self._home, kind, *options, kill=False)
        drafts = [path.name for path in self._folder.glob(".*.part*")]
        self.faults += [f"a killed backup's draft is left: {name}" for name in drafts]

    def _attempt(self, kind: str, home: Path, *arguments: str, kill: bool = True) -> bool:
        """Run a command, killed at a random moment of the time for which it has the file open,
        or when the soak ends; whether it came to its end."""
        limit = self._dice.uniform(0.0, 1.1) * self._takes.get(kind, _GUESS) if kill else 1e9
        begun = 0.0
        with start_cortex(home, *arguments) as process:
            while process.poll() is None:
                begun = begun or (time.monotonic() if _has_open(process.pid, home) else 0.0)
                late = bool(begun) and time.monotonic() - begun > limit
                if kill and (late or self._stopping):
                    process.kill()
                    process.wait()
                    self.kills[kind] += 1
                    return False
                time.sleep(0.01)
            said = process.stderr.read() if process.stderr else ""
        self.ended[kind] += 1
        if process.returncode:
            self.faults.append(f"{kind} ended with {process.returncode}: {said[-300:]}")
        # The quickest is nearest to what it takes alone: later ones are killed in its midst.
        took = time.monotonic() - begun if begun else _GUESS
        self._takes[kind] = min(took, self._takes.get(kind, took))
        return True

    def _migrate(self) -> None:
        home = self._folder / "migrated"
        shutil.rmtree(home, ignore_errors=True)
        home.mkdir(mode=0o700)
        shutil.copy2(self._folder / "original.db", home / "cortex.db")
        for attempt in range(4):
            if self._attempt("migration", home, "status", kill=attempt < 3):
                break
        self._check("migration", Doctor(load_settings(home=home, env={})).examine())
        with closing(sqlite3.connect(home / "cortex.db")) as shell:
            (count,) = shell.execute(_COUNT).fetchone()
        if count < _ORIGINAL:
            self.faults.append(f"migration: {count} nodes of {_ORIGINAL}")

    def _restore(self) -> None:
        home = self._folder / "restored"
        shutil.rmtree(home, ignore_errors=True)
        shutil.copytree(self._folder / "before", home)
        contents = [self._texts(home / "cortex.db"), self._texts(self._folder / "restored.db")]
        done = self._attempt("restore", home, "restore", str(self._folder / "restored.db"), "--yes")
        self._check("restore", Doctor(load_settings(home=home, env={})).examine())
        if self._texts(home / "cortex.db") not in (contents[1:] if done else contents):
            self.faults.append("restore: neither the old content nor the new")

    def _texts(self, file: Path) -> list[str]:
        with closing(sqlite3.connect(file)) as shell:
            return [text for (text,) in shell.execute(_TEXTS)]

    def _examine(self) -> None:
        """The memory in use, beside its servers."""
        self._check("in use", Doctor(load_settings(home=self._home, env={})).examine())
        self.ended["doctor"] += 1

    def _check(self, what: str, examined: Examined) -> None:
        for each in examined.findings:
            if each.state is State.FAULT:
                self.faults.append(f"{what}: {each.check}, {each.count}: {each.examples}")


def _has_open(pid: int, home: Path) -> bool:
    """Whether a process has a memory of this home open."""
    try:
        files = psutil.Process(pid).open_files()
    except (psutil.NoSuchProcess, psutil.AccessDenied):
        return False
    return any(file.path.startswith(f"{home}/") and ".db" in file.path for file in files)
