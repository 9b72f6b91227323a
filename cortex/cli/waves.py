"""`cortex observe`: the memory as a whole, with sparklines."""

from __future__ import annotations

from typing import Any

import typer

from cortex.cli.options import AsJson, Home, Workspace, opened
from cortex.config import load_settings

commands = typer.Typer()


@commands.command()
def observe(home: Home = None, workspace: Workspace = None, as_json: AsJson = False) -> None:
    """Show how strong memories are, what clusters, strengthens, fades and conflicts."""
    from cortex.cli.looking import dump
    from cortex.tools.waves import observe as observe_tool

    with opened(load_settings(home=home, workspace=workspace)) as memory:
        answer = observe_tool.call(memory, {"workspace_id": workspace})
    if as_json:
        dump(answer.structured)
    else:
        _show(answer.structured)


def _show(seen: dict[str, Any]) -> None:
    from rich.text import Text

    from cortex.cli.looking import out, table
    from cortex.tools.waves import sparkline

    waves, strength, phase = seen["waves"], seen["strength"], seen["phase"]
    out.print(Text(f"workspace {seen['workspace_id']}  {seen['memories']} memories"))
    rows = [
        ("order parameter R", f"{waves['order_parameter']:.3f}", "1: all phases equal"),
        ("integration Φ", f"{waves['integration']:.3f}", "0: the links fall apart"),
        ("differentiation Ξ", f"{waves['differentiation']:.3f}", "0: clusters say the same"),
        ("mean strength E", f"{strength['mean']:.3f}", "1: as new; halves in a week"),
        ("neighbour links", str(waves["links"]), f"between {waves['linked']} memories"),
    ]
    out.print(table("", ("", "", ""), rows))
    edges = [f"{edge:g}" for edge in strength["edges"]]
    bars = [
        ("strength", f"▕{sparkline(strength['counts'])}▏", " ".join(edges)),
        ("phase", f"▕{sparkline(phase['counts'])}▏", "−π … π"),
    ]
    out.print(table("", ("", "", ""), bars))
    if seen["clusters"]:
        clusters = [
            (
                each["size"],
                f"{each['strength']:.2f}",
                "; ".join(m["title"] for m in each["members"]),
            )
            for each in seen["clusters"]
        ]
        out.print(table("\nclusters", ("size", "strength", "strongest"), clusters))
    for name in ("strengthened", "fading"):
        if seen[name]:
            strong = [(f"{m['strength']:.2f}", m["id"][:8], m["title"]) for m in seen[name]]
            out.print(table(f"\n{name}", ("strength", "id", ""), strong))
    if seen["conflicts"]:
        conflicts = [
            (f"{each['interference']:+.2f}", *(node["title"] for node in each["nodes"]))
            for each in seen["conflicts"]
        ]
        total = seen["conflicts_total"]
        title = f"\nconflicts ({len(conflicts)} of {total})"
        out.print(table(title, ("interference", "one", "other"), conflicts))
