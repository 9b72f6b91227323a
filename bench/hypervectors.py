"""How many triples a hypervector holds, what clean-up costs, and what a composed query costs.

Run: python -m bench.hypervectors [--nodes N] [--relations M] [--seed S]; `--nodes 0` leaves the
queries out.
"""

from __future__ import annotations

import argparse
import random
import tempfile
from pathlib import Path

import numpy as np

from bench.generate import generate
from bench.timing import COLUMNS, header, timed
from cortex.cli.serving import calm_collector
from cortex.config import load_settings
from cortex.domain.values import NodeId
from cortex.memory import open_memory
from cortex.vectors.hypervectors import (
    DIMENSIONS,
    THRESHOLD,
    CleanUp,
    Codebook,
    expected_similarity,
    missing,
    permute,
    triple,
    unpack,
)

CANDIDATES = 1000


def capacity(book: Codebook, triples: int, rounds: int, seed: int) -> str:
    """One row: how a bundle of so many triples with verbs of their own recalls its objects.

    `nearest`: the right one of 1,000 candidates is nearest. `recalled`: it is above 5 deviations.
    `wrong`: others above it, a query. `one step`: c's object found by the product of both
    bundles, without cleaning up the verb between (Kanerva's mapping), where all verbs agree.
    """
    names = [f"candidate {at}" for at in range(CANDIDATES)]
    packed = book.packed(names)
    memory = CleanUp(names, packed)
    nearest = recalled = wrong = mapped = 0
    similarities: list[float] = []
    for turn in range(rounds):
        rng = np.random.default_rng((seed, triples, turn))
        chosen, others = (rng.permutation(CANDIDATES)[:triples] for _ in range(2))
        verbs = book.items([f"verb {seed} {triples} {turn} {at}" for at in range(triples)])
        one, two = book.items([f"subject {seed} {turn}", f"other {seed} {turn}"])
        left = book.bundle(triple(one, verbs, unpack(packed[chosen])))
        right = book.bundle(triple(two, verbs, unpack(packed[others])))
        for at, verb in enumerate(verbs):
            scores = memory.similarities(missing(right, subject=two, relation=verb))
            own = scores[others[at]]
            similarities.append(float(own))
            nearest += int(scores.argmax() == others[at])
            recalled += int(own >= THRESHOLD)
            wrong += int((scores >= THRESHOLD).sum() - (own >= THRESHOLD))
            pattern = missing(left, subject=one, object_=unpack(packed[chosen[at]]))
            noisy = missing(right, subject=two, relation=pattern)
            mapped += int(memory.similarities(noisy)[others[at]] >= THRESHOLD)
    asked = rounds * triples
    return (
        f"| {triples} | {expected_similarity(triples):.4f} | {np.mean(similarities):.4f} "
        f"| {nearest / asked:.2%} | {recalled / asked:.2%} | {wrong / asked:.4f} "
        f"| {mapped / asked:.2%} | {asked} |"
    )


def main() -> None:
    """Measure, print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=100_000)
    parser.add_argument("--relations", type=int, default=300_000)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    book = Codebook()
    print(f"{DIMENSIONS} dimensions, {CANDIDATES} candidates, seed {given.seed}; {header()}")
    print(
        "| triples | expected similarity | measured | nearest | recalled | wrong | one step | n |"
    )
    print("|---|---|---|---|---|---|---|---|")
    for triples in (5, 10, 25, 50, 75, 100, 125, 150, 200, 400):
        print(capacity(book, triples, max(2, 1000 // triples), given.seed), flush=True)
    print(f"\n{COLUMNS}")
    clean_up(book)
    if given.nodes:
        queries(given.nodes, given.relations, given.seed)


def clean_up(book: Codebook) -> None:
    """The three ways to compare one vector with 1,000."""
    names = [f"candidate {at}" for at in range(CANDIDATES)]
    packed = book.packed(names)
    bipolar = unpack(packed)
    floats = bipolar.astype(np.float32)
    memory = CleanUp(names, packed)
    noisy = bipolar[7]
    shifted = permute(bipolar[:100])
    for figure in (
        timed("items", lambda turn: book.packed([f"{turn} {at}" for at in range(1000)]), 10,
              note="1,000 vectors from their names"),
        timed("bundle", lambda _: book.bundle(shifted), 20, note="of 100"),
        timed("clean-up, packed", lambda _: memory.similarities(noisy), 30,
              note=f"xor and popcount, {packed.nbytes:,} bytes"),
        timed("clean-up, float32", lambda _: floats @ noisy.astype(np.float32), 30,
              note=f"BLAS, {floats.nbytes:,} bytes"),
        timed("clean-up, int8", lambda _: bipolar.astype(np.int32) @ noisy.astype(np.int32), 5,
              note=f"as it is defined, {bipolar.nbytes:,} bytes"),
    ):  # fmt: skip
        print(figure.row, flush=True)


def queries(nodes: int, relations: int, seed: int) -> None:
    """Composed queries on a generated memory; `right` is the share that the graph confirms."""
    with tempfile.TemporaryDirectory() as folder:
        memory = open_memory(load_settings(home=Path(folder), workspace="bench", env={}))
        made = generate(memory.engine.database, nodes, relations, seed)
        memory.indexing.close()
        rng = random.Random(seed)
        leaves = [made.ids[key] for key in rng.sample(made.leaves, 300)]
        with memory.engine.database.read() as snapshot:
            pairs: list[tuple[NodeId, NodeId, str]] = []
            for leaf in leaves:
                found = [each for each in snapshot.relations.outgoing(leaf) if not each.derived]
                pairs += [(leaf, each.to_id, each.type.value) for each in found[:1]]
        hub = made.ids[made.hubs[0]]
        calm_collector()
        compose = memory.composing.compose
        right = [
            any(each.node.id == end and each.pattern.confirmed for each in answers)
            for start, end, verb in pairs[:100]
            if (answers := compose(start, relation=verb, limit=50).answers)
        ]
        print(
            f"\n{nodes} nodes, {made.relations} relations: "
            f"{sum(right)} of {len(pairs[:100])} objects recalled and confirmed\n\n{COLUMNS}"
        )
        last = len(pairs) - 1
        for figure in (
            timed("role", lambda turn: compose(pairs[turn][0], relation=pairs[turn][2]), 100),
            timed("relation", lambda turn: compose(*pairs[turn][:2]), 100),
            timed("analogy", lambda turn: compose(*pairs[turn][:2], pairs[last - turn][0]), 100),
            timed("over one between", lambda turn: compose(leaves[turn], leaves[-1 - turn]), 50,
                  note="two nodes at random"),
            timed("role of a hub", lambda _: compose(hub, relation="supports"), 10,
                  note=f"{len(memory.composing.record(hub).triples)} triples"),
            timed("encode", lambda turn: memory.composing.record(leaves[turn]), 100,
                  note="one node's record"),
        ):  # fmt: skip
            print(figure.row, flush=True)
        memory.close()


if __name__ == "__main__":
    main()
