"""A researcher's look at a memory file, without a server: `python -m analytics FILE`.

The file is attached read-only in a process of its own; a server may use it meanwhile.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Literal

import typer

from analytics import report
from analytics.client import Worker
from analytics.report import Table
from cortex.domain.errors import CortexError

What = Literal[
    "summary", "centrality", "communities", "components", "degrees", "activity", "churn", "idle"
]

app = typer.Typer(name="python -m analytics", pretty_exceptions_enable=False, rich_markup_mode=None)


@app.command()
def look(
    file: Annotated[Path, typer.Argument(help="A memory's file, cortex.db.")],
    what: Annotated[What, typer.Argument(help="What to show.")] = "summary",
    measure: Annotated[
        str, typer.Option("--measure", help="Of centrality: pagerank, betweenness, core …")
    ] = "pagerank",
    by: Annotated[
        Literal["hour", "day", "week"], typer.Option("--by", help="Unit of activity, in UTC.")
    ] = "week",
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, max=1000)] = 20,
    workspace: Annotated[
        str | None, typer.Option("--workspace", "-w", help="Default: the largest.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Count a memory, measure its graph, and show when it lived; reads alone."""
    with Worker(file) as worker:
        place = report.workspace_of(worker, workspace)
        tables = _tables(worker, place, what, measure, by, limit)
    if as_json:
        shown = {
            name: {"title": table.title, "rows": table.records()} for name, table in tables.items()
        }
        typer.echo(json.dumps({"workspace": place, **shown}, ensure_ascii=False, indent=1))
    else:
        _print(place, tables)


def _tables(
    worker: Worker, place: str, what: What, measure: str, by: str, limit: int
) -> Mapping[str, Table]:
    match what:
        case "summary":
            return report.summary(worker, place)
        case "centrality":
            return {what: report.centrality(worker, place, measure, limit)}
        case "communities":
            return {what: report.communities(worker, place, limit)}
        case "components":
            return {what: report.distribution(worker, place, "component")}
        case "degrees":
            return {what: report.distribution(worker, place, "degree")}
        case "activity":
            return {what: report.activity(worker, place, by)}
        case "churn":
            return {what: report.churn(worker, place)}
        case "idle":
            return {what: report.idle(worker, place, limit)}


def _print(place: str, tables: Mapping[str, Table]) -> None:
    from rich.console import Console
    from rich.table import Table as Rich
    from rich.text import Text

    # Piped output has no width; 80 columns would cut titles.
    console = Console(highlight=False, width=None if sys.stdout.isatty() else 160)
    console.print(Text(f"workspace {place}"))
    for table in tables.values():
        shown = Rich(box=None, pad_edge=False)
        for number, column in enumerate(table.columns):
            numeric = all(isinstance(row[number], int | float) for row in table.rows)
            shown.add_column(column, justify="right" if numeric else "left", overflow="fold")
        for row in table.rows:
            cells = (f"{cell:.4g}" if isinstance(cell, float) else str(cell) for cell in row)
            shown.add_row(*(Text(cell) for cell in cells))
        console.print()
        console.print(Text(table.title))
        console.print(shown)


def main() -> None:
    """Run it; an error is one line on stderr, and exit code 1."""
    try:
        app()
    except CortexError as error:
        typer.echo(f"analytics: {error}", err=True)
        sys.exit(1)


if __name__ == "__main__":
    main()
