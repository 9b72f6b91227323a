"""What a whole ingest leaves out, foresees, takes up again, and makes of files that went."""

from __future__ import annotations

import json
import os
import random
import shutil
import sqlite3
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from cortex.config import load_settings
from cortex.domain.errors import NotFoundError
from cortex.memory import Memory, open_memory
from cortex.services.ingest.sources import Reason, survey_sources
from cortex.services.ingest.writing import Ingested
from tests.local import run_cortex, start_cortex

GUIDE = "# Guide\n\nHow to begin.\n\n## Install\n\nRun the installer.\n"


def write(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


def names(root: Path) -> list[str]:
    return [path.relative_to(root).as_posix() for path in survey_sources(root).paths]


def rows(memory: Memory, question: str, **bound: Any) -> list[Any]:
    """Rows of the file, read beside the product."""
    with closing(sqlite3.connect(memory.engine.database.path)) as shell:
        return shell.execute(question, bound).fetchall()


def filerefs(memory: Memory) -> dict[str, tuple[str, bool]]:
    """Each ingested file's name: its id, and whether it is noted as missing."""
    found = rows(
        memory,
        """SELECT json_extract(data, '$.path'), id, json_extract(data, '$.missing') IS 1
             FROM nodes WHERE type = 'fileref' AND json_extract(data, '$.ingested')""",
    )
    return {Path(path).name: (node, bool(missing)) for path, node, missing in found}


def pieces(memory: Memory) -> set[tuple[str, str, str]]:
    """Every piece: id, text, status."""
    return set(
        rows(
            memory,
            """SELECT id, json_extract(data, '$.text'), status FROM nodes
                WHERE json_extract(data, '$.key') IS NOT NULL""",
        )
    )


def read(memory: Memory, folder: Path, **options: Any) -> Ingested:
    return memory.ingest.ingest(folder, **options)


# ── ignore files ──────────────────────────────────────────────────────────────────────────

FOLDERS = ("a", "b", "build", "docs")
FILES = ("x.md", "y.md", "z.txt", "w.py")
PATTERNS = (
    *("build/", "/build", "*.md", "!x.md", "docs/*", "!docs/", "**/b", "a/**", "/docs/x.md"),
    *("*.txt", "!*/", "*", "#c", "!", "\\!a", "a/b/", "b/x.md", "!b", "[xy].md", "/*", "!/a"),
    *("docs/**/x.md", " ", "x.md ", "!a/b/x.md", "*.md\r"),
)


def scatter(root: Path, chance: random.Random) -> None:
    """A small repository with ignore files anywhere in it."""
    subprocess.run(["git", "init", "-q", root], check=True)
    folders = [root]
    for _ in range(6):
        folders.append(chance.choice(folders) / chance.choice(FOLDERS))
        folders[-1].mkdir(exist_ok=True)
    for _ in range(14):
        (chance.choice(folders) / chance.choice(FILES)).write_text("text")
    for folder in (root, *chance.sample(folders, 2)):
        lines = (chance.choice(PATTERNS) for _ in range(chance.randint(1, 5)))
        (folder / ".gitignore").write_text("\n".join(lines))


@pytest.mark.skipif(shutil.which("git") is None, reason="compares with git itself")
@pytest.mark.parametrize("seed", range(40))
def test_git_and_ingest_leave_out_the_same_files(tmp_path: Path, seed: int) -> None:
    scatter(tmp_path, random.Random(seed))
    listing = ["git", "-C", str(tmp_path), "ls-files", "-z", "--others", "--exclude-standard"]
    told = subprocess.run(listing, capture_output=True, check=True, text=True).stdout
    wanted = {name for name in told.split("\0") if name and not name.endswith(".gitignore")}
    assert set(names(tmp_path)) == wanted
    for inner in {name.partition("/")[0] for name in wanted if "/" in name}:
        # The files above the folder that is ingested count as well.
        below = {name.removeprefix(f"{inner}/") for name in wanted if name.startswith(f"{inner}/")}
        assert set(names(tmp_path / inner)) == below


def test_what_is_ignored_is_counted_by_the_file_that_says_so(tmp_path: Path) -> None:
    write(
        tmp_path,
        {
            ".gitignore": "out/\n*.txt\n",
            ".ignore": "drafts\n!kept.txt\n",
            ".cortexignore": "secret.md\n!drafts/\n",
            **dict.fromkeys(("out/a.md", "out/b.md", "b.txt", "kept.txt"), "x"),
            **dict.fromkeys(("drafts/c.md", "secret.md", "d.md"), "x"),
        },
    )
    survey = survey_sources(tmp_path)
    found = sorted(path.relative_to(tmp_path).as_posix() for path in survey.paths)
    assert found == ["d.md", "drafts/c.md", "kept.txt"]
    assert survey.skipped[Reason.GITIGNORE] == 2
    assert survey.skipped[Reason.CORTEXIGNORE] == 1


def test_an_ignored_folder_that_someone_names_is_read(tmp_path: Path) -> None:
    write(tmp_path, {".git/HEAD": "", ".gitignore": "out/\n", "out/a.md": "x"})
    assert names(tmp_path) == []
    assert names(tmp_path / "out") == ["a.md"]


def test_a_folder_whose_ignore_file_cannot_be_read_is_unreadable(tmp_path: Path) -> None:
    write(tmp_path, {"a.md": "x", "sub/b.md": "x"})
    (tmp_path / "sub" / ".gitignore").symlink_to(".gitignore")  # a circle: ELOOP, also for root
    survey = survey_sources(tmp_path)
    assert [path.name for path in survey.paths] == ["a.md"]
    assert [skipped.path.name for skipped in survey.unreadable] == ["sub"]


# ── foreseen, stopped, killed ─────────────────────────────────────────────────────────────


def test_a_dry_run_writes_nothing_and_says_what_the_run_then_does(
    memory: Memory, tmp_path: Path
) -> None:
    memory.engine.after_write = lambda: None
    docs = write(tmp_path / "docs", {"a.md": GUIDE, "b.md": "one\n", "c.md": "two\n"})
    read(memory, docs)
    write(docs, {"a.md": GUIDE.replace("## Install", "## Set up"), "new.md": "new\n"})
    (docs / "b.md").rename(docs / "moved.md")
    (docs / "c.md").unlink()
    before = memory.generation()
    foreseen = read(memory, docs, dry_run=True)
    assert memory.generation() == before
    said = {
        Path(each.path).name: (each.action, each.added, each.stale) for each in foreseen.changes
    }
    assert said == {
        "a.md": ("update", 1, 1),
        "moved.md": ("rename", 0, 0),
        "new.md": ("add", 1, 0),
        "c.md": ("missing", 0, 0),
    }
    done = read(memory, docs)
    for name in ("files", "unchanged", "nodes", "updated", "gone", "renamed", "missing"):
        assert getattr(done, name) == getattr(foreseen, name), name


def test_a_dry_run_of_the_command_names_each_file(home: Path, tmp_path: Path) -> None:
    docs = write(tmp_path / "docs", {"a.md": GUIDE})
    shown = run_cortex(home, "ingest", str(docs), "--dry-run")
    assert "would be read" in shown
    assert "a.md" in shown
    told = json.loads(run_cortex(home, "ingest", str(docs), "--dry-run", "--json"))
    assert told["dry_run"] is True
    assert told["changes"][0]["added"] == 2
    assert json.loads(run_cortex(home, "status", "--json"))["generation"] == 0


def test_a_dry_run_that_would_watch_is_refused(home: Path, tmp_path: Path) -> None:
    with start_cortex(home, "ingest", str(tmp_path), "--dry-run", "--watch") as process:
        _, errors = process.communicate(timeout=60)
    assert process.returncode == 2
    assert "--dry-run and --watch exclude each other" in errors


def test_an_ingest_that_was_killed_goes_on_where_it_stopped(home: Path, tmp_path: Path) -> None:
    files = {f"f{number:03}.md": f"# Part {number}\n\nText {number}.\n" for number in range(400)}
    docs = write(tmp_path / "docs", files)
    with start_cortex(home, "ingest", str(docs), "--workspace", "w") as process:
        deadline = time.monotonic() + 60
        while count(home) < 20 and time.monotonic() < deadline:
            time.sleep(0.005)
        process.kill()
    done = count(home)
    assert 20 <= done < 400, "it was not killed in the middle"
    with closing(open_memory(load_settings(home=home, workspace="w", env={}))) as memory:
        memory.engine.after_write = lambda: None
        report = read(memory, docs)
        assert (report.unchanged, report.files) == (done, 400 - done)
        assert len(filerefs(memory)) == len(pieces(memory)) == 400


def count(home: Path) -> int:
    """How many files the memory holds so far."""
    if not (home / "cortex.db").exists():
        return 0
    question = """SELECT count(*) FROM nodes
                   WHERE type = 'fileref' AND json_extract(data, '$.ingested')"""
    with closing(sqlite3.connect(home / "cortex.db")) as shell:
        try:
            return int(shell.execute(question).fetchone()[0])
        except sqlite3.OperationalError:
            return 0  # its tables are being made


def test_an_ingest_that_is_told_to_stop_keeps_what_it_read(memory: Memory, tmp_path: Path) -> None:
    docs = write(tmp_path / "docs", {"a.md": "one\n", "b.md": "two\n"})
    answers = iter([False, True])
    report = read(memory, docs, stopped=lambda: next(answers))
    assert report.stopped
    assert set(filerefs(memory)) == {"a.md"}


# ── renamed ───────────────────────────────────────────────────────────────────────────────


def test_a_renamed_file_keeps_its_node_its_pieces_and_their_vectors(
    memory: Memory, tmp_path: Path
) -> None:
    docs = write(tmp_path / "docs", {"a.md": GUIDE})
    read(memory, docs)
    memory.indexing.wait(None, 60)
    vectors = "SELECT emb_seq, node_key FROM embeddings ORDER BY emb_seq"
    before = filerefs(memory), pieces(memory), rows(memory, vectors)
    (docs / "sub").mkdir()
    (docs / "a.md").rename(docs / "sub" / "z.md")
    report = read(memory, docs)
    memory.indexing.wait(None, 60)
    assert (report.renamed, report.missing, report.nodes, report.gone) == (1, 0, 0, 0)
    assert filerefs(memory) == {"z.md": before[0]["a.md"]}
    assert (pieces(memory), rows(memory, vectors)) == before[1:]


def test_a_copy_is_a_file_of_its_own(memory: Memory, tmp_path: Path) -> None:
    docs = write(tmp_path / "docs", {"a.md": GUIDE})
    read(memory, docs)
    known = filerefs(memory)
    shutil.copy(docs / "a.md", docs / "b.md")
    report = read(memory, docs)
    assert (report.renamed, report.nodes) == (0, 2)
    assert filerefs(memory)["a.md"] == known["a.md"]


def test_of_two_files_alike_each_renamed_one_takes_over_one(memory: Memory, tmp_path: Path) -> None:
    docs = write(tmp_path / "docs", {"one/same.md": "alike\n", "two/other.md": "alike\n"})
    read(memory, docs)
    known = filerefs(memory)
    (docs / "one").rename(docs / "three")
    (docs / "two").rename(docs / "four")
    assert read(memory, docs).renamed == 2
    assert filerefs(memory) == known


def test_a_file_renamed_to_another_kind_is_read_anew_under_its_node(
    memory: Memory, tmp_path: Path
) -> None:
    docs = write(tmp_path / "docs", {"a.md": GUIDE})
    read(memory, docs)
    known = filerefs(memory)["a.md"]
    (docs / "a.md").rename(docs / "a.txt")
    report = read(memory, docs)
    assert (report.renamed, report.gone, report.nodes) == (1, 2, 1)
    assert filerefs(memory)["a.txt"] == known


# ── gone, and unreadable ──────────────────────────────────────────────────────────────────


def test_a_gone_file_is_noted_and_its_knowledge_stays_until_it_is_back(
    memory: Memory, tmp_path: Path
) -> None:
    docs = write(tmp_path / "docs", {"a.md": GUIDE, "b.md": "here\n"})
    read(memory, docs)
    known, before = filerefs(memory)["a.md"], pieces(memory)
    (docs / "a.md").unlink()
    assert read(memory, docs).missing == 1
    assert filerefs(memory)["a.md"] == (known[0], True)
    assert pieces(memory) == before
    generation = memory.generation()
    assert read(memory, docs).missing == 0
    assert memory.generation() == generation
    write(docs, {"a.md": GUIDE})
    assert read(memory, docs).returned == 1
    assert filerefs(memory)["a.md"] == known
    assert pieces(memory) == before


def test_a_removed_folder_that_memory_knows_is_noted_and_another_is_not_found(
    memory: Memory, tmp_path: Path
) -> None:
    docs = write(tmp_path / "docs", {"a.md": GUIDE})
    read(memory, docs)
    shutil.rmtree(docs)
    assert read(memory, docs).missing == 1
    with pytest.raises(NotFoundError):
        read(memory, tmp_path / "elsewhere")


def test_files_outside_the_ingested_folder_are_not_noted(memory: Memory, tmp_path: Path) -> None:
    one, two = (write(tmp_path / name, {f"{name}.md": name}) for name in ("one", "one-more"))
    read(memory, one)
    read(memory, two)
    (two / "one-more.md").unlink()
    assert read(memory, one).missing == 0
    assert filerefs(memory)["one-more.md"][1] is False


def test_behind_a_circle_of_links_nothing_is_gone(memory: Memory, tmp_path: Path) -> None:
    docs = write(tmp_path / "docs", {"sub/a.md": GUIDE})
    read(memory, docs)
    (docs / "sub").rename(tmp_path / "aside")
    (docs / "sub").symlink_to("sub")
    before = memory.generation()
    assert read(memory, docs).missing == 0
    assert memory.generation() == before


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
@pytest.mark.parametrize("mode", [0o000, 0o100, 0o400])
def test_in_an_unreadable_folder_nothing_is_gone_even_what_was_removed(mode: int) -> None:
    with nobody() as place:
        docs = write(place / "docs", {"sub/a.md": GUIDE, "sub/b.md": "two\n"})
        with closing(open_memory(load_settings(home=place / "home", env={}))) as memory:
            memory.engine.after_write = lambda: None
            read(memory, docs)
            before = memory.generation()
            (docs / "sub" / "b.md").unlink()
            (docs / "sub").chmod(mode)
            report = read(memory, docs)
            (docs / "sub").chmod(0o700)
            assert report.unreadable
            assert (report.missing, memory.generation()) == (0, before)
