"""`cortex models`: which embedding models there are, and fetching one."""

from __future__ import annotations

import sys
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from cortex.cli.options import AsJson, Home, opened
from cortex.config import Settings, load_settings

if TYPE_CHECKING:
    from cortex.vectors.models import Fingerprint
    from cortex.vectors.pulling import KnownModel, Pulled

commands = typer.Typer(name="models", help="List embedding models, and fetch one.")


@commands.command("list")
def list_(home: Home = None, as_json: AsJson = False) -> None:
    """Show the models that may be named, which are on this disk, and which one is in use."""
    from rich.table import Table
    from rich.text import Text

    from cortex.cli.looking import dump, out
    from cortex.vectors.pulling import known_models

    settings = load_settings(home=home)
    found = known_models(settings.models)
    used = _used(settings)
    if as_json:
        dump([{**asdict(model), "used": _is_used(model, used)} for model in found])
        return
    shown = Table(box=None, pad_edge=False)
    for column in ("", "model", "size", "disk", "languages", "here"):
        shown.add_column(column, no_wrap=column == "model")  # a name is there to be copied
    for model in found:
        shown.add_row(
            "›" if _is_used(model, used) else "",
            Text(model.name),
            str(model.dimension or "?"),
            "?" if model.megabytes is None else f"{model.megabytes} MB",
            model.languages or "?",
            Text("yes" if model.here else (model.problem or "")),
        )
    out.print(shown)
    name = str(used) if used else "none yet: the first text is embedded by the offline model"
    out.print(Text(f"\nin use: {name}"))
    out.print("`cortex models pull NAME` fetches one and embeds the memory with it.")


def _used(settings: Settings) -> Fingerprint | None:
    """The model of the file's vectors; None without a file, or without vectors."""
    from cortex.store.database import Database
    from cortex.store.meta import FINGERPRINT
    from cortex.vectors.models import Fingerprint

    if not settings.database.exists():
        return None
    database = Database(settings.database, read_only=True)
    try:
        with database.read() as snapshot:
            stored = snapshot.meta.find(FINGERPRINT)
    finally:
        database.close()
    return Fingerprint.parse(stored) if stored else None


def _is_used(model: KnownModel, used: Fingerprint | None) -> bool:
    from cortex.vectors.models import OFFLINE_MODEL

    if used is None:
        return False
    return used.name == (OFFLINE_MODEL if model.name == "offline" else model.name)


@commands.command()
def pull(
    name: Annotated[str, typer.Argument(help="A name that `cortex models list` shows.")],
    migrate: Annotated[
        bool | None,
        typer.Option(
            "--migrate/--no-migrate",
            help="Embed the memory with it now. Default: asks, or does it without a terminal.",
        ),
    ] = None,
    home: Home = None,
    as_json: AsJson = False,
) -> None:
    """Fetch a model, files that arrived before kept, and embed the memory with it."""
    from cortex.cli.looking import dump, print_reindex

    settings = load_settings(home=home)
    done = _fetched(name, settings)
    if not as_json:
        _say(f"{done.name} is {'here' if done.fetched else 'here already'}: {done.folder}")
    used = _used(settings)
    if used is not None and (used.name, used.revision) == (done.name, done.revision[:12]):
        migrate = False
    elif migrate is None:
        asking = sys.stdin.isatty() and not as_json
        question = "Embed the memory with it now?"
        migrate = typer.confirm(question, default=True, err=True) if asking else True
    if not migrate:
        if as_json:
            dump({"name": done.name, "folder": str(done.folder), "fetched": done.fetched})
        elif used is None or used.name != done.name:
            _say(f"`cortex reindex --model {done.name}` embeds the memory with it.")
        return
    with opened(load_settings(home=home, model=done.name)) as memory:
        print_reindex(memory, done.name, as_json=as_json)


def _say(line: str) -> None:
    from rich.text import Text

    from cortex.cli.looking import out

    out.print(Text(line), soft_wrap=True)


def _fetched(name: str, settings: Settings) -> Pulled:
    """Pull behind a bar of bytes on stderr."""
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

    from cortex.cli.looking import err
    from cortex.vectors.pulling import pull as fetch

    columns = (TextColumn("fetching"), BarColumn(), DownloadColumn(), TimeRemainingColumn())
    with Progress(*columns, console=err, transient=True, disable=not err.is_terminal) as bar:
        task = bar.add_task("fetching", total=None)
        return fetch(
            name,
            settings.models,
            lambda done, total: bar.update(task, completed=done, total=total),
        )
