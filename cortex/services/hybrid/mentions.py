"""What memories mention, written into the graph in the background.

A follower of the log: each memory that store_memory wrote, or whose text changed since, is
read by the Memory Fabric's rules (a millisecond a thousand characters, no model). Its entities
become nodes, what it states of them typed relations, and the memory is joined to each entity
by `related_to` with the verb `mentions`. Again, it changes nothing. Corner: what an older text
mentioned stays.
"""

from __future__ import annotations

from typing import Final

from cortex.domain.taxonomy import RelationType, Status
from cortex.domain.values import Generation, Node
from cortex.domain.verbs import with_verb
from cortex.services.engine import Engine
from cortex.services.fabric.fabric import Fabric
from cortex.services.fabric.values import Extraction
from cortex.services.linking import link
from cortex.services.neighbours import by_store_memory
from cortex.store.database import Snapshot, Transaction
from cortex.store.meta import MENTIONS

_MOST: Final = 20  # entities of one memory
_PAGE: Final = 1000
VERB: Final = "mentions"


class Mentions:
    """Follows what store_memory writes."""

    def __init__(self, engine: Engine, fabric: Fabric) -> None:
        self._engine = engine
        self._fabric = fabric
        self._seen: Generation | None = None

    def catch_up(self) -> int:
        """Read every memory that is new; how many there were."""
        if self._engine.settings.read_only:
            return 0
        with self._engine.database.read() as snapshot:
            end = snapshot.generation()
            nodes = self._touched(snapshot, end)
        for node in nodes:
            self._read(node)
        if nodes:
            with self._engine.write() as transaction:
                transaction.meta.set(MENTIONS, f"{end.epoch} {end.seq}")
        self._seen = end
        return len(nodes)

    def _touched(self, snapshot: Snapshot, end: Generation) -> list[Node]:
        epoch, _, seq = (snapshot.meta.find(MENTIONS) or "").partition(" ")
        since = int(seq) if seq and epoch == end.epoch else 0
        if self._seen is not None and self._seen.epoch == end.epoch:
            since = max(since, self._seen.seq)
        if since < end.floor or not since:
            keys = snapshot.neighbours.taking_part(0, -1, everyone=False)
        else:
            keys = snapshot.changes.touched_nodes(since)
        return [
            node
            for start in range(0, len(keys), _PAGE)
            for node in snapshot.nodes.by_keys(keys[start : start + _PAGE])
            if by_store_memory(node) and node.status is Status.ACTIVE and node.text
        ]

    def _read(self, node: Node) -> None:
        found = self._fabric.extract(node.text, workspace=node.workspace_id)
        entities = found.entities[:_MOST]
        if not entities:
            return
        names = {entity.name for entity in entities}
        said = tuple(r for r in found.relations if r.source in names and r.target in names)
        stored = self._fabric.store(Extraction(entities, said), workspace=node.workspace_id)
        with self._engine.write() as transaction:
            for entity_id in dict.fromkeys(stored.ids.values()):
                _mention(transaction, node, entity_id)


def _mention(transaction: Transaction, node: Node, entity_id: str) -> None:
    memory, entity = transaction.nodes.find(node.id), transaction.nodes.find(entity_id)
    if memory is None or entity is None or memory.id == entity.id:
        return
    first, second = sorted((memory.id, entity.id))
    present = transaction.relations.find(first, second, RelationType.RELATED_TO)
    known = dict(present.data) if present else {}
    data = with_verb(known, VERB, memory.id, entity.id)
    if data != known:  # a neighbour link becomes a stated one here
        link(transaction, memory, entity, RelationType.RELATED_TO, data=data)
