"""Times a look over a memory's health, and a diff, an impact and a path beside it.

Run: python -m bench.health [--nodes N] [--relations M] [--seed S].
"""

from __future__ import annotations

import argparse
import random
import tempfile
from pathlib import Path

from bench.generate import generate
from bench.timing import COLUMNS, header, timed
from cortex.cli.serving import calm_collector
from cortex.config import load_settings
from cortex.memory import open_memory


def main() -> None:
    """Generate, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=100_000)
    parser.add_argument("--relations", type=int, default=300_000)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        memory = open_memory(load_settings(home=Path(folder), workspace="bench", env={}))
        made = generate(memory.engine.database, given.nodes, given.relations, given.seed)
        memory.indexing.close()
        rng = random.Random(given.seed)
        leaves = [made.ids[key] for key in rng.sample(made.leaves, 200)]
        last = memory.generation()
        print(f"{given.nodes} nodes, {made.relations} relations, seed {given.seed}; {header()}")
        print(COLUMNS)
        calm_collector()
        health = memory.checkup.health()
        found = ", ".join(f"{each.check.value} {each.count}" for each in health.findings)
        for figure in (
            timed("health", lambda _: memory.checkup.health(), 5, note=found, target="2000"),
            timed("diff", lambda turn: memory.past.diff(None, last - 1000 - turn), 10,
                  note="the last 1,000 changes"),
            timed("as of", lambda turn: memory.past.as_of(None, last - 1000 - turn), 2,
                  note="the whole graph 1,000 changes ago"),
            timed("impact", lambda turn: memory.impacts.impact(leaves[turn]), 50),
            timed("path", lambda turn: memory.routing.paths(leaves[turn], leaves[-1 - turn]), 20,
                  note="k = 3, between nodes chosen at random"),
        ):  # fmt: skip
            print(figure.row, flush=True)
        memory.close()


if __name__ == "__main__":
    main()
