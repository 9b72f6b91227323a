"""The worker's other end: starts the process when first asked, again when it died.

The process ends with its parent by itself: it sees the end of its stdin, and that its parent
is another. Linux's PR_SET_PDEATHSIG would kill it when the *thread* that started it ends,
and servers call from threads that come and go.
"""

from __future__ import annotations

import os
import queue
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from types import TracebackType
from typing import IO, TYPE_CHECKING, Any, Final

from analytics.protocol import Answer, decode_answer, encode_query
from analytics.queries import Query
from cortex.domain.activity import Row
from cortex.domain.errors import BusyError, CortexError, UnavailableError

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

_ROOT: Final = str(Path(__file__).resolve().parent.parent)
_FLAGS: Final[int] = getattr(subprocess, "CREATE_NO_WINDOW", 0)  # of Windows alone
_LAST_WORDS: Final = 2000
_READING: Final = 600.0  # seconds in which one that has not answered yet may read a large file


class Worker:
    """One child process that answers about one memory file; threads may share it.

    Questions are answered one at a time. `idle_seconds` after the last one the process ends;
    the next question starts it again. At 100,000 nodes starting takes some seconds.
    """

    def __init__(self, file: Path, *, idle_seconds: float = 300.0, timeout: float = 60.0) -> None:
        self._command = (
            sys.executable,
            "-P",  # the folder that it runs in may hold files named like our modules
            "-m",
            "analytics.worker",
            "--file",
            str(file.absolute()),
            "--idle",
            repr(idle_seconds),
        )
        self._timeout = timeout
        self._lock = threading.Lock()
        self._child: _Child | None = None
        self._number = 0
        self._closed = False

    @property
    def pid(self) -> int | None:
        """The process that runs now, if one does."""
        child = self._child
        return child.process.pid if child is not None and child.process.poll() is None else None

    def ask(
        self, query: Query[Row], *, timeout: float | None = None, wait: float | None = None
    ) -> Answer[Row]:
        """The answer, as fresh as the file is when the worker begins.

        Raises BusyError when it is not there within `timeout` seconds (the worker is ended,
        so as not to work for nobody, unless it still reads the file for the first time), or
        when others' questions or that reading keep it for longer than `wait` (it goes on),
        UnavailableError when the worker cannot run.
        """
        limit = self._timeout if timeout is None else timeout
        deadline = time.monotonic() + limit
        if not self._lock.acquire(timeout=max(limit if wait is None else min(wait, limit), 0.0)):
            raise _late()
        try:
            self._settle(deadline if wait is None else min(time.monotonic() + wait, deadline))
            return self._ask(query, deadline)
        finally:
            self._lock.release()

    def _settle(self, deadline: float) -> None:
        """Wait for the answer to an earlier question that nobody waits for any more."""
        child = self._child
        if child is None or not child.owes:
            return
        try:
            child.settle(deadline)
        except _DiedError:
            self._drop()
        except BusyError:
            if not child.reads:
                self._drop()
            raise

    def arrow(self, query: Query[Row], *, timeout: float | None = None) -> pa.Table:
        """The answer as an Arrow table; its columns are typed even where no row is.

        Raises UnavailableError where `mcp-cortex[frames]` is not installed, and as `ask`.
        """
        from analytics.frames import to_arrow

        return to_arrow(query, self.ask(query, timeout=timeout).rows)

    def pandas(self, query: Query[Row], *, timeout: float | None = None) -> pd.DataFrame:
        """The answer as a DataFrame. Raises as `arrow`."""
        from analytics.frames import to_pandas

        return to_pandas(query, self.ask(query, timeout=timeout).rows)

    def _ask(self, query: Query[Row], deadline: float) -> Answer[Row]:
        for again in (True, False):
            child = self._running()
            self._number += 1
            try:
                answer = child.exchange(self._number, query, deadline)
            except _DiedError as error:
                self._drop()
                if not again:
                    raise UnavailableError(
                        f"the analytics worker ended twice ({error})", "", "Call again later"
                    ) from error
            except BusyError:
                if not child.reads:
                    self._drop()
                raise
            except BaseException:  # interrupted: its answer would meet the next question
                self._drop()
                raise
            else:
                if isinstance(answer, CortexError):
                    raise answer
                return answer
        raise AssertionError("the second attempt returns or raises")

    def _running(self) -> _Child:
        if self._closed:
            raise UnavailableError("the analytics worker is closed", "", "Open the memory again")
        if self._child is None:
            self._child = _Child(self._command)
        return self._child

    def _drop(self) -> None:
        child, self._child = self._child, None
        if child is not None:
            child.end()

    def end(self) -> None:
        """End the process when it has answered; the next question starts another."""
        with self._lock:
            self._drop()

    def close(self) -> None:
        """End the process; a question that it is at ends with it."""
        self._closed = True
        child = self._child
        if child is not None:
            child.process.kill()  # whoever waits for it sees it die, and lets the lock go
        with self._lock:
            self._drop()

    def __enter__(self) -> Worker:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


