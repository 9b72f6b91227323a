"""A seeded memory of a size, made once, kept in a cache, and copied for each run.

Vectors are random unit vectors, since embedding 100,000 texts would take an hour and their
ranking costs the same; texts, and so keywords, are generate's.
"""

from __future__ import annotations

import hashlib
import os
import random
import shutil
import sqlite3
import tempfile
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
from platformdirs import user_cache_path

from bench import generate as generator
from bench import sentences
from cortex.config import FILE_NAME, load_settings
from cortex.domain.values import WorkspaceId
from cortex.memory import Memory, open_memory
from cortex.services.meaning.indexing import settle_model
from cortex.services.meaning.semantic import packed
from cortex.store import schema

PLACE: Final = WorkspaceId("bench")
_BATCH: Final = 5_000
_SAMPLE: Final = 400
_OF_TYPES: Final = """
SELECT id FROM nodes WHERE type IN (SELECT value FROM json_each(?)) ORDER BY rowkey
"""
_TASKS: Final = '["task", "subtask"]'
_LEAVES: Final = '["fact", "thought", "decision", "action"]'
_ARCHIVE: Final = "SELECT id FROM nodes ORDER BY rowkey LIMIT 1 OFFSET 1"
_HEADS: Final = """
SELECT DISTINCT r.from_id FROM relations AS r
 WHERE r.type = 'leads_to' ORDER BY r.rowkey LIMIT 2000
"""
_HUBS: Final = """
SELECT to_id FROM relations WHERE type <> 'contains' GROUP BY to_id ORDER BY COUNT(*) DESC, to_id
 LIMIT 5
"""
_COUNT: Final = "SELECT (SELECT COUNT(*) FROM nodes), (SELECT COUNT(*) FROM relations)"


@dataclass(frozen=True, slots=True)
class Starts:
    """Ids from which agents ask: a seeded choice, except `archive` with 10,000 nodes below it."""

    archive: str
    goals: Sequence[str]
    tasks: Sequence[str]
    leaves: Sequence[str]
    heads: Sequence[str]
    hubs: Sequence[str]


@dataclass(frozen=True, slots=True)
class Prepared:
    """A memory in the cache; nobody opens it, only copies of it."""

    file: Path
    nodes: int
    relations: int
    seed: int

    def copy_to(self, home: Path) -> Path:
        """The home, which now has a copy of its own."""
        home.mkdir(parents=True, exist_ok=True, mode=0o700)
        shutil.copyfile(self.file, home / FILE_NAME)
        return home


def prepare(nodes: int, relations: int, seed: int) -> Prepared:
    """The memory of that size and seed; made now if the cache does not have it."""
    file = cache() / f"{nodes}-{relations}-{seed}-{_version()}" / FILE_NAME
    if not file.exists():
        file.parent.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=file.parent.parent) as folder:
            make(Path(folder), nodes, relations, seed)
            file.parent.mkdir(exist_ok=True)
            # Only a whole memory appears under the name.
            os.replace(Path(folder, FILE_NAME), file)
    with closing(sqlite3.connect(f"file:{file}?immutable=1", uri=True)) as connection:
        counted, joined = connection.execute(_COUNT).fetchone()
    return Prepared(file, counted, joined, seed)


def make(home: Path, nodes: int, relations: int, seed: int) -> None:
    """Write the memory into an empty home, its vectors too; one file at rest."""
    memory = open_memory(load_settings(home=home, workspace=PLACE, env={}))
    memory.indexing.close()  # the vectors are given
    print(f"making a memory of {nodes:,} nodes, once", flush=True)
    generator.generate(memory.engine.database, nodes, relations, seed, PLACE)
    give_vectors(memory, seed)
    memory.close()
    with closing(sqlite3.connect(home / FILE_NAME)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def give_vectors(memory: Memory, seed: int) -> int:
    """Settle every debt of the outbox with random unit vectors; how many."""
    meaning = memory.semantic.meaning()
    rng = np.random.default_rng(seed)
    done = after = 0
    while True:
        with memory.engine.database.write("bench") as transaction:
            settle_model(transaction, meaning)
            owed = transaction.embeddings.lacking(meaning.key, after, _BATCH)
            for item in owed:
                vector = rng.standard_normal(meaning.fingerprint.dimension).astype(np.float32)
                rows = packed([vector / np.linalg.norm(vector)])
                transaction.embeddings.put(item.key, meaning.key, item.text_hash, rows)
            if not owed:
                transaction.outbox.settle_all()
                return done
        done += len(owed)
        after = owed[-1].key


def starts_of(home: Path, seed: int) -> Starts:
    """Where to ask from, in a copy that is not open."""
    rng = random.Random(seed)
    with closing(sqlite3.connect(home / FILE_NAME)) as connection:

        def ids(statement: str, *bound: str) -> list[str]:
            return [row[0] for row in connection.execute(statement, bound)]

        def some(statement: str, *bound: str) -> list[str]:
            found = ids(statement, *bound)
            return rng.sample(found, min(_SAMPLE, len(found)))

        return Starts(
            archive=ids(_ARCHIVE)[0],
            goals=some(_OF_TYPES, '["goal"]'),
            tasks=some(_OF_TYPES, _TASKS),
            leaves=some(_OF_TYPES, _LEAVES),
            heads=some(_HEADS),
            hubs=ids(_HUBS),
        )


def cache() -> Path:
    """Where memories are kept: CORTEX_BENCH_CACHE, else the user's cache folder."""
    named = os.environ.get("CORTEX_BENCH_CACHE")
    return Path(named) if named else user_cache_path("cortex-bench", appauthor=False)


def _version() -> str:
    """Another generator or another schema makes another memory."""
    digest = hashlib.sha256()
    for module in (generator, sentences, schema):
        assert module.__file__ is not None
        digest.update(Path(module.__file__).read_bytes())
    return digest.hexdigest()[:8]
