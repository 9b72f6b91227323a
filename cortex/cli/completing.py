"""What the shell offers while a command is typed: node ids and workspace names.

Reads the file without touching it, and offers nothing where it cannot be read: a shell that
waits for Tab has no place for an error.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import typer

if TYPE_CHECKING:
    from cortex.domain.values import WorkspaceId
    from cortex.store.database import Snapshot

_OFFERED: Final = 30


def complete_node(ctx: typer.Context, incomplete: str) -> list[tuple[str, str]]:
    """Ids that begin so, newest first where nothing is typed, with their titles."""

    def look(snapshot: Snapshot, place: WorkspaceId) -> list[tuple[str, str]]:
        from cortex.domain.values import shorten

        typed = incomplete.strip().lower()
        found = (
            snapshot.nodes.by_prefix(place, typed, _OFFERED)
            if typed
            else snapshot.nodes.newest(place, _OFFERED)
        )
        return [(node.id, f"{node.type} {shorten(node.title, 60)}") for node in found]

    return _looked_up(ctx.params, look)


def complete_workspace(ctx: typer.Context, incomplete: str) -> list[tuple[str, str]]:
    """Workspaces whose name begins so, with their size."""

    def look(snapshot: Snapshot, _: WorkspaceId) -> list[tuple[str, str]]:
        names = [name for name in snapshot.nodes.workspaces() if name.startswith(incomplete)]
        return [(name, f"{snapshot.nodes.count(name)} nodes") for name in names[:_OFFERED]]

    return _looked_up(ctx.params, look)


def _looked_up(
    given: dict[str, Any], look: Callable[[Snapshot, WorkspaceId], list[tuple[str, str]]]
) -> list[tuple[str, str]]:
    from cortex.config import load_settings
    from cortex.domain.errors import CortexError
    from cortex.store.database import Database

    home = given.get("home")
    try:
        settings = load_settings(
            home=Path(home) if home else None, workspace=given.get("workspace"), read_only=True
        )
        database = Database(settings.database, read_only=True)
        try:
            with database.read() as snapshot:
                return look(snapshot, settings.workspace)
        finally:
            database.close()
    except CortexError:
        return []  # no memory yet, or none that can be read: the command itself will say it
