"""A seeded memory as arrays, without a database: for whole-graph measures of any size."""

from __future__ import annotations

import numpy as np

from analytics.snapshot import UNKNOWN_TIME, GraphSnapshot, from_columns
from cortex.domain.taxonomy import NODE_TYPES, RELATION_CODE, RelationType

R = RelationType


def generate(nodes: int, relations: int, seed: int) -> GraphSnapshot:
    """A memory of that size; same seed, same graph. Needs relations ≥ nodes."""
    rng = np.random.default_rng(seed)
    child = np.arange(1, nodes)
    # A parent is older than its child, mostly much older: the tree is wide and shallow.
    parent = (child * rng.uniform(0.05, 0.95, nodes - 1) ** 2).astype(np.int64)
    rest = relations - len(child)
    chains = rest // 4
    at = rng.integers(nodes - 20, size=chains)
    files = rest // 3
    near = rng.integers(nodes, size=rest - chains)
    far = rng.integers(nodes, size=rest - chains)
    far[:files] = rng.integers(nodes // 40, size=files) * 40
    hubs = rng.random(len(far)) < 0.05
    far[hubs] = rng.integers(5, size=int(hubs.sum())) * 997 % nodes
    source = np.concatenate([parent, at, near])
    target = np.concatenate([child, at + rng.integers(1, 20, size=chains), far])
    cross = np.array([RELATION_CODE[kind] for kind in (R.RELATED_TO, R.SUPPORTS, R.DERIVES_FROM)])
    kind = np.concatenate(
        [
            np.full(len(child), RELATION_CODE[R.CONTAINS]),
            np.full(chains, RELATION_CODE[R.SEQUEL_TO]),
            np.full(files, RELATION_CODE[R.RELATES_TO_FILE]),
            rng.choice(cross, rest - chains - files),
        ]
    )
    low = rng.random(relations) < 0.2
    weight = np.where(low, rng.uniform(0.2, 0.99, relations).round(3), 1.0)
    key = np.arange(nodes)
    unknown = np.full(relations, UNKNOWN_TIME)
    return from_columns(
        (
            key,
            [f"{number:08d}" for number in range(nodes)],
            rng.integers(len(NODE_TYPES), size=nodes),
            np.zeros(nodes, np.int64),
            np.full(nodes, UNKNOWN_TIME),
        ),
        (source, target, kind, weight, np.zeros(relations, np.bool_), unknown),
    )
