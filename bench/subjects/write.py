"""Writes, until they are durable and acknowledged; and what kill -9 costs of them.

What is written is embedded in the background meanwhile, as always.
"""

from __future__ import annotations

from collections.abc import Iterator

from bench.context import LOCAL, Context
from bench.servers import Arguments
from cortex.cli.timing import Figure, Target
from cortex.services.fields import Fields

_MANY = (Target(60), Target(3000, "max"))
_KILLS = 3


def measure(context: Context) -> Iterator[Figure]:
    """Adds with one client, with 8, with 32 in four processes; the floor; relations; losses."""
    runs, leaves = context.runs, context.starts.leaves
    add, link = context.memory.adding.add_node, context.memory.linking.add_relation
    texts, some = context.texts(runs + 3), len(leaves)
    yield context.engine(
        "add", lambda turn: add("fact", Fields(text=texts[turn])), note="`similar` looked up",
        targets=LOCAL,
    )  # fmt: skip
    yield context.engine(
        "relate",
        lambda turn: link(leaves[turn % some], leaves[(turn * 7 + 1) % some], "supports"),
        targets=LOCAL,
    )  # fmt: skip
    yield context.stdio("add", "graph_add_node", _texts(context, runs), note="`similar` looked up")
    yield context.stdio(
        "relate", "graph_add_relation",
        lambda turn: {"from_id": leaves[turn % some], "type": "leads_to",
                      "to_id": leaves[(turn * 5 + 1) % some]},
    )  # fmt: skip
    yield context.together("add", "graph_add_node", _texts(context, 2 * runs), 8)
    # What 32 callers of a tool that does nothing wait: no write can be quicker on this machine.
    yield context.together("empty", "empty", lambda _: {}, 32, note="the floor of what follows")
    yield context.together(
        "add", "graph_add_node", _texts(context, 2 * runs), 32, targets=_MANY
    )  # fmt: skip
    yield _losses(context)


def _texts(context: Context, count: int) -> Arguments:
    texts = context.texts(count + 3)
    return lambda turn: {"type": "fact", "text": texts[turn]}


def _losses(context: Context) -> Figure:
    """Eight clients add until their server is killed; what it acknowledged must be there."""
    context.stop()
    ids: list[str] = []
    for _ in range(_KILLS):
        ids += context.servers().until_killed("graph_add_node", _texts(context, 10_000), 2.0)
        context.stop()
    with context.memory.engine.database.read() as snapshot:
        lost = len(ids) - len(snapshot.nodes.by_ids(ids))
    return Figure(
        "acknowledged writes lost", lost, lost, lost, len(ids), f"{_KILLS} times kill -9",
        (Target(1, "max"),), "stdio", 8, context.nodes, "writes",
    )  # fmt: skip
