"""Strengthen, sync and transfer: the wave that each memory is to have.

- **strengthen**: with support s, an amplitude of at least (1 + g) times what a plain memory
  made at the same time has left, g = 1 − 2^(−s/8) in [0, 1]. What somebody boosted beyond that
  stays; what somebody made weaker than a plain memory (little importance, `forget`) is left so.
- **sync**: the phase at the end of `synchrony.py`, for memories that have links.
- **transfer**: a longer half-life by age and by support and accesses together. The amplitude is
  decayed to the workspace's clock first, so that the strength does not jump.

Each is at least what it was, or follows from what no dream writes, so that done twice it is
done once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cortex.domain.dreams import LADDER, MOST_SUPPORT, Change, gain_of, layer_name
from cortex.domain.instants import Instant
from cortex.domain.waves import HALF_LIFE, Wave
from cortex.graph.similarity import Floats, Integers
from cortex.services.dreaming.interference import Detected
from cortex.services.dreaming.material import Material

_SAME: Final = 1e-6  # relative: what is nearer is no change


class NewWave(NamedTuple):
    """A wave that a memory is to have, counted from `since`."""

    key: int
    wave: Wave
    since: Instant


class Waving(NamedTuple):
    """The waves to write, by key, the changes that make them, and R of all memories before and
    after."""

    waves: tuple[NewWave, ...]
    changes: tuple[Change, ...]
    before: float
    after: float


class _Targets(NamedTuple):
    """What each memory (n,) is to have, and which steps change it."""

    amplitude: Floats
    phase: Floats
    half_life: Floats
    moved: NDArray[np.bool_]
    raised: NDArray[np.bool_]
    turned: NDArray[np.bool_]
    earned: Floats


def wave(
    material: Material, found: Detected, synced: Mapping[int, float], replayed: NDArray[np.bool_]
) -> Waving:
    """The waves of the replayed memories (n,); `synced` are the phases of those with links."""
    field = material.field
    targets = _targets(material, found, synced, replayed)
    changed = np.flatnonzero(targets.raised | targets.turned | targets.moved)
    waves, changes = [], []
    for at in changed.tolist():
        made = _new_wave(material, targets, at)
        waves.append(made)
        changes += list(_changes(material, found, targets, at, made))
    after = np.where(targets.turned, targets.phase, field.phase)
    return Waving(tuple(waves), tuple(changes), _order(field.phase), _order(after))


def _new_wave(material: Material, targets: _Targets, at: int) -> NewWave:
    state = material.states[at]
    amplitude, since = float(targets.amplitude[at]), state.since
    half_life = state.wave.half_life
    if targets.moved[at]:
        amplitude *= float(np.exp2(-material.field.since[at] / half_life))
        since, half_life = max(since, material.last), float(targets.half_life[at])
    phase = float(targets.phase[at]) if targets.turned[at] else state.wave.phase
    return NewWave(state.key, Wave(amplitude, state.wave.frequency, phase, half_life), since)


def _targets(
    material: Material, found: Detected, synced: Mapping[int, float], replayed: NDArray[np.bool_]
) -> _Targets:
    field = material.field
    plain = np.exp2(-np.maximum(material.counted - material.made, 0.0) / HALF_LIFE)
    by_wish = field.amplitude < plain * (1.0 - _SAME)
    gain = np.array([gain_of(each) for each in found.support.tolist()])
    floor = plain * (1.0 + gain)
    raised = replayed & ~by_wish & (floor > field.amplitude * (1.0 + _SAME))
    phase = field.phase.copy()
    if synced:
        keys = np.array(list(synced), np.int64)
        phase[field.of(keys)] = np.array(list(synced.values()))
    turned = replayed & (np.abs(phase - field.phase) > _SAME)
    earned = found.support.clip(0.0, MOST_SUPPORT) + field.accesses
    half_life = field.half_life.copy()
    for age, support, half in LADDER:
        reached = (field.age >= age) & (earned >= support)
        half_life = np.where(reached, np.maximum(half_life, half), half_life)
    moved = replayed & ~by_wish & (half_life > field.half_life * (1.0 + _SAME))
    amplitude = np.where(raised, floor, field.amplitude)
    return _Targets(amplitude, phase, half_life, moved, raised, turned, earned)


def _changes(
    material: Material, found: Detected, targets: _Targets, at: int, made: NewWave
) -> Iterator[Change]:
    state, field = material.states[at], material.field
    key, node = state.key, material.ids[state.key]
    near, bridges = int(found.degree[at]), int(found.bridges[at])
    if targets.raised[at]:
        across = f", {bridges} of them in other communities" if bridges else ""
        why = f"support {found.support[at]:.2f} of {near} neighbours{across}"
        before, after = state.wave.amplitude, float(targets.amplitude[at])
        yield Change("strengthen", key, node, before, after, why)
    if targets.turned[at]:
        why = f"drawn to {near} neighbours from {found.phase[at]:+.2f}, the phase of its creation"
        yield Change("sync", key, node, state.wave.phase, float(targets.phase[at]), why)
    if targets.moved[at]:
        names = layer_name(state.wave.half_life), layer_name(float(targets.half_life[at]))
        why = (
            f"{names[0]} to {names[1]}: {field.age[at] / 24.0:.0f} days old, "
            f"support and accesses {targets.earned[at]:.2f}"
        )
        raised = float(targets.amplitude[at])
        yield Change(
            "transfer", key, node, _counted(state.wave.half_life, raised, state.since),
            _counted(made.wave.half_life, made.wave.amplitude, made.since), why,
        )  # fmt: skip


def _counted(half_life: float, amplitude: float, since: Instant) -> dict[str, Any]:
    return {"half_life": half_life, "amplitude": amplitude, "at": since}


def _order(phase: Floats) -> float:
    return min(float(abs(np.exp(1j * phase).mean())), 1.0) if len(phase) else 0.0


def lately(material: Material, hours: float, neighbours: tuple[Integers, Integers]) -> (
    NDArray[np.bool_]
):  # fmt: skip
    """Which memories were made or opened so lately, or are linked to one that was."""
    field = material.field
    new = (field.age <= hours) | ((field.accesses > 0) & (field.idle <= hours))
    one, other = (field.of(each) for each in neighbours)
    found = new.copy()
    np.logical_or.at(found, one, new[other])
    np.logical_or.at(found, other, new[one])
    return found
