"""A seeded memory of any size, written through the store in batches.

Its shape is that of an agent's memory: one session root; below it goals, tasks, subtasks and
leaves by `contains`, plus one archive folder with half of the nodes (10,000 at most) below
it; filerefs in a folder of their own; chains of reasoning; links to files; a few hubs. Half
of the `related_to` are derived; one link in five has a weight below 1. Same seed and sizes
give the same nodes (ids included), ends, types and weights; only relation ids differ.
"""

from __future__ import annotations

import random
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from tqdm import tqdm

from bench.sentences import VERBS, note
from cortex.domain.instants import Instant, render
from cortex.domain.taxonomy import SYMMETRIC, NodeType, RelationType, Status, file_relation
from cortex.domain.values import NodeId, WorkspaceId
from cortex.store.database import Database

_N = NodeType
_R = RelationType
_BATCH: Final = 2000
_START: Final = datetime(2026, 1, 1, tzinfo=UTC)
_ACTOR: Final = "bench"

_LEAVES: Final = (
    (_N.FACT, 20),
    (_N.THOUGHT, 17),
    (_N.NOTE, 12),
    (_N.DECISION, 10),
    (_N.ACTION, 10),
    (_N.CHUNK, 10),
    (_N.ENTITY, 7),
    (_N.QUESTION, 4),
    (_N.HYPOTHESIS, 3),
    (_N.ERROR, 3),
    (_N.PATTERN, 2),
    (_N.CONSTRAINT, 2),
)
_CHAIN_TYPES: Final = (
    _R.SEQUEL_TO,
    _R.LEADS_TO,
    _R.TRIGGERS,
    _R.DERIVES_FROM,
    _R.SUPPORTS,
    _R.ANSWERS,
)
_CROSS_TYPES: Final = (
    (_R.RELATED_TO, 30),
    (_R.SUPPORTS, 20),
    (_R.DERIVES_FROM, 15),
    (_R.CONTRADICTS, 5),
    (_R.QUESTIONS, 8),
    (_R.RESOLVES, 8),
    (_R.DEPENDS_ON, 8),
    (_R.CONSTRAINED_BY, 6),
)

_FOLDERS: Final = ("src/auth", "src/store", "src/api", "web/pages", "tests", "docs", "deploy")
_FILES: Final = ("session", "token", "parser", "index", "schema", "client", "worker", "routes")


@dataclass(slots=True)
class GeneratedIds:
    """Keys and ids of what was written; lists are in order of creation."""

    workspace: WorkspaceId
    ids: dict[int, NodeId] = field(default_factory=dict)
    root: int = 0
    archive: int = 0
    goals: list[int] = field(default_factory=list)
    tasks: list[int] = field(default_factory=list)
    leaves: list[int] = field(default_factory=list)
    filerefs: list[int] = field(default_factory=list)
    chain_heads: list[int] = field(default_factory=list)
    hubs: list[int] = field(default_factory=list)
    relations: int = 0


def generate(
    database: Database,
    nodes: int = 20_000,
    relations: int = 60_000,
    seed: int = 1,
    workspace: WorkspaceId = WorkspaceId("bench"),  # noqa: B008  # a NewType call is its string
) -> GeneratedIds:
    """Write a memory of `nodes` nodes (at least 100) and `relations` relations (≥ nodes).

    One that was written so before is left as it is. Raises ValueError for another one.
    """
    if nodes < 100 or relations < nodes:
        raise ValueError("a memory needs 100 nodes, and as many relations as nodes")
    plan = _Plan(random.Random(seed), workspace)
    plan.plant(nodes)
    plan.link(relations)
    if not plan.find(database):
        plan.write(database)
    return plan.made


