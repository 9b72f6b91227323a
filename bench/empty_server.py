"""The real server with two more tools: `empty`, which says nothing, and `ready`, which says as
much as a `get` of ten nodes does, and had it ready.

What a tool costs beyond the first is the tool's own; the rest is the protocol's. What it costs
beyond the second is the making of its answer, without sending and reading it. They go the same
way as any other: registry, rate, thread, result, log.
Run as the server is: python -m bench.empty_server serve --home FOLDER …
"""

from __future__ import annotations

from typing import Final

from cortex.server.wire import claim

_EACH: Final = 10  # nodes, and relations: with so many fields 7,500 characters of JSON
_FIELDS: Final = (11, 7)
_LINES: Final = "word " * 360


def main() -> None:
    """Add the tool to the catalogue, then be `python -m cortex`."""
    claim()  # first, as the real one does: nothing imported below can print into the protocol
    from cortex.__main__ import main as cortex
    from cortex.tools import catalogue
    from cortex.tools.registry import Answer, Written, tool
    from cortex.tools.render import written

    objects = [
        {f"field {number}": "x" * 28 for number in range(fields)}
        for fields in _FIELDS
        for _ in range(_EACH)
    ]
    stored = Answer(_LINES, {"objects": Written(objects, written(objects))})

    @tool(title="Nothing", sets=("roo", "core"), writes=False)
    def empty(memory: object) -> Answer:
        """Do nothing."""
        return Answer("")

    @tool(title="Something", sets=("roo", "core"), writes=False)
    def ready(memory: object) -> Answer:
        """Say what is stored."""
        return stored

    # Before the command that serves imports it.
    vars(catalogue)["TOOLS"] = (*catalogue.TOOLS, empty, ready)
    cortex()


if __name__ == "__main__":
    main()
