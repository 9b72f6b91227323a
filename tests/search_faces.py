"""Every face that searches, in front of one memory.

A face is a tool that searches, `cortex://search`, the command line and Python. All ask one
memory: a real server over stdio and its client, processes of their own, and this one.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Final, Literal
from urllib.parse import quote

from anyio.from_thread import BlockingPortal, start_blocking_portal
from mcp import Client
from mcp.types import TextResourceContents

from cortex.config import load_settings
from cortex.memory import Memory, open_memory
from cortex.services.retrieval.found import Found
from tests.endpoint_stand_in import Endpoint, serving
from tests.harness import call, connected, result, text_of
from tests.local import run_cortex

Perspective = Literal["semantic", "keyword"]
MEANING: Final = ("vector_search", "search_semantic", "python vector_search")
WORDS: Final = ("search_keyword", "python keyword_search")
BOTH: Final = (
    *("graph_search", "recall", "search", "search_recent", "session_context"),
    *("cortex://search", "cortex search", "python graph_search", "python rank"),
)
FACES: Final = (*MEANING, *WORDS, *BOTH)
ASKED: Final = [
    *((face, "semantic") for face in (*MEANING, *BOTH)),
    *((face, "keyword") for face in (*WORDS, *BOTH) if face != "cortex search"),
]
"""Every face with each perspective that it asks; the command line, a process each, with one."""
EXPLAINED: Final = ("graph_search", "recall", "search")
TOOLS: Final = "roo,fabric,hybrid"


@dataclass(frozen=True)
class Seen:
    """What a face answered: the hits best first, all of it, and what a model reads (of JSON
    alone, and in Python, nothing)."""

    hits: list[dict[str, Any]]
    degraded: str | None
    empty: bool
    whole: Mapping[str, Any]
    text: str

    @property
    def ids(self) -> list[str]:
        return [hit["id"] for hit in self.hits]

    def of(self, node: str) -> dict[str, Any]:
        [hit] = [hit for hit in self.hits if hit["id"] == node]
        return hit


def seen(answer: Mapping[str, Any], text: str) -> Seen:
    """A tool's answer; recall says in `metadata` what others say beside the text."""
    hits = [
        {**hit, **hit.get("metadata", {}), "id": hit["id"].removeprefix("graph:")}
        for hit in answer.get("results", answer.get("hits", ()))
    ]
    return Seen(hits, answer["degraded"], answer["empty"], answer, text)


def seen_in_python(found: Found) -> Seen:
    hits = [
        {
            "id": hit.node.id,
            "text": hit.node.text,
            "status": hit.node.status.value,
            "workspace_id": hit.node.workspace_id,
            "score": hit.score,
            "scores": dict(hit.scores),
            "created_at": hit.node.created_at,
        }
        for hit in found.hits
    ]
    return Seen(hits, found.degraded, found.empty, {"hits": hits}, "")


@dataclass
class World:
    """One memory behind all its faces. What a case is about is stored once, in a workspace of
    its own."""

    home: Path
    portal: BlockingPortal
    client: Client
    memory: Memory
    env: dict[str, str]
    stored: dict[str, dict[str, str]] = field(default_factory=dict)

    def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        return self.portal.call(partial(call, self.client, tool, **arguments))

    def case(self, place: str, write: Callable[[World, str], dict[str, str]]) -> dict[str, str]:
        """The ids of a case, written by the first test that needs them."""
        if place not in self.stored:
            self.stored[place] = write(self, place)
            assert self.memory.indexing.wait(None, 60) == 0
        return self.stored[place]

    def ask(self, face: str, place: str, query: str, **more: Any) -> Seen:
        """The answer of this face to a question to this workspace."""
        if face == "cortex search":
            out = run_cortex(
                self.home, "search", "-w", place, "--json", "--explain", query, **self.env
            )
            return seen(json.loads(out), "")
        if face == "cortex://search":
            return self._read(place, query)
        if face.startswith("python "):
            search = getattr(self.memory.search, face.removeprefix("python "))
            return seen_in_python(search(query, workspace=place))
        more |= {"explain": True} if face in EXPLAINED else {}
        done = self.portal.call(
            partial(result, self.client, face, query=query, workspace_id=place, **more)
        )
        assert not done.is_error, text_of(done)
        return seen(done.structured_content or {}, text_of(done))

    def _read(self, place: str, query: str) -> Seen:
        """The resource looks everywhere: of its hits those of the place count."""
        uri = f"cortex://search/{quote(query, safe='')}"
        [content] = self.portal.call(self.client.read_resource, uri).contents
        assert isinstance(content, TextResourceContents)
        answer = json.loads(content.text)
        hits = [hit for hit in answer["hits"] if hit["workspace_id"] == place]
        return seen({**answer, "hits": hits}, "")


@contextmanager
def searched(home: Path, **env: str) -> Iterator[World]:
    """A world on this data folder."""
    settings = load_settings(home=home, workspace="w", env=env)
    with ExitStack() as stack:
        portal = stack.enter_context(start_blocking_portal())
        server = connected(home, "--tools", TOOLS, mode="legacy", cwd=home.parent, **env)
        client = stack.enter_context(portal.wrap_async_context_manager(server))
        memory = stack.enter_context(closing(open_memory(settings)))
        yield World(home, portal, client, memory, env)


def facts(*texts: str) -> Callable[[World, str], dict[str, str]]:
    """Writes these facts; their ids by text."""

    def write(world: World, place: str) -> dict[str, str]:
        made = (
            world.call("graph_add_node", type="fact", text=text, workspace_id=place)["id"]
            for text in texts
        )
        return dict(zip(texts, made, strict=True))

    return write


@dataclass
class Troubles:
    """A world whose model is an endpoint's, and whose perspectives can be taken away."""

    world: World
    endpoint: Endpoint
    served: ExitStack

    @contextmanager
    def without(self, perspective: Perspective) -> Iterator[World]:
        """While the endpoint is down, or the keyword index broken."""
        if perspective == "semantic":
            self.served.close()
            try:
                yield self.world
            finally:
                self.served.enter_context(serving(self.endpoint))
            return
        self._rename("keywords_data", "keywords_away")
        try:
            yield self.world
        finally:
            self._rename("keywords_away", "keywords_data")

    def _rename(self, old: str, new: str) -> None:
        with closing(sqlite3.connect(self.world.home / "cortex.db", timeout=30)) as shell:
            shell.execute(f"ALTER TABLE {old} RENAME TO {new}")
            shell.commit()
