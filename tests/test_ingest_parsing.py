"""What reading files must hold: which are met, and which pieces their text gives."""

from __future__ import annotations

import ast
import email
import http
import importlib
import inspect
import json
import logging
import os
import re
import tempfile
import types
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from cortex.domain.errors import InvalidError, NotFoundError, TooLargeError, UnavailableError
from cortex.domain.taxonomy import NodeType
from cortex.domain.values import MAX_TEXT, MAX_TITLE
from cortex.services.ingest.markdown import LIMIT
from cortex.services.ingest.parse import parse
from cortex.services.ingest.pieces import Keys, Piece, SourceFile, SourceKind
from cortex.services.ingest.sources import (
    MAX_BYTES,
    SUFFIXES,
    Reason,
    iter_sources,
    read_source,
    survey_sources,
)

STDLIB = Path(json.__file__).parent.parent
MODULES = sorted(
    path
    for package in (json, email, http, logging)
    for path in Path(str(package.__file__)).parent.glob("*.py")
)


def file(relative: str) -> SourceFile:
    kind, language = SUFFIXES[Path(relative).suffix]
    return SourceFile(Path("/nowhere") / relative, relative, 0, 0, "", language, kind)


def pieces(relative: str, text: str) -> tuple[Piece, ...]:
    parsed = parse(file(relative), text)
    assert parsed.problem is None
    return parsed.pieces


def by_key(relative: str, text: str) -> dict[str, Piece]:
    return {piece.key: piece for piece in pieces(relative, text)}


def write(root: Path, files: dict[str, str | bytes]) -> Path:
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
    return root


def met(root: Path) -> list[str]:
    return [path.relative_to(root).as_posix() for path in survey_sources(root).paths]


# Which files


def test_a_walk_meets_the_known_kinds_in_the_order_of_their_names(tmp_path: Path) -> None:
    names = ["b.md", "a/z.py", "a.txt", "c.PYI", "d.rst", "e.markdown", "f.pdf", "Z.md"]
    write(tmp_path, dict.fromkeys(names, "x"))
    assert met(tmp_path) == ["Z.md", "a/z.py", "a.txt", "b.md", "c.PYI", "d.rst", "e.markdown"]


@pytest.mark.parametrize(
    ("files", "reason"),
    [
        ({".git/a.md": "x"}, Reason.HIDDEN),
        ({"p/__pycache__/a.py": "x"}, Reason.GENERATED),
        ({"node_modules/a.md": "x"}, Reason.GENERATED),
        ({"env/pyvenv.cfg": "", "env/lib/a.py": "x"}, Reason.ENVIRONMENT),
        ({"lib/site-packages/a.py": "x"}, Reason.SITE_PACKAGES),
        ({"a.png": "x"}, Reason.KIND),
        ({"a.md": b"x" * (MAX_BYTES + 1)}, Reason.SIZE),
        ({"a.md": b"text\0"}, Reason.BINARY),
    ],
)
def test_what_is_skipped_is_counted_by_its_reason(
    tmp_path: Path, files: dict[str, str | bytes], reason: Reason
) -> None:
    survey = survey_sources(write(tmp_path, files))
    assert survey.found == ()
    assert survey.skipped == {reason: 1}


def test_the_largest_file_that_is_read_has_one_mebibyte(tmp_path: Path) -> None:
    survey = survey_sources(write(tmp_path, {"a.md": b"x" * MAX_BYTES, "b.md": b"y"}))
    assert (len(survey.found), survey.size) == (2, MAX_BYTES + 1)


def test_a_root_inside_a_skipped_folder_is_walked(tmp_path: Path) -> None:
    inner = "env/lib/site-packages/pack"
    write(tmp_path, {"env/pyvenv.cfg": "", f"{inner}/a.py": "x", f"{inner}/site-packages/b.py": ""})
    assert met(tmp_path / inner) == ["a.py"]


def test_links_are_not_followed(tmp_path: Path) -> None:
    write(tmp_path, {"out/secret.md": "x", "root/a.md": "x"})
    (tmp_path / "root/file.md").symlink_to(tmp_path / "out/secret.md")
    (tmp_path / "root/folder").symlink_to(tmp_path / "out")
    (tmp_path / "root/loop").symlink_to(tmp_path / "root")
    (tmp_path / "root/broken.md").symlink_to(tmp_path / "gone")
    survey = survey_sources(tmp_path / "root")
    assert [path.name for path in survey.paths] == ["a.md"]
    assert survey.skipped == {Reason.LINK: 4}


