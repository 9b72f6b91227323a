"""Markdown as its sections: each one's own text, under the path of its headings.

markdown-it says where the blocks are, so a `#` inside a fence, a list or a quote is no
heading. Every line that is neither blank, nor of a heading, nor front matter is in
exactly one piece. In an ADR the section "Decision" is the decision itself; where it has
nothing but subsections, it takes them in whole.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final

from markdown_it import MarkdownIt
from markdown_it.token import Token

from cortex.domain.taxonomy import NodeType
from cortex.domain.values import MAX_TITLE, clean, shorten
from cortex.services.ingest.pieces import JOINT, Keys, Parsed, Piece, SourceFile, lines_of, trimmed

LIMIT: Final = 4_000

_BLOCKS: Final = MarkdownIt("commonmark").disable("inline")  # only headings need words
_INLINE: Final = MarkdownIt("commonmark")

_FIELD: Final = re.compile(r"([\w.-]+)[ \t]*:(?:[ \t]+(.*))?$")
_DECISION: Final = re.compile(r"(?:\d+\.?\s+)?decisions?(?:\s+outcome)?\s*:?", re.IGNORECASE)
_ADR_FILE: Final = re.compile(r"(?<![a-z])adr[-_ ]?(\d+)", re.IGNORECASE)
_ADR_TITLE: Final = re.compile(r"ADR(?![A-Za-z])[-_ #]*(\d+)?")
_NUMBERED: Final = re.compile(r"(\d+)(?=[-_. ])")
_ADR_FOLDERS: Final = frozenset({"adr", "adrs", "decisions"})
_STATUS: Final = re.compile(r"[\s>*+_-]*status[*_]*\s*:[*_]*\s*(\S.*)", re.IGNORECASE)
_NEXT_FIELD: Final = re.compile(r"\s+[*_]*[A-Z][a-z]+[*_]*:")


@dataclass(frozen=True, slots=True)
class _Section:
    """A heading and the lines `body:stop` of its own; level 0 is before the first heading."""

    key: str
    level: int
    path: tuple[str, ...]
    start: int
    body: int
    stop: int
    parent: _Section | None

    @property
    def heading(self) -> str:
        return self.path[-1] if self.path else ""


@dataclass(frozen=True, slots=True)
class _Document:
    lines: list[str]
    title: str
    sections: tuple[_Section, ...]
    borders: list[int]  # the lines at which a block begins, in order
    front: Mapping[str, str]

    def own_text(self, section: _Section) -> str:
        return "\n".join(self.lines[section.body : section.stop]).strip()


def parse_markdown(source: SourceFile, text: str) -> Parsed:
    """One chunk for each section that has text, parents first; an ADR's decisions as such."""
    keys = Keys()
    document = _read(source, lines_of(clean(text)), keys)
    adr = _adr(source, document)
    pieces: list[Piece] = []
    written: set[str] = set()
    absorbed = 0
    for number, section in enumerate(document.sections):
        if section.start < absorbed:
            continue
        stop = section.stop
        decision = adr if _DECISION.fullmatch(section.heading) else None
        if decision is not None and not document.own_text(section):
            below = document.sections[number + 1 :]
            ends = (other.start for other in below if other.level <= section.level)
            stop = absorbed = next(ends, len(document.lines))
        found = _section_pieces(document, section, stop, _parent(section, written), keys, decision)
        for piece in found:
            pieces.append(piece)
            written.add(piece.key)
    return Parsed(tuple(pieces))


def _read(source: SourceFile, lines: list[str], keys: Keys) -> _Document:
    after, front = _front_matter(lines)
    references: dict[str, Any] = {}
    tokens = _BLOCKS.parse("\n".join([""] * after + lines[after:]), references)
    headings = [
        (int(token.tag[1]), _plain(inline.content, references), token.map[0], token.map[1])
        for token, inline in pairwise(tokens)
        if token.type == "heading_open" and token.level == 0 and token.map
    ]
    titles = [text for level, text, _, _ in headings if level == 1]
    sole = titles[0] if len(titles) == 1 else ""
    name = source.relative.rpartition("/")[2]
    return _Document(
        lines=lines,
        title=sole or front.get("title", "") or name,
        sections=tuple(_outline(headings, after, len(lines), bool(sole), keys)),
        borders=sorted({token.map[0] for token in tokens if token.map}),
        front=front,
    )


def _front_matter(lines: Sequence[str]) -> tuple[int, dict[str, str]]:
    """The line after the YAML front matter and its plain fields; 0 when there is none.

    A rule, text and a rule look alike, so the first line of content must be a field.
    """
    if lines[0].rstrip() != "---":
        return 0, {}
    close = next((n for n, line in enumerate(lines) if n and line.rstrip() in {"---", "..."}), 0)
    content = [line for line in lines[1:close] if line.strip() and not line.startswith("#")]
    if not close or (content and not _FIELD.match(content[0])):
        return 0, {}
    fields = (match for match in map(_FIELD.match, content) if match)
    return close + 1, {
        match[1].lower(): value.strip(" \t\"'") for match in fields if (value := match[2])
    }


