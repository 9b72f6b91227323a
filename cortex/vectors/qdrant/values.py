"""What is sent to a Qdrant collection, and what is known of one."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from cortex.vectors.index import Point
from cortex.vectors.qdrant.sparse import Sparse

_RESERVED: Final = uuid.UUID("5f2d7f3e-1f0b-4f0e-9c55-0c3c5e1d4a11")


@dataclass(frozen=True, slots=True)
class Entry:
    """A point as it is sent: `rows` are its chunks' vectors, `payload` the concept's."""

    id: str
    payload: Mapping[str, Any]
    rows: list[list[float]]
    words: Sparse


@dataclass(frozen=True, slots=True)
class Described:
    """A collection that exists: its dense dimension (None when it has no such vector), how
    many points it had, and then the identity that was written into it."""

    dimension: int | None
    points: int
    identity: Mapping[str, Any] | None


def payload(point: Point) -> Mapping[str, Any]:
    """What is stored beside the vectors: the concept's fields, no text."""
    return {
        "node_id": point.node_id,
        "workspace_id": point.workspace_id,
        "node_type": point.type.value,
        "layer": point.layer.value,
        "tags": list(point.tags),
        "status": point.status.value,
        "created_at": point.created_at,
    }


def reserved_id(key: str) -> str:
    """The id of the point that holds no node but a word on the collection itself."""
    return str(uuid.uuid5(_RESERVED, key))
