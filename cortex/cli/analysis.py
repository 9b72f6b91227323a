"""Commands that look the graph over: health, diff, impact, path."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from cortex.cli.options import AsJson, Home, NodeRef, Workspace, opened
from cortex.config import load_settings

if TYPE_CHECKING:
    from cortex.tools.registry import Answer

commands = typer.Typer()


def _print(answer: Answer, *, as_json: bool) -> None:
    from rich.text import Text

    from cortex.cli.looking import dump, out

    if as_json:
        dump(answer.structured)
    else:
        out.print(Text(answer.text), soft_wrap=True)


@commands.command()
def health(
    drop_dangling: Annotated[
        bool,
        typer.Option(
            "--drop-dangling", help="First delete relations whose end is gone or elsewhere."
        ),
    ] = False,
    home: Home = None,
    workspace: Workspace = None,
    as_json: AsJson = False,
) -> None:
    """Show what has come loose in a memory, a score, and the calls that mend it."""
    from cortex.cli.looking import err
    from cortex.tools.analytics import graph_health

    with opened(load_settings(home=home, workspace=workspace)) as memory:
        if drop_dangling:
            dropped = memory.checkup.drop_dangling(workspace)
            err.print(f"dropped {dropped} dangling relations")
        _print(graph_health.call(memory, _given(workspace_id=workspace)), as_json=as_json)


@commands.command()
def diff(
    from_time: Annotated[
        str, typer.Option("--from", help="From when: 2026-05-12, or with a time.")
    ],
    to_time: Annotated[
        str | None, typer.Option("--to", help="Until when, by default now; a date ends with it.")
    ] = None,
    home: Home = None,
    workspace: Workspace = None,
    as_json: AsJson = False,
) -> None:
    """Show what was added, changed and removed between two times."""
    from rich.text import Text

    from cortex.cli.looking import out
    from cortex.tools.analytics import graph_diff

    with opened(load_settings(home=home, workspace=workspace)) as memory:
        given = _given(from_time=from_time, to_time=to_time, workspace_id=workspace)
        answer = graph_diff.call(memory, given)
        if not as_json and not any(answer.structured["totals"].values()):
            place = memory.engine.workspace(workspace)
            out.print(Text(f"Nothing changed in {place!r} in that time."))
            return
        _print(answer, as_json=as_json)


@commands.command()
def impact(
    node: NodeRef, home: Home = None, workspace: Workspace = None, as_json: AsJson = False
) -> None:
    """Show what would go stale or lose its only support if a memory were superseded."""
    from cortex.tools.analytics import graph_impact

    with opened(load_settings(home=home, workspace=workspace)) as memory:
        found = memory.inspecting.locate(node, workspace)
        _print(graph_impact.call(memory, {"node_id": found.id}), as_json=as_json)


@commands.command()
def path(
    node: NodeRef,
    target: NodeRef,
    k: Annotated[int, typer.Option("-k", min=1, max=20, help="How many paths.")] = 3,
    derived: Annotated[bool, typer.Option("--derived", help="Also neighbour links.")] = False,
    home: Home = None,
    workspace: Workspace = None,
    as_json: AsJson = False,
) -> None:
    """Show how two memories hang together: the shortest paths between them."""
    from cortex.tools.analytics import graph_path

    with opened(load_settings(home=home, workspace=workspace)) as memory:
        ends = [memory.inspecting.locate(each, workspace).id for each in (node, target)]
        given = {"from_id": ends[0], "to_id": ends[1], "k": k, "include_derived": derived}
        _print(graph_path.call(memory, given), as_json=as_json)


def _given(**arguments: Any) -> dict[str, Any]:
    return {name: value for name, value in arguments.items() if value is not None}
