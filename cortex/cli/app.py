"""The commands, their options, and how errors become exit codes."""

from __future__ import annotations

import logging
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, NoReturn

import typer
from typer.core import TyperGroup

from cortex import __version__
from cortex.cli.activity import commands as activity_commands
from cortex.cli.analysis import commands as analysis_commands
from cortex.cli.backup import commands as backup_commands
from cortex.cli.bench import commands as bench_commands
from cortex.cli.doctor import commands as doctor_commands
from cortex.cli.dreaming import commands as dream_commands
from cortex.cli.fabric import commands as fabric_commands
from cortex.cli.hosts import commands as host_commands
from cortex.cli.importing import commands as import_commands
from cortex.cli.measures import commands as measure_commands
from cortex.cli.models import commands as model_commands
from cortex.cli.options import AsJson, Home, Model, Workspace, exit_code, opened
from cortex.cli.past import commands as past_commands
from cortex.cli.people import commands as people_commands
from cortex.cli.rules import commands as rule_commands
from cortex.cli.undoing import commands as undo_commands
from cortex.cli.waves import commands as wave_commands
from cortex.cli.workspaces import commands as workspace_commands
from cortex.config import load_settings
from cortex.domain.errors import CortexError

app = typer.Typer(
    name="cortex",
    help="Long-term memory for AI agents: a typed graph, searched by meaning, context and time.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


@app.callback(invoke_without_command=True)
def _root(
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
) -> None:
    if version:
        typer.echo(f"cortex {__version__}")
        raise typer.Exit


@app.command()
def serve(
    home: Home = None,
    workspace: Workspace = None,
    tools: Annotated[
        str,
        typer.Option(
            "--tools",
            envvar="CORTEX_TOOLS",
            help="Tool sets or names, comma-separated: roo (17), fabric (2), analytics (6), "
            "care (1), hybrid (16), core (9), all.",
        ),
    ] = "roo,fabric,analytics,care",
    read_only: Annotated[
        bool, typer.Option("--read-only", envvar="CORTEX_READ_ONLY", help="No writing tools.")
    ] = False,
    no_secrets: Annotated[
        bool, typer.Option("--no-secrets", help="Refuse texts that look like they hold a key.")
    ] = False,
    search_scope: Annotated[
        str | None,
        typer.Option("--search-scope", help="Where searches look by default: all, workspace."),
    ] = None,
    model: Model = None,
) -> None:
    """Serve MCP on stdin and stdout, for an agent's host to start."""
    from cortex.cli.serving import serve_memory

    settings = load_settings(
        home=home,
        workspace=workspace,
        search_scope=search_scope,
        model=model,
        read_only=read_only,
        no_secrets=no_secrets,
    )
    serve_memory(settings, tools)


@app.command()
def demo(
    path: Annotated[
        Path | None,
        typer.Option("--path", help="Folder to ingest. Default: a part of Python's own."),
    ] = None,
    home: Home = None,
    workspace: Workspace = "demo",
) -> None:
    """Ingest real text, drive the real server over stdio, and show what memory does."""
    from cortex.cli.demo import run_demo

    run_demo(load_settings(home=home, workspace=workspace), path)


@app.command()
def ingest(
    path: Annotated[Path, typer.Argument(help="File or folder: Markdown, text, Python.")],
    home: Home = None,
    workspace: Workspace = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say per file what would change; write nothing.")
    ] = False,
    watch: Annotated[
        bool, typer.Option("--watch", help="Then follow changes, a line a round, until Ctrl-C.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Read a folder's documents and docstrings into memory; again, it updates what changed."""
    from cortex.cli.ingesting import run_ingest

    with opened(load_settings(home=home, workspace=workspace)) as memory:
        run_ingest(memory, path, dry_run=dry_run, watch=watch, as_json=as_json)


@app.command()
def search(
    query: Annotated[list[str], typer.Argument(help="What you want to know.")],
    home: Home = None,
    workspace: Workspace = None,
    top_k: Annotated[int, typer.Option("--top-k", "-k", min=1, max=100)] = 10,
    explain: Annotated[bool, typer.Option("--explain", help="Show scores and ranks.")] = False,
    as_json: AsJson = False,
) -> None:
    """Search by meaning and keywords, with context and the files to read."""
    from cortex.cli.looking import print_search

    with opened(load_settings(home=home, workspace=workspace)) as memory:
        print_search(
            memory, " ".join(query), workspace, top_k=top_k, explain=explain, as_json=as_json
        )


@app.command("open")
def open_(home: Home = None, workspace: Workspace = None, as_json: AsJson = False) -> None:
    """Show the desktop: what is hot, what is cold, what is archived."""
    from cortex.cli.looking import print_desktop

    with opened(load_settings(home=home, workspace=workspace)) as memory:
        print_desktop(memory, as_json=as_json)


@app.command()
def reindex(home: Home = None, model: Model = None, as_json: AsJson = False) -> None:
    """Restore the keyword index and the vectors; with --model, migrate the vectors to it."""
    from cortex.cli.looking import print_reindex

    with opened(load_settings(home=home, model=model)) as memory:
        print_reindex(memory, model, as_json=as_json)


@app.command()
def status(home: Home = None, workspace: Workspace = None, as_json: AsJson = False) -> None:
    """Show the file, the workspaces, and the state of the index."""
    from cortex.cli.looking import print_status

    with opened(load_settings(home=home, workspace=workspace)) as memory:
        print_status(memory, as_json=as_json)


app.add_typer(host_commands)
app.add_typer(import_commands)
app.add_typer(rule_commands)
app.add_typer(people_commands)
app.add_typer(past_commands)
app.add_typer(activity_commands)
app.add_typer(undo_commands)
app.add_typer(backup_commands)
app.add_typer(bench_commands)
app.add_typer(doctor_commands)
app.add_typer(workspace_commands)
app.add_typer(analysis_commands)
app.add_typer(measure_commands)
app.add_typer(fabric_commands)
app.add_typer(wave_commands)
app.add_typer(dream_commands)
app.add_typer(model_commands)


def command_names() -> list[str]:
    """The names that begin a command line."""
    group = typer.main.get_command(app)
    assert isinstance(group, TyperGroup)  # there is more than one command
    return list(group.commands)


def run(arguments: Sequence[str]) -> NoReturn:
    """Run one command and exit: 0, or the error's code with its one line on stderr."""
    logging.basicConfig(stream=sys.stderr, level=logging.WARNING)
    try:
        app(list(arguments), prog_name="cortex", standalone_mode=True)
    except CortexError as error:
        typer.echo(f"cortex: {error}", err=True)
        sys.exit(exit_code(error))
    except KeyboardInterrupt:
        sys.exit(130)
    sys.exit(0)
