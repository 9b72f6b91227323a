"""`cortex recall` and `cortex entities`: the Memory Fabric for people."""

from __future__ import annotations

from typing import Annotated

import typer

from cortex.cli.options import AsJson, Home, Workspace, opened
from cortex.config import load_settings

commands = typer.Typer()


@commands.command()
def recall(
    question: Annotated[list[str], typer.Argument(help="What you want to know.")],
    home: Home = None,
    workspace: Workspace = None,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, max=100)] = 10,
    explain: Annotated[bool, typer.Option("--explain", help="Show each step.")] = False,
    as_json: AsJson = False,
) -> None:
    """Show what is remembered, with entities and relations; several hops away, too."""
    from rich.text import Text

    from cortex.cli.looking import dump, out
    from cortex.tools.fabric import recall as recall_tool

    arguments = {"query": " ".join(question), "limit": limit, "explain": explain}
    with opened(load_settings(home=home, workspace=workspace)) as memory:
        answer = recall_tool.call(memory, {**arguments, "workspace_id": workspace})
    if as_json:
        dump(answer.structured)
    else:
        out.print(Text(answer.text), soft_wrap=True)


@commands.command()
def entities(
    text: Annotated[list[str], typer.Argument(help="A sentence or more.")],
    home: Home = None,
    workspace: Workspace = None,
    store: Annotated[
        bool, typer.Option("--store", help="Write them into the graph, without duplicates.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Show the entities of a text, and the relations that it states."""
    from rich.text import Text

    from cortex.cli.looking import dump, out
    from cortex.tools.fabric import extract_entities

    arguments = {"text": " ".join(text), "store": store}
    with opened(load_settings(home=home, workspace=workspace)) as memory:
        answer = extract_entities.call(memory, arguments)
    if as_json:
        dump(answer.structured)
    else:
        out.print(Text(answer.text), soft_wrap=True)
