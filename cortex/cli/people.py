"""Commands on one memory: show, edit, pin, archive, restore, delete, relate."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cortex.cli.options import AsJson, Home, NodeRef, Workspace, opened
from cortex.config import load_settings
from cortex.domain.errors import ConflictError, InvalidError

if TYPE_CHECKING:
    from cortex.domain.values import Node
    from cortex.memory import Memory
    from cortex.services.fields import Fields
    from cortex.services.mutation import Deleted

commands = typer.Typer()

Cascade = Annotated[bool, typer.Option("--cascade", help="With everything below it.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]


@commands.command()
def show(
    node: NodeRef, home: Home = None, workspace: Workspace = None, as_json: AsJson = False
) -> None:
    """Show a memory whole: text, data, relations, what it replaced, files, warnings."""
    from cortex.cli.node_screen import print_shown

    with opened(load_settings(home=home, workspace=workspace)) as memory:
        print_shown(memory, memory.inspecting.show(node, workspace), as_json=as_json)


@commands.command()
def edit(
    node: NodeRef,
    title: Annotated[str | None, typer.Option("--title", help="A new title.")] = None,
    text: Annotated[str | None, typer.Option("--text", help="A new text.")] = None,
    tags: Annotated[str | None, typer.Option("--tags", help="New tags: a,b. None: ''.")] = None,
    data: Annotated[
        str | None, typer.Option("--data", help="JSON to merge; null removes a key.")
    ] = None,
    home: Home = None,
    workspace: Workspace = None,
    as_json: AsJson = False,
) -> None:
    """Correct a memory; without options, its text in $VISUAL or $EDITOR."""
    from cortex.cli.looking import dump, out
    from cortex.services.fields import Fields

    # An empty title or text is taken away, as null is in --data.
    away = {name: None for name, given in (("title", title), ("text", text)) if given == ""}
    merging = {**({} if data is None else _object(data)), **away}
    fields = Fields(
        title or None,
        text or None,
        None if tags is None else [tag.strip() for tag in tags.split(",") if tag.strip()],
        data=merging or None,
    )
    with opened(load_settings(home=home, workspace=workspace)) as memory:
        found = memory.inspecting.locate(node, workspace)
        if fields == Fields() and data is None:
            written = _written(memory, found)
            if written is None:
                out.print("nothing changed")
                return
            fields = written
        done = memory.mutation.update(found.id, fields)
        if as_json:
            dump(asdict(done))
        elif done.changed:
            _say(found, f"changed {', '.join(done.changed)}", *done.notes)
        else:
            out.print("nothing changed")


def _object(text: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except ValueError as error:
        raise InvalidError(
            f"--data is not JSON ({error})", """Valid: '{"key": "value"}'""", "Correct it"
        ) from None
    if not isinstance(value, dict):
        raise InvalidError("--data is not a JSON object", """Valid: '{"key": "value"}'""")
    return value


def _written(memory: Memory, node: Node) -> Fields | None:
    """What the editor made of the text; None where it is the same, or was left empty."""
    import click

    from cortex.services.fields import Fields

    try:
        text = click.edit(node.text, extension=".md", require_save=True)
    except click.ClickException as error:
        raise InvalidError(
            error.message, "Valid: an editor in VISUAL or EDITOR, or --text", "Set one of these"
        ) from error
    if text is not None and not node.text.endswith("\n"):
        text = text.removesuffix("\n")  # editors end the last line
    if text is None or text == node.text or not text.strip():
        return None
    if memory.inspecting.locate(node.id).text != node.text:
        raise ConflictError(
            "someone else changed this text meanwhile",
            f"Yours, not saved: {text}",
            "Look at it with cortex show, then edit again",
        )
    return Fields(text=text)


@commands.command()
def pin(
    node: NodeRef,
    off: Annotated[bool, typer.Option("--off", help="Let it go again.")] = False,
    home: Home = None,
    workspace: Workspace = None,
    as_json: AsJson = False,
) -> None:
    """Keep a memory on the desktop, out of the archive's reach."""
    from cortex.cli.looking import dump
    from cortex.services.fields import Fields

    with opened(load_settings(home=home, workspace=workspace)) as memory:
        found = memory.inspecting.locate(node, workspace)
        # Off removes the mark: a node that never was pinned is not changed.
        fields = Fields(data={"pinned": None}) if off else Fields(pinned=True)
        done = memory.mutation.update(found.id, fields)
        if as_json:
            dump(asdict(done))
        else:
            state = "no longer pinned" if off else "pinned"
            _say(found, state if done.changed else f"{state} already", *done.notes)


@commands.command()
def archive(
    node: NodeRef,
    cascade: Cascade = False,
    home: Home = None,
    workspace: Workspace = None,
    as_json: AsJson = False,
) -> None:
    """Put a memory away: off the desktop, still found by search."""
    _set_status("archived", node, cascade, load_settings(home=home, workspace=workspace), workspace,
                as_json)  # fmt: skip


@commands.command("restore-node")
def restore_node(
    node: NodeRef, home: Home = None, workspace: Workspace = None, as_json: AsJson = False
) -> None:
    """Bring a memory back: out of the archive, or from stale to active."""
    _set_status("active", node, False, load_settings(home=home, workspace=workspace), workspace,
                as_json)  # fmt: skip


