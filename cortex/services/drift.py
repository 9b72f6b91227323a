"""Drift: which knowledge rests on a file that is not as it was noted.

The one place that decides what every view marks as unverified. Which files a node rests on
is read in a short transaction of its own; the disk is asked after it, so that no snapshot
and no lock is held meanwhile. Cost: two indexed queries, then one stat a distinct file
(about 4 µs); a file's bytes only where its time alone differs, once per size and time.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Final

from cortex.config import Settings
from cortex.domain.values import Node, NodeId
from cortex.services.files import Freshness, freshness
from cortex.services.reach import Reach, reach_of
from cortex.store.database import Database

_PAIRS: Final = 4_000
_FILES: Final = 512  # distinct files asked about in one answer


class Drift:
    """Compares what nodes rest on with the disk."""

    def __init__(self, database: Database, settings: Settings) -> None:
        self._database = database
        self._settings = settings

    def of(self, ids: Sequence[str]) -> Mapping[NodeId, Mapping[str, Freshness]]:
        """The unverified ones among `ids`, with the paths that differ and how."""
        if not ids:
            return MappingProxyType({})
        with self._database.read() as snapshot:
            pairs = snapshot.filerefs.rested_on(ids, _PAIRS)
            keys = list(dict.fromkeys(key for _, key in pairs))[:_FILES]
            files = {file.key: file for file in snapshot.nodes.by_keys(keys)}
            reach = reach_of(snapshot, self._settings)
        states = differing(files.values(), reach)
        found: dict[NodeId, dict[str, Freshness]] = {}
        for node, key in pairs:
            if key in files and files[key].id in states:
                path = str(files[key].data.get("path"))
                found.setdefault(node, {})[path] = states[files[key].id]
        return MappingProxyType(found)

    def warnings(self, nodes: Sequence[Node]) -> tuple[str, ...]:
        """One sentence per file that differs, in the order of the nodes."""
        found = self.of([node.id for node in nodes])
        said = {
            f"unverified: file {path} is {state.value} since noted": None
            for node in nodes
            for path, state in found.get(node.id, {}).items()
        }
        return tuple(said)


def differing(files: Iterable[Node], reach: Reach) -> dict[NodeId, Freshness]:
    """The filerefs whose file was read once and is not as it was then.

    One beyond reach is not among them: nothing is known against it.
    """
    states = {file.id: freshness(file, reach) for file in files if "size" in file.data}
    known = (Freshness.UNCHANGED, Freshness.OUTSIDE)
    return {file: state for file, state in states.items() if state not in known}
