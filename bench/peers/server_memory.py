"""The reference MCP memory server, and those that took over its tools.

Each call reads its whole file, and each write writes it anew.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any, ClassVar

from mcp import StdioServerParameters

from bench.peers.client import Reply, Session, started
from bench.peers.installing import npm
from bench.peers.memories import Memory, Way, World
from bench.peers.peer import Peer, Reached


def lines(world: World) -> Iterator[dict[str, Any]]:
    """The memories in the form of the reference server's file, one object a line."""
    for memory in world.memories:
        yield {"type": "entity", **entity(memory)}
    for relation in world.relations:
        ends = {"from": relation.near, "to": relation.far}
        yield {"type": "relation", **ends, "relationType": relation.kind}


def entity(memory: Memory) -> dict[str, Any]:
    """One memory as these servers take it."""
    return {"name": memory.name, "entityType": memory.kind, "observations": [memory.text]}


def write_lines(world: World, file: Path) -> None:
    """The whole memory as a JSONL file."""
    with file.open("w", encoding="utf-8") as out:
        out.writelines(json.dumps(line) + "\n" for line in lines(world))


def stepped(relations: Iterable[Mapping[str, str]], edge: set[str], way: Way) -> set[str]:
    """The far ends of the relations that leave `edge` in that way."""
    found = set()
    for relation in relations:
        if way.kinds is None or relation["relationType"] in way.kinds:
            if relation["from"] in edge:
                found.add(relation["to"])
            if way.both and relation["to"] in edge:
                found.add(relation["from"])
    return found


class ServerMemory(Peer):
    """@modelcontextprotocol/server-memory."""

    name = "server-memory"
    package = "@modelcontextprotocol/server-memory"
    loading = "its JSONL file"
    notes: ClassVar[Mapping[str, str]] = {
        "2 hops": "it has no traversal: one open_nodes call a hop",
        "4 types, 3 hops": "it has no traversal: one open_nodes call a hop, types chosen by us",
        "words apart": "it finds a question only as a whole, letter by letter",
    }

    def install(self, cache: Path) -> str:
        self._program, version = npm(cache / self.name, self.package)
        return version

    def load(self, world: World, home: Path, seconds: float) -> None:
        write_lines(world, home / "memory.jsonl")

    def server(self, home: Path) -> StdioServerParameters:
        return started(["node", self._program], home, MEMORY_FILE_PATH=str(home / "memory.jsonl"))

    async def write(self, session: Session, memory: Memory) -> Reply:
        return await session.call("create_entities", entities=[entity(memory)])

    async def search(self, session: Session, question: str) -> Reply:
        return await session.call("search_nodes", query=question)

    async def traverse(
        self, session: Session, world: World, start: Memory, way: Way
    ) -> Reached | None:
        seen, edge = {start.name}, {start.name}
        replies: list[Reply] = []
        for _ in range(way.depth):
            reply = await session.call("open_nodes", names=sorted(edge))
            replies.append(reply)
            edge = stepped(json.loads(reply.text)["relations"], edge, way) - seen
            seen |= edge
            if not edge:
                break
        return Reached(frozenset(seen - {start.name}), tuple(replies))


class KnowledgeGraph(ServerMemory):
    """@itseasy21/mcp-knowledge-graph, made from the reference server."""

    name = "mcp-knowledge-graph"
    package = "@itseasy21/mcp-knowledge-graph"
    notes: ClassVar[Mapping[str, str]] = {
        "words apart": "it finds a question only as a whole, letter by letter"
    }

    async def traverse(
        self, session: Session, world: World, start: Memory, way: Way
    ) -> Reached | None:
        return None  # open_nodes shows only the relations among the nodes that are named


class MemoryLibsql(Peer):
    """mcp-memory-libsql: the same entities in a libSQL database."""

    name = "mcp-memory-libsql"
    loading = "create_entities by 50 and create_relations by 100, over MCP"
    notes: ClassVar[Mapping[str, str]] = {"words apart": "it finds a question only as a whole"}

    def install(self, cache: Path) -> str:
        self._program, version = npm(cache / self.name, self.name)
        return version

    def load(self, world: World, home: Path, seconds: float) -> None:
        pass  # it has no bulk form but its tools

    def server(self, home: Path) -> StdioServerParameters:
        return started(["node", self._program], home, LIBSQL_URL=f"file:{home / 'memory.db'}")

    async def fill(self, session: Session, world: World) -> None:
        memories = iter(world.memories)
        while batch := list(islice(memories, 50)):
            await session.call("create_entities", entities=[entity(each) for each in batch])
        relations = iter(world.relations)
        while some := list(islice(relations, 100)):
            await session.call(
                "create_relations",
                relations=[
                    {"source": each.near, "target": each.far, "type": each.kind} for each in some
                ],
            )

    async def write(self, session: Session, memory: Memory) -> Reply:
        return await session.call("create_entities", entities=[entity(memory)])

    async def search(self, session: Session, question: str) -> Reply:
        return await session.call("search_nodes", query=question)
