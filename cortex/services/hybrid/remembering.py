"""Storing a memory: the text, its importance as an amplitude, what it repeats.

One transaction. Entities and neighbour links come in the background (`following.py`).
Importance i in [0, 1] is an amplitude of 2^(2i − 1): half of importance is worth one half-life.
A text that repeats an active memory nearly word for word strengthens that one, in phase, by
`REINFORCEMENT` of their likeness.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from cortex.domain.errors import InvalidError
from cortex.domain.taxonomy import NodeType
from cortex.domain.values import Node, WorkspaceId
from cortex.domain.waves import Wave, amplitude_of
from cortex.services.adding import insert_child
from cortex.services.engine import Engine
from cortex.services.fields import Fields, merged, require_content
from cortex.services.hybrid.sessions import Sessions
from cortex.services.linking import ensure_root
from cortex.services.repeating import once
from cortex.services.screening import screened
from cortex.services.similar import settle, sight
from cortex.services.waves import edit
from cortex.store.database import Transaction
from cortex.store.neighbours import STORE_MEMORY, STORED_BY

PLAIN_IMPORTANCE: Final = 0.5
REINFORCEMENT: Final = 0.25


@dataclass(frozen=True, slots=True)
class Remembered:
    """A memory that was stored; `similar` say nearly the same, `reinforced` are the ids of those
    that were strengthened by it. All JSON values."""

    id: str
    type: str
    title: str
    workspace_id: str
    parent_id: str | None
    amplitude: float
    similar: list[dict[str, Any]]
    reinforced: list[str]
    notes: list[str]


class Remembering:
    """Writes memories."""

    def __init__(self, engine: Engine, sessions: Sessions) -> None:
        self._engine = engine
        self._sessions = sessions

    def store(
        self,
        text: str,
        *,
        tags: Sequence[str] = (),
        importance: float = PLAIN_IMPORTANCE,
        metadata: Mapping[str, Any] | None = None,
        workspace: str | None = None,
        key: str | None = None,
    ) -> Remembered:
        """Write a note below the session of this conversation, or below the root.

        `metadata` goes into its data. Raises InvalidError for an empty text, or an importance
        outside of [0, 1].
        """
        place = self._engine.workspace(workspace)
        if not 0.0 <= importance <= 1.0:
            raise InvalidError(
                f"importance {importance} is out of range", "Valid: 0 to 1", "Correct it"
            )
        fields = Fields(text=text, tags=list(tags) or None, data=metadata)
        data = merged({}, fields.changes()) | {STORED_BY: STORE_MEMORY}
        require_content(data, NodeType.NOTE)
        flagged = screened(self._engine.settings, data)
        request = {"data": data, "importance": importance}
        with self._engine.sighting, self._engine.database.read() as snapshot:
            sighted = sight(snapshot, place, data)
        with self._engine.write(short=True) as transaction:

            def do() -> Remembered:
                similar = settle(transaction, place, data, sighted)
                return self._store(transaction, place, data, importance, flagged, similar)

            return once(transaction, place, key, request, Remembered, do)

    def _store(
        self,
        transaction: Transaction,
        place: WorkspaceId,
        data: dict[str, Any],
        importance: float,
        flagged: Sequence[str],
        similar: list[dict[str, Any]],
    ) -> Remembered:
        root, _ = ensure_root(transaction, place)
        above = self._sessions.current(transaction, place) or root
        node = insert_child(transaction, NodeType.NOTE, place, above, data)
        amplitude = amplitude_of(importance)
        if importance != PLAIN_IMPORTANCE:  # a plain memory needs no row
            transaction.waves.put(node.key, Wave(amplitude), transaction.at)
        return Remembered(
            node.id,
            node.type.value,
            node.title,
            place,
            above.id,
            amplitude,
            similar,
            [_reinforce(transaction, each).id for each in similar],
            list(flagged),
        )


def _reinforce(transaction: Transaction, similar: Mapping[str, Any]) -> Node:
    [node] = transaction.nodes.by_ids([similar["id"]])
    edit(transaction, node, REINFORCEMENT * float(similar["likeness"]))
    return node
