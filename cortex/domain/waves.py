"""The laws of waves: how strong a memory is, and what two memories do to each other.

A memory swings as S(t) = A·cos(2πft + φ)·e^(−λt), with λ = ln 2 / half-life. Units: t and
half-lives in hours, f in cycles a day, φ in radians. What is forgotten over time is the
envelope E(t) = A·e^(−λt), called *strength*: it orders memories, since S is negative for half
of each swing. S itself is for looking at.

Being opened strengthens too, without a write: every access counts towards a bonus that is
bounded by `MOST_BONUS`, and fades from the last access on like the rest.
"""

from __future__ import annotations

import cmath
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

AMPLITUDE: Final = 1.0
HALF_LIFE: Final = 168.0
"""Hours: a week."""

MOST: Final = 10.0
"""Of an amplitude: no boost lifts it higher."""
MOST_BONUS: Final = 1.0
BONUS_HALF: Final = 8.0
"""Accesses that give half of the bonus."""

DAY: Final = 24.0


@dataclass(frozen=True, slots=True)
class Wave:
    """A memory's own wave at the instant from which it is counted.

    `amplitude` in [0, 10], `frequency` in cycles a day (0 or more, beside the accesses a day),
    `phase` in [−π, π], `half_life` in hours, above 0.
    """

    amplitude: float = AMPLITUDE
    frequency: float = 0.0
    phase: float = 0.0
    half_life: float = HALF_LIFE


PLAIN: Final = Wave()
"""That of a memory whose wave nobody ever changed; it is counted from its creation."""


def decay(hours: float, half_life: float = HALF_LIFE) -> float:
    """The share of an amplitude that is left after so long: 1 at once, 1/2 at the half-life.

    Time that has not come yet (another machine's clock) takes nothing.
    """
    return math.exp2(-max(hours, 0.0) / half_life)


def access_bonus(count: int) -> float:
    """What `count` accesses add to the strength at the last of them, in [0, 1)."""
    return MOST_BONUS * (1.0 - math.exp2(-count / BONUS_HALF))


def strength(wave: Wave, hours: float, count: int = 0, since_access: float = 0.0) -> float:
    """The envelope E(t) in [0, 11]: the amplitude and the accesses' bonus, both decayed."""
    own = wave.amplitude * decay(hours, wave.half_life)
    return own + access_bonus(count) * decay(since_access, wave.half_life)


def rate(wave: Wave, count: int, age: float) -> float:
    """Cycles a day: the wave's own, and accesses a day over the memory's age in hours.

    An age below a day counts as one, or a memory that was just made would spin.
    """
    return wave.frequency + count / (max(age, DAY) / DAY)


def signal(envelope: float, frequency: float, phase: float, hours: float) -> float:
    """S(t) in [−E, E], of an envelope that is decayed already."""
    return envelope * math.cos(2.0 * math.pi * frequency * hours / DAY + phase)


def reinforced(amplitude: float, amount: float, difference: float = 0.0) -> float:
    """A ← A + a·cos Δφ, kept within [0, 10].

    In phase (Δφ = 0) it adds the whole amount: a boost. In antiphase it takes it away. Boost
    and decay: boosting by a and then waiting for t is the same as waiting for t and then
    boosting by a·decay(t), as long as no bound is met.
    """
    return min(max(amplitude + amount * math.cos(difference), 0.0), MOST)


def interference(one: float, other: float, difference: float) -> float:
    """What two waves of these amplitudes add to each other, in [−1, 1].

    2·A₁·A₂·cos Δφ / (A₁² + A₂²), the cross term of |A₁ + A₂·e^(iΔφ)|² over the sum of squares:
    constructive above 0, destructive below, 0 where either is silent.
    """
    energy = one * one + other * other
    return 2.0 * one * other * math.cos(difference) / energy if energy else 0.0


def opposed(one: float, other: float, difference: float) -> float:
    """The interference of two memories that contradict each other: half a turn is added."""
    return interference(one, other, difference + math.pi)


def order_parameter(phases: Sequence[float]) -> float:
    """R = |mean e^(iφ)| in [0, 1]: 1 where all phases are equal; 0 of none.

    Source: Kuramoto, Chemical Oscillations, Waves, and Turbulence, 1984.
    """
    if not phases:
        return 0.0
    return min(abs(sum(cmath.exp(1j * phase) for phase in phases)) / len(phases), 1.0)


def wrapped(phase: float) -> float:
    """The same angle in [−π, π]."""
    return math.remainder(phase, 2.0 * math.pi)


def amplitude_of(importance: float) -> float:
    """The amplitude of a memory of this importance in [0, 1]: 2^(2i − 1), from 1/2 to 2.

    Half of importance is worth one half-life; 0.5 is a plain memory's amplitude of 1.
    """
    return math.exp2(2.0 * importance - 1.0)
