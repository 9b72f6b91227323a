"""The names that a workspace's graph knows, in memory, kept equal to the store by its log.

Idea: titles of entity and pattern nodes by their folded words. A name borne by several nodes
is the oldest one's. Each version is immutable, so that a reader keeps the one it began with;
a write of such a node makes the next version from the keys that the log names.

Cost: 15 µs a name to build, of the newest 50,000; 4 workspaces are kept, the longest unused
goes first. Corner: beyond the 50,000 older names are not known until they are touched.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Final

from cortex.domain.taxonomy import NodeType
from cortex.domain.values import NodeId, WorkspaceId
from cortex.services.fabric.mentions import kind_of
from cortex.services.fabric.values import EntityKind
from cortex.services.fabric.words import fold_name
from cortex.store.database import Snapshot
from cortex.store.titles import Titled

MOST_NAMES: Final = 50_000
_WORKSPACES: Final = 4
_WORDS: Final = 6
_TAILS: Final = 8
_MOST_TOUCHED: Final = 2_000


@dataclass(frozen=True, slots=True)
class Name:
    """A node's name and what it is the name of."""

    node_id: NodeId
    name: str
    kind: EntityKind
    key: int


@dataclass(frozen=True, slots=True)
class Names:
    """The vocabulary of one workspace at one moment of the log."""

    epoch: str
    seq: int
    bearers: dict[str, tuple[Name, ...]] = field(default_factory=dict)
    folded: dict[int, str] = field(default_factory=dict)
    lengths: dict[str, int] = field(default_factory=dict)
    tails: dict[str, tuple[str, ...]] = field(default_factory=dict)

    def longest(self, first: str) -> int:
        """Words of the longest name that begins with this folded word, 0 without any."""
        return self.lengths.get(first, 0)

    def find(self, folded: str) -> Name | None:
        """The oldest node of this name."""
        bearers = self.bearers.get(folded)
        return bearers[0] if bearers else None

    def all(self, folded: str) -> tuple[Name, ...]:
        """Every node of this name, oldest first."""
        return self.bearers.get(folded, ())

    def kinds_of(self, folded: str) -> tuple[Name, ...]:
        """Nodes whose name ends with this word: "cursor-based pagination" is a pagination."""
        return tuple(name for tail in self.tails.get(folded, ()) for name in self.all(tail))


class GraphNames:
    """Vocabularies by workspace; shared by the threads of a process."""

    def __init__(self) -> None:
        self._kept: OrderedDict[WorkspaceId, Names] = OrderedDict()
        self._lock = threading.Lock()

    def of(self, snapshot: Snapshot, workspace: WorkspaceId) -> Names:
        """The names as this snapshot sees them."""
        generation = snapshot.generation()
        with self._lock:
            names = self._kept.get(workspace)
        end = max(generation.seq, generation.floor)
        if (
            names is None
            or names.epoch != generation.epoch
            or not (generation.floor <= names.seq <= end)
        ):
            names = _read(snapshot, workspace, generation.epoch, end)
        elif names.seq != end:
            names = _followed(snapshot, workspace, names, end)
        with self._lock:
            self._kept[workspace] = names
            self._kept.move_to_end(workspace)
            while len(self._kept) > _WORKSPACES:
                self._kept.popitem(last=False)
        return names


def _read(snapshot: Snapshot, workspace: WorkspaceId, epoch: str, seq: int) -> Names:
    names = Names(epoch, seq)
    _enter(names, snapshot.titles.newest(workspace, MOST_NAMES))
    return names


def _followed(snapshot: Snapshot, workspace: WorkspaceId, names: Names, end: int) -> Names:
    touched = snapshot.changes.touched(names.seq, end).nodes
    if len(touched) > _MOST_TOUCHED:
        return _read(snapshot, workspace, names.epoch, end)
    titled = snapshot.titles.by_keys(workspace, touched)
    known = [key for key in touched if key in names.folded]
    if not titled and not known:
        return replace(names, seq=end)
    # `lengths` and `tails` may keep what went: they lead to a look-up, and answer nothing.
    fresh = Names(
        names.epoch,
        end,
        dict(names.bearers),
        dict(names.folded),
        dict(names.lengths),
        dict(names.tails),
    )
    for key in known:
        folded = fresh.folded.pop(key)
        left = tuple(name for name in fresh.bearers[folded] if name.key != key)
        if left:
            fresh.bearers[folded] = left
        else:
            del fresh.bearers[folded]
    _enter(fresh, titled)
    return fresh


def _enter(names: Names, titled: Iterable[Titled]) -> None:
    for node in titled:
        folded = fold_name(node.title)
        parts = folded.split()
        if not 0 < len(parts) <= _WORDS or len(folded) < 2:
            continue
        name = Name(node.id, node.title, _kind(node), node.key)
        bearers = (*names.bearers.get(folded, ()), name)
        names.bearers[folded] = tuple(sorted(bearers, key=lambda each: each.key))
        names.folded[node.key] = folded
        names.lengths[parts[0]] = max(names.lengths.get(parts[0], 0), len(parts))
        tails = names.tails.get(parts[-1], ())
        if len(parts) > 1 and folded not in tails and len(tails) < _TAILS:
            names.tails[parts[-1]] = (*tails, folded)


def _kind(node: Titled) -> EntityKind:
    """What was said of it in data.kind; else by its type, else by its name."""
    if isinstance(node.kind, str) and node.kind.lower() in EntityKind.__members__.values():
        return EntityKind(node.kind.lower())
    if node.type == NodeType.PATTERN.value:
        return EntityKind.PATTERN
    return kind_of(node.title)
