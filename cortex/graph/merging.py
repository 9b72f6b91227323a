"""Communities that hold together: those of label propagation, joined where they fall short.

A community is one in the weak sense if its vertices have more weight among each other, each
link counted from both ends, than to the outside (Radicchi et al., PNAS 101, 2004). Label
propagation can end with halves of a clique that are not: two neighbours that change in one turn
swap their labels for ever. Here a community that has more weight to one other than within itself
is joined to that one, again and again, until none has.

Cost: a sort of the links a round; rounds halve the number of those that fall short. Corners: a
single vertex has nothing within, so it joins its heaviest neighbour; separate components are
never joined; ties go to the lower number.
"""

from __future__ import annotations

import numpy as np

from cortex.graph.differentiation import communities
from cortex.graph.similarity import Integers, SimilarityGraph


def holding_communities(graph: SimilarityGraph) -> Integers:
    """The community of each vertex, (n,), numbered by size, largest first, then by vertex."""
    group = communities(graph)
    while len(graph):
        partner = _partners(graph, group)
        if np.array_equal(partner, np.arange(len(partner))):
            return group
        group = _numbered(_joined(partner)[group])
    return group


def _partners(graph: SimilarityGraph, group: Integers) -> Integers:
    """The community that each is to be joined to, (m,); itself where it holds together."""
    count = int(group.max()) + 1
    tail = np.repeat(group, np.diff(graph.indptr))
    head = group[graph.neighbor]
    code = tail * count + head
    order = np.argsort(code, kind="stable")
    code = code[order]
    start = np.flatnonzero(np.diff(code, prepend=-1))
    weight = np.round(np.add.reduceat(graph.weight[order], start), 9)
    one, other = code[start] // count, code[start] % count
    within = np.zeros(count)
    inside = one == other
    within[one[inside]] = weight[inside]
    one, other, weight = one[~inside], other[~inside], weight[~inside]
    best = np.lexsort((other, -weight, one))
    first = best[np.flatnonzero(np.diff(one[best], prepend=-1))]
    partner = np.arange(count)
    short = weight[first] > within[one[first]]
    partner[one[first[short]]] = other[first[short]]
    return partner


def _joined(partner: Integers) -> Integers:
    """The least number among those that are joined with each, over any number of steps."""
    label = np.arange(len(partner))
    while True:
        least = np.minimum(label, label[partner])
        np.minimum.at(least, partner, label)
        if np.array_equal(least, label):
            return label
        label = least


def _numbered(label: Integers) -> Integers:
    _, first, group, sizes = np.unique(
        label, return_index=True, return_inverse=True, return_counts=True
    )
    place = np.empty(len(sizes), np.int64)
    place[np.lexsort((first, -sizes))] = np.arange(len(sizes))
    return np.asarray(place[group])