class _DiedError(Exception):
    """The process ended before it answered; says what it wrote last."""


class _Child:
    """A running process; a thread carries its lines, since pipes have no timeout everywhere."""

    def __init__(self, command: tuple[str, ...]) -> None:
        self._errors: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115  # closed by end()
        inherited = os.environ.get("PYTHONPATH")
        path = os.pathsep.join([_ROOT, inherited] if inherited else [_ROOT])
        try:
            self.process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._errors,
                env={**os.environ, "PYTHONPATH": path},
                creationflags=_FLAGS,
            )
        except OSError as error:
            self._errors.close()
            raise UnavailableError(
                f"the analytics worker cannot start ({error})", "", "Check the Python installation"
            ) from error
        self.owes = False
        """Whether it was asked what nobody waits for any more."""
        self._answered = False
        self._began = time.monotonic()
        self._lines: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        self._carrier = threading.Thread(target=self._carry, name="analytics", daemon=True)
        self._carrier.start()

    def _carry(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self._lines.put(line)
        self.process.wait()
        self._lines.put(b"")

    @property
    def reads(self) -> bool:
        """Whether it still reads the file for the first time, which is worth waiting for."""
        return not self._answered and time.monotonic() - self._began < _READING

    def settle(self, deadline: float) -> None:
        self._line(deadline)
        self.owes = False

    def _line(self, deadline: float) -> bytes:
        try:
            line = self._lines.get(timeout=max(deadline - time.monotonic(), 0.0))
        except queue.Empty:
            raise _late() from None
        if not line:
            raise _DiedError(self._last_words())
        self._answered = True
        return line

    def exchange(
        self, number: int, query: Query[Row], deadline: float
    ) -> Answer[Row] | CortexError:
        assert self.process.stdin is not None
        try:
            self.process.stdin.write(encode_query(number, query))
            self.process.stdin.flush()
        except OSError as error:  # a closed pipe: it ended while nobody asked
            raise _DiedError(self._last_words()) from error
        self.owes = True
        line = self._line(deadline)
        self.owes = False
        try:
            answered, answer = decode_answer(line, query)
        except ValueError as error:
            raise _DiedError(f"it said {line[:80]!r}") from error
        if answered != number:
            raise _DiedError(f"it answered question {answered}, not {number}")
        return answer

    def _last_words(self) -> str:
        self._errors.seek(0, os.SEEK_END)
        self._errors.seek(max(self._errors.tell() - _LAST_WORDS, 0))
        lines = self._errors.read().decode(errors="replace").strip().splitlines()
        return lines[-1] if lines else f"exit code {self.process.poll()}"

    def end(self) -> None:
        self.process.kill()
        self._carrier.join()
        for pipe in (self.process.stdin, self.process.stdout, self._errors):
            _shut(pipe)


def _shut(pipe: IO[Any] | None) -> None:
    if pipe is None:
        return
    try:
        pipe.close()
    except BrokenPipeError:
        return  # what was left to send goes nowhere: the process is dead


def _late() -> BusyError:
    return BusyError(
        "the analytics worker did not answer in time",
        "",
        "Call again, or ask for a shorter window; nothing was changed",
    )
