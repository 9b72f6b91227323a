"""`cortex workspace`: list, rename, merge, delete."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from cortex.cli.options import AsJson, Home, Name, opened
from cortex.cli.people import Yes, agree, counted
from cortex.config import load_settings

if TYPE_CHECKING:
    from cortex.services.workspaces import Moved

commands = typer.Typer(name="workspace", help="List, rename, merge and delete workspaces.")


@commands.command("list")
def list_(home: Home = None, as_json: AsJson = False) -> None:
    """Show every workspace, with its size and when it was last written."""
    from cortex.cli.looking import dump, out, table

    settings = load_settings(home=home)
    with opened(settings) as memory:
        found = memory.workspaces.list()
    if as_json:
        dump([{**asdict(each), "here": each.name == settings.workspace} for each in found])
        return
    if not found:
        out.print("No workspaces yet. `cortex ingest PATH` begins one; so does an agent's write.")
        return
    rows = [
        ("›" if each.name == settings.workspace else "", each.name, each.nodes, each.relations,
         each.stale, each.archived, (each.newest or "")[:16])
        for each in found
    ]  # fmt: skip
    columns = ("", "workspace", "nodes", "relations", "stale", "archived", "last written")
    out.print(table("", columns, rows))


@commands.command()
def rename(
    old: Name,
    new: Annotated[str, typer.Argument(help="A name that is not in use.")],
    home: Home = None,
    as_json: AsJson = False,
) -> None:
    """Give a workspace another name."""
    with opened(load_settings(home=home)) as memory:
        done = memory.workspaces.rename(old, new)
    _print_moved(done, "is now", as_json=as_json)


@commands.command()
def merge(source: Name, into: Name, home: Home = None, as_json: AsJson = False) -> None:
    """Move everything of one workspace into another."""
    with opened(load_settings(home=home)) as memory:
        done = memory.workspaces.merge(source, into)
    _print_moved(done, "is merged into", as_json=as_json)


def _print_moved(done: Moved, verb: str, *, as_json: bool) -> None:
    from rich.text import Text

    from cortex.cli.looking import dump, out

    if as_json:
        dump(asdict(done))
        return
    out.print(Text(f"{done.source} {verb} {done.workspace}: {counted(done.nodes, 'node')} moved"))
    out.print(Text(f"A host that still names {done.source!r} would begin it anew."))


@commands.command()
def delete(name: Name, yes: Yes = False, home: Home = None, as_json: AsJson = False) -> None:
    """Remove a workspace with all it holds; first shows what would go, and asks."""
    from rich.text import Text

    from cortex.cli.looking import dump, err, out

    with opened(load_settings(home=home)) as memory:
        if not yes:
            plan = memory.workspaces.delete(name, dry_run=True)
            kinds = ", ".join(f"{count} {kind}" for kind, count in plan.types.items())
            err.print(Text(f"{plan.workspace}: {counted(plan.nodes, 'node')} would go ({kinds}),"))
            err.print(
                Text(f"with {counted(plan.relations, 'relation')} and the history of visits.")
            )
            agree("Delete for good?", "cortex workspace rename keeps it under another name")
        done = memory.workspaces.delete(name)
    if as_json:
        dump(asdict(done))
    else:
        gone = f"{counted(done.nodes, 'node')}, {counted(done.relations, 'relation')}"
        out.print(Text(f"{done.workspace} deleted: {gone}"))
