"""`cortex dream`: the memory consolidated, as a plan first."""

from __future__ import annotations

from typing import Annotated

import typer

from cortex.cli.options import AsJson, Home, Workspace, opened
from cortex.config import load_settings

commands = typer.Typer()


@commands.command()
def dream(
    apply: Annotated[
        bool, typer.Option("--apply", help="Make the changes; undo takes them back.")
    ] = False,
    deep: Annotated[
        bool, typer.Option("--deep", help="All memories; patterns, archiving and links too.")
    ] = False,
    home: Home = None,
    workspace: Workspace = None,
    as_json: AsJson = False,
) -> None:
    """Show what a dream would change, each with its reason; with --apply, change it."""
    from rich.text import Text

    from cortex.cli.looking import dump, out, progress
    from cortex.domain.progress import PROGRESS
    from cortex.tools.dreaming import dream_answer, whole_json

    with opened(load_settings(home=home, workspace=workspace)) as memory:
        with progress("dreaming") as bar:
            task = bar.add_task("", total=None)
            told = PROGRESS.set(
                lambda done, total, message: bar.update(task, completed=done, total=total)
            )
            mode, depth = "apply" if apply else "plan", "deep" if deep else "lite"
            done = memory.dreaming.dream(mode, depth, workspace=workspace)
            PROGRESS.reset(told)
        answer, whole = dream_answer(memory, done), whole_json(memory, done)
    if as_json:
        dump(whole)
    else:
        out.print(Text(answer.text), soft_wrap=True)
