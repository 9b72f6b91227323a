"""Hits that say nearly the same become one, which is cross-validated by the others.

Idea: each hit is compared with the better ones by edit distance, and joins the first that it
is more than 85 % like. Cost: the square of the hits, over their first 2,000 characters; texts
whose lengths alone make them less alike are not compared.

Corners: another number is another fact (port 22, port 2222), whatever the likeness, and so
is another title (two people who say the same), and another workspace, whose label it bears.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Final, NamedTuple

from rapidfuzz import fuzz

from cortex.domain.taxonomy import Status
from cortex.domain.values import Node, WorkspaceId
from cortex.services.retrieval.found import Hit

ALIKE: Final = 85.0  # per cent
_COMPARED: Final = 2_000
_NUMBER: Final = re.compile(r"\d+")


class _Said(NamedTuple):
    """What two hits must share to say the same, and the text to compare."""

    kind: tuple[WorkspaceId, Status, str, tuple[str, ...]]
    text: str


def deduplicated(hits: Sequence[Hit]) -> list[Hit]:
    """The hits in their order, those that repeat a better one merged into it."""
    kept: list[Hit] = []
    said: list[_Said] = []
    for hit in hits:
        own = _said(hit.node)
        for place, better in enumerate(said):
            if own.kind == better.kind and _alike(own.text, better.text):
                merged = (*kept[place].merged, hit.node)
                kept[place] = replace(kept[place], merged=merged)
                break
        else:
            kept.append(hit)
            said.append(own)
    return kept


def _alike(one: str, other: str) -> bool:
    # The ratio is 200 · matches / (sum of lengths): the shorter text bounds it.
    if not one or 200 * min(len(one), len(other)) < ALIKE * (len(one) + len(other)):
        return False
    return fuzz.ratio(one, other, score_cutoff=ALIKE) > ALIKE


def _said(node: Node) -> _Said:
    given = node.data.get("title")
    title = given if isinstance(given, str) else ""
    text = (node.text or title)[:_COMPARED]
    numbers = tuple(sorted(_NUMBER.findall(text)))
    kind = (node.workspace_id, node.status, title if node.text else "", numbers)
    return _Said(kind, text)
