"""`cortex backup`, `restore` and `export`: the memory as one file, and back."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from cortex.cli.options import AsJson, Home, Workspace, opened
from cortex.config import load_settings
from cortex.domain.errors import NotFoundError, UnavailableError

if TYPE_CHECKING:
    from cortex.services.keeping.restoring import Restoring
    from cortex.store.backup import Contents

commands = typer.Typer()

_SAID: Final = {
    "node": "nodes",
    "relation": "relations",
    "wave": "waves",
    "access": "access counts",
    "visit": "visits",
    "change": "changes",
    "reversal": "undos",
    "meta": "notes of an upgrade",
}


@commands.command()
def backup(
    target: Annotated[
        Path, typer.Argument(metavar="FILE|FOLDER", help="In a folder: cortex-TIME.db.")
    ],
    keep: Annotated[
        int | None,
        typer.Option("--keep", min=1, help="Of a folder: keep the newest N, remove the others."),
    ] = None,
    home: Home = None,
    as_json: AsJson = False,
) -> None:
    """Copy the memory, every workspace, while it is in use, and verify the copy."""
    from rich.text import Text

    from cortex.cli.looking import dump, out, progress
    from cortex.services.keeping.backing_up import BackingUp

    with progress("copying pages") as bar:
        task = bar.add_task("", total=None)
        done = BackingUp(load_settings(home=home)).back_up(
            target.expanduser(),
            keep=keep,
            progress=lambda part, total: bar.update(task, completed=part, total=total),
        )
    if as_json:
        dump({**asdict(done), "verified": True})
        return
    out.print(Text(f"{done.file}: {done.bytes:,} bytes, verified"), soft_wrap=True)
    out.print(Text(_held(done.contents)), soft_wrap=True)
    for name in done.removed:
        out.print(Text(f"removed {name}"), soft_wrap=True)


@commands.command()
def restore(
    file: Annotated[Path, typer.Argument(help="A backup, or another home's cortex.db.")],
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only say what would be replaced.")
    ] = False,
    home: Home = None,
    as_json: AsJson = False,
) -> None:
    """Put a backup in place of the memory; other processes go on with it at their next call.

    Shows both, and asks. What was there is kept beside as before-restore-TIME.db.
    """
    from rich.text import Text

    from cortex.cli.looking import dump, out, progress
    from cortex.cli.people import agree
    from cortex.services.keeping.restoring import restoring

    settings = load_settings(home=home)
    with restoring(settings, file.expanduser()) as ready:
        if dry_run and as_json:
            present = None if ready.present is None else asdict(ready.present)
            dump({"file": str(file), "home": str(settings.home), "dry_run": True,
                  "present": present, "problem": ready.problem,
                  "restored": asdict(ready.incoming)})  # fmt: skip
            return
        if dry_run or not yes:
            _show(ready, settings.home, file)
        if dry_run:
            return
        if not yes:
            agree("Replace it?", "cortex import joins the two instead")
        with progress("writing pages") as bar:
            task = bar.add_task("", total=None)
            done = ready.run(
                lambda part, total: (
                    bar.update(task, completed=part, total=total) if part % 1024 == 0 else None
                )
            )
    if as_json:
        dump({**asdict(done), "dry_run": False})
        return
    out.print(Text(f"restored {done.file} into {done.home}"), soft_wrap=True)
    out.print(Text(_held(done.restored)), soft_wrap=True)
    for note in done.notes:
        out.print(Text(f"note: {note}"), soft_wrap=True)
    if done.safety is not None:
        out.print(Text(f"what was there: {done.safety}"), soft_wrap=True)


@commands.command()
def export(
    file: Annotated[
        str, typer.Argument(metavar="[FILE|-]", help="Default: -, the standard output.")
    ] = "-",
    log: Annotated[
        bool, typer.Option("--log", help="With the log of changes: as-of, diff, undo.")
    ] = False,
    home: Home = None,
    workspace: Workspace = None,
    as_json: AsJson = False,
) -> None:
    """Write the memory as JSON Lines, every workspace or the one named; import reads it.

    Vectors are not in it: they are made again from the texts.
    """
    from rich.text import Text

    from cortex.cli.looking import dump, err, out, progress

    settings = load_settings(home=home, workspace=workspace)
    if not settings.database.exists():
        raise NotFoundError(
            f"there is no memory at {settings.database}", "", "Name its home with --home"
        )
    with opened(settings) as memory:
        if file == "-":
            try:
                done = memory.exporting.export(sys.stdout.buffer, workspace=workspace, log=log)
                sys.stdout.buffer.flush()
            except BrokenPipeError:
                raise  # typer's: whoever read has seen enough
            except OSError as error:
                raise UnavailableError(
                    f"the output cannot be written ({error.strerror})", "", "Check its disk"
                ) from error
        else:
            with progress("exporting") as bar:
                task = bar.add_task("", total=None)
                done = memory.exporting.export_file(
                    Path(file).expanduser(),
                    workspace=workspace,
                    log=log,
                    progress=lambda part, total: bar.update(task, completed=part, total=total),
                )
    if as_json and file != "-":
        dump({"file": file, **asdict(done)})
        return
    counts = said_counts(done.counts)
    places = ", ".join(done.workspaces) or "none"
    text = Text(f"exported {counts}; workspaces: {places}")
    (err if file == "-" else out).print(text, soft_wrap=True)


def _show(ready: Restoring, home: Path, file: Path) -> None:
    from rich.text import Text

    from cortex.cli.looking import err, table

    rows = [("now", *_row(ready.present)), ("the backup", *_row(ready.incoming))]
    err.print(Text(f"{home} would become what {file} holds"), soft_wrap=True)
    err.print(
        table("", ("", "nodes", "relations", "visits", "changes", "vectors", "last change"), rows)
    )
    if ready.problem is not None:
        err.print(f"the present memory: {ready.problem}")


def said_counts(counts: Mapping[str, int]) -> str:
    """Rows by kind, as a person says them; "nothing" where there are none."""
    said = (f"{_SAID.get(kind, kind)} {count:,}" for kind, count in counts.items() if count)
    return ", ".join(said) or "nothing"


def _row(held: Contents | None) -> tuple[str, ...]:
    if held is None:
        return ("damaged", "", "", "", "", "")
    counts = (held.nodes, held.relations, held.visits, held.changes, held.vectors)
    newest = "–" if held.newest is None else f"{held.newest[:19]}Z"
    return (*(f"{count:,}" for count in counts), newest)


def _held(held: Contents) -> str:
    newest = "never changed" if held.newest is None else f"last changed {held.newest[:19]}Z"
    return (
        f"{held.nodes:,} nodes, {held.relations:,} relations, {held.visits:,} visits, "
        f"{held.changes:,} changes, {held.vectors:,} vectors; {newest}"
    )
