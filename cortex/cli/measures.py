"""`cortex centrality` and `cortex communities`: what the whole graph says."""

from __future__ import annotations

from typing import Annotated

import typer

from cortex.cli.options import AsJson, Home, Workspace, opened
from cortex.config import load_settings

commands = typer.Typer()

Relations = Annotated[str, typer.Option("--relations", help="Only these types, a,b.")]
Types = Annotated[str, typer.Option("--types", help="Only these node types, a,b.")]


@commands.command()
def centrality(
    measure: Annotated[
        str,
        typer.Argument(
            help="pagerank, degree, in_degree, out_degree, betweenness, closeness, harmonic, "
            "eigenvector, katz, hubs, authorities, core."
        ),
    ] = "pagerank",
    relations: Relations = "",
    types: Types = "",
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, max=100)] = 20,
    home: Home = None,
    workspace: Workspace = None,
    as_json: AsJson = False,
) -> None:
    """Show the memories that most hangs on."""
    from cortex.cli.looking import dump, out, table
    from cortex.tools.measures import graph_centrality

    arguments = {"measure": measure, "relations": relations, "node_types": types, "limit": limit}
    with opened(load_settings(home=home, workspace=workspace)) as memory:
        found = graph_centrality.call(memory, arguments).structured
    if as_json:
        dump(found)
        return
    rows = [(f"{n['score']:.4g}", n["id"][:8], n["type"], n["title"]) for n in found["nodes"]]
    if not rows:
        out.print("No memories to measure. `cortex ingest PATH` reads a folder.")
        return
    title = f"{measure} of {found['total']} nodes, {'exact' if found['exact'] else 'approximate'}"
    out.print(table(f"{title} ({found['source']})", ("score", "id", "type", "title"), rows))


@commands.command()
def communities(
    relations: Relations = "",
    types: Types = "",
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, max=50)] = 10,
    home: Home = None,
    workspace: Workspace = None,
    as_json: AsJson = False,
) -> None:
    """Show which memories belong together."""
    from cortex.cli.looking import dump, out, table
    from cortex.tools.measures import graph_communities

    arguments = {"relations": relations, "node_types": types, "limit": limit}
    with opened(load_settings(home=home, workspace=workspace)) as memory:
        found = graph_communities.call(memory, arguments).structured
    if as_json:
        dump(found)
        return
    if not found["communities"]:
        out.print("No memories to group. `cortex ingest PATH` reads a folder.")
        return
    rows = [
        (group["id"], group["size"], "; ".join(node["title"] for node in group["members"][:4]))
        for group in found["communities"]
    ]
    title = f"{found['total']} communities, modularity {found['modularity']:.3f}"
    out.print(table(title, ("", "size", "best joined members"), rows))