def test_a_root_that_is_a_link_or_one_file_is_accepted(tmp_path: Path) -> None:
    write(tmp_path, {"real/a.md": "x"})
    (tmp_path / "link").symlink_to(tmp_path / "real")
    assert met(tmp_path / "link") == ["a.md"]
    alone = tmp_path / "real/a.md"
    assert survey_sources(alone).paths == (alone,)
    assert read_source(alone, alone)[0].relative == "a.md"


def test_a_root_that_is_not_there_is_not_found(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError):
        list(iter_sources(tmp_path / "gone"))


@contextmanager
def nobody() -> Iterator[Path]:
    """A folder in which this process has no more rights than its files give."""
    with tempfile.TemporaryDirectory() as name:
        os.chmod(name, 0o755)
        was = os.geteuid()
        try:
            yield Path(name)
        finally:
            os.seteuid(was)


@pytest.mark.skipif(not hasattr(os, "seteuid"), reason="needs POSIX permissions")
def test_an_unreadable_file_or_folder_is_named() -> None:
    with nobody() as root:
        write(root, {"a.md": "x", "b/c.md": "x", "d/e.md": "x", "f.md": "x"})
        os.mkfifo(root / "g.md")
        for name, mode in (("a.md", 0), ("b", 0), ("d", 0o444)):
            (root / name).chmod(mode)
        if os.geteuid() == 0:
            os.seteuid(65534)
        survey = survey_sources(root)
        with pytest.raises(UnavailableError, match=r"a\.md.*Permission denied"):
            read_source(root / "a.md", root)
    assert [path.name for path in survey.paths] == ["f.md"]
    assert [skipped.path.name for skipped in survey.unreadable] == ["a.md", "b", "e.md", "g.md"]


@pytest.mark.parametrize(
    ("name", "raw", "text"),
    [
        ("a.md", b"\xef\xbb\xbf# T", "# T"),
        ("a.py", b"\xef\xbb\xbfx = 1", "x = 1"),
        ("a.py", b"# coding: latin-1\n'\xe9'", "# coding: latin-1\n'é'"),
        ("a.md", b"# coding: latin-1\n\xc3\xa9", "# coding: latin-1\né"),
        ("a.txt", b"caf\xe9", "caf�"),
        ("a.py", b"'\xff'", "'�'"),
        ("a.py", b"# coding: nonsense\n'\xc3\xa9'", "# coding: nonsense\n'é'"),
        ("a.py", b"# coding: rot13\nx", "# coding: rot13\nx"),
        ("a.py", b"# coding: undefined\nx", "# coding: undefined\nx"),
        ("a.py", b"", ""),
    ],
)
def test_bytes_become_text(tmp_path: Path, name: str, raw: bytes, text: str) -> None:
    write(tmp_path, {name: raw})
    assert read_source(tmp_path / name, tmp_path)[1] == text


def test_a_source_knows_its_file(tmp_path: Path) -> None:
    write(tmp_path, {"p/a.py": "abc"})
    source, _ = read_source(tmp_path / "p/a.py", tmp_path)
    assert (source.relative, source.size, source.kind, source.language) == (
        "p/a.py",
        3,
        "python",
        "python",
    )
    assert source.sha256 == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    assert source.modified_ns == (tmp_path / "p/a.py").stat().st_mtime_ns


def test_a_file_that_cannot_be_a_source_is_refused(tmp_path: Path) -> None:
    write(tmp_path, {"a.pdf": "x", "b.md": b"x" * (MAX_BYTES + 1)})
    with pytest.raises(InvalidError):
        read_source(tmp_path / "a.pdf", tmp_path)
    with pytest.raises(TooLargeError):
        read_source(tmp_path / "b.md", tmp_path)


