"""Bundle: the pattern that each community of memories is to have.

A pattern is a node of type `pattern`, marked derived: the title of the memory nearest the
centre, sentences of its memories word for word, and `derives_from` to up to 24 of them. It is
dated by its newest member, so that consolidating moves no clock, and its wave is of the slowest
layer. The bundle of its members' hypervectors is not stored: it follows from the relations
(`summary_vector`), and `data.dream.hypervector` is a digest of it, to compare by.

A pattern of an earlier dream belongs to the community that holds most of its members, and is
kept up to date. One whose memories scattered, or whose community another one tells, turns stale.
What somebody edited, archived or superseded is left as it is.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np

from cortex.domain.dreams import PATTERN_AMPLITUDE, PATTERN_HALF_LIFE, Change
from cortex.domain.instants import Instant
from cortex.domain.taxonomy import RelationType, Status
from cortex.domain.values import Node, NodeId, id_from, shorten, text_hash
from cortex.domain.waves import Wave
from cortex.services.composition.triples import node_item
from cortex.services.dreaming.clusters import Cluster
from cortex.services.dreaming.material import Material
from cortex.services.dreaming.summary import SENTENCES, extract
from cortex.services.dreaming.synchrony import in_steps
from cortex.store.database import Snapshot
from cortex.store.dreams import Member
from cortex.vectors.hypervectors import Codebook, Hypervector, pack

_TAG: Final = "dream"
_DERIVES: Final = RelationType.DERIVES_FROM.value


class NewPattern(NamedTuple):
    """A pattern that is not there yet."""

    id: NodeId
    data: dict[str, Any]
    at: Instant
    wave: Wave


class PatternEdit(NamedTuple):
    """What an earlier pattern is to be: data with the instant of its newest member, a status."""

    node: Node
    data: dict[str, Any]
    at: Instant
    status: Status


@dataclass(frozen=True, slots=True)
class Bundling:
    """What `bundle` does; `tied` and `untied` are relations of patterns to members, by node ids
    and by relation keys."""

    made: tuple[NewPattern, ...]
    edits: tuple[PatternEdit, ...]
    tied: tuple[tuple[NodeId, NodeId], ...]
    untied: tuple[int, ...]
    changes: tuple[Change, ...]


NOTHING_BUNDLED: Final = Bundling((), (), (), (), ())


def summary_vector(members: Sequence[str]) -> Hypervector:
    """The bundle (10,000,) of ±1 of the members' items: alike to each of them and to no other.

    Raises ValueError for none.
    """
    book = Codebook()
    return book.bundle(book.items([node_item(member) for member in members]))


class _Draft:
    """Collects what is to be done."""

    def __init__(self, snapshot: Snapshot, material: Material, phase: Mapping[int, float]) -> None:
        self.snapshot = snapshot
        self.material = material
        self.phase = phase
        self.staying = frozenset(material.field.keys.tolist())
        self.members: dict[int, dict[int, Member]] = {}
        for each in material.members:
            self.members.setdefault(each.pattern, {})[each.member] = each
        self.made: list[NewPattern] = []
        self.edits: list[PatternEdit] = []
        self.tied: list[tuple[NodeId, NodeId]] = []
        self.untied: list[int] = []
        self.changes: list[Change] = []

    def done(self) -> Bundling:
        return Bundling(
            tuple(self.made),
            tuple(self.edits),
            tuple(self.tied),
            tuple(self.untied),
            tuple(self.changes),
        )


def bundle(
    snapshot: Snapshot,
    material: Material,
    clusters: Sequence[Cluster],
    group_of: Mapping[int, int],
    phase: Mapping[int, float],
) -> Bundling:
    """The patterns of these clusters; `group_of` tells each linked memory's community, `phase`
    the phase that it is to have."""
    draft = _Draft(snapshot, material, phase)
    tellers, taken = _tellers(draft, group_of)
    wanted = [each for each in clusters if each.group in tellers or each.group not in taken]
    keys = [key for each in wanted for key in each.core]
    nodes = {node.key: node for node in snapshot.nodes.by_keys(keys)}
    for each in wanted:
        core = [nodes[key] for key in each.core if key in nodes]
        teller = tellers.get(each.group)
        if core and teller is None:
            _make(draft, core, each)
        elif core and teller is not None:
            _renew(draft, teller, core, each)
    return draft.done()


def _tellers(draft: _Draft, group_of: Mapping[int, int]) -> tuple[dict[int, Node], set[int]]:
    """The pattern that tells each community, if a dream may write it; those that have one."""
    homes: list[tuple[int, int, Node]] = []
    scattered: list[Node] = []
    for node in draft.material.patterns:
        members = draft.members.get(node.key, ())
        votes = Counter(group_of[key] for key in members if key in group_of)
        home, most = min(votes.items(), key=lambda pair: (-pair[1], pair[0]), default=(-1, 0))
        if most * 2 > votes.total():
            homes.append((home, most, node))
        elif votes.total() > 1:
            scattered.append(node)
    homes.sort(key=lambda each: (each[0], _rank(each[2]), -each[1], each[2].key))
    tellers: dict[int, Node] = {}
    taken: set[int] = set()
    for home, _, node in homes:
        if home in taken:
            _retire(draft, node, "another pattern tells its memories")
            continue
        taken.add(home)
        if node.status is Status.ACTIVE or _retired(node):
            tellers[home] = node
    for node in scattered:
        _retire(draft, node, "its memories no longer belong together")
    return tellers, taken


def _rank(node: Node) -> int:
    """Active patterns first, then those that somebody put away, then those a dream retired."""
    return 0 if node.status is Status.ACTIVE else 2 if _retired(node) else 1


def _retired(node: Node) -> bool:
    return node.status is Status.STALE and node.data["dream"].get("retired") is True


def _retire(draft: _Draft, node: Node, reason: str) -> None:
    if node.status is not Status.ACTIVE:
        return
    data = {**node.data, "dream": {**node.data["dream"], "retired": True}}
    draft.edits.append(PatternEdit(node, data, node.updated_at, Status.STALE))
    draft.changes.append(
        Change("bundle", node.key, node.id, Status.ACTIVE.value, Status.STALE.value, reason)
    )


def _data(core: Sequence[Node], size: int) -> dict[str, Any]:
    title = shorten(f"Pattern: {core[0].title}", 120)
    text = extract([node.text or node.title for node in core[: SENTENCES * 2]])
    packed = pack(summary_vector([node.id for node in core])).tobytes()
    about = {
        "members": size,
        "hypervector": hashlib.sha256(packed).hexdigest()[:16],
        "hash": text_hash(title, text),
    }
    return {"title": title, "text": text, "tags": [_TAG], "derived": True, "dream": about}


def _make(draft: _Draft, core: Sequence[Node], cluster: Cluster) -> None:
    members = sorted(node.id for node in core)
    made = id_from("pattern", draft.material.workspace, *members)
    if draft.snapshot.nodes.find(made) is not None:
        return  # somebody took its members from it
    data = _data(core, cluster.size)
    turns = np.exp(1j * np.array([draft.phase.get(node.key, 0.0) for node in core])).sum()
    [middle] = in_steps(np.array([np.angle(turns)])).tolist()
    wave = Wave(PATTERN_AMPLITUDE, 0.0, middle, PATTERN_HALF_LIFE)
    draft.made.append(NewPattern(made, data, _newest(core), wave))
    draft.tied += [(made, node.id) for node in core]
    after = {"type": "pattern", "title": data["title"], "text": data["text"], "members": members}
    reason = f"{cluster.size} memories are near each other"
    draft.changes.append(Change("bundle", 0, made, None, after, reason))


def _renew(draft: _Draft, node: Node, core: Sequence[Node], cluster: Cluster) -> None:
    title = node.data.get("title")
    if node.data["dream"].get("hash") != text_hash(
        title if isinstance(title, str) else "", node.text
    ):
        return  # somebody edited it
    superseded = draft.snapshot.relations.incoming(node.id, (RelationType.SUPERSEDES,), 1)
    if superseded:
        return
    data = _data(core, cluster.size)
    whole = {**node.data, **data}
    if whole != dict(node.data) or node.status is not Status.ACTIVE:
        at = max(_newest(core), node.updated_at)
        draft.edits.append(PatternEdit(node, whole, at, Status.ACTIVE))
        before = {"text": node.text, "members": node.data["dream"].get("members")}
        after = {"text": data["text"], "members": cluster.size}
        reason = f"its community has {cluster.size} memories now, or others at its centre"
        draft.changes.append(Change("bundle", node.key, node.id, before, after, reason))
    _retie(draft, node, core)


def _retie(draft: _Draft, node: Node, core: Sequence[Node]) -> None:
    present = draft.members.get(node.key, {})
    wanted = {each.key: each.id for each in core}
    for key in sorted(wanted.keys() - present.keys()):
        draft.tied.append((node.id, wanted[key]))
        draft.changes.append(_tie(0, node.id, wanted[key], None, 1.0, "near its centre now"))
    # What was archived meanwhile is still what the pattern was made of.
    for key in sorted((present.keys() - wanted.keys()) & draft.staying):
        link, other = present[key].relation, draft.material.ids[key]
        draft.untied.append(link)
        draft.changes.append(_tie(link, node.id, other, 1.0, None, "no longer near its centre"))


def _tie(
    key: int, pattern: str, member: str, before: float | None, after: float | None, why: str
) -> Change:
    return Change("bundle", key, (pattern, _DERIVES, member), before, after, why)


def _newest(core: Sequence[Node]) -> Instant:
    return max(node.created_at for node in core)
