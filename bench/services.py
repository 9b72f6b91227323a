"""Times what an agent asks for, in the engine: open, focus, traverse, search, write.

The graph is generated; its vectors are random unit vectors, since embedding 20,000 texts
would take minutes and the ranking costs the same. Queries are embedded for real, a new one
each time. Run: python -m bench.services [--nodes N] [--relations M] [--seed S].
"""

from __future__ import annotations

import argparse
import random
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import numpy as np

from bench.generate import GeneratedIds, generate, sentence
from bench.timing import COLUMNS, Figure, header, timed
from cortex.cli.serving import calm_collector
from cortex.config import load_settings
from cortex.domain.taxonomy import RelationType
from cortex.memory import Memory, open_memory
from cortex.services.fields import Fields
from cortex.services.meaning.indexing import settle_model
from cortex.services.meaning.semantic import packed
from cortex.tools.desktop import desktop_open

TYPED: Final = (
    RelationType.CONTAINS,
    RelationType.DECOMPOSES_TO,
    RelationType.SUPPORTS,
    RelationType.DERIVES_FROM,
)
RUNS: Final = 200


def give_vectors(memory: Memory, seed: int) -> int:
    """Settle every debt of the outbox with random unit vectors; how many."""
    meaning = memory.semantic.meaning()
    rng = np.random.default_rng(seed)
    done = after = 0
    while True:
        with memory.engine.database.write("bench") as transaction:
            settle_model(transaction, meaning)
            owed = transaction.embeddings.lacking(meaning.key, after, 2000)
            for item in owed:
                vector = rng.standard_normal(meaning.fingerprint.dimension).astype(np.float32)
                rows = packed([vector / np.linalg.norm(vector)])
                transaction.embeddings.put(item.key, meaning.key, item.text_hash, rows)
            transaction.outbox.settle_all()
        done += len(owed)
        if not owed:
            return done
        after = owed[-1].key


def largest(memory: Memory, ids: Sequence[str]) -> tuple[str, int]:
    """The start whose typed traversal returns most nodes, and how many."""
    counts = [
        (memory.reading.traverse(node, TYPED, depth=3, limit=2000).total, node) for node in ids
    ]
    count, node = max(counts)
    return node, count


def measure(memory: Memory, made: GeneratedIds, seed: int) -> Iterator[Figure]:
    """One figure after another."""
    rng = random.Random(seed)
    tasks = [made.ids[key] for key in made.tasks[:200]]
    leaves = [made.ids[key] for key in rng.sample(made.leaves, min(500, len(made.leaves)))]
    hub, reached = largest(memory, [made.ids[made.archive], *tasks])
    yield timed(
        "traverse",
        lambda _: memory.reading.traverse(hub, TYPED, depth=3, limit=1000),
        RUNS,
        note=f"4 of 22 types, depth 3, {min(reached, 1000)} of {reached} nodes with their rows",
        target="10",
    )
    yield timed(
        "focus", lambda turn: memory.viewport.focus(leaves[turn % len(leaves)]), RUNS,
        note="history written, subgraph to depth 2", target="10",
    )  # fmt: skip
    yield timed("open", lambda _: desktop_open.call(memory, {}), RUNS,
                note="rendered, 5,000 characters", target="10")  # fmt: skip
    questions = [sentence(rng) for _ in range(RUNS + 3)]
    memory.search.graph_search(questions[-1])
    yield timed(
        "vector_search", lambda turn: memory.search.vector_search(questions[turn]), RUNS,
        note="new question each time, embedded", target="60",
    )  # fmt: skip
    fresh = [sentence(rng) for _ in range(RUNS + 3)]
    yield timed(
        "graph_search", lambda turn: memory.search.graph_search(fresh[turn]), RUNS,
        note="embedded, fused with keywords, context and files", target="60",
    )  # fmt: skip
    yield timed(
        "get", lambda turn: memory.reading.get([leaves[turn % len(leaves)]]), RUNS,
        note="depth 2",
    )  # fmt: skip
    memory.indexing.close()  # the embedding of what is written now would share the processor
    yield timed(
        "add",
        lambda turn: memory.adding.add_node("fact", Fields(text=f"{turn} {fresh[turn]}")),
        RUNS,
        note="durable, `similar` looked up",
        target="10",
    )


def main() -> None:
    """Generate, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=20_000)
    parser.add_argument("--relations", type=int, default=60_000)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        memory = open_memory(load_settings(home=Path(folder), workspace="bench", env={}))
        made = generate(memory.engine.database, given.nodes, given.relations, given.seed)
        vectors = give_vectors(memory, given.seed)
        print(
            f"{given.nodes} nodes, {made.relations} relations, {vectors} vectors, seed "
            f"{given.seed}; {header()}"
        )
        print(COLUMNS)
        calm_collector()  # as the server does once it is open
        for figure in measure(memory, made, given.seed):
            print(figure.row, flush=True)
        memory.close()


if __name__ == "__main__":
    main()
