"""The whole plan of a dream: each step in its order, on one view of the workspace."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from cortex.domain.dreams import LATELY, STEPS, Change, Depth
from cortex.domain.progress import PROGRESS
from cortex.domain.taxonomy import RelationType, Status
from cortex.domain.values import Generation, WorkspaceId
from cortex.graph.merging import holding_communities
from cortex.services.dreaming.bundling import NOTHING_BUNDLED, Bundling, bundle
from cortex.services.dreaming.clusters import clusters_of
from cortex.services.dreaming.interference import Pair, detect
from cortex.services.dreaming.material import (
    NO_LINKS,
    Links,
    Material,
    Vectors,
    all_vectors,
    gather,
    read_vectors,
)
from cortex.services.dreaming.outdated import Mended
from cortex.services.dreaming.pruning import Settled, settle
from cortex.services.dreaming.synchrony import in_steps, synchronised
from cortex.services.dreaming.waving import NewWave, lately, wave
from cortex.services.dreaming.wiring import NOTHING_WIRED, NewLink, Wiring, wire
from cortex.services.engine import Engine
from cortex.store.database import Snapshot

_RELATED: Final = RelationType.RELATED_TO.value
TOTAL: Final = len(STEPS) + 1
"""Of the progress: the steps, and writing."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What a dream would do, and what it saw.

    `changes` say it for people, in the order of the steps; the other fields are the same for
    the store. `worst` are the most destructive pairs with their nodes' ids. `order_before` and
    `order_after` are R of the memories' phases, in [0, 1].
    """

    workspace: WorkspaceId
    depth: Depth
    generation: Generation
    changes: tuple[Change, ...] = ()
    links: tuple[NewLink, ...] = ()
    mended: tuple[Mended, ...] = ()
    bundling: Bundling = NOTHING_BUNDLED
    waves: tuple[NewWave, ...] = ()
    archived: tuple[int, ...] = ()
    wiring: Wiring = NOTHING_WIRED
    memories: int = 0
    replayed: int = 0
    linked: int = 0
    communities: int = 0
    constructive: int = 0
    destructive: int = 0
    worst: tuple[tuple[Pair, str, str], ...] = ()
    order_before: float = 0.0
    order_after: float = 0.0
    notes: tuple[str, ...] = ()

    def counts(self) -> dict[str, int]:
        """Changes of each step, steps without any included."""
        found = Counter(change.step for change in self.changes)
        return {step: found[step] for step in STEPS}


def plan_dream(engine: Engine, place: WorkspaceId, depth: Depth) -> Plan:
    """What a dream of this workspace would change now; nothing is written."""
    told = PROGRESS.get()
    told(0, TOTAL, "replay: reading memories and links")
    material = gather(engine, place)
    if material is None:
        with engine.database.read() as snapshot:
            return Plan(place, depth, snapshot.generation())
    with engine.database.read() as snapshot:
        return _Planner(engine, snapshot, material, depth).plan()


class _Planner:
    """Runs the steps over one workspace's material."""

    def __init__(
        self, engine: Engine, snapshot: Snapshot, material: Material, depth: Depth
    ) -> None:
        self._engine = engine
        self._snapshot = snapshot
        self._material = material
        self._deep = depth == "deep"
        self._depth: Depth = depth
        self._notes: list[str] = []

    def plan(self) -> Plan:
        told = PROGRESS.get()
        vectors = self._vectors() if self._deep else all_vectors([])
        material, fresh, pruned, mended = self._settled(vectors)
        links = material.links.joined(fresh)
        graph = links.graph()
        told(1, TOTAL, f"detect: {len(links.one)} links")
        group = holding_communities(graph)
        found = detect(material, graph, group, links)
        told(2, TOTAL, "sync: phases along the links")
        begun = found.phase[material.field.of(graph.keys)]
        ended = in_steps(synchronised(graph, begun, group))
        synced = dict(zip(graph.keys.tolist(), ended.tolist(), strict=True))
        told(3, TOTAL, "strengthen and transfer: waves")
        replayed = np.ones(len(material.field), np.bool_)
        if not self._deep:
            replayed = lately(material, LATELY, (links.one, links.other))
        waving = wave(material, found, synced, replayed)
        bundling, wiring = NOTHING_BUNDLED, NOTHING_WIRED
        if self._deep:
            told(4, TOTAL, "bundle: communities to patterns")
            clusters = clusters_of(graph, group, vectors.only(material))
            group_of = dict(zip(graph.keys.tolist(), group.tolist(), strict=True))
            bundling = bundle(self._snapshot, material, clusters, group_of, synced)
            told(6, TOTAL, "wire: skip links between communities")
            wiring = wire(self._snapshot, material, clusters, graph, group)
        self._note()
        added = [*_replayed(material, fresh, mended), *_pruned(material, pruned)]
        changes = _in_order([*added, *bundling.changes, *waving.changes, *wiring.changes])
        told(TOTAL - 1, TOTAL, f"{len(changes)} changes")
        return Plan(
            material.workspace,
            self._depth,
            material.generation,
            changes,
            _new_links(material, fresh),
            mended,
            bundling,
            waving.waves,
            tuple(pruned),
            wiring,
            len(material.field),
            int(np.count_nonzero(replayed)),
            len(graph),
            int(group.max()) + 1 if len(group) else 0,
            found.constructive,
            found.destructive,
            tuple((pair, material.ids[pair.one], material.ids[pair.other]) for pair in found.worst),
            waving.before,
            waving.after,
            tuple(self._notes),
        )

    def _vectors(self) -> Vectors:
        told, keys = PROGRESS.get(), self._material.field.keys
        pages = []
        for page in read_vectors(self._snapshot, keys):
            pages.append(page)
            read = sum(len(each) for each in pages)
            told(0.5 * read / max(len(keys), 1), TOTAL, f"replay: {read} vectors read")
        return all_vectors(pages)

    def _settled(self, vectors: Vectors) -> Settled:
        """Without what goes, and with the links that are missing; as it is in a lite dream."""
        if not self._deep:
            return Settled(self._material, NO_LINKS, {}, ())
        off = self._engine.settings.waves.neighbours == "off"
        if off:
            self._notes.append("CORTEX_NEIGHBOURS is off: no memory is linked anew")
        told = PROGRESS.get()

        def linking(done: int, of: int) -> None:
            told(0.5 + 0.5 * done / of, TOTAL, f"replay: {done} of {of} memories without links")

        useful = len(vectors) > 0 and not off
        return settle(self._snapshot, self._material, vectors, linking, linking=useful)

    def _note(self) -> None:
        pending = self._snapshot.outbox.owing(self._material.workspace)
        if pending:
            self._notes.append(f"{pending} texts wait for their vectors: a later dream sees them")


