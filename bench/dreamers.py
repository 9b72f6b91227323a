"""A seeded memory of clustered vectors, with neighbour links kept current, for dreams.

Memories come in subjects: unit vectors around a centre, near enough that those of one subject
have cosines of about 0.7, and within three months of each other in two years. Their links are
what the follower would have made: each to up to eight of its own subject with the exact cosine.
One in seven was opened, one in eleven boosted, a few contradict each other. No model is loaded.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

import numpy as np
from numpy.typing import NDArray

from bench.sentences import sentence
from cortex.domain.instants import render
from cortex.domain.taxonomy import NodeType, RelationType
from cortex.domain.values import NodeId, WorkspaceId, new_id
from cortex.domain.waves import Wave
from cortex.services.meaning.semantic import model_key, packed
from cortex.store.database import Database, Transaction
from cortex.store.meta import FINGERPRINT
from cortex.vectors.models import Fingerprint

START: Final = datetime(2024, 5, 1, tzinfo=UTC)
DAYS: Final = 730
SUBJECT_DAYS: Final = 90
FINGER: Final = Fingerprint("a bench's own vectors", "", 384, "mean", True)
_KINDS: Final = (NodeType.NOTE, NodeType.FACT, NodeType.DECISION, NodeType.THOUGHT)
_BATCH: Final = 2000
_LINKS: Final = 8

Rows = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Dreamer:
    """What was written: keys and ids by position, the subject of each."""

    keys: list[int]
    ids: list[NodeId]
    subject: list[int]


def clustered(
    count: int, subjects: int, dimension: int, seed: int
) -> tuple[Rows, NDArray[np.int64]]:
    """Unit vectors (count, dimension) and the subject of each."""
    rng = np.random.default_rng(seed)
    centres = rng.standard_normal((subjects, dimension)) / np.sqrt(dimension)
    subject = rng.integers(0, subjects, count)
    rows = centres[subject] + 0.65 * rng.standard_normal((count, dimension)) / np.sqrt(dimension)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    kept = rows.astype(np.float16).astype(np.float32)  # as the file keeps them
    return kept / np.linalg.norm(kept, axis=1, keepdims=True), subject


def write_dreamer(
    database: Database,
    count: int,
    subjects: int,
    seed: int = 1,
    *,
    dimension: int = 384,
    linked: bool = True,
    workspace: WorkspaceId = WorkspaceId("bench"),  # noqa: B008  # a NewType call is its string
) -> Dreamer:
    """Write `count` memories of so many subjects; with `linked`, their neighbour links."""
    rows, subject = clustered(count, subjects, dimension, seed)
    rng = random.Random(seed)
    made = Dreamer([], [], subject.tolist())
    begun = np.random.default_rng(seed).uniform(0.0, DAYS - SUBJECT_DAYS, subjects)
    days = begun[subject] + np.random.default_rng(seed + 1).uniform(0.0, SUBJECT_DAYS, count)
    for first in range(0, count, _BATCH):
        with database.write("bench") as transaction:
            transaction.meta.set(FINGERPRINT, FINGER.text)
            for at in range(first, min(first + _BATCH, count)):
                _write_memory(transaction, workspace, made, rows[at], rng, float(days[at]))
    with database.write("bench") as transaction:
        transaction.outbox.settle_all()
    pairs = _near(rows, subject) if linked else []
    for first in range(0, len(pairs), 10 * _BATCH):
        with database.write("bench") as transaction:
            for one, other, weight in pairs[first : first + 10 * _BATCH]:
                _link(transaction, workspace, made, one, other, weight)
    with database.write("bench") as transaction:
        for _ in range(count // 500):
            one, other = rng.sample(range(count), 2)
            low, high = sorted((made.ids[one], made.ids[other]))
            kind = RelationType.CONTRADICTS
            if transaction.relations.find(low, high, kind) is None:
                transaction.relations.insert(workspace, low, high, kind, transaction.at)
    return made


def _write_memory(
    transaction: Transaction,
    workspace: WorkspaceId,
    made: Dreamer,
    row: Rows,
    rng: random.Random,
    day: float,
) -> None:
    at = render(START + timedelta(days=day))
    data = {"text": f"{sentence(rng)} {sentence(rng)}"}
    node = transaction.nodes.insert(NodeId(new_id()), rng.choice(_KINDS), workspace, None, data, at)
    made.keys.append(node.key)
    made.ids.append(node.id)
    transaction.embeddings.put(node.key, model_key(FINGER), f"hash {node.key}", packed([row]))
    chance = rng.random()
    if chance < 1 / 11:
        transaction.waves.put(node.key, Wave(rng.uniform(0.2, 4.0)), at)
    elif chance < 1 / 11 + 1 / 7:
        opened = render(START + timedelta(days=rng.uniform(day, DAYS)))
        transaction.navigation.touch([node.id] * rng.randrange(1, 9), opened)


def _near(rows: Rows, subject: NDArray[np.int64]) -> list[tuple[int, int, float]]:
    """The links of each memory to the eight nearest of its subject, each once."""
    found: dict[tuple[int, int], float] = {}
    order = np.argsort(subject, kind="stable")
    for members in np.split(order, np.flatnonzero(np.diff(subject[order])) + 1):
        likeness = (rows[members] @ rows[members].T).astype(np.float64)
        np.fill_diagonal(likeness, -1.0)
        for row, at in enumerate(members.tolist()):
            for place in np.argsort(-likeness[row], kind="stable")[:_LINKS].tolist():
                cosine = float(likeness[row, place])
                if cosine >= 0.5:
                    other = int(members[place])
                    found[min(at, other), max(at, other)] = round(min(cosine, 1.0), 4)
    return [(one, other, weight) for (one, other), weight in found.items()]


def _link(
    transaction: Transaction,
    workspace: WorkspaceId,
    made: Dreamer,
    one: int,
    other: int,
    weight: float,
) -> None:
    low, high = sorted((made.ids[one], made.ids[other]))
    transaction.relations.insert(
        workspace, low, high, RelationType.RELATED_TO, transaction.at, weight, {"derived": True}
    )
