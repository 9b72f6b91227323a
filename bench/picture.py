"""How cost grows with the memory, drawn from the results: `python -m bench.picture`.

Both axes are logarithmic: a line that rises by 45 degrees is linear growth, a level one none
at all. Reads results/nodes-N.json and, where it is there, results/peers.json; writes
growth.svg. Needs matplotlib (the extra `test` has it).
"""

from __future__ import annotations

import argparse
import json
from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from bench.report import FOLDER

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SUBJECTS: Final = ("open", "get", "traverse", "walk", "cascade, planned", "timeline",
                   "search, keyword", "search, meaning", "search", "add")  # fmt: skip
_PANELS: Final = (("engine", "in the engine"), ("stdio", "over stdio, one client"))
# Of the other servers: what two of them that could be loaded at every size do all day.
PEERS: Final = ("server-memory", "mcp-memory-service")
PEER_OPERATIONS: Final = ("write", "rare word", "neighbours")

Line = list[tuple[int, float]]


def lines(figures: Iterable[Mapping[str, Any]], where: str) -> dict[str, Line]:
    """The p50 of each subject by size, smallest first; one that was taken once is no line."""
    found: dict[str, Line] = {name: [] for name in SUBJECTS}
    for figure in figures:
        name = figure["subject"]
        if name in found and figure["where"] == where and figure["clients"] == 1:
            found[name].append((figure["nodes"], figure["p50"]))
    return {name: sorted(line) for name, line in found.items() if len(line) > 1}


def peer_lines(figures: Iterable[Mapping[str, Any]]) -> dict[str, Line]:
    """The same of some other servers, by "peer, operation"; what did not finish has no point."""
    found: defaultdict[str, Line] = defaultdict(list)
    for figure in figures:
        told = figure["peer"] in PEERS and figure["operation"] in PEER_OPERATIONS
        if told and figure.get("p50"):
            found[f"{figure['peer']}, {figure['operation']}"].append(
                (figure["size"], figure["p50"])
            )
    return {name: sorted(line) for name, line in found.items() if len(line) > 1}


def draw(figures: list[dict[str, Any]], peers: list[dict[str, Any]], file: Path) -> None:
    """Write the picture, the same bytes for the same results."""
    import matplotlib as mpl

    mpl.use("svg")
    mpl.rcParams.update(
        {"svg.hashsalt": "cortex", "svg.fonttype": "none", "font.size": 9, "legend.fontsize": 8}
    )
    from matplotlib import pyplot

    picture, panels = pyplot.subplots(1, 2, figsize=(11, 5.4), sharey=True, layout="constrained")
    for panel, (where, title) in zip(panels, _PANELS, strict=True):
        _panel(panel, title, lines(figures, where), peer_lines(peers) if where == "stdio" else {})
    panels[0].set_ylabel("ms a call, p50")
    # Of the two panels together, each name once.
    shown = {name: line for panel in panels
             for line, name in zip(*panel.get_legend_handles_labels(), strict=True)}  # fmt: skip
    picture.legend(list(shown.values()), list(shown), loc="outside lower center", ncols=5)
    picture.savefig(file, metadata={"Date": None})
    pyplot.close(picture)


def _panel(panel: Axes, title: str, own: dict[str, Line], others: dict[str, Line]) -> None:
    for name, line in own.items():
        color = f"C{SUBJECTS.index(name)}"
        panel.plot(*zip(*line, strict=True), color, marker="o", markersize=3, label=name)
    for number, (name, line) in enumerate(others.items()):
        shade = f"C{number % len(PEER_OPERATIONS) + len(SUBJECTS)}"
        style = (":", "--")[number // len(PEER_OPERATIONS) % 2]
        panel.plot(*zip(*line, strict=True), shade, linestyle=style, label=name)
    panel.set(xscale="log", yscale="log", title=title, xlabel="memories")
    panel.grid(visible=True, which="major", alpha=0.3)


def main() -> None:
    """Read the results and draw them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--results", type=Path, default=FOLDER)
    parser.add_argument("--out", type=Path, default=FOLDER.parent / "growth.svg")
    given = parser.parse_args()
    figures = [
        figure
        for file in sorted(given.results.glob("nodes-*.json"))
        for figure in json.loads(file.read_text("utf-8"))["figures"]
    ]
    beside = given.results / "peers.json"
    peers = json.loads(beside.read_text("utf-8"))["figures"] if beside.exists() else []
    draw(figures, peers, given.out)
    print(f"{given.out}: {len(figures)} figures, {len(peers)} of peers")


if __name__ == "__main__":
    main()
