"""What a dream works on: memories and their waves, links, contradictions, earlier dreams' rows.

Memories are the active nodes of the types that have vectors, patterns of earlier dreams left
out.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from cortex.domain.dreams import FAINT
from cortex.domain.instants import Instant
from cortex.domain.taxonomy import VECTORISED, Status
from cortex.domain.values import Generation, Node, NodeId, WorkspaceId
from cortex.graph.similarity import Floats, Integers, SimilarityGraph, from_links, similarity_graph
from cortex.services.archiving import archive_terms
from cortex.services.engine import Engine
from cortex.services.meaning.semantic import model_key
from cortex.services.neighbours import vectors_of
from cortex.services.waves import WaveField, wave_field
from cortex.store.database import Snapshot
from cortex.store.dreams import Member, SkipLink
from cortex.store.meta import FINGERPRINT
from cortex.store.waves import WaveState
from cortex.vectors.models import Fingerprint

_HOUR: Final = 3.6e9  # microseconds
_PAGE: Final = 4000
_KINDS: Final = frozenset(kind.value for kind in VECTORISED)


@dataclass(frozen=True, slots=True)
class Links:
    """Undirected links between memories, each once, by keys: (m,) and their weights."""

    one: Integers
    other: Integers
    weight: Floats

    def joined(self, more: Links) -> Links:
        """Both together."""
        return Links(
            np.concatenate([self.one, more.one]),
            np.concatenate([self.other, more.other]),
            np.concatenate([self.weight, more.weight]),
        )

    def between(self, keys: Integers) -> Links:
        """Those that join two of these keys."""
        kept = np.isin(self.one, keys) & np.isin(self.other, keys)
        return Links(self.one[kept], self.other[kept], self.weight[kept])

    def graph(self) -> SimilarityGraph:
        return from_links(self.one, self.other, self.weight)


NO_LINKS: Final = Links(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0))


@dataclass(frozen=True, slots=True)
class Material:
    """A workspace as a dream sees it at `last`, its own clock; `generation` is no younger.

    `states` are the memories' by rising key, `field` the same as arrays, in hours before `last`.
    `made` (n,) is when each was made, `counted` (n,) from when its wave is counted, in hours
    since the first node of the workspace. `faint` are those that are weak enough, and idle
    enough, to be archived, with their strengths.
    """

    workspace: WorkspaceId
    generation: Generation
    last: Instant
    states: Sequence[WaveState]
    field: WaveField
    made: Floats
    counted: Floats
    ids: Mapping[int, NodeId]
    kinds: Mapping[int, str]
    faint: Mapping[int, float]
    cutoff: Instant
    links: Links
    contradictions: Links
    patterns: Sequence[Node]
    members: Sequence[Member]
    skips: Sequence[SkipLink]

    def with_links(self, links: Links) -> Material:
        """The same with other links."""
        return replace(self, links=links)

    def only(self, kept: NDArray[np.bool_]) -> Material:
        """Without the memories (n,) that are not kept, and their links."""
        states = [self.states[at] for at in np.flatnonzero(kept).tolist()]
        field = wave_field(states, self.last)
        return replace(
            self,
            states=states,
            field=field,
            made=self.made[kept],
            counted=self.counted[kept],
            links=self.links.between(field.keys),
            contradictions=self.contradictions.between(field.keys),
        )


def gather(engine: Engine, place: WorkspaceId) -> Material | None:
    """The material of a workspace now; None where nothing ever happened in it."""
    with engine.graphs.view(engine.database, place) as (snapshot, graph):
        near = similarity_graph(graph)
        generation = snapshot.generation()
    with engine.database.read() as snapshot:
        return _gathered(engine, snapshot, place, near, generation)


def _gathered(
    engine: Engine,
    snapshot: Snapshot,
    place: WorkspaceId,
    near: SimilarityGraph,
    generation: Generation,
) -> Material | None:
    terms = archive_terms(snapshot, place, engine.settings)
    first = snapshot.dreams.first(place)
    if terms is None or first is None:
        return None
    ids: dict[int, NodeId] = {}
    kinds: dict[int, str] = {}
    for each in snapshot.nodes.brief(place):
        ids[each.key], kinds[each.key] = NodeId(each.id), each.type
    patterns = snapshot.dreams.patterns(place)
    told = {node.key for node in patterns}
    states = [
        state
        for state in snapshot.waves.iter_active(place)
        if state.key not in told and kinds.get(state.key) in _KINDS
    ]
    # A pattern of an earlier dream takes no place among the newest that stay.
    active = sum(1 for node in patterns if node.status is Status.ACTIVE)
    idle = set(
        snapshot.archiving.idle(
            place, terms.cutoff, terms.keep + active, json.dumps(terms.hot)
        )
    )  # fmt: skip
    field = wave_field(states, terms.last)
    faint = {
        state.key: strong
        for state, strong in zip(states, field.strength().tolist(), strict=True)
        if strong < FAINT and state.key in idle
    }
    skips = snapshot.dreams.skips(place)
    conflicts = [(one, other) for _, one, other in snapshot.neighbours.conflicts(place)]
    return Material(
        place,
        generation,
        terms.last,
        states,
        field,
        _hours([state.created_at for state in states], first),
        _hours([state.since for state in states], first),
        ids,
        kinds,
        faint,
        terms.cutoff,
        _without(_halved(near), field.keys, [(skip.one, skip.other) for skip in skips]),
        _without(_pairs(conflicts), field.keys, []),
        patterns,
        snapshot.dreams.members(place),
        skips,
    )


def _hours(instants: Sequence[Instant], first: Instant) -> Floats:
    column = np.array([instant[:-1] for instant in (first, *instants)], "datetime64[us]")
    whole = column.astype(np.int64)
    return np.asarray((whole[1:] - whole[0]) / _HOUR)


def _halved(near: SimilarityGraph) -> Links:
    tail = np.repeat(np.arange(len(near)), np.diff(near.indptr))
    once = tail < near.neighbor
    return Links(near.keys[tail[once]], near.keys[near.neighbor[once]], near.weight[once])


def _pairs(pairs: Sequence[tuple[int, int]]) -> Links:
    ends = np.array(pairs, np.int64).reshape(-1, 2)
    return Links(ends[:, 0], ends[:, 1], np.ones(len(ends)))


def _without(links: Links, keys: Integers, pairs: Sequence[tuple[int, int]]) -> Links:
    """The links between `keys`, but those that join one of these pairs."""
    links = links.between(keys)
    kept = np.ones(len(links.one), np.bool_)
    if pairs and len(links.one):
        ends = np.sort(np.array(pairs, np.int64).reshape(-1, 2), axis=1)
        span = int(max(links.one.max(), links.other.max(), ends.max())) + 1
        least, most = np.minimum(links.one, links.other), np.maximum(links.one, links.other)
        kept = ~np.isin(least * span + most, ends[:, 0] * span + ends[:, 1])
    return Links(links.one[kept], links.other[kept], links.weight[kept])


@dataclass(frozen=True, slots=True)
class Vectors:
    """Unit vectors (n, d) of the memories that have them, by rising key (n,)."""

    keys: Integers
    rows: NDArray[np.float32]

    def __len__(self) -> int:
        return len(self.keys)

    def only(self, material: Material) -> Vectors:
        """Those of the memories of a material."""
        kept = np.isin(self.keys, material.field.keys)
        return self if kept.all() else Vectors(self.keys[kept], self.rows[kept])

    def of(self, keys: Integers) -> Integers:
        """The rows of those of these keys that have vectors, in their order."""
        at = np.searchsorted(self.keys, keys)
        at[at == len(self.keys)] = 0
        return at[self.keys[at] == keys] if len(self.keys) else np.empty(0, np.int64)


def read_vectors(snapshot: Snapshot, keys: Integers) -> Iterator[Vectors]:
    """The vectors of these keys, given by rising key, a page at a time; none without a model."""
    stored = snapshot.meta.find(FINGERPRINT)
    if stored is None:
        return
    model = model_key(Fingerprint.parse(stored))
    for start in range(0, len(keys), _PAGE):
        found = vectors_of(snapshot, model, keys[start : start + _PAGE].tolist())
        if found:
            order = sorted(found)
            yield Vectors(np.array(order, np.int64), np.stack([found[key] for key in order]))


def all_vectors(pages: Sequence[Vectors]) -> Vectors:
    """Pages as one."""
    if not pages:
        return Vectors(np.empty(0, np.int64), np.empty((0, 0), np.float32))
    return Vectors(
        np.concatenate([page.keys for page in pages]), np.concatenate([page.rows for page in pages])
    )
