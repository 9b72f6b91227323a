"""A frozen copy of a graph as flat arrays, which every whole-graph measure reads.

Idea: nodes stand in order of id and relations in order of (source, target, type), so a tie
by id is a tie by position, and the order in which rows arrive changes no answer.
Cost: 18 bytes a node beside its id, 26 bytes a relation; a build at 100,000 nodes and
300,000 relations is a sort of each.
Corners: a relation whose end is not among the nodes is left out. An instant that nobody
knows is UNKNOWN_TIME, and a window over it is refused. The matrices of `simple`, and graphs
that a library needs, are kept and shared: whoever changes one copies it first.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from analytics.simple_graph import Weights, simple_matrix
from cortex.domain.errors import InvalidError, NotFoundError
from cortex.domain.instants import Instant, as_microseconds
from cortex.domain.taxonomy import (
    NODE_CODE,
    RELATION_CODE,
    STATUS_CODE,
    SYMMETRIC,
    NodeType,
    RelationType,
    Status,
)

if TYPE_CHECKING:
    from scipy.sparse import csr_array

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]
Codes = NDArray[np.uint8]
Flags = NDArray[np.bool_]

UNKNOWN_TIME: Final = -(1 << 63)
_SYMMETRIC_CODES: Final = sorted(RELATION_CODE[kind] for kind in SYMMETRIC)


@dataclass(frozen=True, slots=True, eq=False)
class GraphSnapshot:
    """n nodes in order of id, m relations in order of (source, target, type); read-only.

    `source` and `target` are positions of nodes; codes are positions in the taxonomy's
    NODE_TYPES, STATUSES and RELATION_TYPES; instants are microseconds since 1970 in UTC.
    """

    id: tuple[str, ...]
    key: Integers
    node_type: Codes
    status: Codes
    created: Integers
    source: NDArray[np.int32]
    target: NDArray[np.int32]
    relation_type: Codes
    weight: Floats
    derived: Flags
    relation_created: Integers
    # What was built of the arrays, for as long as the snapshot lives.
    _matrices: dict[tuple[bool, Weights], csr_array] = field(
        default_factory=dict, init=False, repr=False
    )
    library_graphs: dict[tuple[str, bool, Weights], Any] = field(
        default_factory=dict, init=False, repr=False
    )

    def __len__(self) -> int:
        return len(self.id)

    @property
    def symmetric(self) -> Flags:
        """Which relations count both ways: `contradicts` and `related_to`."""
        return np.isin(self.relation_type, _SYMMETRIC_CODES)

    def position(self, node_id: str) -> int:
        """Where a node stands; raises NotFoundError."""
        at = bisect_left(self.id, node_id)
        if at == len(self.id) or self.id[at] != node_id:
            raise NotFoundError(
                f"node {node_id!r} is not in this graph", "", "Ask for it without the filter"
            )
        return at

    def simple(self, directed: bool = True, weights: Weights = "none") -> csr_array:
        """The n × n adjacency matrix without parallel relations and self-loops.

        Row to column is source to target; a symmetric relation counts both ways, and in the
        undirected matrix each does. Parallel relations become one entry: 1 (`none`), or the
        largest, smallest or summed weight. A relation of weight 0 is an explicit 0. In the
        undirected matrix a → b and b → a are parallel. Columns of a row are sorted.
        """
        kept = self._matrices.get((directed, weights))
        if kept is None:
            back = self.symmetric if directed else np.ones(len(self.source), np.bool_)
            near = np.concatenate([self.source, self.target[back]])
            far = np.concatenate([self.target, self.source[back]])
            values = np.concatenate([self.weight, self.weight[back]])
            kept = simple_matrix(near, far, values, len(self), weights)
            self._matrices[directed, weights] = kept
        return kept

    def filtered(
        self,
        *,
        node_types: Collection[NodeType] | None = None,
        relation_types: Collection[RelationType] | None = None,
        status: Collection[Status] | None = None,
        from_time: Instant | None = None,
        to_time: Instant | None = None,
        include_derived: bool = False,
    ) -> GraphSnapshot:
        """The graph of the nodes that pass, and of the relations that pass between them.

        None passes all. A window holds both of its ends and applies to nodes and relations:
        with `to_time` alone one sees what of today's graph was there then. Raises
        InvalidError where a window meets an instant that nobody knows.
        """
        nodes = _coded(self.node_type, NODE_CODE, node_types)
        nodes &= _coded(self.status, STATUS_CODE, status)
        nodes &= _within(self.created, from_time, to_time)
        relations = _coded(self.relation_type, RELATION_CODE, relation_types)
        relations &= _within(self.relation_created, from_time, to_time)
        if not include_derived:
            relations &= ~self.derived
        relations &= nodes[self.source] & nodes[self.target]
        place = np.cumsum(nodes) - 1
        chosen = np.flatnonzero(nodes)
        return _frozen(
            tuple(self.id[at] for at in chosen.tolist()),
            self.key[chosen],
            self.node_type[chosen],
            self.status[chosen],
            self.created[chosen],
            place[self.source[relations]],
            place[self.target[relations]],
            self.relation_type[relations],
            self.weight[relations],
            self.derived[relations],
            self.relation_created[relations],
        )


def from_columns(
    nodes: tuple[ArrayLike, Sequence[str], ArrayLike, ArrayLike, ArrayLike],
    relations: tuple[ArrayLike, ArrayLike, ArrayLike, ArrayLike, ArrayLike, ArrayLike],
) -> GraphSnapshot:
    """A snapshot of columns, in any order of rows.

    Nodes: key, id, type code, status code, created µs. Relations: source key, target key,
    type code, weight, derived, created µs. Raises InvalidError where a key or an id occurs
    twice, or a weight is negative or no number.
    """
    ids = nodes[1]
    order = np.asarray(sorted(range(len(ids)), key=ids.__getitem__), np.int64)
    key, node_type, status, created = (
        np.asarray(column, np.int64)[order] for column in (nodes[0], *nodes[2:])
    )
    names = tuple(ids[at] for at in order.tolist())
    if len(set(names)) < len(names) or len(np.unique(key)) < len(key):
        raise InvalidError("a node occurs twice", "Valid: each key and id once")
    near, far, kind, weight, derived, at = (np.asarray(column) for column in relations)
    weight = weight.astype(np.float64)
    if not (np.isfinite(weight).all() and (weight >= 0).all()):
        raise InvalidError("a weight is negative or no number", "Valid: 0 and above")
    source, target = _positions(key, near), _positions(key, far)
    whole = np.flatnonzero((source >= 0) & (target >= 0))
    pair = source[whole] * max(len(names), 1) + target[whole]
    whole = whole[np.lexsort((at[whole], weight[whole], kind[whole], pair))]
    return _frozen(
        names,
        key,
        node_type,
        status,
        created,
        source[whole],
        target[whole],
        kind[whole],
        weight[whole],
        derived[whole],
        at[whole],
    )


def from_rows(
    nodes: Iterable[tuple[int, str, int, int, int]],
    relations: Iterable[tuple[int, int, int, float, bool, int]],
) -> GraphSnapshot:
    """`from_columns` of rows with the same fields in the same order."""
    key, names, kind, status, created = _columns(nodes, 5)
    near, far, verb, weight, derived, at = _columns(relations, 6)
    return from_columns((key, names, kind, status, created), (near, far, verb, weight, derived, at))


def from_edges(
    edges: Iterable[tuple[str, str] | tuple[str, str, float]],
    nodes: Iterable[str] = (),
    *,
    relation: RelationType = RelationType.LEADS_TO,
) -> GraphSnapshot:
    """A snapshot of plain pairs, or triples with a weight, between ids.

    Nodes are facts, active, with keys 1 … n in order of id. For an undirected graph pass
    `relation=RelationType.RELATED_TO`.
    """
    triples = [(edge[0], edge[1], edge[2] if len(edge) == 3 else 1.0) for edge in edges]
    names = sorted({*nodes, *(each for edge in triples for each in edge[:2])})
    key = {name: place for place, name in enumerate(names, 1)}
    fact, active, verb = NODE_CODE[NodeType.FACT], STATUS_CODE[Status.ACTIVE], RELATION_CODE
    return from_rows(
        [(key[name], name, fact, active, UNKNOWN_TIME) for name in names],
        [(key[a], key[b], verb[relation], weight, False, UNKNOWN_TIME) for a, b, weight in triples],
    )


def _columns(rows: Iterable[tuple[Any, ...]], width: int) -> list[Any]:
    return list(zip(*rows, strict=True)) or [()] * width


def _frozen(names: tuple[str, ...], *columns: NDArray[Any]) -> GraphSnapshot:
    i8, i4, u1 = np.int64, np.int32, np.uint8
    types = (i8, u1, u1, i8, i4, i4, u1, np.float64, np.bool_, i8)
    made: list[NDArray[Any]] = [
        column.astype(kind) for column, kind in zip(columns, types, strict=True)
    ]
    for column in made:
        column.setflags(write=False)
    return GraphSnapshot(names, *made)


def _positions(key: Integers, wanted: NDArray[Any]) -> Integers:
    """The position of each wanted key, -1 where it is not among them."""
    if not len(key):
        return np.full(len(wanted), -1)
    order = np.argsort(key)
    at = np.minimum(np.searchsorted(key, wanted, sorter=order), len(key) - 1)
    found = order[at]
    return np.where(key[found] == wanted, found, -1)


def _coded(column: Codes, codes: Mapping[Any, int], wanted: Collection[Any] | None) -> Flags:
    if wanted is None:
        return np.ones(len(column), np.bool_)
    return np.isin(column, [codes[each] for each in wanted])


def _within(column: Integers, first: Instant | None, last: Instant | None) -> Flags:
    passed = np.ones(len(column), np.bool_)
    if (first or last) and (column == UNKNOWN_TIME).any():
        raise InvalidError("this graph was built without its instants", "", "Leave out the window")
    if first:
        passed &= column >= as_microseconds(first)
    if last:
        passed &= column <= as_microseconds(last)
    return passed
