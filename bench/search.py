"""Times each perspective of a search, and the whole, at 100,000 memories.

The texts are real ones: the Python files that lie beside the interpreter, in pieces of 400
characters, so that words are as common and as rare as they are. Questions are lines of prose
from them. Vectors are random, since embedding 100,000 texts would take hours and the ranking
costs the same; the questions are embedded for real, a new one each time.
Run: python -m bench.search [--nodes N] [--seed S].
"""

from __future__ import annotations

import argparse
import random
import re
import sysconfig
import tempfile
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Final

from bench.prepared import give_vectors
from bench.timing import COLUMNS, Figure, header, timed
from cortex.cli.serving import calm_collector
from cortex.config import load_settings
from cortex.domain.taxonomy import NodeType, RelationType
from cortex.domain.values import NodeId, WorkspaceId, new_id
from cortex.memory import Memory, open_memory

RUNS: Final = 200
_PIECE: Final = 400
_BATCH: Final = 2000
_PLACE: Final = WorkspaceId("bench")
_PROSE: Final = re.compile(r"^\s*(?:#\s*)?([A-Z][a-z]+(?: [a-zA-Z'-]+){5,14})[.,:]", re.MULTILINE)


def iter_texts(seed: int) -> Iterator[str]:
    """Pieces of the library's files, in an order that the seed decides."""
    folder = Path(sysconfig.get_paths()["stdlib"])
    files = sorted({*folder.rglob("*.py"), *Path(sysconfig.get_paths()["purelib"]).rglob("*.py")})
    random.Random(seed).shuffle(files)
    for file in files:
        text = file.read_text(encoding="utf-8", errors="replace")
        for start in range(0, len(text), _PIECE):
            piece = text[start : start + _PIECE].replace("\x00", " ").strip()
            if piece:
                yield piece


def write_texts(memory: Memory, texts: Iterator[str]) -> list[str]:
    """Write notes in runs of 20 that follow one another under a task; lines of prose in them."""
    lines: list[str] = []
    while batch := list(islice(texts, _BATCH)):
        with memory.engine.database.write("bench") as transaction:
            task = before = NodeId("")
            for place, text in enumerate(batch):
                at = transaction.at
                if place % 20 == 0:
                    task, before = NodeId(new_id()), NodeId("")
                    data = {"title": f"Part {place} of a talk"}
                    transaction.nodes.insert(task, NodeType.TASK, _PLACE, None, data, at)
                node = NodeId(new_id())
                transaction.nodes.insert(node, NodeType.NOTE, _PLACE, task, {"text": text}, at)
                transaction.relations.insert(_PLACE, task, node, RelationType.CONTAINS, at)
                if before:
                    transaction.relations.insert(_PLACE, node, before, RelationType.SEQUEL_TO, at)
                before = node
                lines += _PROSE.findall(text)
    return lines


def measure(memory: Memory, questions: Sequence[str]) -> Iterator[Figure]:
    """One figure after another; no question is asked twice."""
    asked = iter(questions)
    search = memory.search
    embedder = memory.semantic.meaning().embedder
    search.rank(next(asked))

    def fresh(_: int) -> str:
        return next(asked)

    yield timed(
        "keyword", lambda turn: search.rank(fresh(turn), perspectives=["keyword"]), RUNS,
        target="30", note="two steps, 200 candidates",
    )  # fmt: skip
    yield timed("embedding", lambda turn: embedder.embed_query(fresh(turn)), RUNS, note="a query")
    yield timed(
        "semantic", lambda turn: search.rank(fresh(turn), perspectives=["semantic"]), RUNS,
        target="30", note="with the query's embedding",
    )  # fmt: skip
    yield timed(
        "temporal", lambda turn: search.rank("what was noted last week", perspectives=["temporal"]),
        RUNS, target="30", note="a window of days",
    )  # fmt: skip
    yield timed("rank", lambda turn: search.rank(fresh(turn)), RUNS, target="50",
                note="fused, with signals and merging")  # fmt: skip
    yield timed("graph_search", lambda turn: search.graph_search(fresh(turn)), RUNS, target="50",
                note="the same with context and files")  # fmt: skip


def main() -> None:
    """Write, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        memory = open_memory(load_settings(home=Path(folder), workspace=_PLACE, env={}))
        memory.indexing.close()  # the vectors are given
        lines = write_texts(memory, islice(iter_texts(given.seed), given.nodes))
        vectors = give_vectors(memory, given.seed)
        questions = sorted(set(lines))
        random.Random(given.seed).shuffle(questions)
        print(f"{vectors} memories, seed {given.seed}, {len(questions)} questions; {header()}")
        print(COLUMNS)
        calm_collector()
        for figure in measure(memory, questions):
            print(figure.row, flush=True)
        memory.close()


if __name__ == "__main__":
    main()
