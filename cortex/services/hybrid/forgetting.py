"""Forgetting, said explicitly: a memory fades, is archived, or is deleted.

| mode | what happens | taken back by |
|---|---|---|
| decay | its strength halves, as one half-life would | boost, undo |
| archive | its status; searches still find it, the desktop does not show it | focus, undo |
| delete | it is gone, its children move up | undo, as far as the log reaches |
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

from cortex.domain.errors import ConflictError, InvalidError
from cortex.domain.taxonomy import NodeType, Status
from cortex.domain.values import shorten
from cortex.services.engine import Engine
from cortex.services.mutation import Mutation
from cortex.services.repeating import once
from cortex.services.resolving import describe, resolve_node
from cortex.services.waves import Waves

Mode = Literal["decay", "archive", "delete"]
MODES: Final = ("decay", "archive", "delete")
_BACK: Final = {
    "decay": "boost strengthens it again; memory_undo takes this back",
    "archive": "desktop_focus brings it back, and so does memory_undo",
    "delete": "memory_undo brings it back until cortex compact shortens the log",
}


@dataclass(frozen=True, slots=True)
class Forgotten:
    """What was forgotten and how to have it back; `strength` after it, None of what is gone.
    All JSON values."""

    id: str
    title: str
    mode: str
    status: str
    strength: float | None
    moved: list[str]
    back: str
    workspace_id: str
    notes: list[str]


class Forgetting:
    """Lets memories go."""

    def __init__(self, engine: Engine, mutation: Mutation, waves: Waves) -> None:
        self._engine = engine
        self._mutation = mutation
        self._waves = waves

    def forget(
        self, reference: str, mode: str, *, workspace: str | None = None, key: str | None = None
    ) -> Forgotten:
        """Forget a memory in one of the three modes. Raises InvalidError for another one, and
        ConflictError for a session root."""
        if mode not in MODES:
            raise InvalidError(
                f"mode {mode!r} is unknown", f"Valid: {', '.join(MODES)}", "Choose one of these"
            )
        place = self._engine.workspace(workspace)
        if mode == "archive":
            return self._archive(reference, workspace, key)
        with self._engine.database.read() as snapshot:
            node = None
            if key is None:  # a repeated deletion finds nothing, and is answered by its key
                node = resolve_node(snapshot, reference, place, strict=workspace is not None)
        title = shorten(node.title, 80) if node else ""
        if mode == "delete":
            gone = self._mutation.delete(reference, workspace=workspace, key=key)
            return Forgotten(
                gone.deleted[0], title, mode, "deleted", None, gone.moved, _BACK[mode],
                gone.workspace_id, [],
            )  # fmt: skip
        weak = self._waves.weaken(reference, workspace=workspace, key=key)
        status = node.status.value if node else Status.ACTIVE.value
        return Forgotten(
            weak.id, title, mode, status, weak.strength, [], _BACK[mode], weak.workspace_id,
            weak.notes,
        )  # fmt: skip

    def _archive(self, reference: str, workspace: str | None, key: str | None) -> Forgotten:
        place = self._engine.workspace(workspace)
        with self._engine.write() as transaction:

            def do() -> Forgotten:
                node = resolve_node(transaction, reference, place, strict=workspace is not None)
                if node.type is NodeType.SESSION and node.parent_id is None:
                    raise ConflictError(
                        f"{describe(node)} is the session root of {node.workspace_id!r}",
                        "Valid: a memory below it",
                        "Name one",
                    )
                notes = []
                if node.status is Status.STALE:
                    notes.append(f"{describe(node)} was stale")
                transaction.nodes.set_status([node.key], Status.ARCHIVED)
                return Forgotten(
                    node.id, shorten(node.title, 80), "archive", Status.ARCHIVED.value, None, [],
                    _BACK["archive"], node.workspace_id, notes,
                )  # fmt: skip

            request = {"id": reference, "archive": 1}
            return once(transaction, place, key, request, Forgotten, do)
