"""The three measures of a workspace's memories as a whole, kept while little changes.

R, the order parameter, is of the phases of all active memories; Φ, integration, and Ξ,
differentiation, are of the graph of neighbour links, whose vertices are the memories that
have one. Computed in this process, from arrays (`cortex.graph.integration`,
`differentiation`): 5 to 8 s at 100,000 linked memories, milliseconds at 1,000.

What took long is kept for ten times as long, as long as few changes came: who asks after every
write has it computed for a tenth of the time at most. `generation` and `at` say of when it is.
What is quickly computed is always of the present.
"""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass
from typing import Final

import numpy as np

from cortex.domain.instants import Instant
from cortex.domain.values import Generation, WorkspaceId
from cortex.graph.differentiation import communities, differentiation
from cortex.graph.integration import components, integration
from cortex.graph.similarity import Integers, similarity_graph
from cortex.services.engine import Engine
from cortex.services.meaning.semantic import model_key
from cortex.services.neighbours import vectors_of
from cortex.services.waves import WaveField, wave_field
from cortex.store.database import Snapshot
from cortex.store.meta import FINGERPRINT
from cortex.vectors.models import Fingerprint

QUICK: Final = 0.25
"""Seconds of measuring below which nothing older than the present is shown."""
KEPT: Final = 10.0
"""How many times as long as measuring took it is kept."""
FEW: Final = 0.01
"""Changes of the log, as a share of the linked memories, up to which it is kept."""


@dataclass(frozen=True, slots=True)
class Coherence:
    """`field` are the active memories' waves; `keys` (m,) the linked memories and `group` (m,)
    their communities, largest first; `parts` is the number of components of their graph."""

    generation: Generation
    at: Instant
    field: WaveField
    keys: Integers
    group: Integers
    order_parameter: float
    integration: float
    differentiation: float
    links: int
    parts: int

    @property
    def communities(self) -> int:
        return int(self.group.max()) + 1 if len(self.group) else 0


@dataclass(frozen=True, slots=True)
class _Kept:
    """What was measured, in how many seconds, until when by the monotonic clock."""

    coherence: Coherence
    took: float
    ended: float

    def is_of(self, generation: Generation, now: Instant) -> bool:
        seen = self.coherence
        return seen.generation == generation and seen.at[:13] == now[:13]

    def is_near(self, generation: Generation) -> bool:
        seen = self.coherence
        changes = generation.seq - seen.generation.seq
        return (
            self.took >= QUICK
            and time.monotonic() - self.ended <= KEPT * self.took
            and seen.generation.epoch == generation.epoch
            and 0 <= changes <= FEW * len(seen.keys)
        )


class Coherences:
    """Computes them, one workspace at a time, and keeps the last of each."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._lock = threading.Lock()
        self._kept: dict[WorkspaceId, _Kept] = {}

    def of(self, place: WorkspaceId) -> Coherence:
        """A workspace's coherence as it is now, or where that takes long as it was just now.

        Accesses move amplitudes, which weigh in Ξ, without a change of the log: what is kept
        may be an hour old in that.
        """
        with self._lock:
            with self._engine.database.read() as snapshot:
                generation = snapshot.generation()
            kept = self._kept.get(place)
            now = self._engine.now()
            if kept is None or not (kept.is_of(generation, now) or kept.is_near(generation)):
                began = time.monotonic()
                measured = self._measured(place, now)
                ended = time.monotonic()
                kept = self._kept[place] = _Kept(measured, ended - began, ended)
            return kept.coherence

    def _measured(self, place: WorkspaceId, now: Instant) -> Coherence:
        engine = self._engine
        with engine.graphs.view(engine.database, place) as (snapshot, graph):
            near = similarity_graph(graph)
            field = wave_field(snapshot.waves.iter_active(place), now)
            generation = snapshot.generation()
        group = communities(near)  # without the graph's lock
        unlike = 0.0
        if len(near):
            with engine.database.read() as snapshot:
                unlike = _unlike(snapshot, near.keys, group, field)
        parts = int(components(near).max()) + 1 if len(near) else 0
        return Coherence(
            generation,
            now,
            field,
            near.keys,
            group,
            field.order_parameter(),
            integration(near),
            unlike,
            len(near.neighbor) // 2,
            parts,
        )


def _unlike(snapshot: Snapshot, keys: Integers, group: Integers, field: WaveField) -> float:
    stored = snapshot.meta.find(FINGERPRINT)
    if stored is None:
        return 0.0
    vectors = vectors_of(snapshot, model_key(Fingerprint.parse(stored)), keys.tolist())
    have = np.array([key in vectors for key in keys.tolist()], np.bool_)
    if not have.any():
        return 0.0
    rows = np.stack([vectors[key] for key in keys[have].tolist()])
    amplitude = field.strength()[field.of(keys[have])]
    return differentiation(group[have], rows, amplitude)