@pytest.mark.skipif(os.name == "nt" or os.uname().sysname == "Darwin", reason="names are text")
def test_a_name_that_is_not_utf8_is_still_a_text_of_its_own(tmp_path: Path) -> None:
    names = [b"caf\xe9.md", b"caf\xe8.md"]
    for name in names:
        Path(os.fsdecode(os.path.join(os.fsencode(tmp_path), name))).write_text("x")
    found = [read_source(path, tmp_path)[0].relative for path in survey_sources(tmp_path).paths]
    assert found == ["caf\\xe8.md", "caf\\xe9.md"]


# Markdown

GUIDE = """\
---
title: Unused
---
before

# Guide

intro

## Install

    pip install x

```sh
# no heading
```

### On *Windows*

use `winget`

## Empty

Usage
-----
first

## Usage

second
"""


def test_each_section_with_text_is_a_chunk_under_its_heading_path() -> None:
    assert [(p.key, p.title, p.line, p.end_line, p.parent_key) for p in pieces("g.md", GUIDE)] == [
        ("preamble", "Guide", 4, 4, None),
        ("#", "Guide", 6, 8, None),
        ("#Install", "Guide › Install", 10, 16, "#"),
        ("#Install/On Windows", "Guide › Install › On Windows", 18, 20, "#Install"),
        ("#Usage", "Guide › Usage", 24, 26, "#"),
        ("#Usage~2", "Guide › Usage", 28, 30, "#"),
    ]


def test_a_section_holds_its_own_source_text_alone() -> None:
    found = by_key("g.md", GUIDE)
    assert found["preamble"].text == "before"
    assert found["#Install"].text == "    pip install x\n\n```sh\n# no heading\n```"
    assert found["#Install/On Windows"].text == "use `winget`"
    assert found["#Install/On Windows"].data["heading_path"] == ["Guide", "Install", "On Windows"]
    assert {piece.type for piece in found.values()} == {NodeType.CHUNK}


def test_correcting_the_title_or_another_section_changes_no_key() -> None:
    edited = GUIDE.replace("# Guide", "# The guide", 1).replace("## Empty", "## Full\n\ntext")
    assert set(by_key("g.md", edited)) - {"#Full"} == set(by_key("g.md", GUIDE))


def test_without_one_first_heading_the_file_or_its_front_matter_gives_the_title() -> None:
    two = "# 1.1\n\n## Fixed\n\na\n\n# 1.0\n\n## Fixed\n\nb\n"
    assert [(p.key, p.title) for p in pieces("d/log.md", two)] == [
        ("#1.1/Fixed", "log.md › 1.1 › Fixed"),
        ("#1.0/Fixed", "log.md › 1.0 › Fixed"),
    ]
    assert pieces("a.md", "---\ntitle: 'T'\n---\n\n## A\n\nx")[0].title == "T › A"


@pytest.mark.parametrize("text", ["", "\n \n", "# only\n\n## headings", "---\na: 1\n---\n"])
def test_markdown_without_text_gives_no_pieces(text: str) -> None:
    assert pieces("a.md", text) == ()


def test_a_rule_around_text_is_no_front_matter() -> None:
    assert "a sentence" in pieces("a.md", "---\na sentence\n\n---\n\nb")[0].text


def test_a_heading_inside_a_list_or_a_quote_is_text() -> None:
    found = pieces("a.md", "# T\n\n- # in a list\n\n> ## in a quote\n")
    assert [piece.text for piece in found] == ["- # in a list\n\n> ## in a quote"]


def test_a_long_section_is_cut_between_blocks() -> None:
    blocks = [f"{number} " + "word " * 300 for number in range(6)]
    fence = "```\n" + "line\n\n" * 1_000 + "```"
    found = pieces("a.md", "# T\n\n" + "\n\n".join([*blocks, fence]) + "\n\n## Sub\n\nx\n")
    assert [piece.key for piece in found] == ["#", "#~part2", "#~part3", "#~part4", "#Sub"]
    assert [piece.title for piece in found][:2] == ["T", "T (2)"]
    assert {piece.parent_key for piece in found[1:]} == {"#"}
    assert [len(piece.text) <= LIMIT for piece in found] == [True, True, True, False, True]
    assert found[3].text == fence


ADR = """\
# ADR-12: Use SQLite

**Status**: Accepted
**Date**: 2026-05-12

## Context

c

## Decision

d

### Details

e

## Consequences

f
"""