class _Plan:
    """Nodes by position, then relations between positions, before anything is written."""

    def __init__(self, rng: random.Random, workspace: WorkspaceId) -> None:
        self._rng = rng
        self._kinds: list[NodeType] = []
        self._parents: list[int] = []
        self._edges: dict[tuple[int, int, RelationType], float] = {}
        self._derived: set[tuple[int, int, RelationType]] = set()
        self._ids: list[NodeId] = []
        self._heads: list[int] = []
        self._hubs: list[int] = []
        self.made = GeneratedIds(workspace)

    def _node(self, kind: NodeType, parent: int) -> int:
        number = self._rng.getrandbits(128)
        self._ids.append(NodeId(str(uuid.UUID(int=number, version=4))))
        self._kinds.append(kind)
        self._parents.append(parent)
        return len(self._kinds) - 1

    def plant(self, count: int) -> None:
        rng = self._rng
        kinds = [kind for kind, _ in _LEAVES]
        weights = [weight for _, weight in _LEAVES]
        root = self._node(_N.SESSION, -1)
        archive = self._node(_N.NOTE, root)
        shelf = self._node(_N.NOTE, root)
        goals = [self._node(_N.GOAL, root) for _ in range(max(3, count // 2500))]
        for _ in range(count // 40):
            self._node(_N.FILEREF, shelf)
        room = min(count // 2, 10_000)
        below = [archive]
        for _ in range(room):
            at = rng.choice(below)
            child = self._node(rng.choices(kinds, weights)[0], at)
            if len(below) < room // 20:
                below.append(child)
        tasks: list[int] = []
        while len(self._kinds) < count:
            share = rng.random()
            if share < 0.05 or not tasks:
                tasks.append(self._node(_N.TASK, rng.choice(goals)))
            elif share < 0.12:
                tasks.append(self._node(_N.SUBTASK, rng.choice(tasks[-200:])))
            else:
                self._node(rng.choices(kinds, weights)[0], rng.choice(tasks[-50:]))

    def _at(self, kinds: Sequence[NodeType]) -> list[int]:
        wanted = frozenset(kinds)
        return [place for place, kind in enumerate(self._kinds) if kind in wanted]

    def _link(self, near: int, far: int, kind: RelationType) -> None:
        if kind in SYMMETRIC and self._ids[near] > self._ids[far]:
            near, far = far, near  # as the service stores them
        edge = (near, far, kind)
        if near == far or edge in self._edges or (far, near, kind) in self._edges:
            return
        if kind is _R.RELATED_TO and self._rng.random() < 0.5:
            self._derived.add(edge)
        low = self._rng.random() < 0.2
        self._edges[edge] = round(self._rng.uniform(0.2, 0.99), 3) if low else 1.0

    def link(self, count: int) -> None:
        rng = self._rng
        for child, parent in enumerate(self._parents):
            if parent >= 0:
                self._edges[parent, child, _R.CONTAINS] = 1.0
        left = count - len(self._edges)
        leaves = self._at([kind for kind, _ in _LEAVES])
        files = self._at([_N.FILEREF])
        for child, parent in enumerate(self._parents):
            if self._kinds[child] is _N.SUBTASK and len(self._edges) < count:
                self._link(parent, child, _R.DECOMPOSES_TO)
        self._chains(leaves, len(self._edges) + left // 4)
        while len(self._edges) < count - left // 2:
            near = rng.choice(leaves)
            self._link(near, rng.choice(files), file_relation(self._kinds[near]))
        self._cross(leaves, count)

    def _chains(self, leaves: list[int], until: int) -> None:
        rng = self._rng
        while len(self._edges) < until:
            at = rng.randrange(len(leaves))
            self._heads.append(leaves[at])
            for _ in range(min(rng.randrange(5, 30), until - len(self._edges))):
                to = at + rng.randrange(1, 20)
                if to >= len(leaves):
                    break
                self._link(leaves[at], leaves[to], rng.choice(_CHAIN_TYPES))
                at = to

    def _cross(self, leaves: list[int], until: int) -> None:
        rng = self._rng
        kinds = [kind for kind, _ in _CROSS_TYPES]
        weights = [weight for _, weight in _CROSS_TYPES]
        self._hubs = rng.sample(leaves, 5)
        while len(self._edges) < until:
            near = rng.choice(leaves)
            hub = rng.random() < 0.08
            far = rng.choice(self._hubs) if hub else rng.choice(leaves)
            self._link(near, far, rng.choices(kinds, weights)[0])

    def find(self, database: Database) -> bool:
        """Whether the database has these nodes already."""
        with database.read() as snapshot:
            keys = {node.id: node.key for node in snapshot.nodes.brief(self.made.workspace)}
        if not keys:
            return False
        if not keys.keys() >= set(self._ids):
            raise ValueError("the database was written with another seed or another size")
        self._note([keys[each] for each in self._ids], len(self._edges))
        return True

    def write(self, database: Database) -> None:
        keys: list[int] = []
        rng, workspace = self._rng, self.made.workspace
        for part in _parts(range(len(self._kinds)), "nodes"):
            with database.write(_ACTOR) as transaction:
                for place in part:
                    parent = self._parents[place]
                    node = transaction.nodes.insert(
                        self._ids[place],
                        self._kinds[place],
                        workspace,
                        self._ids[parent] if parent >= 0 else None,
                        self._data(place),
                        self._at_time(place, len(self._kinds)),
                        Status.ARCHIVED if place > 10 and rng.random() < 0.1 else Status.ACTIVE,
                    )
                    keys.append(node.key)
        edges = list(self._edges.items())
        for part in _parts(range(len(edges)), "relations"):
            with database.write(_ACTOR) as transaction:
                for number in part:
                    (near, far, kind), weight = edges[number]
                    derived = {"derived": True} if edges[number][0] in self._derived else None
                    transaction.relations.insert(
                        workspace,
                        self._ids[near],
                        self._ids[far],
                        kind,
                        self._at_time(max(near, far), len(self._kinds)),
                        weight,
                        derived,
                    )
        self._note(keys, len(edges))

    def _data(self, place: int) -> dict[str, Any]:
        rng, kind = self._rng, self._kinds[place]
        if kind is _N.FILEREF:
            path = f"{rng.choice(_FOLDERS)}/{rng.choice(_FILES)}_{place}.py"
            return {"title": path.rpartition("/")[2], "path": path}
        first = note(rng)
        if kind in (_N.SESSION, _N.GOAL, _N.TASK, _N.SUBTASK) or place < 3:
            return {"title": first[:60], "order": place}
        text = " ".join([first, *(note(rng) for _ in range(rng.randrange(3)))])
        return {"text": text, "tags": [rng.choice(VERBS)]} if rng.random() < 0.3 else {"text": text}

    def _at_time(self, place: int, count: int) -> Instant:
        return render(_START + timedelta(days=120 * place / count))

    def _note(self, keys: list[int], relations: int) -> None:
        made = self.made
        made.ids = dict(zip(keys, self._ids, strict=True))
        made.root, made.archive = keys[0], keys[1]
        made.goals = [keys[place] for place in self._at([_N.GOAL])]
        made.tasks = [keys[place] for place in self._at([_N.TASK, _N.SUBTASK])]
        made.leaves = [keys[place] for place in self._at([kind for kind, _ in _LEAVES])]
        made.filerefs = [keys[place] for place in self._at([_N.FILEREF])]
        made.chain_heads = [keys[place] for place in self._heads]
        made.hubs = [keys[place] for place in self._hubs]
        made.relations = relations


def _parts(places: range, what: str) -> Iterator[range]:
    """The places in batches, with a bar at a terminal: a million takes minutes."""
    with tqdm(total=len(places), desc=what, disable=None, unit_scale=True) as bar:
        for first in range(0, len(places), _BATCH):
            yield places[first : first + _BATCH]
            bar.update(_BATCH)
