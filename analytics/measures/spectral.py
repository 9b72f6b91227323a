"""Eigenvector centrality, and hubs and authorities: top eigenvectors of symmetric matrices.

Idea: Lanczos iteration (ARPACK) from the uniform vector; below 300 nodes all eigenvectors at
once, and the uniform vector projected on the top eigenspace, which is what Lanczos finds.
Cost: some dozens of O(m) products.
Corners: in a graph that falls apart all the weight is on the component with the largest
eigenvalue; no relations give zeros. Where the two largest eigenvalues nearly meet, the vector
depends on rounding: no bound on its error is stated. Raises UnavailableError should Lanczos not
converge.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np

from analytics.measures.scores import Scores
from analytics.snapshot import Floats, GraphSnapshot
from cortex.domain.errors import UnavailableError

_DENSE: Final = 300
_TIE: Final = 1e-9


@dataclass(frozen=True, slots=True)
class HubsAndAuthorities:
    hubs: Scores
    authorities: Scores


def eigenvector_centrality(snapshot: GraphSnapshot, *, weighted: bool = True) -> Scores:
    """The Perron vector of the undirected graph, of length 1 (L2); values in [0, 1].

    The residual |Ax - λx| is below 1e-8 λ. Undirected, since a directed graph without cycles,
    which a memory nearly is, has none. Source: Bonacich, Am. J. Sociol. 92 (1987).
    """
    matrix = snapshot.simple(False, "sum" if weighted else "none")
    values = _top_eigenvector(lambda x: matrix @ x, len(snapshot))
    return Scores(values, False, "Bonacich 1987")


def hits(snapshot: GraphSnapshot, *, weighted: bool = True) -> HubsAndAuthorities:
    """Hub and authority scores; each in [0, 1] with sum 1 (all 0 without relations).

    A good hub points to good authorities. Source: Kleinberg, J. ACM 46 (1999).
    """
    matrix = snapshot.simple(True, "sum" if weighted else "none")
    incoming = matrix.T.tocsr()
    authorities = _top_eigenvector(lambda x: incoming @ (matrix @ x), len(snapshot))
    hubs = matrix @ authorities
    return HubsAndAuthorities(
        *(
            Scores(each / (each.sum() or 1.0), False, "Kleinberg 1999")
            for each in (hubs, authorities)
        )
    )


def _top_eigenvector(product: Callable[[Floats], Floats], n: int) -> Floats:
    """Of a symmetric non-negative matrix: non-negative, length 1; zeros for a zero matrix."""
    uniform = np.ones(n)
    if n == 0 or not product(uniform).any():
        return np.zeros(n)
    if n <= _DENSE:
        values, vectors = np.linalg.eigh(product(np.eye(n)))
        top = vectors[:, values >= values[-1] * (1 - _TIE)]
        vector = top @ (top.T @ uniform)
    else:
        vector = _lanczos(product, uniform)
    # The exact vector has no negative entries: what is below 0 is rounding.
    vector = np.maximum(vector if vector.sum() > 0 else -vector, 0.0)
    return np.asarray(vector / np.linalg.norm(vector))


def _lanczos(product: Callable[[Floats], Floats], start: Floats) -> Floats:
    from scipy.sparse.linalg import ArpackNoConvergence, LinearOperator, eigsh

    operator = LinearOperator((len(start), len(start)), matvec=product, dtype=np.float64)
    try:
        _, vectors = eigsh(operator, k=1, which="LA", v0=start, tol=1e-10)
    except ArpackNoConvergence as error:
        raise UnavailableError(
            f"the eigenvector did not converge ({error})", "", "Filter the graph, or use PageRank"
        ) from error
    return np.asarray(vectors[:, 0])
