"""`cortex models`: which embedding models there are, and fetching one."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from cortex.cli.options import AsJson, Home, opened
from cortex.config import Settings, load_settings
from cortex.domain.errors import CortexError

if TYPE_CHECKING:
    from cortex.vectors.models import Fingerprint
    from cortex.vectors.pulling import KnownModel, Pulled

commands = typer.Typer(name="models", help="List embedding models, and fetch one.")


@dataclass(frozen=True, slots=True)
class _InForce:
    """The model that this process would use: its source, why, and what stands against it."""

    source: str
    why: str
    used: Fingerprint | None
    problem: str | None = None


@commands.command("list")
def list_(home: Home = None, as_json: AsJson = False) -> None:
    """Show the models that may be named, what each needs, and which one is in force and why."""
    from cortex.cli.looking import dump
    from cortex.vectors.pulling import known_models

    settings = load_settings(home=home)
    found = known_models(settings.models)
    force, asked = _in_force(settings)
    if asked is not None:
        found.insert(3, asked)
    if as_json:
        dump(
            [
                {
                    **asdict(model),
                    "used": _is_used(model, force.used),
                    "in_force": force.why if _is_named(model, force.source) else None,
                }
                for model in found
            ]
        )
    else:
        _show(found, force)


def _show(found: Sequence[KnownModel], force: _InForce) -> None:
    from rich.table import Table
    from rich.text import Text

    from cortex.cli.looking import out

    shown = Table(box=None, pad_edge=False)
    for column in ("", "model", "size", "disk", "languages", "here, or needs"):
        shown.add_column(column, no_wrap=column == "model")  # a name is there to be copied
    for model in found:
        shown.add_row(
            "›" if _is_used(model, force.used) else "",
            Text(model.name),
            str(model.dimension or "?"),
            "?" if model.megabytes is None else f"{model.megabytes} MB",
            model.languages or "?",
            Text("yes" if model.here else (model.problem or _short(model) or "")),
        )
    out.print(shown)
    used = str(force.used) if force.used else "none yet: the first text decides"
    out.print(Text(f"\nin force: {force.source}, as {force.why}"), soft_wrap=True)
    out.print(Text(f"vectors of: {used}"), soft_wrap=True)
    if force.problem:
        out.print(Text(force.problem), soft_wrap=True)
    out.print("`cortex models pull NAME` fetches one and embeds the memory with it.")
    out.print("An endpoint's: set CORTEX_EMBED_URL and CORTEX_EMBED_MODEL, or name URL#MODEL.")


def _short(model: KnownModel) -> str | None:
    """What it needs; a pull, which the line below the table explains, in one word."""
    return "pull" if model.source == "fastembed" else model.needs


def _in_force(settings: Settings) -> tuple[_InForce, KnownModel | None]:
    """What would be used; and the endpoint, asked now, where that is one."""
    from cortex.services.meaning.semantic import refuse_other_model
    from cortex.vectors.embedder import Embedder
    from cortex.vectors.models import Fingerprint, resolve_model
    from cortex.vectors.pulling import KnownModel

    stored, named = _stored(settings)
    if settings.model:
        chosen = settings.model == settings.endpoints.chosen
        why = "CORTEX_EMBED_URL and CORTEX_EMBED_MODEL say" if chosen else "CORTEX_MODEL says"
    else:
        why = "the file's vectors are of it" if named else "nothing names another"
    source = settings.model or named or "offline"
    embedder = Embedder(
        resolve_model(source),
        cache_dir=settings.models,
        idle_seconds=settings.model_idle,
        endpoints=settings.endpoints,
        named=settings.model is not None,
    )
    problem, asked = None, None
    try:
        refuse_other_model(source, stored, embedder)
    except CortexError as error:
        problem = error.message
    if embedder.spec.endpoint is not None:
        dimension, down = None, None
        try:
            dimension = embedder.fingerprint.dimension
        except CortexError as error:
            down = error.message
        asked = KnownModel(source, "endpoint", dimension, None, None, down is None, down)
    embedder.close()
    return _InForce(source, why, Fingerprint.parse(stored) if stored else None, problem), asked


def _stored(settings: Settings) -> tuple[str | None, str | None]:
    """Fingerprint and source of the file's vectors; None without a file, or without vectors."""
    from cortex.store.database import Database
    from cortex.store.meta import FINGERPRINT, MODEL

    if not settings.database.exists():
        return None, None
    database = Database(settings.database, read_only=True)
    try:
        with database.read() as snapshot:
            return snapshot.meta.find(FINGERPRINT), snapshot.meta.find(MODEL)
    finally:
        database.close()


def _used(settings: Settings) -> Fingerprint | None:
    from cortex.vectors.models import Fingerprint

    stored, _ = _stored(settings)
    return Fingerprint.parse(stored) if stored else None


def _is_named(model: KnownModel, source: str) -> bool:
    """Whether a source means this model, as `resolve_model` reads it."""
    from cortex.vectors.models import resolve_model

    return resolve_model(model.name) == resolve_model(source)


def _is_used(model: KnownModel, used: Fingerprint | None) -> bool:
    from cortex.vectors.models import resolve_model

    return used is not None and used.name == resolve_model(model.name).name


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
