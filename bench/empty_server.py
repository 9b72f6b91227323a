"""The real server with one more tool, `empty`, which takes nothing and says nothing.

What a tool costs beyond it is the tool's own; the rest is the protocol's. It goes the same
way as any other: registry, rate, thread, result, log.
Run as the server is: python -m bench.empty_server serve --home FOLDER …
"""

from __future__ import annotations

from cortex.server.wire import claim


def main() -> None:
    """Add the tool to the catalogue, then be `python -m cortex`."""
    claim()  # first, as the real one does: nothing imported below can print into the protocol
    from cortex.__main__ import main as cortex
    from cortex.tools import catalogue
    from cortex.tools.registry import Answer, tool

    @tool(title="Nothing", sets=("roo", "core"), writes=False)
    def empty(memory: object) -> Answer:
        """Do nothing."""
        return Answer("")

    # Before the command that serves imports it.
    vars(catalogue)["TOOLS"] = (*catalogue.TOOLS, empty)
    cortex()


if __name__ == "__main__":
    main()