def test_the_decision_of_an_adr_is_a_decision() -> None:
    found = by_key("notes.md", ADR)
    decision = found["#Decision"]
    assert (decision.type, decision.title, decision.text) == (
        NodeType.DECISION,
        "ADR-12: Use SQLite",
        "d",
    )
    assert (decision.data["adr"], decision.data["adr_status"]) == (12, "Accepted")
    others = {piece.type for key, piece in found.items() if key != "#Decision"}
    assert others == {NodeType.CHUNK}
    assert found["#Decision/Details"].parent_key == "#Decision"


def test_a_decision_of_subsections_alone_takes_them_in() -> None:
    found = by_key("notes.md", ADR.replace("\nd\n", ""))
    assert found["#Decision"].text == "### Details\n\ne"
    assert list(found) == ["#", "#Context", "#Decision", "#Consequences"]


@pytest.mark.parametrize(
    ("relative", "title", "number"),
    [
        ("adr-0007-x.md", "Use X", 7),
        ("docs/ADR_3.md", "Use X", 3),
        ("doc/adr/0004-use-x.md", "4. Use X", 4),
        ("decisions/use-x.md", "Use X", None),
        ("notes.md", "ADR 9: X", 9),
        ("notes.md", "Use X", "no adr"),
        ("quadr-1.md", "Use X", "no adr"),
        ("notes.md", "ADRENALINE", "no adr"),
    ],
)
def test_an_adr_is_known_by_its_name_folder_or_title(
    relative: str, title: str, number: int | str | None
) -> None:
    (piece,) = pieces(relative, f"# {title}\n\n## Decision\n\nd\n")
    known = piece.data.get("adr") if piece.type is NodeType.DECISION else "no adr"
    assert known == number


@pytest.mark.parametrize(
    "status",
    [
        "## Status\n\nAccepted",
        "**Status**: Accepted",
        "**Status:** Accepted",
        "* Status: Accepted",
        "Status: Accepted Date: 2026-02-19 Decision: Build",
    ],
)
def test_the_status_of_an_adr_is_read_in_its_usual_places(status: str) -> None:
    found = by_key("adr-1.md", f"# T\n\n{status}\n\n## Decisions\n\nd\n")
    assert found["#Decisions"].data["adr_status"] == "Accepted"


def test_an_adr_that_says_nothing_of_itself_has_only_its_decision() -> None:
    (piece,) = pieces("adr/use-x.md", "# T\n\n## Decision\n\nd\n")
    assert set(piece.data) == {"heading_path"}


# Python

CODE = '''\
"""About the module."""
import functools

class Outer(Base, metaclass=Meta):
    class Inner:
        @property
        def value(self) -> int:
            """The value."""
            return 41 + 1

        @value.setter
        def value(self, new: int) -> None:
            """Set it."""

@functools.lru_cache(maxsize=None)
async def fetch(
    url: str, *rest, table={"a": 1, "b": 2, "c": 3, "d": 4, "e": 55}, **more
) -> bytes:
    """Fetch.

        Indented.
    Not.
    """
    def local():
        """Left out."""

def silent(): ...

if True:
    def branch(): "One way."
else:
    def branch(): "Another."
'''


def test_documented_definitions_are_entities_with_their_containers() -> None:
    found = pieces("pack/mod.py", CODE)
    assert [(p.key, p.data["kind"], p.line, p.end_line, p.parent_key) for p in found] == [
        ("<module>", "module", 1, 32, None),
        ("Outer", "class", 4, 13, "<module>"),
        ("Outer.Inner", "class", 5, 13, "Outer"),
        ("Outer.Inner.value", "method", 7, 9, "Outer.Inner"),
        ("Outer.Inner.value~2", "method", 12, 13, "Outer.Inner"),
        ("fetch", "function", 16, 25, "<module>"),
        ("branch", "function", 30, 30, "<module>"),
        ("branch~2", "function", 32, 32, "<module>"),
    ]
    assert {piece.type for piece in found} == {NodeType.ENTITY}


