"""Waves of memories: strengthened, weakened, and how strong each is now.

Reading writes nothing here: what accesses say is computed from their counter. A boost, a
forgetting, a dream fold the decay so far into the amplitude and count anew from their
instant; the phase stays. Such edits are logged, so that undo takes them back; no node's
`updated_at` moves.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from cortex.domain.errors import InvalidError
from cortex.domain.instants import Instant, as_microseconds
from cortex.domain.taxonomy import Status
from cortex.domain.values import Node, NodeId, WorkspaceId
from cortex.domain.waves import (
    BONUS_HALF,
    DAY,
    MOST,
    MOST_BONUS,
    decay,
    reinforced,
    strength,
)
from cortex.services.engine import Engine
from cortex.services.repeating import once
from cortex.services.resolving import describe, resolve_node
from cortex.store.database import Snapshot, Transaction
from cortex.store.waves import WaveState

DEFAULT_BOOST: Final = 0.5
_HOUR: Final = 3.6e9  # microseconds

Numbers = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Strengthened:
    """A memory's wave after an edit: `amplitude` in [0, 10], `strength` before it and after
    in [0, 11]. All JSON values."""

    id: str
    workspace_id: str
    amplitude: float
    strength: float
    strength_before: float
    notes: list[str]


class Waves:
    """Edits waves on request."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def boost(
        self,
        reference: str,
        amount: float = DEFAULT_BOOST,
        *,
        workspace: str | None = None,
        key: str | None = None,
    ) -> Strengthened:
        """Add `amount` in (0, 10] to a memory's amplitude, which stays within 10."""
        if not 0.0 < amount <= MOST:
            raise InvalidError(f"amount {amount} is out of range", "Valid: above 0, to 10")
        return self._edit(reference, {"boost": amount}, amount, workspace, key)

    def weaken(
        self, reference: str, *, workspace: str | None = None, key: str | None = None
    ) -> Strengthened:
        """Halve a memory's strength, as one half-life would, down to its accesses' bonus."""
        return self._edit(reference, {"weaken": 1}, None, workspace, key)

    def _edit(
        self,
        reference: str,
        request: dict[str, float],
        amount: float | None,
        workspace: str | None,
        key: str | None,
    ) -> Strengthened:
        place = self._engine.workspace(workspace)
        with self._engine.write() as transaction:

            def do() -> Strengthened:
                node = resolve_node(transaction, reference, place, strict=workspace is not None)
                return edit(transaction, node, amount)

            return once(transaction, place, key, {"id": reference, **request}, Strengthened, do)

    def strength_of(self, reference: str, *, workspace: str | None = None) -> float:
        """How strong a memory is now, in [0, 11]."""
        place = self._engine.workspace(workspace)
        with self._engine.database.read() as snapshot:
            node = resolve_node(snapshot, reference, place, strict=workspace is not None)
            return strengths(snapshot, [node.key], self._engine.now())[node.key]


def edit(transaction: Transaction, node: Node, amount: float | None) -> Strengthened:
    """Boost a memory within a transaction, or with None halve its strength."""
    state = transaction.waves.of_keys([node.key])[node.key]
    before = strength_at(state, transaction.at)
    present = state.wave.amplitude * decay(hours(state.since, transaction.at), state.wave.half_life)
    after = max(present - before / 2.0, 0.0) if amount is None else reinforced(present, amount)
    wave = replace(state.wave, amplitude=after)
    transaction.waves.put(node.key, wave, transaction.at)
    notes = [] if node.status is Status.ACTIVE else [f"{describe(node)} is {node.status.value}"]
    if amount is not None and after < present + amount:
        notes.append(f"the amplitude stays at its bound of {MOST:g}")
    strong = before + after - present
    return Strengthened(node.id, node.workspace_id, after, strong, before, notes)


def hours(since: Instant, now: Instant) -> float:
    """Hours between two instants, negative where `since` is the later."""
    return (as_microseconds(now) - as_microseconds(since)) / _HOUR


def strength_at(state: WaveState, now: Instant) -> float:
    """The strength of one memory, in [0, 11]."""
    since_access = hours(state.last_access, now) if state.last_access else 0.0
    return strength(state.wave, hours(state.since, now), state.accesses, since_access)


