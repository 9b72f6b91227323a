"""`cortex doctor`: is everything in order, and if not, what mends it?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from cortex.cli.options import AsJson, Home
from cortex.config import load_settings

if TYPE_CHECKING:
    from cortex.services.doctor.examining import Examined
    from cortex.services.doctor.findings import Finding

commands = typer.Typer()


@commands.command()
def doctor(
    fix: Annotated[
        bool, typer.Option("--fix", help="Mend what can be mended without loss, then check again.")
    ] = False,
    home: Home = None,
    as_json: AsJson = False,
) -> None:
    """Check the whole memory, rules and derived stores; exits with 1 where a fault is left.

    Reads only, beside running servers. --fix makes derived things anew and never deletes a
    memory.
    """
    from cortex.cli.looking import dump, progress
    from cortex.services.doctor.examining import Doctor

    with progress("{task.description}") as bar:
        task = bar.add_task("", total=None)

        def show(check: str, done: int, total: int) -> None:
            bar.update(task, description=check, completed=done, total=total or None)

        physician = Doctor(load_settings(home=home), progress=show)
        examined = physician.mend() if fix else physician.examine()
    if as_json:
        dump(examined.rendered())
    else:
        _print(examined)
    if examined.faults:
        raise typer.Exit(1)


def _print(examined: Examined) -> None:
    from rich.text import Text

    from cortex.cli.looking import out, table

    out.print(Text(examined.file), soft_wrap=True)
    rows = [
        (each.check, each.state.value, f"{each.count:,}", each.said) for each in examined.findings
    ]
    out.print(table("", ("check", "state", "count", ""), rows))
    for each in examined.findings:
        if each.mend:
            for line in _lines(each):
                out.print(Text(line), soft_wrap=True)
    if examined.mended:
        out.print(Text(f"mended: {', '.join(examined.mended)}"))
    faults, warnings = examined.faults, examined.warnings
    out.print(Text(f"{faults} fault{_s(faults)}, {warnings} warning{_s(warnings)}"))


def _lines(finding: Finding) -> list[str]:
    more = finding.count - len(finding.examples)
    return [
        f"{finding.check}: {finding.said}",
        *(f"  {example}" for example in finding.examples),
        *([f"  and {more:,} more"] if more > 0 else []),
        f"  mend: {finding.mend}",
    ]


def _s(count: int) -> str:
    return "" if count == 1 else "s"
