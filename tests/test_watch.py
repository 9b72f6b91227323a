"""`cortex ingest --watch`: each burst of changes is one round, and a signal ends it cleanly."""

from __future__ import annotations

import json
import queue
import shutil
import signal
import sqlite3
import subprocess
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.local import start_cortex


class Watch:
    """A running watch; `round()` is its next line."""

    def __init__(self, home: Path, target: Path, *options: str) -> None:
        self.process = start_cortex(
            home, "ingest", str(target), "--watch", "--workspace", "w", *options
        )
        self._lines: queue.Queue[str] = queue.Queue()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        assert self.process.stdout
        for line in self.process.stdout:
            self._lines.put(line)

    def line(self) -> str:
        return self._lines.get(timeout=30)

    def round(self) -> dict[str, Any]:
        told: dict[str, Any] = json.loads(self.line())
        return told

    def rounds_until(self, name: str, total: int) -> list[dict[str, Any]]:
        """The rounds in which this number came to the total."""
        found: list[dict[str, Any]] = []
        while sum(each[name] for each in found) < total:
            found.append(self.round())
        return found

    def end(self, number: signal.Signals = signal.SIGTERM) -> int:
        self.process.send_signal(number)
        return self.process.wait(20)


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    made = tmp_path / "docs"
    made.mkdir()
    (made / "a.md").write_text("# A\n\nThe first text.\n")
    return made


@pytest.fixture
def watch(home: Path, docs: Path) -> Iterator[Watch]:
    running = Watch(home, docs, "--json")
    yield running
    running.process.kill()
    running.process.wait()


def texts(home: Path) -> set[str]:
    with closing(sqlite3.connect(home / "cortex.db")) as shell:
        question = """SELECT json_extract(data, '$.text') FROM nodes
                       WHERE status = 'active' AND json_extract(data, '$.key') IS NOT NULL"""
        return {text for (text,) in shell.execute(question)}


def test_a_save_an_atomic_save_a_rename_and_a_removal_are_followed(
    watch: Watch, home: Path, docs: Path
) -> None:
    assert watch.round()["files"] == 1
    (docs / "a.md").write_text("# A\n\nThe second text.\n")
    assert watch.round()["updated"] == 1
    # As editors save: written beside, then renamed over.
    (docs / ".a.md.swp").write_text("# A\n\nThe third text.\n")
    (docs / ".a.md.swp").rename(docs / "a.md")
    saved = watch.round()
    assert (saved["updated"], saved["missing"], saved["renamed"]) == (1, 0, 0)
    assert texts(home) == {"The third text."}
    (docs / "sub").mkdir()
    (docs / "a.md").rename(docs / "sub" / "b.md")
    assert watch.rounds_until("renamed", 1)[-1]["nodes"] == 0
    shutil.rmtree(docs / "sub")
    assert watch.rounds_until("missing", 1)
    assert texts(home) == {"The third text."}
    assert watch.end() == 0


def test_a_folder_moved_in_is_read_whole_and_an_ignore_file_is_obeyed_at_once(
    watch: Watch, docs: Path, tmp_path: Path
) -> None:
    watch.round()
    (tmp_path / "aside").mkdir()
    for name in ("x.md", "y.md"):
        (tmp_path / "aside" / name).write_text(name)
    (tmp_path / "aside").rename(docs / "in.d")
    watch.rounds_until("files", 2)
    (docs / ".cortexignore").write_text("secret.md\n")
    assert watch.round()["unchanged"] == 3
    (docs / "secret.md").write_text("secret")
    (docs / "open.md").write_text("open")
    rounds = watch.rounds_until("files", 1)
    assert rounds[-1]["nodes"] == 1
    assert any(each["skipped"] for each in rounds)


@pytest.mark.skipif(shutil.which("git") is None, reason="switches a branch of git")
def test_a_branch_switch_of_hundreds_of_files_is_followed(home: Path, docs: Path) -> None:
    def git(*arguments: str) -> None:
        me = ("-c", "user.name=t", "-c", "user.email=t@example.org")
        subprocess.run(["git", "-C", str(docs), *me, *arguments], check=True, capture_output=True)

    def fill(word: str) -> None:
        for number in range(300):
            (docs / f"f{number:03}.md").write_text(f"{word} {number}\n")
        git("add", "-A")
        git("commit", "-qm", word)

    git("init", "-qb", "main")
    fill("before")
    git("switch", "-qc", "other")
    fill("after")
    git("switch", "-q", "main")
    watch = Watch(home, docs, "--json")
    try:
        assert watch.round()["files"] == 301
        git("switch", "-q", "other")
        rounds = watch.rounds_until("files", 300)
        assert len(rounds) < 10
        assert sum(each["missing"] for each in rounds) == 0
        assert {f"after {number}" for number in range(300)} <= texts(home)
        assert watch.end(signal.SIGINT) == 0
    finally:
        watch.process.kill()
        watch.process.wait()


def test_a_single_file_is_followed_through_atomic_saves(home: Path, docs: Path) -> None:
    watch = Watch(home, docs / "a.md")
    try:
        assert watch.line().startswith("1 files read")
        for text in ("one", "two"):
            (docs / "b.tmp").write_text(f"# A\n\n{text}\n")
            (docs / "b.tmp").rename(docs / "a.md")
            assert "1 updated" in watch.line()
        assert watch.end(signal.SIGINT) == 0
        assert watch.process.stderr
        assert "stopped" in watch.process.stderr.read()
    finally:
        watch.process.kill()
        watch.process.wait()