def test_an_entity_says_its_signature_and_docstring_and_no_code() -> None:
    found = by_key("pack/mod.py", CODE)
    assert found["<module>"].text == "module pack.mod\nAbout the module."
    assert found["Outer"].text == "class Outer(Base, metaclass=Meta)"
    value = found["Outer.Inner.value"]
    assert value.text == "@property\ndef value(self) -> int\nThe value."
    assert value.title == "pack.mod.Outer.Inner.value"
    assert value.data["qualname"] == "Outer.Inner.value"
    assert found["fetch"].text == (
        "@functools.lru_cache\n"
        "async def fetch(url: str, *rest, table=..., **more) -> bytes\n"
        "Fetch.\n\n    Indented.\nNot."
    )


@pytest.mark.parametrize("text", ["", "x = 1", "class A:\n  def f(self): ...", "def f():\n  1"])
def test_python_with_nothing_documented_gives_no_pieces(text: str) -> None:
    assert pieces("a.py", text) == ()


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("x = 1\ndef f(:\n", r"^p/a\.py:2: invalid syntax"),
        ("x\n\0", r"^p/a\.py:2: NUL byte"),
        ("-" * 100_000 + "1", r"^p/a\.py:1: nested too deeply"),
        ("a" + ".b" * 50_000, r"^p/a\.py:1: nested too deeply"),
        ("(" * 5_000 + ")" * 5_000, r"^p/a\.py:1: too many nested"),
        ("x = 1\ny = " + "1" * 5_000, r"^p/a\.py:2: Exceeds the limit"),
        ("'\ud800'", r"^p/a\.py:1: .*surrogates"),
    ],
)
def test_source_that_python_refuses_is_a_problem_with_its_line(text: str, problem: str) -> None:
    parsed = parse(file("p/a.py"), text)
    assert parsed.pieces == ()
    assert parsed.problem is not None
    assert re.search(problem, parsed.problem)


@pytest.mark.parametrize(
    ("relative", "name"),
    [("a/b.py", "a.b"), ("a/__init__.py", "a"), ("a/b.pyi", "a.b"), ("__init__.py", "nowhere")],
)
def test_a_module_is_named_by_its_path(relative: str, name: str) -> None:
    assert pieces(relative, '"""D."""')[0].title == name


def test_a_root_inside_a_package_still_gives_whole_names(tmp_path: Path) -> None:
    write(tmp_path, {"a/__init__.py": "", "a/b/__init__.py": "'B.'", "a/b/c.py": "'C.'"})
    root = tmp_path / "a/b"
    titles = [parse(*read_source(path, root)).pieces[0].title for path in root.glob("*.py")]
    assert sorted(titles) == ["a.b", "a.b.c"]


def test_a_long_docstring_is_kept_whole_and_broken_characters_are_not() -> None:
    long = "word " * 2_000 + "end"
    assert by_key("a.py", f'def f(): """{long}"""')["f"].text.endswith(long)
    assert by_key("a.py", r'def f(): "a\0b\ud800c"')["f"].text.endswith("a�b�c")


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(STDLIB)))
def test_the_pieces_of_a_standard_module_are_what_ast_and_inspect_say(path: Path) -> None:
    source, text = read_source(path, STDLIB)
    lines = text.split("\n")
    found = parse(source, text).pieces
    nodes = {
        node.lineno: node
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
    }
    for piece in found:
        if piece.data["kind"] != "module":
            node = nodes[piece.line]
            word = "class" if piece.data["kind"] == "class" else "def"
            assert re.match(rf"\s*(async )?{word} {node.name}\b", lines[piece.line - 1])
            assert piece.end_line == node.end_lineno
            assert (ast.get_docstring(node) or "").strip() in piece.text
    if path.name != "__main__.py":
        module = importlib.import_module(
            source.relative[:-3].replace("/", ".").replace(".__init__", "")
        )
        compared = [piece for piece in found if agrees_with_inspect(module, piece)]
        assert len(compared) >= len(found) // 2


