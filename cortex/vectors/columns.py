"""What the slots of a partition are filtered by: their columns, and the mask of a filter."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from cortex.domain.instants import as_microseconds
from cortex.domain.taxonomy import NODE_CODE, STATUS_CODE, Layer, NodeType, Status
from cortex.vectors.index import Point, VectorFilter

Index = NDArray[np.int64]
Mask = NDArray[np.bool_]

LAYER_CODE: Final = {layer: code for code, layer in enumerate(Layer)}
COLUMNS: Final = np.dtype(
    [
        ("alive", np.bool_),
        ("type", np.int8),
        ("layer", np.int8),
        ("status", np.int8),
        ("created", np.int64),
        ("first", np.int64),
        ("chunks", np.int64),
    ]
)
"""A slot: whether it lives, its codes, when it was created (µs since 1970), its first row and
how many rows it has."""


def codes_digest() -> int:
    """Changes when a code of the columns would mean something else."""
    codes = (NODE_CODE, STATUS_CODE, LAYER_CODE)
    said = [sorted((str(name), code) for name, code in table.items()) for table in codes]
    return zlib.crc32(repr((said, COLUMNS.descr)).encode())


def slot_of(point: Point, first: int, chunks: int) -> tuple[Any, ...]:
    """A living slot's columns."""
    return (
        True,
        NODE_CODE[point.type],
        LAYER_CODE[point.layer],
        STATUS_CODE[point.status],
        as_microseconds(point.created_at),
        first,
        chunks,
    )


def mask_of(
    columns: NDArray[np.void],
    alive: Mask,
    where: VectorFilter,
    holders: Callable[[str], Index],
) -> Mask:
    """Which slots are alive and admitted, shape (slots,); `holders` gives a tag's slots."""
    mask: Mask = alive.copy()
    if where.types:
        mask &= _table({NODE_CODE[kind] for kind in where.types}, len(NodeType))[columns["type"]]
    if where.statuses:
        mask &= _table({STATUS_CODE[status] for status in where.statuses}, len(Status))[
            columns["status"]
        ]
    if where.layer is not None:
        mask &= columns["layer"] == LAYER_CODE[where.layer]
    if where.created_from is not None:
        mask &= columns["created"] >= as_microseconds(where.created_from)
    if where.created_to is not None:
        mask &= columns["created"] <= as_microseconds(where.created_to)
    for tag in where.tags:
        holding = np.zeros(len(mask), np.bool_)
        holding[holders(tag)] = True
        mask &= holding
    return mask


def _table(codes: set[int], size: int) -> Mask:
    table = np.zeros(size, np.bool_)
    table[list(codes)] = True
    return table
