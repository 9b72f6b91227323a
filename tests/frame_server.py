"""A real stdio server on the frame, with a memory that is only a dictionary.

python frame_server.py [--open SECONDS] [--fail] [--crash] [--read-only] [--log FILE]
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from cortex.server.wire import claim

claim()
print("a stray print at import time")  # noqa: T201 - what the test is about

from cortex.domain.caller import CALLER  # noqa: E402
from cortex.domain.errors import NotFoundError, UnavailableError  # noqa: E402 - after the claim
from cortex.server.stdio import serve_stdio  # noqa: E402
from cortex.tools.arguments import Data, Items, Limit, NodeRef, Text, Texts, Workspace  # noqa: E402
from cortex.tools.registry import Answer, select, tool  # noqa: E402
from cortex.tools.resource import ResourceSpec  # noqa: E402


class Shelf:
    """A memory of texts that notes on its log what becomes of it."""

    def __init__(self, log: Path | None) -> None:
        self.log = log
        self.note("open")

    def note(self, what: str) -> None:
        if self.log:
            with self.log.open("a") as log:
                log.write(what + "\n")

    def close(self) -> None:
        self.note("close")


@tool(title="Echo", sets=("core", "roo"), writes=False)
def echo(
    memory: Shelf,
    node_id: NodeRef,
    text: Text = "",
    limit: Limit = 10,
    tags: Annotated[Texts, "labels"] = (),
    data: Data | None = None,
    subtasks: Items = (),
    workspace_id: Workspace | None = None,
) -> Answer:
    """Say what arrived."""
    given: dict[str, Any] = {
        "node_id": node_id,
        "text": text,
        "limit": limit,
        "tags": tags,
        "data": data,
        "subtasks": subtasks,
        "workspace_id": workspace_id,
        "client": CALLER.get().client,
        "heavy": sorted({"numpy", "duckdb", "fastembed", "rustworkx"} & sys.modules.keys()),
    }
    return Answer(f"{node_id} {text}", given)


@tool(title="Slow", sets=("core",), writes=True, idempotent=True)
def slow(memory: Shelf, seconds: Annotated[float, "how long"] = 1.0) -> Answer:
    """Hold a thread."""
    memory.note("slow")
    time.sleep(seconds)
    memory.note("slept")
    return Answer("slept", {"seconds": seconds})


@tool(title="Break", sets=("core",), writes=True, destructive=True)
def fail(memory: Shelf, how: Literal["known", "bug", "exit", "value"]) -> Answer:
    """Fail in one of four ways."""
    match how:
        case "known":
            raise NotFoundError("No node 12", "Valid: 1 to 3", "Search for it")
        case "bug":
            raise RuntimeError("the secret detail")
        case "exit":
            sys.exit(3)
    return Answer("ok", {"value": object(), "broken": "\ud800"})


@tool(title="Noise", sets=("noise",), writes=False)
def noise(memory: Shelf) -> Answer:
    """Print to stdout in every way there is."""
    print("a stray print", flush=True)  # noqa: T201 - what the test is about
    os.write(1, b"a stray write\n")
    subprocess.run([sys.executable, "-c", "print('a child')"], check=True)
    read = sys.stdin.read() if sys.stdin else ""
    return Answer("printed", {"read": read, "nan": float("nan"), "broken": "\ud800", "t": (1,)})


def read_node(memory: Shelf, values: Mapping[str, str]) -> str:
    if values["node_id"] == "none":
        raise NotFoundError("No node none", "Valid: an id", "Search for it")
    return values["node_id"]


RESOURCES = (
    ResourceSpec("cortex://node/{node_id}", "node", "A node", "One node.", read_node),
    ResourceSpec(
        "cortex://search/{query}", "search", "Hits", "Found.", lambda _, values: values["query"]
    ),
    ResourceSpec("cortex://status", "status", "Status", "How it is.", lambda *_: "fine"),
)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--open", type=float, default=0.0)
    parser.add_argument("--fail", action="store_true")
    parser.add_argument("--crash", action="store_true")
    parser.add_argument("--read-only", action="store_true")
    parser.add_argument("--log", type=Path)
    args = parser.parse_args()

    def open_memory() -> Shelf:
        time.sleep(args.open)
        if args.fail:
            raise UnavailableError("the file is damaged", "", "Restore a backup")
        if args.crash:
            raise OSError("the secret detail")
        return Shelf(args.log)

    serve_stdio(
        select((echo, slow, fail, noise), "all", args.read_only),
        RESOURCES,
        open_memory,
        name="frame",
        version="1.2.3",
        instructions="Search before you write.",
    )


if __name__ == "__main__":
    main()
