"""cortex itself, over MCP like the others."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

from mcp import StdioServerParameters

from bench.peers.client import Reply, Session, started
from bench.peers.memories import Memory, Way, World
from bench.peers.peer import Peer, Reached
from bench.prepared import PLACE
from cortex import __version__

_ROOT = Path(__file__).parent.parent.parent


class Cortex(Peer):
    """`python -m cortex serve` with its default tools."""

    name = "cortex"
    loading = "the prepared file, with random unit vectors"
    notes: ClassVar[Mapping[str, str]] = {
        "2 hops": "in pages of 5,000 characters, all of them fetched",
        "4 types, 3 hops": "in pages of 5,000 characters, all of them fetched",
    }

    def install(self, cache: Path) -> str:
        return __version__

    def load(self, world: World, home: Path, seconds: float) -> None:
        shutil.copytree(world.home, home, dirs_exist_ok=True)

    def server(self, home: Path) -> StdioServerParameters:
        command: list[str | Path] = [
            sys.executable,
            "-m",
            "cortex",
            "serve",
            "--home",
            home,
            "--workspace",
            PLACE,
        ]
        return started(command, home, PYTHONPATH=str(_ROOT))

    async def write(self, session: Session, memory: Memory) -> Reply:
        return await session.call("graph_add_node", type=memory.kind, text=memory.text)

    async def search(self, session: Session, question: str) -> Reply:
        return await session.call("graph_search", query=question)

    async def traverse(
        self, session: Session, world: World, start: Memory, way: Way
    ) -> Reached | None:
        asked: dict[str, Any] = {"start_id": start.name, "depth": way.depth, "limit": 1000}
        asked["direction"] = "both" if way.both else "out"
        if way.kinds is not None:
            asked["relation"] = ",".join(sorted(way.kinds))
        names: set[str] = set()
        replies: list[Reply] = []
        while True:
            reply = await session.call("graph_traverse", **asked)
            replies.append(reply)
            names |= {str(node["id"]) for node in reply.structured["nodes"]}
            if not reply.structured["next_cursor"]:
                return Reached(frozenset(names), tuple(replies))
            asked["cursor"] = reply.structured["next_cursor"]
