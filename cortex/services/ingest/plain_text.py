"""Plain text as chunks of whole paragraphs.

Paragraphs are gathered up to `_LIMIT` characters. A chunk that is a third full also ends
before a paragraph whose checksum says so: the borders then depend on the text around
them and not on the distance from the start, so an edit changes the chunks near it and
leaves the rest of the file under its keys. A paragraph over the limit is cut at line
ends, a line never. An underlined heading of reStructuredText starts a chunk.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from cortex.domain.taxonomy import NodeType
from cortex.domain.values import MAX_TITLE, clean, shorten
from cortex.services.ingest.pieces import JOINT, Keys, Parsed, Piece, SourceFile, lines_of

_LIMIT: Final = 1_500
_WORDS: Final = 6
_WORD: Final = re.compile(r"\w+")
_RULE: Final = re.compile(r"([!-/:-@\[-`{-~])\1{2,}")


@dataclass(frozen=True, slots=True)
class _Paragraph:
    """Lines `start:stop`, none blank; `heading` when they begin with one."""

    start: int
    stop: int
    size: int
    checksum: int
    heading: str | None


def parse_text(source: SourceFile, text: str) -> Parsed:
    """Chunks whose lines, taken together, are every line that is not blank, once."""
    lines = lines_of(clean(text))
    name = source.relative.rpartition("/")[2]
    keys = Keys()
    pieces: list[Piece] = []
    section: str | None = None
    for group in _groups(_paragraphs(lines, headings=source.language == "rst")):
        start, stop = group[0].start, group[-1].stop
        opening = group[0].heading
        section = opening or section
        first_line = None if opening else shorten(lines[start], 80)
        slug = "-".join(_WORD.findall(" ".join(lines[start:stop]).lower())[:_WORDS])[:80]
        pieces.append(
            Piece(
                key=keys.take(slug or "text"),
                type=NodeType.CHUNK,
                title=shorten(JOINT.join(filter(None, (name, section, first_line))), MAX_TITLE),
                text="\n".join(lines[start:stop]),
                line=start + 1,
                end_line=stop,
                data={"heading_path": [section]} if section else {},
            )
        )
    return Parsed(tuple(pieces))


def _groups(paragraphs: Iterator[_Paragraph]) -> Iterator[list[_Paragraph]]:
    group: list[_Paragraph] = []
    size = 0
    for paragraph in paragraphs:
        full = size + paragraph.size > _LIMIT
        due = size >= _LIMIT // 3 and paragraph.checksum % 3 == 0
        if group and (paragraph.heading or full or due):
            yield group
            group, size = [], 0
        group.append(paragraph)
        size += paragraph.size
    if group:
        yield group


def _paragraphs(lines: list[str], *, headings: bool) -> Iterator[_Paragraph]:
    start = 0
    size = 0
    for number, line in enumerate([*lines, ""]):
        blank = not line.strip()
        if number > start and (blank or size + len(line) > _LIMIT):
            yield _paragraph(lines, start, number, headings)
            start, size = number, 0
        if blank:
            start = number + 1
        else:
            size += len(line) + 1


def _paragraph(lines: list[str], start: int, stop: int, headings: bool) -> _Paragraph:
    text = "\n".join(lines[start:stop])
    return _Paragraph(
        start=start,
        stop=stop,
        size=len(text) + 2,
        checksum=zlib.crc32(text.encode()),
        heading=_heading(lines[start:stop]) if headings else None,
    )


def _heading(lines: list[str]) -> str | None:
    """The heading that opens a paragraph: a line with a rule below, perhaps one above."""
    if len(lines) > 2 and _RULE.fullmatch(lines[0].rstrip()):
        lines = lines[1:]
    if len(lines) < 2 or _RULE.fullmatch(lines[0].rstrip()):
        return None
    heading, rule = lines[0].strip(), lines[1].rstrip()
    return heading if _RULE.fullmatch(rule) and len(rule) >= len(heading) else None
