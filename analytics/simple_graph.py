"""The matrix of a graph without parallel edges and self-loops.

Idea: an edge is the integer row · n + column; sorted, parallel edges stand together and one
`reduceat` folds them. Cost: one sort of the edges (none where they come sorted).
Corners: weight 0 stays as an explicit 0, which is an edge; no nodes give a 0 × 0 matrix.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Literal

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from scipy.sparse import csr_array

Weights = Literal["max", "min", "sum", "none"]

_FOLD: Final[dict[str, np.ufunc]] = {"max": np.maximum, "min": np.minimum, "sum": np.add}


def simple_matrix(
    near: NDArray[Any], far: NDArray[Any], values: NDArray[np.float64], n: int, weights: Weights
) -> csr_array:
    """n × n compressed rows, float64, of the edges near → far; parallel ones are folded."""
    from scipy.sparse import csr_array

    apart = near != far
    edge = near[apart].astype(np.int64) * n + far[apart]
    values = values[apart]
    if len(edge) > 1 and (edge[1:] < edge[:-1]).any():
        order = np.argsort(edge, kind="stable")
        edge, values = edge[order], values[order]
    first = np.flatnonzero(np.diff(edge, prepend=-1))
    edge = edge[first]
    if weights == "none":
        values = np.ones(len(edge))
    elif len(edge):
        values = _FOLD[weights].reduceat(values, first)
    row, column = np.divmod(edge, max(n, 1))
    indptr = np.zeros(n + 1, np.int32)
    np.cumsum(np.bincount(row, minlength=n), out=indptr[1:])
    return csr_array((values, column.astype(np.int32), indptr), shape=(n, n))
