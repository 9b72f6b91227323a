"""Looking at a memory as a whole: its waves, its clusters, what strengthens, fades, conflicts.

| number | definition | range |
|---|---|---|
| strength E | envelope of the wave with the accesses' bonus, now | [0, 11] |
| order parameter R | abs of the mean of e^(iφ) over active memories | [0, 1] |
| integration Φ | min(1, λ₂) of the neighbour links' normalised Laplacian | [0, 1] |
| differentiation Ξ | 1 − mean cosine of the communities' centroids | [0, 1] |
| interference | of two memories that contradict each other, half a turn added | [−1, 1] |

Nothing here writes, and nothing is resolved: a contradiction stays until somebody decides.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from cortex.domain.values import Node, WorkspaceId
from cortex.domain.waves import MOST, MOST_BONUS, opposed
from cortex.services.engine import Engine
from cortex.services.hybrid.coherence import Coherence, Coherences
from cortex.services.hybrid.following import Following
from cortex.services.meaning.index_status import index_status
from cortex.services.meaning.semantic import Semantic
from cortex.services.neighbours import Neighbours
from cortex.services.waves import Numbers

STRENGTHS: Final = (0.0, 0.125, 0.25, 0.5, 1.0, 2.0, 4.0, MOST + MOST_BONUS)
"""Edges of the histogram: a half-life apart."""
SECTORS: Final = 12
WEAK: Final = 0.5
_LATELY: Final = 168.0  # hours
_SHOWN: Final = 5
_CLUSTERS: Final = 8
_CONFLICTS: Final = 20
_LEAST_GAIN: Final = 0.01

Strong = tuple[Node, float]


@dataclass(frozen=True, slots=True)
class State:
    """A workspace in numbers: `memories` are its active nodes but sessions.

    These and `unlinked` are as of the coherence's generation, the rest as of `generation`.
    """

    workspace_id: str
    memories: int
    coherence: Coherence
    unlinked: int
    behind: int
    problem: str | None
    statuses: dict[str, int]
    index: dict[str, Any]
    generation: int


@dataclass(frozen=True, slots=True)
class Cluster:
    """A community of linked memories: its strongest members, and the mean strength of all."""

    size: int
    strength: float
    members: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Conflict:
    """Two active memories that contradict each other; below 0 their interference is
    destructive."""

    one: Node
    other: Node
    interference: float


@dataclass(frozen=True, slots=True)
class Observation:
    """`strengths` (7,) counts memories between the edges of STRENGTHS, `phases` (12,) by sector
    from −π on. `strengthened` gained by boosts and accesses of the last week, most first;
    `fading` were strengthened once and are below one half, the greatest loss first; each with
    its strength."""

    state: State
    strengths: tuple[int, ...]
    phases: tuple[int, ...]
    mean_strength: float
    mean_signal: float
    clusters: tuple[Cluster, ...]
    strengthened: tuple[Strong, ...]
    fading: tuple[Strong, ...]
    conflicts: tuple[Conflict, ...]
    conflicts_total: int
    epoch: str
    embeddings: int
    floor: int
    graph_bytes: int
    process_bytes: int


class Observing:
    """Reads a memory's state."""

    def __init__(
        self,
        engine: Engine,
        semantic: Semantic,
        neighbours: Neighbours,
        following: Following,
    ) -> None:
        self._engine = engine
        self._semantic = semantic
        self._neighbours = neighbours
        self._following = following
        self._coherences = Coherences(engine)

    def status(self, workspace: str | None = None) -> State:
        """The measures and counts of a workspace, and how far its index lags."""
        place = self._engine.workspace(workspace)
        coherence = self._coherences.of(place)
        with self._engine.database.read() as snapshot:
            counts = snapshot.nodes.counts(place)
            states = snapshot.outbox.counts()
            pending = snapshot.outbox.pending(place)
            failed, why = snapshot.outbox.failed(place)
            generation = snapshot.generation().seq
        index: dict[str, Any] = {
            "ready": states.get("ready", 0),
            "pending": pending,
            "failed": failed,
            "problem": why,
        }
        return State(
            place,
            len(coherence.field),
            coherence,
            len(coherence.field) - len(coherence.keys),
            self._neighbours.behind(),
            self._following.problem,
            {status.value: count for status, count in counts.items()},
            index | index_status(self._engine, self._semantic),
            generation,
        )

    def observe(self, workspace: str | None = None) -> Observation:
        """The same with histograms, clusters, what strengthens and fades, and conflicts."""
        state = self.status(workspace)
        place = WorkspaceId(state.workspace_id)
        seen, field = state.coherence, state.coherence.field
        strong = field.strength()
        gained, lost = _gains(seen, strong), _losses(seen, strong)
        members = _members(seen, strong)
        with self._engine.database.read() as snapshot:
            pairs = snapshot.neighbours.conflicts(place)
            ends = [key for _, one, other in pairs[:_CONFLICTS] for key in (one, other)]
            wanted = [*gained, *lost, *(key for keys in members for key in keys), *ends]
            nodes = {node.key: node for node in snapshot.nodes.by_keys(list(dict.fromkeys(wanted)))}
            generation = snapshot.generation()
        strengths = dict(zip(field.keys.tolist(), strong.tolist(), strict=True))
        phases = dict(zip(field.keys.tolist(), field.phase.tolist(), strict=True))
        sizes = np.bincount(seen.group, minlength=1)
        means = _mean_by_group(seen, strong)
        return Observation(
            state,
            tuple(np.histogram(strong, STRENGTHS)[0].tolist()),
            tuple(np.histogram(field.phase, SECTORS, (-np.pi, np.pi))[0].tolist()),
            float(strong.mean()) if len(strong) else 0.0,
            float(field.signal().mean()) if len(strong) else 0.0,
            tuple(
                Cluster(int(sizes[at]), means[at], tuple(nodes[k] for k in keys if k in nodes))
                for at, keys in enumerate(members)
            ),
            tuple((nodes[key], strengths[key]) for key in gained if key in nodes),
            tuple((nodes[key], strengths[key]) for key in lost if key in nodes),
            tuple(
                Conflict(
                    nodes[one],
                    nodes[other],
                    opposed(strengths[one], strengths[other], phases[one] - phases[other]),
                )
                for _, one, other in pairs[:_CONFLICTS]
                if {one, other} <= nodes.keys() & strengths.keys()
            ),
            len(pairs),
            generation.epoch,
            generation.embeddings,
            generation.floor,
            self._engine.graphs.memory_bytes(),
            _resident(),
        )


