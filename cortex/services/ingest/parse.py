"""The parser that fits a file."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final

from cortex.services.ingest.markdown import parse_markdown
from cortex.services.ingest.pieces import Parsed, SourceFile, SourceKind
from cortex.services.ingest.plain_text import parse_text
from cortex.services.ingest.python_source import parse_python

PARSERS: Final[Mapping[SourceKind, Callable[[SourceFile, str], Parsed]]] = MappingProxyType(
    {"markdown": parse_markdown, "python": parse_python, "text": parse_text}
)


def parse(source: SourceFile, text: str) -> Parsed:
    """The pieces of one file; never raises for what the text holds."""
    return PARSERS[source.kind](source, text)
