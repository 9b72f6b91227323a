"""The worker's process: reads questions from stdin, answers on stdout, ends with its parent.

Its parent may be killed at any moment. A thread waits on stdin and ends the process at its
end, even in the middle of a query; another watches that the parent stays the same, for the
case that somebody else holds the pipe open. Reading alone, it leaves nothing half done.
"""

from __future__ import annotations

import argparse
import os
import queue
import signal
import sys
import threading
import time
from pathlib import Path
from typing import Final

from analytics.protocol import decode_query, encode_answer, encode_error, encode_rows
from analytics.worker.answers import answer_rows
from analytics.worker.attached import Attached
from analytics.worker.mirror import Mirror
from cortex.domain.errors import CortexError

_WATCH: Final = 1.0


def main() -> None:
    """Answer until the parent is gone or nobody asked for `--idle` seconds."""
    parser = argparse.ArgumentParser(prog="python -m analytics.worker", description=__doc__)
    parser.add_argument("--file", type=Path, required=True, help="the memory's SQLite file")
    parser.add_argument("--idle", type=float, default=300.0, help="seconds without a question")
    given = parser.parse_args()
    parent = os.getppid()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is meant for the parent
    # What a library prints must not come between the answers.
    out = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    lines: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    threading.Thread(target=_read, args=(lines,), daemon=True).start()
    if os.name == "posix":
        threading.Thread(target=_watch, args=(parent,), daemon=True).start()
    mirror: Mirror | None = None
    while True:
        try:
            line = lines.get(timeout=given.idle)
        except queue.Empty:
            return
        number, query = decode_query(line)
        try:
            if mirror is None:
                mirror = Mirror(Attached(given.file))
            with mirror.snapshot() as view:
                rows = encode_rows(answer_rows(view, query))
                reply = encode_answer(number, rows, view.generation, view.unread())
        except CortexError as error:
            reply = encode_error(number, error)
        out.write(reply)
        out.flush()


def _read(lines: queue.SimpleQueue[bytes]) -> None:
    for line in sys.stdin.buffer:
        lines.put(line)
    os._exit(0)


def _watch(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(_WATCH)
    os._exit(0)


if __name__ == "__main__":
    main()
