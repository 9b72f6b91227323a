"""`cortex` and `python -m cortex`: the command line; with options alone, the server."""

from __future__ import annotations

import contextlib
import os
import sys
import threading
from typing import NoReturn


def main() -> None:
    """Run the command line.

    `python -m cortex --workspace NAME` serves on stdio, as the concept writes it. What is no
    command is a question, and searched for. A server
    claims stdin and stdout before anything else is imported, so that no stray print of an
    import can reach the protocol.
    """
    arguments = sys.argv[1:]
    completing = "_CORTEX_COMPLETE" in os.environ  # a shell asks for what may be typed
    bare = not arguments and not completing and not sys.stdin.isatty()
    if bare or (arguments and arguments[0].startswith("--") and not _is_global(arguments[0])):
        arguments = ["serve", *arguments]
    if arguments[:1] == ["serve"] and "--help" not in arguments:
        from cortex.server.wire import claim

        claim()
    from cortex.cli.app import command_names, run
    from cortex.cli.questions import with_search

    try:
        run(with_search(arguments, command_names()))
    except SystemExit as leaving:
        _leave(leaving)


def _leave(leaving: SystemExit) -> NoReturn:
    """End with the command's code.

    A background thread may still be loading the model: the interpreter's own end would unwind
    it inside C++, which aborts the process. Everything that lasts is closed by now.
    """
    here = threading.current_thread()
    if not any(each.daemon and each is not here for each in threading.enumerate()):
        raise leaving
    for stream in (sys.stdout, sys.stderr):
        # Whoever read them may be gone.
        with contextlib.suppress(OSError, ValueError):
            stream.flush()
    os._exit(leaving.code if isinstance(leaving.code, int) else int(leaving.code is not None))


def _is_global(option: str) -> bool:
    return option in ("--help", "--version", "--install-completion", "--show-completion")


if __name__ == "__main__":
    main()
