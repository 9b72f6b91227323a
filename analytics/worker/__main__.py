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
import traceback
from pathlib import Path
from types import TracebackType
from typing import Any, Final

from analytics.protocol import decode_query, encode_answer, encode_error, encode_rows
from analytics.queries import Query
from analytics.worker.answers import answer_rows
from analytics.worker.attached import Attached
from analytics.worker.mirror import Mirror
from cortex.domain.errors import CortexError

_WATCH: Final = 1.0
_LONG_LOG: Final = 16_000_000  # bytes; writers begin a checkpoint at 4 million
_PAUSE: Final = 0.1  # seconds; some commits long


def main() -> None:
    """Answer until the parent is gone or nobody asked for `--idle` seconds."""
    parser = argparse.ArgumentParser(prog="python -m analytics.worker", description=__doc__)
    parser.add_argument("--file", type=Path, required=True, help="the memory's SQLite file")
    parser.add_argument("--idle", type=float, default=300.0, help="seconds without a question")
    given = parser.parse_args()
    parent = os.getppid()
    # DuckDB looks for it to bind the first parameter: 90 MB with pyarrow, which nothing here uses.
    sys.modules["pandas"] = None  # type: ignore[assignment]  # so an import says: not there
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is meant for the parent
    # What a library prints must not come between the answers.
    out = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    lines: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    threading.Thread(target=_read, args=(lines,), daemon=True).start()
    if os.name == "posix":
        threading.Thread(target=_watch, args=(parent,), daemon=True).start()
    mirror: Mirror | None = None
    rest = _Rest(given.file)
    while True:
        try:
            line = lines.get(timeout=given.idle)
        except queue.Empty:
            return
        number, query = decode_query(line)
        try:
            if mirror is None:
                mirror = Mirror(Attached(given.file))
            reply = _reply(mirror, number, query)
        except CortexError as error:
            reply = encode_error(number, error)
        out.write(reply)
        out.flush()
        rest.after_answer()


def _reply(mirror: Mirror, number: int, query: Query[Any]) -> bytes:
    """The answer's line; a measure runs when the file is let go already."""
    with mirror.snapshot() as view:
        found = answer_rows(view, query)
        rows = b"" if callable(found) else encode_rows(found)
        generation, unread = view.generation, view.unread()
    if callable(found):
        rows = encode_rows(found())
    return encode_answer(number, rows, generation, unread)


class _Rest:
    """Lets writers finish their checkpoint: readers without a pause keep the log from its end.

    A pause after an answer, while the log is long and grows; size alone is looked at, since
    to open the file here would drop the locks of the SQLite inside of DuckDB.
    """

    def __init__(self, file: Path) -> None:
        self._log = file.with_name(file.name + "-wal")
        self._seen = 0

    def after_answer(self) -> None:
        try:
            size = self._log.stat().st_size
        except FileNotFoundError:  # the last writer closed the file, and took it along
            size = 0
        if size > max(self._seen, _LONG_LOG):
            time.sleep(_PAUSE)
        self._seen = size


def _last_words(
    kind: type[BaseException], error: BaseException, trace: TracebackType | None
) -> None:
    """Say what went wrong and end: the thread that reads would spoil Python's own exit."""
    traceback.print_exception(kind, error, trace)
    sys.stderr.flush()
    os._exit(1)


def _read(lines: queue.SimpleQueue[bytes]) -> None:
    for line in sys.stdin.buffer:
        lines.put(line)
    os._exit(0)


def _watch(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(_WATCH)
    os._exit(0)


if __name__ == "__main__":
    sys.excepthook = _last_words
    main()
