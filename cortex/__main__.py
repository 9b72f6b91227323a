"""`cortex` and `python -m cortex`: the command line; with options alone, the server."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command line.

    `python -m cortex --workspace NAME` serves on stdio, as the concept writes it. A server
    claims stdin and stdout before anything else is imported, so that no stray print of an
    import can reach the protocol.
    """
    arguments = sys.argv[1:]
    bare = not arguments and not sys.stdin.isatty()
    if bare or (arguments and arguments[0].startswith("--") and not _is_global(arguments[0])):
        arguments = ["serve", *arguments]
    if arguments[:1] == ["serve"] and "--help" not in arguments:
        from cortex.server.wire import claim

        claim()
    from cortex.cli.app import run

    run(arguments)


def _is_global(option: str) -> bool:
    return option in ("--help", "--version", "--install-completion", "--show-completion")


if __name__ == "__main__":
    main()