def agrees_with_inspect(module: types.ModuleType, piece: Piece) -> bool:
    """False where the running module has put something else under the name."""
    value: object = module
    for name in str(piece.data["qualname"]).split(".") if piece.data["qualname"] else ():
        value = inspect.getattr_static(value, name, None)
    if isinstance(value, staticmethod | classmethod):
        value = value.__func__
    if not (inspect.isfunction(value) or inspect.isclass(value)):
        return False
    if (value.__module__, value.__qualname__) != (module.__name__, piece.data["qualname"]):
        return False
    block, first = inspect.getsourcelines(value)
    # inspect starts at the first decorator, and takes comments below along
    assert first <= piece.line <= piece.end_line <= first + len(block) - 1
    return True


# Plain text


def test_paragraphs_are_gathered_into_chunks() -> None:
    (chunk,) = pieces("d/notes.txt", "\n\nFirst line.\nMore.\n\n\nSecond.\n")
    assert (chunk.key, chunk.title) == ("first-line-more-second", "notes.txt › First line.")
    assert (chunk.text, chunk.line, chunk.end_line) == ("First line.\nMore.\n\n\nSecond.", 3, 7)


def test_a_chunk_of_text_is_short_unless_one_line_is_long() -> None:
    text = "\n\n".join(f"{n}: " + "word " * 40 for n in range(100)) + "\n\n" + "log\n" * 2_000
    assert max(len(chunk.text) for chunk in pieces("a.txt", text)) <= 1_500
    assert [len(chunk.text) for chunk in pieces("a.txt", "x" * 9_000)] == [9_000]


def test_an_edit_leaves_the_keys_far_from_it() -> None:
    paragraphs = [f"Paragraph {n} says {n * n} and " + "word " * (n * 7 % 60) for n in range(200)]
    before = {chunk.key for chunk in pieces("a.txt", "\n\n".join(paragraphs))}
    paragraphs.insert(3, "New " + "text " * 100)
    after = {chunk.key for chunk in pieces("a.txt", "\n\n".join(paragraphs))}
    assert len(before - after) <= 5 < len(before)


def test_repeated_text_gets_keys_of_its_own() -> None:
    text = "\n\n".join(["same " * 200] * 3)
    key = "-".join(["same"] * 6)
    assert [chunk.key for chunk in pieces("a.txt", text)] == [key, f"{key}~2", f"{key}~3"]


def test_an_underlined_heading_names_a_section_of_restructured_text() -> None:
    text = "=====\nTitle\n=====\n\nintro\n\nPart\n----\n\nbody\n\n.. code::\n\n   x\n"
    found = pieces("a.rst", text)
    assert [(chunk.title, chunk.line) for chunk in found] == [
        ("a.rst › Title", 1),
        ("a.rst › Part", 7),
    ]
    assert pieces("a.txt", text)[0].data == {}


# Laws


def test_keys_never_repeat_even_when_one_looks_like_an_occurrence() -> None:
    keys = Keys()
    assert [keys.take(key) for key in ("a", "a~2", "a", "a", "a~2")] == [
        "a",
        "a~2",
        "a~3",
        "a~4",
        "a~2~2",
    ]


FRAGMENTS = st.sampled_from(
    [
        "# A",
        "## B",
        "## B",
        "### A/B ###",
        "###### *six*",
        "#",
        "Setext\n===",
        "two\nlines\n---",
        "```\n# in a fence\n```",
        "~~~\nnever closed",
        "> # quoted\n> text",
        "- item\n- # nested",
        "1. one\n\n   para",
        "    # indented code",
        "---",
        "key: value",
        "[ref]: http://x",
        "<!-- # comment\n\n-->",
        "<div>\n# in html",
        "text\u2028with\x0codd\x85breaks",
        "\x0c",
        "\ttab",
        "Decision",
        "## Decision",
        "## Status",
        "**Status**: Accepted",
        "word " * 500,
    ]
)
SOUP = st.text(alphabet="#`~-=>*_ \n\t[]:<!0a.\\", max_size=80)
DOCUMENTS = st.lists(
    st.tuples(FRAGMENTS | SOUP, st.sampled_from(["\n", "\n\n", "\r\n\r\n", "\r"])), max_size=14
).map(lambda parts: "".join(text + end for text, end in parts))


def universal(text: str) -> list[str]:
    return text.replace("\r\n", "\n").replace("\r", "\n").split("\n")


def heading_spans(document: str) -> list[list[int]]:
    """The line ranges of headings that are in no list or quote, by the whole parser's word."""
    return [
        token.map
        for token in MarkdownIt("commonmark").parse(document)
        if token.type == "heading_open" and token.level == 0 and token.map
    ]


