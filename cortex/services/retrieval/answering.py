"""From what the perspectives returned to hits: fused, lifted, filtered, redirected, merged.

Everything that is shown is read from the store as it stands now, so an index that lags can
bring no node back. A stale node that matches stands for the active head of its chain; what
is left out is told with its reason.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from cortex.domain.taxonomy import NodeType, Status
from cortex.domain.values import Node, NodeId
from cortex.services.resolving import head_of
from cortex.services.retrieval.deduplication import deduplicated
from cortex.services.retrieval.found import MOST_WITHHELD, Hit, Withheld
from cortex.services.retrieval.perspectives import FILE, KEYWORD, SEMANTIC, Ranking, Request
from cortex.services.retrieval.ranking import Fusion, between, ordered, ranks_of
from cortex.services.retrieval.signals import Boosts, Signals, lift
from cortex.store.database import Snapshot

# Where the question names a file, what is known of it comes before all else: the greatest
# sum of the others is a quarter of the file's share. Scores stay within [0, 1].
_FILE_SHARE: Final = 0.8
_LEAST_SHOWN: Final = 0.001
_COMPARED: Final = 3


@dataclass(slots=True)
class Gathered:
    """What the perspectives returned, by name; `nodes` are their candidates that exist."""

    rankings: dict[str, Ranking] = field(default_factory=dict)
    out: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    nodes: dict[NodeId, Node] = field(default_factory=dict)
    pending: int = 0

    @property
    def degraded(self) -> str | None:
        return "; ".join(self.out) or None

    def chunk(self, node_id: NodeId) -> int:
        """The passage that matched by meaning, else by keyword."""
        for name in (SEMANTIC, KEYWORD):
            chunks = self.rankings[name].chunks if name in self.rankings else {}
            if node_id in chunks:
                return chunks[node_id]
        return 0

    def load(self, snapshot: Snapshot) -> None:
        """Read the candidates that were not read yet, or not as they are now."""
        generation = snapshot.generation()
        for each in self.rankings.values():
            if each.generation == generation:
                self.nodes |= each.nodes
        wanted = {key: None for each in self.rankings.values() for key in each.scores}
        missing = [key for key in wanted if key not in self.nodes]
        self.nodes.update({node.id: node for node in snapshot.nodes.by_ids(missing)})


@dataclass(slots=True)
class Answered:
    """The best hits, at most `top_k`; how many there were; what was left out, by reason."""

    hits: list[Hit]
    total: int
    withheld: dict[str, list[NodeId]]
    ranks: dict[str, dict[NodeId, int]]


def fused(gathered: Gathered, fusion: Fusion) -> tuple[dict[NodeId, float], dict[str, float]]:
    """One score for each candidate, and what each perspective has of it.

    What is known of a file that was named leads.
    """
    rankings = {name: each for name, each in gathered.rankings.items() if name != FILE}
    certainty = {name: each.certainty for name, each in rankings.items() if each.certainty}
    shares = fusion.shares([name for name, each in rankings.items() if each.scores], certainty)
    scores = fusion.fused(
        {
            name: between(each.scores) if fusion.plain else each.scales
            for name, each in rankings.items()
        },
        shares,
    )
    if FILE not in gathered.rankings:
        return scores, shares
    known = gathered.rankings[FILE].scales
    shares = {FILE: _FILE_SHARE} | {
        name: (1 - _FILE_SHARE) * share for name, share in shares.items()
    }
    return {
        key: _FILE_SHARE * known.get(key, 0.0) + (1 - _FILE_SHARE) * scores.get(key, 0.0)
        for key in {**scores, **known}
    }, shares


def answered(
    snapshot: Snapshot,
    gathered: Gathered,
    scores: Mapping[NodeId, float],
    request: Request,
    signals: Signals,
    top_k: int,
    *,
    include_stale: bool = False,
) -> Answered:
    """The hits that these scores make, in the snapshot.

    Those after three times `top_k` are counted as below the cut without being compared.
    """
    gathered.load(snapshot)
    lifted, boosts = lift(snapshot, request.text, scores, gathered.nodes, signals)
    nodes = gathered.nodes
    ranks = {name: ranks_of(each.scores) for name, each in gathered.rankings.items()}
    withheld: dict[str, list[NodeId]] = {}
    hits: dict[NodeId, Hit] = {}
    below: dict[NodeId, None] = {}
    for node_id, score in ordered({key: each for key, each in lifted.items() if key in nodes}):
        node = nodes[node_id]
        why = _left_out(node, request)
        shown, via = _shown(snapshot, node, include_stale) if why is None else (None, None)
        if shown is None:
            withheld.setdefault(why or "stale", []).append(node_id)
        elif shown.id in hits or shown.id in below:
            if via is not None:
                withheld.setdefault("stale, its successor is shown", []).append(node_id)
        elif len(hits) < _COMPARED * top_k:
            hits[shown.id] = _hit(shown, via, score, gathered, ranks, boosts)
        else:
            below[shown.id] = None
    found = list(hits.values())
    kept = deduplicated(found) if signals.repeats else found
    cut = [*(hit.node.id for hit in kept[top_k:]), *below]
    if cut:
        withheld["below the cut"] = cut
    return Answered(kept[:top_k], len(kept) + len(below), withheld, ranks)


def _left_out(node: Node, request: Request) -> str | None:
    """Why this node is no hit, or None."""
    where = request.where
    if request.scope and node.workspace_id != request.scope:
        return "other workspace"
    if not where.admits(node):
        return "outside the filters"
    if node.type is NodeType.SESSION and node.parent_id is None and node.type not in where.types:
        return "session root"  # it says no more than its workspace's name
    return None


def _shown(snapshot: Snapshot, node: Node, include_stale: bool) -> tuple[Node | None, Node | None]:
    """The node to show, and the stale one that led to it; (None, None) for a dead end."""
    if node.status is not Status.STALE or include_stale:
        return node, None
    head = head_of(snapshot, node)
    if head.id == node.id or head.status is Status.STALE:
        return None, None
    return head, node


def _hit(
    node: Node,
    via: Node | None,
    score: float,
    gathered: Gathered,
    ranks: Mapping[str, Mapping[NodeId, int]],
    boosts: Boosts,
) -> Hit:
    matched = (via or node).id
    return Hit(
        node,
        score,
        {
            name: round(each.scores[matched], 4)
            for name, each in gathered.rankings.items()
            if matched in each.scores
        },
        gathered.chunk(matched) if via is None else 0,
        via,
        {name: each[matched] for name, each in ranks.items() if matched in each},
        {
            name: round(amount, 4)
            for name, amount in boosts.get(matched, {}).items()
            if amount >= _LEAST_SHOWN
        },
    )


def bounded(withheld: Mapping[str, list[NodeId]]) -> dict[str, Withheld]:
    """Counts, and the first ids of each reason."""
    return {why: Withheld(len(ids), tuple(ids[:MOST_WITHHELD])) for why, ids in withheld.items()}
