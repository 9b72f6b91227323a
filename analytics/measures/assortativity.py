"""Assortativity by type: whether relations join nodes of the same type.

Cost: O(m), one `bincount` over pairs of types. Corners: every relation counts, parallel ones
and self-loops too; a symmetric one counts both ways; the coefficient is None where all
relations start and end at one type, since there chance alone explains everything.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from analytics.snapshot import Floats, GraphSnapshot
from cortex.domain.taxonomy import NODE_TYPES


@dataclass(frozen=True, slots=True, eq=False)
class Mixing:
    """`share[i, j]` of the relations lead from type i to type j of NODE_TYPES; sums to 1."""

    share: Floats
    coefficient: float | None


def type_assortativity(snapshot: GraphSnapshot) -> Mixing:
    """The coefficient is 1 where relations stay within types, 0 by chance; above -1. Exact.

    Source: Newman, Phys. Rev. E 67 (2003), equation 2.
    """
    kinds = len(NODE_TYPES)
    back = snapshot.symmetric
    near = np.concatenate([snapshot.source, snapshot.target[back]])
    far = np.concatenate([snapshot.target, snapshot.source[back]])
    pairs = snapshot.node_type[near].astype(np.int64) * kinds + snapshot.node_type[far]
    counted = np.bincount(pairs, minlength=kinds * kinds).reshape(kinds, kinds)
    share = counted / max(len(pairs), 1)
    chance = float(share.sum(axis=1) @ share.sum(axis=0))
    if not len(pairs) or chance > 1 - 1e-12:
        return Mixing(share, None)
    return Mixing(share, (float(np.trace(share)) - chance) / (1 - chance))