def text_lines(document: str) -> Counter[str]:
    """The lines that are neither blank nor of a heading."""
    heading_lines = {line for span in heading_spans(document) for line in range(*span)}
    return Counter(
        line
        for number, line in enumerate(universal(document))
        if line.strip() and number not in heading_lines
    )


@settings(max_examples=300, deadline=None)
@given(DOCUMENTS)
def test_each_line_of_markdown_text_is_in_exactly_one_piece(document: str) -> None:
    document = "start\n\n" + document  # so that a rule in the first line is no front matter
    found = pieces("a.md", document)
    kept = Counter(line for p in found for line in universal(p.text) if line.strip())
    assert kept == text_lines(document)


@settings(max_examples=150, deadline=None)
@given(DOCUMENTS)
def test_the_pieces_of_an_adr_lose_no_line(document: str) -> None:
    document = "start\n\n" + document
    found = pieces("adr-1.md", document)
    kept = Counter(line for p in found for line in universal(p.text) if line.strip())
    assert text_lines(document) <= kept <= Counter(universal(document))


@settings(max_examples=150, deadline=None)
@given(DOCUMENTS)
def test_each_line_of_plain_text_is_in_exactly_one_piece(document: str) -> None:
    for name in ("a.txt", "a.rst"):
        kept = Counter(line for p in pieces(name, document) for line in universal(p.text))
        expected = Counter(line for line in universal(document) if line.strip())
        assert Counter({line: n for line, n in kept.items() if line.strip()}) == expected


KINDS: dict[SourceKind, str] = {"markdown": "a.md", "python": "a.py", "text": "a.rst"}


@pytest.mark.parametrize("name", [*KINDS.values(), "adr-1.md"])
@settings(max_examples=100, deadline=None)
@given(text=DOCUMENTS)
def test_pieces_are_sound_and_the_same_each_time(name: str, text: str) -> None:
    parsed = parse(file(name), text)
    assert parsed == parse(file(name), text)
    total = len(universal(text))
    keys: set[str] = set()
    for piece in parsed.pieces:
        assert piece.key not in keys
        assert piece.parent_key is None or piece.parent_key in keys
        keys.add(piece.key)
        assert piece.text.strip()
        assert 0 < len(piece.title) <= MAX_TITLE
        assert len(piece.text) <= MAX_TEXT
        assert 1 <= piece.line <= piece.end_line <= total
        assert piece.key.encode()


@settings(max_examples=100, deadline=None)
@given(DOCUMENTS, st.integers(1, 5))
def test_blank_lines_in_front_move_lines_and_no_key(document: str, count: int) -> None:
    document = "start\n\n" + document
    for name in ("a.md", "adr-1.md", "a.txt", "a.rst"):
        before, after = pieces(name, document), pieces(name, "\n" * count + document)
        assert [p.key for p in before] == [p.key for p in after]
        assert [(p.line + count, p.text) for p in before] == [(p.line, p.text) for p in after]


@pytest.mark.parametrize("path", MODULES[:12], ids=lambda path: path.name)
def test_blank_lines_in_front_of_python_move_lines_and_no_key(path: Path) -> None:
    source, text = read_source(path, STDLIB)
    before, after = parse(source, text).pieces, parse(source, "\n\n\n" + text).pieces
    assert [(p.key, p.text) for p in before] == [(p.key, p.text) for p in after]
    assert [p.line + 3 for p in before[1:]] == [p.line for p in after[1:]]


@settings(max_examples=100, deadline=None)
@given(DOCUMENTS)
def test_a_section_is_the_lines_from_its_heading_to_its_end(document: str) -> None:
    document = "start\n\n" + document
    lines = universal(document)
    bodies = {start + 1: stop for start, stop in heading_spans(document)}
    for piece in pieces("a.md", document):
        section = piece.key.startswith("#") and "part" not in piece.data
        start = bodies[piece.line] if section else piece.line - 1
        own = "\n".join(lines[start : piece.end_line])
        assert own[-len(piece.text) :] == piece.text
        assert not own[: -len(piece.text)].strip()
