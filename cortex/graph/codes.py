"""How a relation's type and its derived bit share one small code.

code = 2 · type code + derived, so 44 codes, below 64. A rustworkx edge carries one integer,
key · 64 + code: an int costs 32 bytes where a tuple of three would cost 150. A walk asks a
table of 64 flags whether it may use an edge: one byte lookup in a loop, one fancy index on
arrays.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from cortex.domain.taxonomy import (
    NODE_CODE,
    RELATION_CODE,
    RELATION_TYPES,
    STATUS_CODE,
    NodeType,
    RelationType,
)

CODES: Final = 64
MASK: Final = CODES - 1
SHIFT: Final = 6

NODE: Final[dict[str, int]] = {kind.value: code for kind, code in NODE_CODE.items()}
STATUS: Final[dict[str, int]] = {status.value: code for status, code in STATUS_CODE.items()}
RELATION: Final[dict[str, int]] = {kind.value: 2 * code for kind, code in RELATION_CODE.items()}

NOTHING: Final = bytes(CODES)


def flags(kinds: Iterable[RelationType] | None, *, include_derived: bool) -> bytes:
    """64 flags, one for each code; None means every type."""
    table = bytearray(CODES)
    for kind in RELATION_TYPES if kinds is None else kinds:
        code = 2 * RELATION_CODE[kind]
        table[code] = 1
        table[code + 1] = include_derived
    return bytes(table)


def kind_flags(kinds: Iterable[NodeType]) -> bytes:
    """256 flags, one for each value that a node's type code could have."""
    table = bytearray(256)
    for kind in kinds:
        table[NODE_CODE[kind]] = 1
    return bytes(table)
