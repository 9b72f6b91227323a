"""Adjacency of one direction as compressed sparse rows, for large frontiers.

Idea: the relations of node i are the slice indptr[i]:indptr[i + 1] of three flat arrays, so
a whole frontier is expanded by a few numpy calls instead of a Python loop.
Cost: 13 bytes a relation and 8 a graph index, for each direction; the build is a counting sort
by 16-bit digits (10 ms for 300,000 relations), after one export from rustworkx (10 ms more)
unless the columns are at hand.
Within a row the relations have rising keys, so one is found by bisection. Corner: free
indices have empty rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import rustworkx as rx
from numpy.typing import NDArray

from cortex.graph.codes import MASK, SHIFT

Integers = NDArray[np.int64]
Flags = NDArray[np.bool_]

GONE: Final = MASK


@dataclass(frozen=True, slots=True)
class Rows:
    """One direction: the far end, the code and the key of each relation, by near end.

    A relation that was removed since has the code GONE, which no search may walk.
    """

    indptr: Integers
    neighbor: NDArray[np.int32]
    code: NDArray[np.uint8]
    relation: Integers

    @property
    def relation_type(self) -> NDArray[np.uint8]:
        """The position of each relation's type in RELATION_TYPES."""
        return self.code >> np.uint8(1)

    @property
    def derived(self) -> Flags:
        return (self.code & 1).astype(np.bool_)

    def memory_bytes(self) -> int:
        return sum(
            column.nbytes for column in (self.indptr, self.neighbor, self.code, self.relation)
        )


def rows_of(graph: rx.PyDiGraph[int, int], slots: int, *, incoming: bool) -> Rows:
    """The rows of out-edges, or of in-edges, over graph indices below `slots`."""
    ends = np.asarray(graph.edge_list()).reshape(-1, 2).astype(np.int32)
    payloads = np.fromiter(graph.edges(), np.int64, len(ends))
    by_key = np.argsort(payloads, kind="stable")
    near, far = (ends[by_key, 1], ends[by_key, 0]) if incoming else ends[by_key].T
    return packed(near, far, payloads[by_key], grouped(near, slots), slots)


def packed(
    near: NDArray[np.int32],
    far: NDArray[np.int32],
    payloads: Integers,
    order: NDArray[np.intp],
    slots: int,
) -> Rows:
    """Rows of relations that are given by rising keys; `order` groups them by near end."""
    payloads = payloads[order]
    return Rows(
        indptr=starts_of(near, slots),
        neighbor=far[order],
        code=(payloads & MASK).astype(np.uint8),
        relation=payloads >> SHIFT,
    )


def starts_of(near: NDArray[np.int32], slots: int) -> Integers:
    """Where each row starts, and the end of the last one."""
    indptr = np.zeros(slots + 1, np.int64)
    np.cumsum(np.bincount(near, minlength=slots), out=indptr[1:])
    return indptr


def grouped(values: NDArray[np.int32], bound: int) -> NDArray[np.intp]:
    """The stable order of values from 0 below `bound`.

    numpy sorts 16-bit integers by counting; two digits reach 2^32 indices.
    """
    order = np.argsort((values & 0xFFFF).astype(np.uint16), kind="stable")
    if bound > 0xFFFF:
        high = (values[order] >> 16).astype(np.uint16)
        order = order[np.argsort(high, kind="stable")]
    return order


def inverse(order: NDArray[np.intp]) -> NDArray[np.int32]:
    """Of each value its place in the order."""
    place = np.empty(len(order), np.int32)
    place[order] = np.arange(len(order), dtype=np.int32)
    return place


def gather(rows: Rows, frontier: NDArray[Any]) -> Integers:
    """Positions in the flat arrays of every relation of the frontier."""
    starts = rows.indptr[frontier]
    counts = rows.indptr[frontier + 1] - starts
    ends = np.cumsum(counts)
    total = int(ends[-1]) if len(ends) else 0
    positions: Integers = np.repeat(starts - (ends - counts), counts)
    positions += np.arange(total)
    return positions
