"""How cost grows from one size of memory to the next: local tools hardly, the build linearly."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Final

from cortex.cli.timing import Figure, value_of

LIMIT: Final = 1.5
LINEAR: Final = 1.25  # of what one node costs
PROMISED: Final = (100_000, 1_000_000)
_LOCAL: Final = ("open", "history", "get", "get again", "focus", "traverse", "traverse again",
                 "traverse, 4 of 22 types", "walk", "cascade, planned")  # fmt: skip
BUILT: Final = "graph built"


def growth(figures: Sequence[Figure]) -> list[Figure]:
    """The p50 of each local tool over stdio at the larger size, by that at the one before.

    Of the build of the graph it is the time a node. The promises are from 100,000 to 1,000,000.
    """
    p50 = {(each.subject, each.where, each.clients, each.nodes): each.p50 for each in figures}
    grown = []
    for small, large in pairwise(sorted({figure.nodes for figure in figures})):
        for name in (*_LOCAL, BUILT):
            where = "engine" if name == BUILT else "stdio"
            before, after = (p50.get((name, where, 1, nodes)) for nodes in (small, large))
            if not before or not after:
                continue
            share = small / large if name == BUILT else 1.0
            limit = LINEAR if name == BUILT else LIMIT
            note = f"from {small:,} nodes{', a node' if name == BUILT else ''}"
            grown.append(
                value_of(
                    f"growth, {name}",
                    after / before * share,
                    "×",
                    where=where,
                    nodes=large,
                    note=note,
                    below=limit if (small, large) == PROMISED else None,
                )
            )
    return grown
