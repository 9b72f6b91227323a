"""How `cortex status` shows a vector index that is a server."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any


def iter_qdrant_lines(index: Mapping[str, Any]) -> Iterator[str]:
    """Where it is and how it answers, then by workspace what it holds of what is stored."""
    circuit = f", circuit {index['circuit']}" if index["circuit"] else ""
    yield f"qdrant      {index['url']}, collection {index['collection'] or 'none'}{circuit}"
    for place, counts in index.get("workspaces", {}).items():
        if counts["indexed"] is None:
            yield f"            {place}: {counts['stored']} stored"
        else:
            yield (
                f"            {place}: {counts['indexed']} of {counts['stored']} indexed, "
                f"{counts['lag']} to be pushed"
            )