def _set_status(
    status: str,
    reference: str,
    cascade: bool,
    settings: Any,
    workspace: str | None,
    as_json: bool,
) -> None:
    from cortex.cli.looking import dump
    from cortex.domain.taxonomy import Status
    from cortex.services.fields import Fields

    with opened(settings) as memory:
        shown = memory.inspecting.show(reference, workspace)
        found = shown.node
        notes: tuple[str, ...] = ()
        archived = found.status is Status.ARCHIVED
        if status == "active" and archived and shown.chain and shown.chain[0].id != found.id:
            # Invariant 6: a superseded node is never active.
            status = "stale"
            notes = (f"it is stale: {shown.chain[0].id[:8]} replaced it",)
        done = memory.mutation.update(found.id, Fields(), status=status, cascade=cascade)
        if as_json:
            dump(asdict(done))
            return
        below = done.marked_total - ("status" in done.changed)
        more = f", with {below} below it" if cascade and below > 0 else ""
        state = status if done.changed else f"{status} already"
        _say(found, state + more, *notes, *done.notes)


@commands.command()
def delete(
    node: NodeRef,
    cascade: Cascade = False,
    yes: Yes = False,
    home: Home = None,
    workspace: Workspace = None,
    as_json: AsJson = False,
) -> None:
    """Remove a memory for good; first shows what would go, and asks."""
    from cortex.cli.looking import dump

    with opened(load_settings(home=home, workspace=workspace)) as memory:
        found = memory.inspecting.locate(node, workspace)
        if not yes:
            plan = memory.mutation.delete(found.id, cascade=cascade, dry_run=True)
            _print_plan(memory, found, plan)
            agree("Delete for good?", "cortex archive puts it away instead")
        done = memory.mutation.delete(found.id, cascade=cascade)
        if as_json:
            dump(asdict(done))
        else:
            moved = f", {len(done.moved)} moved up" if done.moved else ""
            gone = counted(len(done.deleted), "node")
            _say(found, f"deleted: {gone}, {counted(done.relations, 'relation')}{moved}")


def agree(question: str, otherwise: str) -> None:
    """Ask on the terminal; without one, or with a no, end with exit code 2 or 1."""
    if not sys.stdin.isatty():
        raise InvalidError(
            "nobody is here to ask, and nothing was changed", "Valid: --yes", f"Or: {otherwise}"
        )
    if not typer.confirm(question, default=False, err=True):
        typer.echo("nothing was changed", err=True)
        raise typer.Exit(1)


def _print_plan(memory: Memory, node: Node, plan: Deleted) -> None:
    from cortex.cli.looking import err, table

    _say(node, "would be deleted", stream="err")
    with memory.engine.database.read() as snapshot:
        below = snapshot.nodes.by_ids(plan.deleted[1:21])
        moved = snapshot.nodes.by_ids(plan.moved[:20])
    for title, nodes, total in (
        (f"with {len(plan.deleted) - 1} below it", below, len(plan.deleted) - 1),
        (f"{len(plan.moved)} would move up to its parent", moved, len(plan.moved)),
    ):
        if nodes:
            rows = [(each.id[:8], each.type.value, each.title) for each in nodes]
            err.print(table(f"\n{title}", ("id", "type", "title"), rows))
            if total > len(nodes):
                err.print(f"… and {total - len(nodes)} more")
    err.print(f"{counted(plan.relations, 'relation')} would go")


def counted(count: int, noun: str) -> str:
    """A number with its noun: "1 node", "2 nodes"."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


@commands.command()
def relate(
    node: NodeRef,
    kind: Annotated[str, typer.Argument(metavar="TYPE", help="As supports, depends_on, …")],
    target: NodeRef,
    weight: Annotated[float, typer.Option("--weight", min=0.0, max=1.0)] = 1.0,
    label: Annotated[
        str | None, typer.Option("--label", help="A verb of your own, with related_to.")
    ] = None,
    home: Home = None,
    workspace: Workspace = None,
    as_json: AsJson = False,
) -> None:
    """Join two memories; again, it refreshes the relation."""
    from cortex.cli.looking import dump

    with opened(load_settings(home=home, workspace=workspace)) as memory:
        source = memory.inspecting.locate(node, workspace)
        other = memory.inspecting.locate(target, workspace)
        data = {"label": label} if label else None
        done = memory.linking.add_relation(source.id, other.id, kind, weight=weight, data=data)
        if as_json:
            dump(asdict(done))
        else:
            state = "joined" if done.created else "refreshed"
            _say(source, f"{state}: {done.type} {other.id[:8]} {other.title}", *done.notes)


def _say(node: Node, what: str, *notes: str, stream: str = "out") -> None:
    """One line of what became of a node, and one for each note."""
    from rich.text import Text

    from cortex.cli.looking import err, out
    from cortex.domain.values import shorten

    console = err if stream == "err" else out
    name = f"{node.id[:8]} {node.type} {shorten(node.title, 60)!r}"
    console.print(Text(f"{name}: {shorten(what, 200)}"), soft_wrap=True)
    for note in notes:
        console.print(Text(f"  note: {note}"), soft_wrap=True)