def _replayed(material: Material, fresh: Links, mended: Sequence[Mended]) -> list[Change]:
    ids = material.ids
    changes = [
        Change(
            "replay", link.key, (link.from_id, _RELATED, link.to_id), link.weight, weight,
            "its memories say something else by now",
        )
        for link, weight in mended
    ]  # fmt: skip
    return changes + [
        Change(
            "replay", 0, (ids[one], _RELATED, ids[other]), None, weight,
            f"cosine {weight:.2f}, and one of them had no neighbour yet",
        )
        for one, other, weight in _rows(fresh)
    ]  # fmt: skip


def _pruned(material: Material, pruned: Mapping[int, float]) -> list[Change]:
    active, put_away = Status.ACTIVE.value, Status.ARCHIVED.value
    since = material.cutoff[:10]
    return [
        Change(
            "prune", key, material.ids[key], active, put_away,
            f"strength {strong:.4f}, no sign of life since {since}, and nothing supports it",
        )
        for key, strong in pruned.items()
    ]  # fmt: skip


def _new_links(material: Material, fresh: Links) -> tuple[NewLink, ...]:
    ids = material.ids
    return tuple(NewLink(ids[one], ids[other], weight) for one, other, weight in _rows(fresh))


def _rows(links: Links) -> list[tuple[int, int, float]]:
    columns = (links.one.tolist(), links.other.tolist(), links.weight.tolist())
    return list(zip(*columns, strict=True))


def _in_order(changes: Sequence[Change]) -> tuple[Change, ...]:
    place: Mapping[str, int] = {step: at for at, step in enumerate(STEPS)}
    return tuple(sorted(changes, key=lambda change: place[change.step]))
