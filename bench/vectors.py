"""Opening, memory and ranking of the embedded index, from its mapped file and from the store.

The memories are short notes with random unit vectors, a tag in four, written through the store.
Each figure of a start is of a process of its own: from the open memory to the first answer, the
question's vector given. Memory is what that added to the process: in pages of its own that no
file backs (anonymous, by /proc), in pages that nobody else has (USS), and with its share of those
that several have (PSS). A file that one process alone has mapped counts as USS.
Run: python -m bench.vectors [--vectors N] [--processes P] [--database FILE, made where it is not].
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, Final

import numpy as np
import psutil

from bench.timing import header
from cortex.config import load_settings
from cortex.domain.taxonomy import NodeType
from cortex.domain.values import NodeId, WorkspaceId, new_id, text_hash
from cortex.memory import Memory, open_memory
from cortex.services.meaning.indexing import settle_model
from cortex.services.meaning.points import catch_up
from cortex.services.meaning.semantic import Meaning, packed
from cortex.vectors.embedded import EmbeddedIndex
from cortex.vectors.index import Vector, VectorFilter

_PLACE: Final = WorkspaceId("bench")
_BATCH: Final = 5000
_FILTERS: Final = {
    "all": VectorFilter(),
    "a tag (1 / 4)": VectorFilter(tags=frozenset({"t1"})),
}


def opened(home: Path) -> Memory:
    """The memory of this folder; nothing is embedded."""
    memory = open_memory(load_settings(home=home, workspace=_PLACE, env={}), once=True)
    memory.indexing.close()
    return memory


def fill(memory: Memory, count: int, seed: int) -> None:
    """Write notes and their vectors."""
    meaning = memory.semantic.meaning()
    rng = np.random.default_rng(seed)
    for begin in range(0, count, _BATCH):
        with memory.engine.database.write("bench") as transaction:
            settle_model(transaction, meaning)
            before = transaction.generation().seq
            for number in range(begin, min(begin + _BATCH, count)):
                text, node = f"note {number} of the bench", NodeId(new_id())
                data = {"text": text, "tags": [f"t{number % 4}"]}
                transaction.nodes.insert(node, NodeType.NOTE, _PLACE, None, data, transaction.at)
            keys = transaction.changes.touched_nodes(before)
            vectors = rng.standard_normal((len(keys), meaning.fingerprint.dimension))
            vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
            for key, node_, vector in zip(
                keys, transaction.nodes.by_keys(keys), vectors.astype(np.float32), strict=True
            ):
                rows = packed([vector])
                transaction.embeddings.put(key, meaning.key, text_hash("", node_.text), rows)
        with memory.engine.database.write("bench") as transaction:
            transaction.outbox.settle_all()


def child(home: Path, form: str, seed: int) -> None:
    """One process's start, told as JSON; it stays until its stdin ends."""
    with closing(opened(home)) as memory:
        meaning = memory.semantic.meaning()
        assert isinstance(meaning.index, EmbeddedIndex)
        if form == "memory":
            meaning.index.files = None
        query = _queries(meaning, 1, seed)[0]
        before = memory_of(psutil.Process())
        wall, cpu = time.perf_counter(), time.process_time()
        hits = memory.semantic.search(query, meaning, _PLACE, 10, VectorFilter())
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
        print(json.dumps({"wall": wall, "cpu": cpu, **before,
                          "hits": [hit.node_id for hit in hits],
                          "own": meaning.index.memory_bytes(),
                          "mapped": meaning.index.mapped_bytes()}), flush=True)  # fmt: skip
        sys.stdin.read()


def memory_of(process: psutil.Process) -> dict[str, int]:
    """Bytes: anonymous, USS, PSS."""
    status = Path(f"/proc/{process.pid}/status").read_text()
    anonymous = int(status.partition("RssAnon:")[2].split()[0]) * 1024
    found = process.memory_full_info()
    return {"anonymous": anonymous, "uss": found.uss, "pss": found.pss}


