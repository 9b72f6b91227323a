"""How the vector index stands to the store, for people and programs."""

from __future__ import annotations

from typing import Any

from cortex.domain.errors import CortexError
from cortex.domain.values import WorkspaceId
from cortex.services.engine import Engine
from cortex.services.meaning.pushing import Parity, Pushing, Target
from cortex.services.meaning.semantic import Semantic
from cortex.services.meaning.vector_files import file_bytes


def index_status(engine: Engine, semantic: Semantic) -> dict[str, Any]:
    """`backend` embedded or qdrant. Of the embedded index `file_bytes`, what its files take, which
    all processes map and share; of a server its address, collection, circuit and problem, and by
    workspace how many nodes have vectors, how many it holds, and how many it lacks.

    What cannot be asked is None; a server that does not answer costs one timeout.
    """
    if semantic.pushing is None:
        return {"backend": "embedded", "file_bytes": file_bytes(engine)}
    settings = engine.settings.qdrant
    assert settings is not None
    told: dict[str, Any] = {"backend": "qdrant", "url": settings.url}
    try:
        target = semantic.pushing.target()
    except CortexError as error:
        return told | {"collection": None, "circuit": None, "problem": error.message}
    with engine.database.read() as snapshot:
        stored = dict.fromkeys(snapshot.nodes.workspaces(), 0)
        stored |= snapshot.vectored.counts(target.owing.model)
    problem, collection, held = None, None, dict[WorkspaceId, tuple[int, int]]()
    try:
        collection = target.index.name()
        held = _held(semantic.pushing, target, stored)
    except CortexError as error:
        problem = error.message
    return told | {
        "collection": collection,
        "circuit": target.index.circuit.state,
        "problem": problem or semantic.pushing.problem,
        "workspaces": {
            place: {"stored": count, "indexed": held[place][0], "lag": held[place][1]}
            if place in held
            else {"stored": count, "indexed": None, "lag": None}
            for place, count in stored.items()
        },
    }


def parity(engine: Engine, semantic: Semantic, workspace: WorkspaceId) -> Parity:
    """Store and index compared, id by id; what is still to be pushed shows as a difference.

    Raises UnavailableError when the model or the index cannot be had.
    """
    if semantic.pushing is not None:
        return semantic.pushing.parity(workspace)
    meaning = semantic.meaning()
    with semantic.current(meaning, workspace):
        there = meaning.index.ids(workspace)
        with engine.database.read() as snapshot:
            here = snapshot.vectored.ids(workspace, meaning.key)
    return Parity(here - there, there - here)


def _held(
    pushing: Pushing, target: Target, stored: dict[WorkspaceId, int]
) -> dict[WorkspaceId, tuple[int, int]]:
    """By workspace, how many nodes the server holds and how many it lacks."""
    lags = pushing.lags(list(stored))
    return {place: (target.index.count(place), lags[place]) for place in stored}
