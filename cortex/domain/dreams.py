"""What a dream decides by: its steps, and the laws behind their numbers.

A dream is a function: from the memories, links and reads of a workspace it computes the state
that each wave, status and derived row should have, and changes what differs. Nothing that a
dream writes is among what it computes from, so a second one on unchanged data has nothing to
do. It knows no clock but the workspace's own (`last`, the newest creation, edit or focus): a
holiday changes nothing.

| step | what it sets | law |
|---|---|---|
| replay | neighbour links of memories that have none (deep) | the 8 nearest of cosine ≥ 0.5 |
| detect | nothing: pairs that are near and in phase, near and out of phase | w·cos Δφ |
| bundle | a `pattern` node a community (deep) | `PATTERN_LEAST` members and more |
| strengthen | amplitude | at least (1 + g) times a plain memory's of its age |
| sync | phase | Kuramoto's flow over the links, from the phase of creation |
| prune | status archived (deep) | idle, strength below 1/16, and nothing supports it |
| transfer | half-life | 168 h → 720 h → 8,760 h by age and support |
| wire | skip links between communities (deep) | the nearest community that no link joins |

Sources: constructive interference as reinforcement after Hebb, The Organization of Behavior,
1949; the flow: Kuramoto, Self-entrainment of a population of coupled non-linear oscillators,
1975, and Strogatz, From Kuramoto to Crawford, Physica D 143, 2000; slow half-lives after
McClelland, McNaughton, O'Reilly, Why there are complementary learning systems, Psychological
Review 102, 1995; skip links after Watts, Strogatz, Nature 393, 1998.
"""

from __future__ import annotations

import math
from typing import Any, Final, Literal, NamedTuple

Step = Literal[
    "replay", "detect", "bundle", "strengthen", "sync", "prune", "transfer", "wire"
]  # fmt: skip
Mode = Literal["plan", "apply"]
Depth = Literal["lite", "deep"]

STEPS: Final[tuple[Step, ...]] = (
    "replay", "detect", "bundle", "strengthen", "sync", "prune", "transfer", "wire",
)  # fmt: skip
LITE: Final[frozenset[Step]] = frozenset({"replay", "detect", "strengthen", "sync", "transfer"})
"""Those of a lite dream, which touches only the memories of the last week and their neighbours."""
LATELY: Final = 168.0  # hours

PHASE_PERIOD: Final = 2 * 8760.0
"""Hours: memories made half of this apart, a year, are in antiphase."""
PHASE_STEPS: Final = 256
"""Phases are kept to 1/256 of a turn: a far-off change of the graph then moves none."""

SUPPORT_HALF: Final = 8.0
"""Support that gives half of the gain: as many neighbours, wholly alike and in phase."""
GAIN_STEPS: Final = 64
BRIDGE: Final = 2.0
"""How often a link between two communities counts."""

LADDER: Final = ((168.0, 1.0, 720.0), (720.0, 4.0, 8760.0))
"""(age in hours, support and accesses, half-life in hours): working, episodic, semantic."""
MOST_SUPPORT: Final = 3.0
"""That counts on the ladder: what was never opened does not become semantic."""
LAYERS: Final = ((168.0, "working"), (720.0, "episodic"), (8760.0, "semantic"))

FAINT: Final = 1.0 / 16.0
"""Strength below which an idle memory is archived: four half-lives of a plain one, 28 days."""

PATTERN_LEAST: Final = 3
PATTERN_CORE: Final = 24
"""Members that a pattern derives from by a relation: those nearest its centre."""
PATTERNS: Final = 1000
"""Communities that get a pattern and a skip link: the largest."""
PATTERN_AMPLITUDE: Final = 2.0
PATTERN_HALF_LIFE: Final = 8760.0

WIRE_LEAST: Final = 0.2
"""Cosine of two communities' centres below which no skip link joins them."""


class Change(NamedTuple):
    """One change that a dream makes: `subject` is a node's id, or (from, type, to).

    `before` and `after` are what the step sets: an amplitude, a phase, a status, a weight; objects
    for a half-life (with the amplitude decayed to `at`) and a pattern; None where there is no
    such row. `key` is the row's, 0 for one that is not there yet.
    """

    step: Step
    key: int
    subject: str | tuple[str, str, str]
    before: Any
    after: Any
    reason: str

    def json(self) -> dict[str, Any]:
        """As a tool shows it."""
        shown: dict[str, Any] = {"step": self.step}
        if isinstance(self.subject, str):
            shown["node_id"] = self.subject
        else:
            shown["relation"] = dict(zip(("from_id", "type", "to_id"), self.subject, strict=True))
        return shown | {"before": self.before, "after": self.after, "reason": self.reason}


def gain_of(support: float) -> float:
    """What support adds to an amplitude of 1, in [0, 1]: 1 − 2^(−s/8), in steps of 1/64."""
    return math.floor((1.0 - math.exp2(-max(support, 0.0) / SUPPORT_HALF)) * GAIN_STEPS) / (
        GAIN_STEPS
    )


def creation_phase(hours: float) -> float:
    """The phase in [−π, π] of a memory made so long after its workspace's first."""
    return math.remainder(2.0 * math.pi * hours / PHASE_PERIOD, 2.0 * math.pi)


def layer_name(half_life: float) -> str:
    """working, episodic or semantic: the highest whose half-life is reached."""
    return max((half, name) for half, name in LAYERS if half <= max(half_life, 168.0))[1]