def _plain(heading: str, references: dict[str, Any]) -> str:
    """The words of a heading on one line, without its markup."""
    parts: list[str] = []
    pending: list[Token] = list(reversed(_INLINE.parseInline(heading, references)))
    while pending:
        token = pending.pop()
        if token.children:
            pending.extend(reversed(token.children))
        elif token.type in {"softbreak", "hardbreak"}:
            parts.append(" ")
        elif token.type in {"text", "text_special", "code_inline"}:
            parts.append(token.content)
    return " ".join("".join(parts).split())


def _outline(
    headings: Sequence[tuple[int, str, int, int]], after: int, total: int, titled: bool, keys: Keys
) -> Iterator[_Section]:
    """The sections in order: (level, text, first line, line after) of each heading read.

    A key is the path of headings without the document's title: correcting that leaves
    all keys as they are.
    """
    stops = [start for _, _, start, _ in headings] + [total]
    yield _Section(keys.take("preamble"), 0, (), after, after, stops[0], None)
    above: list[_Section] = []
    for index, (level, text, start, body) in enumerate(headings):
        while above and above[-1].level >= level:
            above.pop()
        parent = above[-1] if above else None
        name = shorten(text, 120)
        if parent is None or (titled and parent.level == 1):
            key = "#" if titled and level == 1 else f"#{name}"
        else:
            key = f"{parent.key}/{name}"
        path = (*(parent.path if parent else ()), text)
        section = _Section(keys.take(key), level, path, start, body, stops[index + 1], parent)
        above.append(section)
        yield section


def _parent(section: _Section, written: set[str]) -> str | None:
    """The key of the nearest section above that has a piece."""
    above = section.parent
    while above and above.key not in written:
        above = above.parent
    return above.key if above else None


def _section_pieces(
    document: _Document,
    section: _Section,
    stop: int,
    parent: str | None,
    keys: Keys,
    decision: Mapping[str, Any] | None,
) -> Iterator[Piece]:
    """The section's piece; a long one's later parts are chunks under the first."""
    titled = section.path[:1] == (document.title,)
    title = JOINT.join(section.path if titled else (document.title, *section.path))
    data = {"heading_path": list(section.path)}
    decides = decision is not None
    for number, (start, end) in enumerate(_cut(document, section.body, stop), start=1):
        first = number == 1
        own_title = document.title if first and decides else title
        yield Piece(
            key=section.key if first else keys.take(f"{section.key}~part{number}"),
            type=NodeType.DECISION if first and decides else NodeType.CHUNK,
            title=shorten(own_title, MAX_TITLE - 10) + ("" if first else f" ({number})"),
            text="\n".join(document.lines[start:end]),
            line=(section.start if first and section.level else start) + 1,
            end_line=end,
            parent_key=parent if first else section.key,
            tags=("adr",) if first and decides else (),
            data={**data, **(decision or {})} if first else {**data, "part": number},
        )


def _cut(document: _Document, start: int, stop: int) -> Iterator[tuple[int, int]]:
    """Line ranges of up to LIMIT characters, cut where a block begins; a block stays whole."""
    lines, borders = document.lines, document.borders
    start, stop = trimmed(lines, start, stop)
    if start == stop:
        return
    inner = borders[bisect_right(borders, start) : bisect_left(borders, stop)]
    begin, size = start, 0
    for low, high in pairwise([start, *inner, stop]):
        length = sum(len(line) + 1 for line in lines[low:high])
        if size + length > LIMIT and begin < low:
            yield trimmed(lines, begin, low)
            begin, size = low, 0
        size += length
    yield trimmed(lines, begin, stop)


def _adr(source: SourceFile, document: _Document) -> dict[str, Any] | None:
    """What an ADR says of itself, as data; None for any other document."""
    folders, _, name = source.relative.rpartition("/")
    housed = {source.path.parent.name.lower(), *folders.lower().split("/")} & _ADR_FOLDERS
    named = _ADR_FILE.search(name)
    titled = _ADR_TITLE.match(document.title)
    if not (named or housed or titled):
        return None
    counted = _NUMBERED.match(name) if housed else None
    number = next((match[1] for match in (named, titled, counted) if match and match[1]), None)
    status = _status(document)
    return ({"adr": int(number)} if number else {}) | ({"adr_status": status} if status else {})


def _status(document: _Document) -> str:
    """The text under "Status", else its line below the title, else the front matter's field."""
    for section in document.sections:
        if section.heading.lower().rstrip(":") == "status" and document.own_text(section):
            return shorten(document.own_text(section), 200)
    for section in document.sections:
        for line in document.lines[section.body : section.stop] if section.level <= 1 else ():
            if match := _STATUS.match(line):
                return shorten(_NEXT_FIELD.split(match[1])[0].strip("*_ \t"), 200)
    return document.front.get("status", "")