def starts(home: Path, form: str, processes: int, seed: int) -> dict[str, float]:
    """Means of what several processes that stay open at once tell of their start."""
    command = [sys.executable, "-m", "bench.vectors", "--child", form, "--seed", str(seed)]
    command += ["--database", str(home / "cortex.db")]
    running = []
    told: list[dict[str, Any]] = []
    for _ in range(processes):
        running.append(
            subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        )
        assert running[-1].stdout is not None
        told.append(json.loads(running[-1].stdout.readline()))
    for one, process in zip(told, running, strict=True):
        for name, value in memory_of(psutil.Process(process.pid)).items():
            one[name] = value - one[name]
    for process in running:
        process.communicate()
    assert len({tuple(one.pop("hits")) for one in told}) == 1
    return {name: float(np.mean([one[name] for one in told])) for name in told[0]}


def rank(memory: Memory, runs: int, seed: int) -> None:
    """The same questions to both forms, turn by turn; their answers are compared first."""
    meaning = memory.semantic.meaning()
    assert isinstance(meaning.index, EmbeddedIndex)
    own = EmbeddedIndex(meaning.fingerprint.dimension)
    with memory.engine.database.read() as snapshot:
        for index in (own, meaning.index):
            catch_up(snapshot, index, meaning.key, meaning.fingerprint.dimension, _PLACE)
    assert meaning.index.mapped_bytes()
    forms = {"memory": own, "mapped": meaning.index}
    for name, where in _FILTERS.items():
        taken: dict[str, list[tuple[float, float]]] = {form: [] for form in forms}
        for query in _queries(meaning, runs, seed):
            answers = []
            for form, index in forms.items():
                wall, cpu = time.perf_counter(), time.process_time()
                answers.append(index.search([_PLACE], query, 20, where))
                taken[form].append((time.perf_counter() - wall, time.process_time() - cpu))
            assert answers[0] == answers[1]
        for form, times in taken.items():
            (wall, cpu), least = np.median(times, axis=0) * 1000, np.min(times, axis=0) * 1000
            print(f"| query, {name}, {form} | {wall:.1f} ms wall | {cpu:.1f} ms CPU | "
                  f"least {least[0]:.1f} / {least[1]:.1f} |", flush=True)  # fmt: skip


def _queries(meaning: Meaning, count: int, seed: int) -> Sequence[Vector]:
    rng = np.random.default_rng(seed + 1)
    return list(rng.standard_normal((count, meaning.fingerprint.dimension)).astype(np.float32))


def _row(what: str, told: dict[str, float]) -> str:
    mb = {name: told[name] / 1e6 for name in ("anonymous", "uss", "pss", "own", "mapped")}
    return (
        f"| {what} | {told['wall']:.3f} s wall | {told['cpu']:.3f} s CPU "
        f"| anonymous {mb['anonymous']:+.0f} MB | USS {mb['uss']:+.0f} MB "
        f"| PSS {mb['pss']:+.0f} MB | index {mb['own']:.0f} own, {mb['mapped']:.0f} mapped |"
    )


def main() -> None:
    """Fill, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--vectors", type=int, default=100_000)
    parser.add_argument("--processes", type=int, default=4)
    parser.add_argument("--runs", type=int, default=40)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--database", type=Path)
    parser.add_argument("--child", choices=("memory", "mapped"))
    given = parser.parse_args()
    if given.child:
        child(given.database.parent, given.child, given.seed)
        return
    with tempfile.TemporaryDirectory() as folder:
        home = given.database.parent if given.database else Path(folder)
        made = (home / "cortex.db").exists()
        with closing(opened(home)) as memory:
            if not made:
                fill(memory, given.vectors, given.seed)
            memory.semantic.rebuild(lambda *_: None)
        print(f"{given.vectors} × 384, seed {given.seed}; {header()}")
        print(_row("first start, writes the file", starts(home, "mapped", 1, given.seed)))
        for form in ("memory", "mapped"):
            for processes in (1, given.processes):
                told = starts(home, form, processes, given.seed)
                print(_row(f"{form}, each of {processes}", told), flush=True)
        with closing(opened(home)) as memory:
            rank(memory, given.runs, given.seed)


if __name__ == "__main__":
    main()
