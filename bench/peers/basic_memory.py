"""basic-memory: Markdown files, and an index of them in SQLite.

Its model cannot be had offline, so its search by meaning is switched off; words are left.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar, Final

from mcp import StdioServerParameters

from bench.peers.client import Reply, Session, started
from bench.peers.installing import find_python, venv, version_of
from bench.peers.memories import Memory, Way, World
from bench.peers.peer import Peer, Reached
from bench.peers.server_memory import stepped, write_lines

_PACKAGE: Final = "basic-memory"
_SETTINGS: Final = {
    "BASIC_MEMORY_SEMANTIC_SEARCH_ENABLED": "false",
    "BASIC_MEMORY_AUTO_UPDATE": "false",
    "BASIC_MEMORY_NO_PROMOS": "1",
    "FASTMCP_CHECK_FOR_UPDATES": "off",
}


class BasicMemory(Peer):
    """One note a memory."""

    name = _PACKAGE
    loading = "its own import of the reference server's file, then its reindex"
    notes: ClassVar[Mapping[str, str]] = {
        "rare word": "meaning off",
        "common phrase": "meaning off, 10 hits",
        "words apart": "meaning off",
        "4 types, 3 hops": "build_context cannot choose relation types",
        "neighbours": "build_context, 100 results at most",
        "2 hops": "build_context, 100 results at most",
    }

    def install(self, cache: Path) -> str:
        self._python = venv(cache / _PACKAGE, find_python((3, 12)), _PACKAGE)
        return version_of(self._python, _PACKAGE)

    def load(self, world: World, home: Path, seconds: float) -> None:
        (home / "notes").mkdir()
        write_lines(world, home / "memory.jsonl")
        program = self._python.parent / "basic-memory"
        script = f"{program} import memory-json memory.jsonl && {program} reindex --search"
        with (home / "load.log").open("w", encoding="utf-8") as log:
            subprocess.run(
                ["sh", "-c", script],
                cwd=home,
                env=self.server(home).env,
                stdout=log,
                stderr=log,
                timeout=seconds,
                check=True,
            )

    def server(self, home: Path) -> StdioServerParameters:
        places = {
            "BASIC_MEMORY_HOME": str(home / "notes"),
            "BASIC_MEMORY_CONFIG_DIR": str(home / "config"),
        }
        return started([self._python.parent / "basic-memory", "mcp"], home, **places, **_SETTINGS)

    async def write(self, session: Session, memory: Memory) -> Reply:
        return await session.call(
            "write_note", title=memory.name, content=memory.text, directory=memory.kind
        )

    async def search(self, session: Session, question: str) -> Reply:
        return await session.call("search_notes", query=question)

    async def traverse(
        self, session: Session, world: World, start: Memory, way: Way
    ) -> Reached | None:
        if way.kinds is not None:
            return None
        reply = await session.call(
            "build_context",
            url=f"memory://main/{start.kind}/{start.name}",
            depth=way.depth,
            max_related=100,
            timeframe="365d",
            compact=True,
        )
        related = json.loads(reply.text)["results"][0]["related_results"]
        relations = [
            {"from": each["from_entity"], "to": each["to_entity"], "relationType": ""}
            for each in related
            if each["type"] == "relation"
        ]
        seen, edge = {start.name}, {start.name}
        for _ in range(way.depth):
            edge = stepped(relations, edge, way) - seen
            seen |= edge
        return Reached(frozenset(seen - {start.name}), (reply,))
