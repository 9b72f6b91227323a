"""What a peer must be able to do to be measured."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from mcp import StdioServerParameters

from bench.peers.client import Reply, Session
from bench.peers.memories import Memory, Way, World


class NotHere(Exception):
    """Why a peer cannot be had on this machine."""


@dataclass(frozen=True, slots=True)
class Reached:
    """Names found from a start, and the replies that it took."""

    names: frozenset[str]
    replies: tuple[Reply, ...]


class Peer(ABC):
    """A memory server, driven over MCP.

    `loading` says by which form the memories get in, which is not timed; `notes` says of an
    operation what its figures should be read with.
    """

    name: str
    loading: str
    notes: ClassVar[Mapping[str, str]] = {}

    @abstractmethod
    def install(self, cache: Path) -> str:
        """Install into a folder of its own below `cache`; the version. Raises NotHere."""

    @abstractmethod
    def load(self, world: World, home: Path, seconds: float) -> None:
        """Put the memories into `home`, before the server starts.

        Raises subprocess.TimeoutExpired where that takes longer.
        """

    @abstractmethod
    def server(self, home: Path) -> StdioServerParameters:
        """How its server is started on `home`."""

    async def fill(self, session: Session, world: World) -> None:  # noqa: B027 - most need none
        """Put the memories in through its bulk tools, where it has no other way."""

    @abstractmethod
    async def write(self, session: Session, memory: Memory) -> Reply:
        """Remember one."""

    @abstractmethod
    async def search(self, session: Session, question: str) -> Reply:
        """Ask."""

    async def traverse(
        self, session: Session, world: World, start: Memory, way: Way
    ) -> Reached | None:
        """What is reached from a memory; None where it has no such call."""
        return None

    def shows(self, reply: Reply, memory: Memory) -> bool:
        """Whether a reply has that memory, by its name or its text."""
        return memory.name[:8] in reply.text or memory.text in reply.text
