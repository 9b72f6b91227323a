"""`cortex import`: an export, the reference memory server's file, or another database."""

from __future__ import annotations

import json
from contextlib import ExitStack
from dataclasses import asdict, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cortex.cli.options import AsJson, Home, Workspace, opened
from cortex.config import Settings, load_settings

if TYPE_CHECKING:
    from cortex.memory import Memory

commands = typer.Typer()


@commands.command("import")
def import_(
    file: Annotated[
        Path,
        typer.Argument(help="What cortex export wrote, memory.jsonl, or a database."),
    ],
    home: Home = None,
    workspace: Workspace = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what it would do, and change nothing.")
    ] = False,
    no_log: Annotated[
        bool, typer.Option("--no-log", help="Leave out the log of an export that has one.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Take in an export, the file of the reference memory server, or another database.

    Done again, it adds what is new and changes nothing else. Of an export or a database
    every workspace comes in, or with --workspace the one named.
    """
    from cortex.services.keeping.export_file import is_export
    from cortex.store.copying import is_database

    settings = load_settings(home=home, workspace=workspace)
    with ExitStack() as stack:
        if dry_run and not settings.database.exists():
            # A rehearsal makes no memory where there is none.
            folder = stack.enter_context(TemporaryDirectory(prefix="cortex-"))
            settings = replace(settings, home=Path(folder) / "home")
        if is_database(file):
            _import_database(settings, file, workspace, dry_run=dry_run, as_json=as_json)
        elif is_export(file):
            with opened(settings) as memory:
                _import_export(
                    memory, file, workspace, log=not no_log, dry_run=dry_run, as_json=as_json
                )
        else:
            with opened(settings) as memory:
                _import_memory(memory, file, dry_run=dry_run, as_json=as_json)


def _import_memory(memory: Memory, file: Path, *, dry_run: bool, as_json: bool) -> None:
    from rich.text import Text

    from cortex.cli.looking import dump, err, out, progress, wait_for_vectors

    with progress("importing") as bar:
        task = bar.add_task("importing", total=None)
        report = memory.importing.import_memory(
            file,
            dry_run=dry_run,
            progress=lambda done, total: bar.update(task, completed=done, total=total),
        )
    left = 0 if dry_run else wait_for_vectors(memory)
    if as_json:
        dump({**asdict(report), "pending": left})
        return
    out.print(
        Text(
            f"{_did(dry_run)} {report.entities} entities, {report.observations} observations, "
            f"{report.relations} relations ({report.labelled} with a verb of their own); "
            f"{report.updated} updated, {report.unchanged} unchanged"
        )
    )
    for name, count in (
        ("observations gone from the file, kept in memory", report.kept),
        ("relations that name no entity, left out", report.dangling),
        ("lines or parts that say nothing to keep, left out", report.skipped),
    ):
        if count:
            out.print(Text(f"{count} {name}"))
    for line in report.notes[:20]:
        err.print(Text(line), style="yellow")
    if not report.entities + report.unchanged + report.updated:
        out.print(Text(f"{file} holds no entities"))
    _say_pending(left)


def _import_database(
    settings: Settings, file: Path, workspace: str | None, *, dry_run: bool, as_json: bool
) -> None:
    from rich.text import Text

    from cortex.cli.looking import dump, out, wait_for_vectors
    from cortex.store.copying import copy_database

    copied = not settings.database.exists() and workspace is None
    if copied:
        copy_database(file, settings.database)
    with opened(settings) as memory:
        done: dict[str, Any]
        if copied:
            memory.importing.forget_origin()
            status = memory.status()
            places = status["workspaces"]
            done = {
                "file": str(file),
                "workspaces": list(places),
                "nodes": sum(place["nodes"] for place in places.values()),
                "relations": sum(place["relations"] for place in places.values()),
                "upgrade": status["upgrade"],
            }
        else:
            report = memory.importing.merge_database(file, workspace=workspace, dry_run=dry_run)
            done = asdict(report)
        left = 0 if dry_run else wait_for_vectors(memory)
    if as_json:
        dump({**done, "copied": copied, "pending": left})
        return
    names = ", ".join(done["workspaces"]) or "none"
    verb = _did(dry_run)
    out.print(
        Text(f"{verb} {done['nodes']} nodes, {done['relations']} relations; workspaces: {names}")
    )
    if done.get("upgrade"):
        out.print(Text(f"upgraded: repairs {json.dumps(done['upgrade']['repairs'])}"))
    if done.get("present") or done.get("refused"):
        out.print(
            Text(f"{done['present']} here already, {done['refused']} against this memory's rules")
        )
    _say_pending(left)


def _import_export(
    memory: Memory, file: Path, workspace: str | None, *, log: bool, dry_run: bool, as_json: bool
) -> None:
    from rich.text import Text

    from cortex.cli.backup import said_counts
    from cortex.cli.looking import dump, out, progress, wait_for_vectors

    with progress("importing") as bar:
        task = bar.add_task("importing", total=None)
        report = memory.exporting.import_file(
            file,
            workspace=workspace,
            log=log,
            dry_run=dry_run,
            progress=lambda done, total: bar.update(task, completed=done, total=total),
        )
    left = 0 if dry_run else wait_for_vectors(memory)
    if as_json:
        dump({**asdict(report), "pending": left})
        return
    counts = said_counts(report.counts)
    places = ", ".join(report.workspaces) or "none"
    out.print(Text(f"{_did(dry_run)} {counts}; workspaces: {places}"), soft_wrap=True)
    if report.merged:
        out.print(
            Text(
                f"merged with what is here: {report.present} here already, "
                f"{report.refused} against this memory's rules"
            )
        )
    _say_pending(left)


def _did(dry_run: bool) -> str:
    return "would import" if dry_run else "imported"


def _say_pending(left: int) -> None:
    from cortex.cli.looking import err

    if left:
        err.print(f"{left} texts still wait for their vectors; cortex status says why")