def strengths(snapshot: Snapshot, keys: Sequence[int], now: Instant) -> dict[int, float]:
    """The strength of each of these memories that exists."""
    states = snapshot.waves.of_keys(keys)
    return {key: strength_at(state, now) for key, state in states.items()}


def strongest(
    snapshot: Snapshot, place: WorkspaceId, now: Instant, limit: int
) -> list[tuple[float, Node]]:
    """Active memories that were strengthened or opened, strongest first, then newest, then by id.

    Looked for among the `limit` of greatest amplitude and the `limit` most often opened.
    """
    likely = strengths(snapshot, snapshot.waves.likely(place, limit), now)
    nodes = sorted(snapshot.nodes.by_keys(list(likely)), key=lambda node: node.id)
    nodes.sort(key=lambda node: node.created_at, reverse=True)
    return sorted(((likely[node.key], node) for node in nodes), key=lambda pair: -pair[0])


def strong(snapshot: Snapshot, place: WorkspaceId, last: Instant, days: float) -> list[NodeId]:
    """Active memories stronger by their own wave than a plain one is after `days`, at `last`.

    Each doubling of the amplitude keeps a memory from the archive for one half-life longer.
    """
    least = decay(days * DAY)
    return [
        NodeId(row.node_id)
        for row in snapshot.waves.waved(place)
        if row.wave.amplitude * decay(hours(row.since, last), row.wave.half_life) > least
    ]


@dataclass(frozen=True, slots=True)
class WaveField:
    """The waves of many memories as arrays (n,), by rising key; see `cortex.domain.waves`.

    `age` since the creation, `since` since the wave's own instant, `idle` since the last
    access (0 without any), all in hours.
    """

    keys: NDArray[np.int64]
    amplitude: Numbers
    frequency: Numbers
    phase: Numbers
    half_life: Numbers
    accesses: Numbers
    since: Numbers
    age: Numbers
    idle: Numbers

    def __len__(self) -> int:
        return len(self.keys)

    def strength(self) -> Numbers:
        """The envelopes E(t), in [0, 11]."""
        own = self.amplitude * np.exp2(-self.since / self.half_life)
        bonus = MOST_BONUS * (1.0 - np.exp2(-self.accesses / BONUS_HALF))
        return np.asarray(own + bonus * np.exp2(-self.idle / self.half_life))

    def rate(self) -> Numbers:
        """Cycles a day."""
        return np.asarray(self.frequency + self.accesses * DAY / np.maximum(self.age, DAY))

    def signal(self) -> Numbers:
        """S(t), in [−E, E]."""
        turn = 2.0 * np.pi * self.rate() * self.since / DAY
        return np.asarray(self.strength() * np.cos(turn + self.phase))

    def order_parameter(self) -> float:
        """R in [0, 1] of the phases; 0 of none."""
        if not len(self):
            return 0.0
        return min(float(abs(np.exp(1j * self.phase).mean())), 1.0)

    def of(self, keys: NDArray[np.int64]) -> NDArray[np.int64]:
        """The positions of these keys, which are all there."""
        return np.searchsorted(self.keys, keys)


def wave_field(states: Iterable[WaveState], now: Instant) -> WaveField:
    """The field of these states, given by rising key."""
    rows = list(states)
    waves = np.array(
        [(w.amplitude, w.frequency, w.phase, w.half_life) for w in (row.wave for row in rows)]
    ).reshape(-1, 4)
    present = _microseconds([now])[0]
    counted = [row.last_access or now for row in rows]
    since, age, idle = (
        np.maximum(present - _microseconds(times), 0.0) / _HOUR
        for times in ([r.since for r in rows], [r.created_at for r in rows], counted)
    )
    return WaveField(
        np.array([row.key for row in rows], np.int64),
        waves[:, 0],
        waves[:, 1],
        waves[:, 2],
        waves[:, 3],
        np.array([row.accesses for row in rows], np.float64),
        since,
        age,
        idle,
    )


def _microseconds(instants: Sequence[Instant]) -> Numbers:
    # numpy reads a whole column at once, without the Z that it would warn of.
    column = np.array([instant[:-1] for instant in instants], "datetime64[us]")
    return column.astype(np.int64).astype(np.float64)
