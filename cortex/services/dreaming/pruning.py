"""Prune: what is faint, idle, and supported by nothing is archived; the rest is settled.

A memory may go where archiving would let it (idle for `archive_days`, beside the newest, what
is in focus, goals, constraints, pinned and strong ones), its strength at the workspace's clock
is below 1/16, and its support Σ w·cos Δφ is below `LEAST_SUPPORT`. Removing one takes support
from its neighbours, so they are peeled until none is left that may go (as in a k-core; whatever
the order, the same ones stay: Batagelj, Zaveršnik 2003). What stays without a link is linked
anew between rounds. In the end nothing can go and nothing can be linked, which is why a second
dream finds nothing to do.

Cost: a pass over the links a round.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cortex.graph.similarity import Floats
from cortex.services.dreaming.interference import creation_phases
from cortex.services.dreaming.material import NO_LINKS, Links, Material, Vectors
from cortex.services.dreaming.nearest import missing_links
from cortex.services.dreaming.outdated import Mended, mend
from cortex.store.database import Snapshot

LEAST_SUPPORT: Final = 1.0


class Settled(NamedTuple):
    """The memories that stay with the links that they keep, the links that they are to get, what
    goes (keys with their strengths, by rising key), and the links that are to be mended."""

    material: Material
    fresh: Links
    pruned: dict[int, float]
    mended: tuple[Mended, ...]


def settle(
    snapshot: Snapshot,
    material: Material,
    vectors: Vectors,
    told: Callable[[int, int], None],
    *,
    linking: bool,
) -> Settled:
    """Mend the links, then link and peel until neither changes anything; without `linking`, peel
    alone."""
    fresh = NO_LINKS
    pruned: dict[int, float] = {}
    mended: tuple[Mended, ...] = ()
    if linking:
        links, mended = mend(snapshot, material, vectors)
        material = material.with_links(links)
    while True:
        if linking:
            known = material.with_links(material.links.joined(fresh))
            fresh = fresh.joined(missing_links(snapshot, known, vectors.only(material), told))
        gone = _peeled(material, material.links.joined(fresh))
        if not gone.any():
            return Settled(material, fresh, dict(sorted(pruned.items())), mended)
        pruned |= {key: material.faint[key] for key in material.field.keys[gone].tolist()}
        material = material.only(~gone)
        fresh = fresh.between(material.field.keys)


def _peeled(material: Material, links: Links) -> NDArray[np.bool_]:
    """Which memories go, as long as any does."""
    keys = material.field.keys
    may = np.isin(keys, np.array(list(material.faint), np.int64))
    gone = np.zeros(len(keys), np.bool_)
    if not may.any():
        return gone
    one, other = material.field.of(links.one), material.field.of(links.other)
    share = support_shares(material, links)
    while True:
        standing = ~gone[one] & ~gone[other]
        support = np.bincount(one[standing], share[standing], len(keys))
        support += np.bincount(other[standing], share[standing], len(keys))
        more = may & ~gone & (support < LEAST_SUPPORT)
        if not more.any():
            return gone
        gone |= more


def support_shares(material: Material, links: Links) -> Floats:
    """w·cos Δφ of each link (m,), by the phases of creation."""
    phase = creation_phases(material.made)
    one, other = material.field.of(links.one), material.field.of(links.other)
    return np.asarray(links.weight * np.cos(phase[one] - phase[other]))
