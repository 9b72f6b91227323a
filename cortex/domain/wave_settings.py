"""Settings of waves and neighbour links, from the environment."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, Self, cast

from cortex.domain.errors import InvalidError

NeighboursOf = Literal["auto", "on", "off"]


@dataclass(frozen=True, slots=True)
class WaveSettings:
    """`neighbours` says which memories are linked to their nearest: `auto` those that
    store_memory wrote, `on` all that have a vector, `off` none. `search_strength` is what a
    memory's strength adds to its score in `search`: up to so much, 0 for not at all.
    """

    neighbours: NeighboursOf = "auto"
    search_strength: float = 0.0

    @classmethod
    def read(cls, env: Mapping[str, str]) -> Self:
        """From CORTEX_NEIGHBOURS and CORTEX_SEARCH_STRENGTH; raises InvalidError."""
        chosen = env.get("CORTEX_NEIGHBOURS", "").strip().lower() or "auto"
        if chosen not in ("auto", "on", "off"):
            raise InvalidError(
                f"CORTEX_NEIGHBOURS={chosen!r} is unknown",
                "Valid: auto, on, off",
                "Choose one of these, or unset it",
            )
        text = env.get("CORTEX_SEARCH_STRENGTH", "").strip() or "0"
        try:
            weight = float(text)
        except ValueError:
            weight = -1.0
        if not 0.0 <= weight <= 1.0:
            raise InvalidError(
                f"CORTEX_SEARCH_STRENGTH={text!r} is not a weight",
                "Valid: 0 to 1",
                "Correct or unset it",
            )
        return cls(cast(NeighboursOf, chosen), weight)
