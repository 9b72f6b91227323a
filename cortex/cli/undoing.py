"""`cortex undo` and `cortex compact`: the log, walked back and cut short."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from cortex.cli.options import AsJson, Home, Workspace, opened
from cortex.config import load_settings

if TYPE_CHECKING:
    from cortex.services.keeping.compacting import Compacted

commands = typer.Typer()

DryRun = Annotated[bool, typer.Option("--dry-run", help="Only say what would change.")]


@commands.command()
def undo(
    count: Annotated[int, typer.Argument(metavar="[N]", help="How many.", min=1, max=1000)] = 1,
    tx: Annotated[
        int | None, typer.Option("--tx", min=1, help="This transaction alone, in place of N.")
    ] = None,
    redo: Annotated[bool, typer.Option("--redo", help="Take back the last N undos.")] = False,
    actor: Annotated[
        str, typer.Option("--actor", help="Only changes of this client, or of client#connection.")
    ] = "",
    dry_run: DryRun = False,
    home: Home = None,
    workspace: Workspace = None,
    as_json: AsJson = False,
) -> None:
    """Take back the last N changes of a workspace, whoever made them, all or none."""
    from rich.text import Text

    from cortex.cli.looking import dump, out
    from cortex.tools.undoing import undone_answer

    with opened(load_settings(home=home, workspace=workspace)) as memory:
        done = memory.undoing.undo(
            count, tx=tx, redo=redo, actor=actor, dry_run=dry_run, workspace=workspace
        )
        answer = undone_answer(memory, done)
    if as_json:
        dump(answer.structured)
    else:
        out.print(Text(answer.text), soft_wrap=True)


@commands.command()
def compact(
    keep: Annotated[
        str, typer.Option("--keep", help="How much to keep: 12h, 90d, 8w, 0, or since a time.")
    ] = "90d",
    dry_run: DryRun = False,
    no_vacuum: Annotated[
        bool, typer.Option("--no-vacuum", help="Leave the freed space in the file.")
    ] = False,
    home: Home = None,
    as_json: AsJson = False,
) -> None:
    """Shorten the log of changes, for all workspaces; memories stay as they are."""
    from cortex.cli.looking import dump, progress

    with opened(load_settings(home=home)) as memory, progress("folding") as bar:
        task = bar.add_task("", total=None)
        done = memory.compacting.compact(
            keep,
            dry_run=dry_run,
            shrink=not no_vacuum,
            progress=lambda part, total: bar.update(task, completed=part, total=total),
        )
    if as_json:
        dump(asdict(done))
    else:
        _print(done)


def _print(done: Compacted) -> None:
    from rich.text import Text

    from cortex.cli.looking import out

    verb = "would fold" if done.dry_run else "folded"
    out.print(Text(f"{verb} {done.folded:,} changes; {done.left:,} stay"))
    out.print(Text(f"{done.reach}: as-of, diff, undo and history reach back to there"))
    if not done.dry_run:
        out.print(Text(f"{done.bytes_before:,} bytes before, {done.bytes_after:,} after"))
    for note in done.notes:
        out.print(Text(f"note: {note}"))
