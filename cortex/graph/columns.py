"""The graph of a workspace as flat columns: how it is built, whether from the store or a file.

Idea: one row of numbers a node, by rising key, and one a relation, by rising key; the ends
of a relation are rows of the first. Cost: 22 bytes a node and 16 a relation, 16 more where
its weight is not 1.0; read from the store in one pass over each table. Corner: a relation
whose end is in another workspace (a foreign shell may leave one) has no row, and `dangling`
says that there are such.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from cortex.domain.values import WorkspaceId
from cortex.graph.chronology import mark, ranked, stamp
from cortex.graph.codes import NODE, RELATION, SHIFT, STATUS
from cortex.store.database import Snapshot

_PIECE: Final = 10_000  # measured: larger pieces leave the processor's cache
_OUTSIDE: Final = -1


@dataclass(frozen=True, slots=True)
class Columns:
    """`key`, `kind`, `status`, `rank` and `mark` of n nodes, by rising key.

    `near` and `far` are positions among them, `payload` is key · 64 + code, of m relations by
    rising key; `light` and `weight` name those whose weight is not 1.0. `newest` and `top` are
    the stamp and the rank of the newest node.
    """

    key: NDArray[np.int64]
    kind: NDArray[np.uint8]
    status: NDArray[np.uint8]
    rank: NDArray[np.int64]
    mark: NDArray[np.uint32]
    near: NDArray[np.int32]
    far: NDArray[np.int32]
    payload: NDArray[np.int64]
    light: NDArray[np.int64]
    weight: NDArray[np.float64]
    newest: str
    top: int
    dangling: bool

    def edges(self, order: NDArray[np.intp]) -> Iterator[list[tuple[int, int, int]]]:
        """(near, far, payload) of every relation in this order, in pieces."""
        for first in range(0, len(order), _PIECE):
            piece = order[first : first + _PIECE]
            parts: Any = (self.near[piece], self.far[piece], self.payload[piece])
            yield list(zip(*(part.tolist() for part in parts), strict=True))

    def weights(self) -> dict[int, float]:
        """Weight by relation key."""
        return dict(zip(self.light.tolist(), self.weight.tolist(), strict=True))


def read_columns(snapshot: Snapshot, workspace: WorkspaceId) -> Columns:
    """A workspace as the store has it."""
    keys, kinds, states, marks = array("q"), array("B"), array("B"), array("I")
    index: dict[str, int] = {}
    stamps: list[str] = []
    for rows in snapshot.graph_rows.iter_nodes(workspace):
        key, node_id, kind, status, created_at = zip(*rows, strict=True)
        index.update(zip(node_id, count(len(stamps))))
        texts = list(map(stamp, created_at, node_id))
        stamps += texts
        marks.extend(map(mark, texts))
        keys.extend(key)
        kinds.extend(map(NODE.__getitem__, kind))
        states.extend(map(STATUS.__getitem__, status))
    rank, newest, top = ranked(stamps)
    del stamps
    links = _Links(index)
    for rows in snapshot.graph_rows.iter_relations(workspace):
        links.take(rows)
    return Columns(
        key=np.frombuffer(keys, np.int64),
        kind=np.frombuffer(kinds, np.uint8),
        status=np.frombuffer(states, np.uint8),
        rank=rank,
        mark=np.frombuffer(marks, np.uint32),
        near=np.concatenate(links.near),
        far=np.concatenate(links.far),
        payload=np.concatenate(links.payload),
        light=np.concatenate(links.light),
        weight=np.concatenate(links.weight),
        newest=newest,
        top=top,
        dangling=links.dangling,
    )


class _Links:
    """Columns of relations, piece by piece; `index` is the position of a node by its id."""

    def __init__(self, index: dict[str, int]) -> None:
        self._index = index
        self.near = [np.empty(0, np.int32)]
        self.far = [np.empty(0, np.int32)]
        self.payload = [np.empty(0, np.int64)]
        self.light = [np.empty(0, np.int64)]
        self.weight = [np.empty(0, np.float64)]
        self.dangling = False

    def take(self, rows: list[tuple[Any, ...]]) -> None:
        keys, sources, targets, names, weights, derived = zip(*rows, strict=True)
        key = np.array(keys, np.int64)
        near, far = self._places(sources), self._places(targets)
        code = np.fromiter(map(RELATION.__getitem__, names), np.int64, len(rows))
        weight = np.array(weights, np.float64)
        inside = (near != _OUTSIDE) & (far != _OUTSIDE)
        light = inside & (weight != 1.0)
        self.near.append(near[inside])
        self.far.append(far[inside])
        self.payload.append(((key << SHIFT) + code + np.array(derived, np.int64))[inside])
        self.light.append(key[light])
        self.weight.append(weight[light])
        self.dangling |= not inside.all()

    def _places(self, ids: tuple[str, ...]) -> NDArray[np.int32]:
        return np.fromiter((self._index.get(each, _OUTSIDE) for each in ids), np.int32, len(ids))
