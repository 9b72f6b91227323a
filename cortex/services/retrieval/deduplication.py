"""Hits that say nearly the same become one, which is cross-validated by the others.

Idea: each hit is compared with the better ones by edit distance, and joins the first that it
is more than 85 % like. Cost: at most 60 hits, compared over their first 2,000 characters.

Corners: another number is another fact (port 22, port 2222), whatever the likeness, and so
is another title (two people who say the same), and another workspace, whose label it bears. A
hit that shows what replaced it is its own.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from rapidfuzz import fuzz

from cortex.domain.values import Node
from cortex.services.retrieval.found import Hit

ALIKE: Final = 85.0  # per cent
_COMPARED: Final = 2_000
_MOST: Final = 60
_NUMBER: Final = re.compile(r"\d+")


def deduplicated(hits: Sequence[Hit]) -> list[Hit]:
    """The hits in their order, those that repeat a better one merged into it."""
    kept: list[Hit] = []
    for hit in hits[:_MOST]:
        for place, better in enumerate(kept):
            if _same(better.node, hit.node):
                merged = (*better.merged, hit.node, *hit.merged)
                kept[place] = replace(better, merged=merged)
                break
        else:
            kept.append(hit)
    return [*kept, *hits[_MOST:]]


def _same(one: Node, other: Node) -> bool:
    first, second = _said(one), _said(other)
    return (
        bool(first)
        and one.workspace_id == other.workspace_id
        and one.status is other.status
        and fuzz.ratio(first, second, score_cutoff=ALIKE) > ALIKE
        and _title(one) == _title(other)
        and sorted(_NUMBER.findall(first)) == sorted(_NUMBER.findall(second))
    )


def _said(node: Node) -> str:
    return (node.text or _title(node))[:_COMPARED]


def _title(node: Node) -> str:
    title = node.data.get("title")
    return title if isinstance(title, str) and node.text else ""
