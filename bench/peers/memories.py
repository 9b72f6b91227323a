"""The memories that every peer gets: bench/generate's, read back from cortex's own file.

Beside them stand a few planted ones, each with an invented word that occurs nowhere else, so
that one question has one right answer in every peer. Derived links, a notion of cortex's own,
are given to nobody. A memory's name is its id there: unique, and the same everywhere.
"""

from __future__ import annotations

import random
import sqlite3
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from bench.graph_engine import TYPED, Bench
from bench.prepared import PLACE, prepare
from bench.sentences import sentence
from cortex.config import FILE_NAME
from cortex.domain.taxonomy import NodeType, RelationType
from cortex.domain.values import NodeId, new_id
from cortex.store.database import Database

PHRASE: Final = "the session cookie"  # as it stands in about one memory of ten
_PLANTED: Final = 20
_MEMORIES: Final = """
SELECT id, type, coalesce(json_extract(data, '$.text'), json_extract(data, '$.title'), '')
  FROM nodes ORDER BY rowkey
"""
_RELATIONS: Final = """
SELECT from_id, to_id, type FROM relations
 WHERE data = '{}' OR json_extract(data, '$.derived') IS NOT 1 ORDER BY rowkey
"""


@dataclass(frozen=True, slots=True)
class Memory:
    """One thing remembered; `word` occurs in its text alone, or is empty."""

    name: str
    kind: str
    text: str
    word: str = ""

    @property
    def apart(self) -> str:
        """Two words of a planted text that do not stand side by side there."""
        return f"harbour {self.word}"


@dataclass(frozen=True, slots=True)
class Relation:
    """From one memory's name to another's."""

    near: str
    far: str
    kind: str


@dataclass(frozen=True, slots=True)
class Way:
    """What is reached from a start: hops, kinds (None: all), out or both ways."""

    name: str
    depth: int
    kinds: frozenset[str] | None = None
    both: bool = True


NEIGHBOURS: Final = Way("neighbours", 1)
SURROUNDINGS: Final = Way("2 hops", 2)
TYPED_OUT: Final = Way("4 types, 3 hops", 3, frozenset(kind.value for kind in TYPED), both=False)


@dataclass(slots=True)
class World:
    """One size of memory, and the folder whose cortex.db holds it."""

    size: int
    home: Path
    memories: list[Memory]
    relations: list[Relation]
    planted: list[Memory]
    _steps: Mapping[str, list[tuple[str, str, bool]]] = field(init=False)

    def __post_init__(self) -> None:
        steps: defaultdict[str, list[tuple[str, str, bool]]] = defaultdict(list)
        for relation in self.relations:
            steps[relation.near].append((relation.far, relation.kind, True))
            steps[relation.far].append((relation.near, relation.kind, False))
        self._steps = steps

    def reached(self, start: str, way: Way) -> set[str]:
        """The names that a plain search by breadth finds, the start not among them."""
        seen, edge = {start}, [start]
        for _ in range(way.depth):
            found = {
                name
                for place in edge
                for name, kind, out in self._steps.get(place, ())
                if (out or way.both) and (way.kinds is None or kind in way.kinds)
            }
            edge = sorted(found - seen)
            seen |= found
        return seen - {start}

    def starts(self, way: Way, count: int, seed: int) -> list[Memory]:
        """Memories from which that way reaches 3 to 40 others."""
        order = random.Random(seed).sample(self.memories, len(self.memories))
        fitting = (each for each in order if 3 <= len(self.reached(each.name, way)) <= 40)
        return [each for each, _ in zip(fitting, range(count), strict=False)]


def invented(rng: random.Random) -> str:
    """A word of four syllables that no vocabulary has."""
    return "".join(rng.choice("bdfgklmnprtvz") + rng.choice("aeiou") for _ in range(4)) + "x"


def told(rng: random.Random, name: str) -> Memory:
    """A memory with a word of its own."""
    word = invented(rng)
    return Memory(name, "fact", f"The {word} berth, says the harbour. {sentence(rng)}", word)


def _plant(database: Database, bench: Bench, seed: int) -> list[Memory]:
    rng = random.Random(seed + 7)
    planted = [told(rng, new_id()) for _ in range(_PLANTED)]
    with database.write("bench") as transaction:
        for memory in planted:
            parent = bench.made.ids[bench.made.archive]
            node = transaction.nodes.insert(
                NodeId(memory.name),
                NodeType.FACT,
                PLACE,
                parent,
                {"text": memory.text},
                transaction.at,
            )
            transaction.relations.insert(
                PLACE, parent, node.id, RelationType.CONTAINS, transaction.at
            )
    return planted


def build(home: Path, size: int, seed: int) -> tuple[World, Bench]:
    """A copy of the prepared memory of `size` nodes and three times as many relations, planted.

    Its vectors are random unit vectors; the planted memories, and what is written or asked
    later, are embedded by the server itself.
    """
    prepare(size, 3 * size, seed).copy_to(home)
    bench = Bench(home / FILE_NAME, size, 3 * size, seed)
    planted = _plant(bench.database, bench, seed)
    words = {each.name: each.word for each in planted}
    connection = sqlite3.connect(home / FILE_NAME)
    memories = [
        Memory(name, kind, text, words.get(name, ""))
        for name, kind, text in connection.execute(_MEMORIES)
    ]
    relations = [Relation(*row) for row in connection.execute(_RELATIONS)]
    connection.close()
    return World(size, home, memories, relations, planted), bench
