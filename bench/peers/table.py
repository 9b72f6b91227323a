"""The README's tables, made from the kept figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from bench.peers.in_process import CASES, CTE, ENGINE, PREPARED
from bench.peers.measuring import APART, COMMON, OPERATIONS, RARE

Row = Mapping[str, Any]
_SHOWN: Final = tuple(name for name in OPERATIONS if name != APART)
_IN_PROCESS: Final = (
    ENGINE,
    CTE,
    "networkx",
    "igraph",
    f"networkx{PREPARED}",
    f"igraph{PREPARED}",
)


def number(value: float) -> str:
    """Three figures, and no more than a reader needs."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def _cell(row: Row | None) -> str:
    """p50 in ms and, for a peer, how many times as long as cortex it took."""
    if row is None or row["p50"] is None:
        return "–"
    ratio = row["ratio"]
    times = f" ({number(ratio)}×)" if ratio is not None and ratio != 1 else ""
    return f"{number(row['p50'])}{times}"


def _lines(head: Sequence[str], body: Sequence[Sequence[str]]) -> list[str]:
    lines = ["| " + " | ".join(head) + " |", "|---" * len(head) + "|"]
    return lines + ["| " + " | ".join(cells) + " |" for cells in body]


def _unfinished(rows: Sequence[Row]) -> str:
    """Why a peer has no figures at all at a size, else nothing."""
    asked = [row for row in rows if row["operation"] in OPERATIONS]
    return "" if any(row["p50"] is not None for row in asked) else str(rows[-1]["note"])


def peers_table(figures: Sequence[Row], size: int) -> list[str]:
    """One line a server: p50 of each operation with its ratio, reply, memory, what it found."""
    servers = [row["peer"] for row in figures if row["peer"] not in _IN_PROCESS]
    body = []
    for peer in dict.fromkeys(servers):
        rows = [row for row in figures if row["peer"] == peer and row["size"] == size]
        if not rows:
            continue
        why = _unfinished(rows)
        if why:
            body.append([peer, why, *[""] * (len(_SHOWN) + 2)])
            continue
        of = {row["operation"]: row for row in rows}
        reply = of[COMMON]["reply_characters"] if COMMON in of else None
        held = rows[-1]["pss_mb"]
        found = [name for name in (RARE, APART) if name in of and of[name]["found"]]
        body.append(
            [
                peer,
                *[_cell(of.get(name)) for name in _SHOWN],
                "–" if reply is None else f"{reply:,}",
                "–" if held is None else number(held),
                " and ".join(found) or "neither",
            ]
        )
    return _lines([f"at {size:,}", *_SHOWN, "reply", "MB", "finds"], body)


def graphs_table(figures: Sequence[Row], size: int) -> list[str]:
    """One line a question: the engine and each library."""
    body = []
    for case in CASES:
        of = {
            row["peer"]: row for row in figures if row["operation"] == case and row["size"] == size
        }
        if of:
            body.append([case, *[_cell(of.get(peer)) for peer in _IN_PROCESS]])
    return _lines([f"at {size:,}", *_IN_PROCESS], body)


def tables(figures: Sequence[Row], sizes: Sequence[int]) -> str:
    """All tables, the largest size last."""
    parts = []
    for size in sizes:
        parts += [peers_table(figures, size), graphs_table(figures, size)]
    return "\n\n".join("\n".join(part) for part in parts)
