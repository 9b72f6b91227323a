"""Drift: which knowledge rests on a file that is not as it was noted.

The one place that decides what every view marks as unverified. Which files a node rests on
is read in a short transaction of its own; the disk is asked after it, so that no snapshot
and no lock is held meanwhile. Cost: two indexed queries, then one stat a distinct file
(about 4 µs); a file's bytes only where its time alone differs, once per size and time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from cortex.config import Settings
from cortex.domain.values import Node, NodeId
from cortex.graph.proximity import files_of
from cortex.graph.workspace import WorkspaceGraph
from cortex.services.files import Freshness, freshness
from cortex.services.reach import Reach, reach_of
from cortex.store.database import Database, Snapshot

Drifted = Mapping[NodeId, Mapping[str, Freshness]]

_PAIRS: Final = 4_000
_FILES: Final = 512  # distinct files asked about in one answer


@dataclass(frozen=True, slots=True)
class Rests:
    """Nodes with the keys of the files that they rest on, and those files, as far as read once."""

    pairs: Sequence[tuple[NodeId, int]]
    files: Mapping[int, Node]
    reach: Reach

    def differing(self) -> Drifted:
        """The nodes whose files differ; asks the disk."""
        if not self.files:
            return MappingProxyType({})
        states = differing(self.files.values(), self.reach)
        found: dict[NodeId, dict[str, Freshness]] = {}
        for node, key in self.pairs:
            if key in self.files and self.files[key].id in states:
                path = str(self.files[key].data.get("path"))
                found.setdefault(node, {})[path] = states[self.files[key].id]
        return MappingProxyType(found)


class Drift:
    """Compares what nodes rest on with the disk."""

    def __init__(self, database: Database, settings: Settings) -> None:
        self._database = database
        self._settings = settings

    def of(self, ids: Sequence[str]) -> Drifted:
        """The unverified ones among `ids`, with the paths that differ and how."""
        with self._database.read() as snapshot:
            rests = self.rests(snapshot, ids)
        return rests.differing()

    def rests(self, snapshot: Snapshot, ids: Sequence[str]) -> Rests:
        """What the nodes rest on, for asking the disk once the snapshot is let go."""
        pairs = snapshot.filerefs.rested_on(ids, _PAIRS) if ids else []
        return self._rests(snapshot, pairs, snapshot.nodes.by_keys)

    def rests_within(
        self, snapshot: Snapshot, graph: WorkspaceGraph, nodes: Sequence[Node]
    ) -> Rests:
        """The same, told by the graph of a view where it can tell."""
        files = files_of(graph, snapshot, nodes)
        pairs = [(node.id, file) for node in nodes for file in files[node.key]][:_PAIRS]
        return self._rests(snapshot, pairs, lambda keys: graph.kept.nodes(snapshot, keys))

    def _rests(
        self,
        snapshot: Snapshot,
        pairs: Sequence[tuple[NodeId, int]],
        read: Callable[[Sequence[int]], Sequence[Node]],
    ) -> Rests:
        keys = list(dict.fromkeys(key for _, key in pairs))[:_FILES]
        files = {file.key: file for file in (read(keys) if keys else ()) if _was_read(file)}
        reach = reach_of(snapshot, self._settings) if files else Reach(())
        return Rests(pairs, files, reach)

    def warnings(self, nodes: Sequence[Node]) -> tuple[str, ...]:
        """One sentence per file that differs, in the order of the nodes."""
        return sentences(nodes, self.of([node.id for node in nodes]))


def sentences(nodes: Sequence[Node], drifted: Drifted) -> tuple[str, ...]:
    """One sentence per file that differs, in the order of the nodes."""
    said = {
        f"unverified: file {path} is {state.value} since noted": None
        for node in nodes
        for path, state in drifted.get(node.id, {}).items()
    }
    return tuple(said)


def _was_read(file: Node) -> bool:
    return "size" in file.data


def differing(files: Iterable[Node], reach: Reach) -> dict[NodeId, Freshness]:
    """The filerefs whose file was read once and is not as it was then.

    One beyond reach is not among them: nothing is known against it.
    """
    states = {file.id: freshness(file, reach) for file in files if _was_read(file)}
    known = (Freshness.UNCHANGED, Freshness.OUTSIDE)
    return {file: state for file, state in states.items() if state not in known}
