"""Rows of a workspace as they were last read, with what was made of them, and what was found.

An agent looks at the same memories again and again, and to read a row and to write it as JSON
is most of what an answer costs. So the rows that answers showed stay in memory beside the
graph, which drops what the log names before anybody looks (invariant 1).

Idea: two dicts, a new one and an old one. What is asked for moves to the new one; once that is
full it becomes the old one, and what was not asked for meanwhile goes: least recently used,
without a list to keep in order. Cost: a dict look-up. Corner: a row that would take a
sixteenth of the room is read each time. What a search of the graph found is kept until anything
changes.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any, Final, Generic, TypeVar

from cortex.domain.values import Node, Relation
from cortex.store.changes import Touched
from cortex.store.database import Snapshot

_ROOM: Final = 8_000_000  # bytes of nodes, and of relations, in each of the two dicts
_LARGE: Final = 16
_NODE: Final = 2_400  # bytes of a node and of its card, beside its data
_RELATION: Final = 1_800
_IDS: Final = 20_000
_FOUND: Final = 256  # searches, of some 20 kB each at most
_SMALL: Final = 100


class HeldNode(Node):
    """A node that stays in memory; `card` is room for what an answer shows of it."""

    card: Any = None
    size: int = 0


class HeldRelation(Relation):
    """The same of a relation."""

    card: Any = None
    size: int = 0


V = TypeVar("V", HeldNode, HeldRelation)
F = TypeVar("F")


class Kept:
    """Nodes and relations of one workspace, as the graph's snapshot sees them.

    To be used where the graph is: within its lock, with the snapshot that it has caught up to.
    """

    def __init__(self, room: int = _ROOM) -> None:
        """Room in bytes for the nodes, and as much for the relations, of each dict."""
        self._nodes = Recent[HeldNode](room)
        self._relations = Recent[HeldRelation](room)
        self._unique: set[str] = set()
        self.files: dict[int, Sequence[int]] = {}
        """Keys of the filerefs that nodes rest on, by node (`proximity.files_of`)."""
        self._found: dict[Hashable, Any] = {}

    def nodes(self, snapshot: Snapshot, keys: Sequence[int]) -> list[Node]:
        """Those that exist, in the order asked."""
        return self._nodes.all(keys, lambda lacking: _held_nodes(snapshot, lacking))

    def relations(self, snapshot: Snapshot, keys: Sequence[int]) -> list[Relation]:
        """Those that exist, in the order asked."""
        return self._relations.all(keys, lambda lacking: _held_relations(snapshot, lacking))

    def unique_prefixes(self, snapshot: Snapshot, ids: Sequence[str]) -> dict[str, bool]:
        """Whether no other node's id begins with the same 8 characters, in the whole file.

        Only what is unique is kept, until any node enters.
        """
        lacking = [node for node in ids if node not in self._unique]
        found = dict.fromkeys(ids, True)
        if lacking:
            asked = snapshot.nodes.unique_prefixes(lacking)
            found.update(asked)
            if len(self._unique) > _IDS:
                self._unique.clear()
            self._unique.update(node for node, unique in asked.items() if unique)
        return found

    def found(self, asked: Hashable, limit: int, search: Callable[[], F]) -> F:
        """What `search` finds, or found when the same was `asked`; not to be changed.

        What may hold more than 100 nodes is searched each time: the pages of a long answer
        would fill the memory, each with all that came before it.
        """
        known: F | None = self._found.get(asked)
        if known is None:
            known = search()
            if limit <= _SMALL:
                if len(self._found) >= _FOUND:
                    self._found.clear()
                self._found[asked] = known
        return known

    def drop(self, touched: Touched) -> None:
        """Forget what the log names, and what was found where it names anything."""
        self._nodes.drop(touched.nodes)
        self._relations.drop(touched.relations)
        self.files.clear()
        self._found.clear()
        if touched.entered:
            self._unique.clear()

    def memory_bytes(self) -> int:
        """An estimate."""
        rows = self._nodes.bytes + self._relations.bytes
        beside = 100 * len(self._unique) + 150 * len(self.files) + 20_000 * len(self._found)
        return rows + beside


class Recent(Generic[V]):
    """Values by key, those longest unused out."""

    def __init__(self, room: int) -> None:
        self._room = room
        self._new: dict[int, V] = {}
        self._old: dict[int, V] = {}
        self._new_bytes = self._old_bytes = 0

    @property
    def bytes(self) -> int:
        return self._new_bytes + self._old_bytes

    def all(self, keys: Sequence[int], read: Callable[[list[int]], Iterable[V]]) -> list[Any]:
        """The values of the keys; `read` gives those that are not here."""
        new = self._new
        found = {key: value for key in keys if (value := new.get(key)) is not None}
        if len(found) < len(keys):
            lacking = []
            for key in dict.fromkeys(keys):
                if key not in found:
                    value = self._old.pop(key, None)
                    if value is None:
                        lacking.append(key)
                    else:
                        self._old_bytes -= value.size
                        found[key] = value
                        self._put(value)
            for value in read(lacking) if lacking else ():
                found[value.key] = value
                if value.size * _LARGE <= self._room:
                    self._put(value)
        return [found[key] for key in keys if key in found]

    def _put(self, value: V) -> None:
        if self._new_bytes + value.size > self._room:
            self._old, self._old_bytes = self._new, self._new_bytes
            self._new, self._new_bytes = {}, 0
        self._new[value.key] = value
        self._new_bytes += value.size

    def drop(self, keys: Iterable[int]) -> None:
        for key in keys:
            if value := self._new.pop(key, None):
                self._new_bytes -= value.size
            elif value := self._old.pop(key, None):
                self._old_bytes -= value.size


def _held_nodes(snapshot: Snapshot, keys: Sequence[int]) -> Iterable[HeldNode]:
    for node, data in snapshot.nodes.sized(keys):
        held = HeldNode(*node)
        held.size = _NODE + data
        yield held


def _held_relations(snapshot: Snapshot, keys: Sequence[int]) -> Iterable[HeldRelation]:
    for relation, data in snapshot.relations.sized(keys):
        held = HeldRelation(*relation)
        held.size = _RELATION + data
        yield held
