"""Retrieval with and without waves: each set searched before a deep dream and after it.

With a weight above 0 a memory's strength adds up to so much to its score (CORTEX_SEARCH_STRENGTH;
0 by default). The memory is a copy of the one that bench.retrieval keeps, dreamt in each of its
workspaces at their last moments. Figures alone are written, never a text of the sets.
Run: python -m bench.dream_retrieval DATA [--sets locomo,realtalk] [--weights 0,0.05,0.2].
"""

from __future__ import annotations

import argparse
import os
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path

from bench.retrieval.building import Built, build
from bench.retrieval.measuring import TOP, Way, measure
from bench.retrieval.sets import RetrievalSet, find_sets, read_set
from bench.retrieval.vectors import KeptEmbedder
from cortex.memory import Memory
from cortex.services.hybrid.recent import strengthened
from cortex.services.retrieval.found import Found
from cortex.services.waves import strengths

_POOL = 50


def main() -> None:
    """Build, search, dream, search again, print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path, help="folder with *.json.gz sets")
    parser.add_argument("--sets", default="locomo,realtalk", help="beginnings of their names")
    parser.add_argument("--weights", default="0,0.05,0.2")
    given = parser.parse_args()
    kept = Path(os.environ.get("CORTEX_BENCH_CACHE") or Path(tempfile.gettempdir(), "cortex-bench"))
    weights = [float(each) for each in given.weights.split(",")]
    embedder = KeptEmbedder("offline", kept)
    print("| set | waves | weight | R@5 | R@10 | MRR | nDCG@10 |\n|---|---|---|---|---|---|---|")
    for path in find_sets(given.data, given.sets.split(",")):
        with tempfile.TemporaryDirectory() as folder:
            loaded = read_set(path)
            first = build(loaded, kept, embedder).memory
            first.close()
            shutil.copytree(first.settings.home, Path(folder, first.settings.home.name))
            built = build(loaded, Path(folder), embedder)
            _rows(loaded, built, "plain", weights)
            total = _dreamt(loaded, built)
            _rows(loaded, built, f"dreamt ({total})", weights)
            built.memory.close()
    embedder.close()


def _dreamt(loaded: RetrievalSet, built: Built) -> str:
    memories = changes = 0
    built.clock.at = max(built.last.values())
    for corpus in loaded.corpora:
        done = built.memory.dreaming.dream("apply", "deep", workspace=corpus)
        memories += done.memories
        changes += done.total
    return f"{changes} changes of {memories} memories"


def _rows(loaded: RetrievalSet, built: Built, waves: str, weights: Sequence[float]) -> None:
    for weight in weights:
        row = measure(loaded, built, _way(weight)).row
        shown = " | ".join(f"{value:.1f}" for value in row)
        print(f"| {loaded.name} | {waves} | {weight:g} | {shown} |", flush=True)


def _way(weight: float) -> Way:
    """Search as the tool of that name does with this weight, without noting the question."""

    def ask(memory: Memory, question: str, workspace: str) -> list[str]:
        pool = _POOL if weight else TOP
        found: Found = memory.search.rank(question, top_k=pool, workspace=workspace)
        if weight:
            with memory.engine.database.read() as snapshot:
                keys = {hit.node.key: hit.node.id for hit in found.hits}
                now = strengths(snapshot, list(keys), memory.engine.now())
            strong = {keys[key]: strength for key, strength in now.items()}
            found = strengthened(found, strong, weight, TOP)
        return [hit.node.id for hit in found.hits]

    return ask


if __name__ == "__main__":
    main()
