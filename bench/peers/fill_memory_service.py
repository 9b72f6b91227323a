"""Run by mcp-memory-service's own Python: memories and relations into its storage in bulk.

Arguments: the reference server's JSONL file, the planted names as JSON, the database, and where
to write {content hash: name}. Vectors are random unit vectors, as cortex gets them; the planted
memories are embedded by its own model. Nothing of cortex is imported here.
"""

# ruff: noqa: I001 - what lives in the peer's environment stands apart
from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

from mcp_memory_service.models.memory import Memory  # type: ignore[import-not-found]  # the peer's
from mcp_memory_service.storage.graph import GraphStorage  # type: ignore[import-not-found]
from mcp_memory_service.storage.sqlite_vec import (  # type: ignore[import-not-found]
    SqliteVecMemoryStorage,
)
from mcp_memory_service.utils.hashing import generate_content_hash  # type: ignore[import-not-found]

_BATCH = 1000
_KINDS = {"supports": "supports", "contradicts": "contradicts", "sequel_to": "follows"}


class Random:
    """Stands in for the model while the bulk is loaded."""

    def __init__(self, dimension: int) -> None:
        self._rng = np.random.default_rng(1)
        self._dimension = dimension

    def encode(self, texts: list[str], **_: Any) -> Any:
        vectors = self._rng.standard_normal((len(texts), self._dimension)).astype(np.float32)
        return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


async def fill(file: Path, planted: set[str], database: str, hashes_file: Path) -> None:
    storage = SqliteVecMemoryStorage(database)
    await storage.initialize()
    model = storage.embedding_model
    hashes: dict[str, str] = {}
    chosen: list[Memory] = []
    others: list[Memory] = []
    relations: list[dict[str, str]] = []
    with file.open(encoding="utf-8") as lines:
        for line in map(json.loads, lines):
            if line["type"] == "relation":
                relations.append(line)
                continue
            content = f"{line['name']}: {line['observations'][0]}"
            key = hashes[line["name"]] = generate_content_hash(content)
            memory = Memory(content=content, content_hash=key, memory_type="note")
            (chosen if line["name"] in planted else others).append(memory)
    await storage.store_batch(chosen)
    storage.embedding_model = Random(storage.embedding_dimension)
    for first in range(0, len(others), _BATCH):
        done = await storage.store_batch(others[first : first + _BATCH])
        refused = [why for stored, why in done if not stored]
        if refused:
            sys.exit(f"{len(refused)} not stored: {refused[0]}")
    storage.embedding_model = model
    graph = GraphStorage(database)
    for each in relations:
        kind = each["relationType"]
        near, far = hashes[each["from"]], hashes[each["to"]]
        await graph.store_association(
            near, far, 1.0, [kind], relationship_type=_KINDS.get(kind, "related")
        )
    await graph.close()
    await storage.close()
    hashes_file.write_text(json.dumps({key: name for name, key in hashes.items()}), "utf-8")


if __name__ == "__main__":
    asyncio.run(
        fill(Path(sys.argv[1]), set(json.loads(sys.argv[2])), sys.argv[3], Path(sys.argv[4]))
    )