def _gains(seen: Coherence, strong: Numbers) -> list[int]:
    """Keys of what is stronger than a plain memory of its age, by something of the last week."""
    field = seen.field
    plain = np.exp2(-field.age / field.half_life)
    touched = np.minimum(
        np.where(field.accesses > 0, field.idle, np.inf),
        np.where(field.since < field.age - 1e-9, field.since, np.inf),
    )
    gain = np.where(touched <= _LATELY, strong - plain, 0.0)
    return _greatest(gain, seen)


def _losses(seen: Coherence, strong: Numbers) -> list[int]:
    """Keys of what was above a plain memory once, and is weak now."""
    field = seen.field
    peak = field.amplitude + (1.0 - np.exp2(-field.accesses / 8.0))
    valued = (field.accesses > 0) | (field.amplitude > 1.0)
    return _greatest(np.where(valued & (strong < WEAK), peak - strong, 0.0), seen)


def _greatest(score: Numbers, seen: Coherence) -> list[int]:
    order = np.lexsort((seen.field.keys, -score))[:_SHOWN]
    return [int(seen.field.keys[at]) for at in order if score[at] > _LEAST_GAIN]


def _members(seen: Coherence, strong: Numbers) -> list[list[int]]:
    """The three strongest of each of the largest communities."""
    if not len(seen.keys):
        return []
    strength = strong[seen.field.of(seen.keys)]
    found = []
    for number in range(min(seen.communities, _CLUSTERS)):
        inside = np.flatnonzero(seen.group == number)
        order = np.lexsort((seen.keys[inside], -strength[inside]))[:3]
        found.append(seen.keys[inside[order]].tolist())
    return found


def _mean_by_group(seen: Coherence, strong: Numbers) -> Sequence[float]:
    if not len(seen.keys):
        return []
    strength = strong[seen.field.of(seen.keys)]
    means: list[float] = (np.bincount(seen.group, strength) / np.bincount(seen.group)).tolist()
    return means


def _resident() -> int:
    """Bytes of memory that this process holds."""
    import psutil

    return int(psutil.Process().memory_info().rss)
