"""Near duplicates of a text that is about to be written.

Looking for them takes three times as long as writing does, so it is done before the write
lock is taken, and settled under it: by the nodes that were written meanwhile, which are few.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from rapidfuzz import fuzz

from cortex.domain.taxonomy import Status
from cortex.domain.values import Node, WorkspaceId, shorten
from cortex.store.database import Snapshot, Transaction

_ALIKE: Final = 85.0
_COMPARED: Final = 2000
_CANDIDATES: Final = 8
_SETTLED: Final = 64  # nodes written meanwhile, beyond which the index is asked again
SHOWN: Final = 3


@dataclass(frozen=True, slots=True)
class Sighted:
    """Keys of the near duplicates there were when the log ended with `seq`."""

    seq: int
    keys: tuple[int, ...]


def sight(snapshot: Snapshot, workspace: WorkspaceId, data: Mapping[str, Any]) -> Sighted:
    """Look for near duplicates before the lock is taken."""
    found = _among(_said(data), _candidates(snapshot, workspace, data))
    last = snapshot.changes.last()
    return Sighted(0 if last is None else last[0], tuple(node.key for _, node in found))


def settle(
    transaction: Transaction, workspace: WorkspaceId, data: Mapping[str, Any], sighted: Sighted
) -> list[dict[str, Any]]:
    """As find_similar now, of what was sighted and what was written since."""
    since = transaction.changes.touched_nodes(sighted.seq)
    if len(since) > _SETTLED:
        return find_similar(transaction, workspace, data)
    nodes = transaction.nodes.by_keys(list({*sighted.keys, *since}))
    there = (
        node for node in nodes
        if node.workspace_id == workspace and node.status is Status.ACTIVE
    )  # fmt: skip
    return _told(_among(_said(data), there))


def find_similar(
    snapshot: Snapshot, workspace: WorkspaceId, data: Mapping[str, Any]
) -> list[dict[str, Any]]:
    """Active nodes whose text is nearly the same (85 % or more by edit distance), 3 at most.

    Looks among those that share the text's rarest words, as a near duplicate does.
    """
    return _told(_among(_said(data), _candidates(snapshot, workspace, data)))


def _candidates(snapshot: Snapshot, workspace: WorkspaceId, data: Mapping[str, Any]) -> list[Node]:
    hits = snapshot.keywords.alike(_said(data)[:_COMPARED], workspace, _CANDIDATES)
    return snapshot.nodes.by_keys([hit.key for hit in hits])


def _among(text: str, nodes: Iterable[Node]) -> list[tuple[float, Node]]:
    """Those that are alike, the most alike first, ties by id."""
    told = ((fuzz.ratio(text[:_COMPARED], _said(node.data)[:_COMPARED]), node) for node in nodes)
    found = [(round(likeness / 100, 2), node) for likeness, node in told if likeness >= _ALIKE]
    return sorted(found, key=lambda pair: (-pair[0], pair[1].id))


def _told(found: list[tuple[float, Node]]) -> list[dict[str, Any]]:
    return [
        {
            "id": node.id,
            "type": node.type.value,
            "title": shorten(node.title, 80),
            "likeness": likeness,
        }
        for likeness, node in found[:SHOWN]
    ]


def _said(data: Mapping[str, Any]) -> str:
    text = data.get("text") or data.get("title") or data.get("path") or ""
    return text if isinstance(text, str) else json.dumps(text)
