"""Where a server's own words go: warnings to stderr, what it does to a file of its home.

Hosts show what a server says on stderr as errors, so it says little there. The file belongs to
one process: `logs/cortex-TIME-PID.log`. Sharing one among processes would need a lock around
each line — a process stopped while it holds it would stop the tools of all the others — and
`RotatingFileHandler` cannot do it at all: each process would rotate the file away under the
rest, and Windows refuses to. So each rotates its own, and the oldest are removed at a start.

No text of a memory is logged, whatever the level: names, counts, durations, outcomes.
"""

from __future__ import annotations

import logging
import os
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from io import TextIOWrapper
from logging.handlers import RotatingFileHandler
from pathlib import Path
from typing import Final

from cortex.domain.errors import InvalidError

SIZE: Final = 1_000_000
ROTATED: Final = 3
KEPT: Final = 20

_LEVELS: Final = {
    "debug": logging.DEBUG,
    "info": logging.INFO,
    "warning": logging.WARNING,
    "error": logging.ERROR,
}


@dataclass(frozen=True, slots=True)
class LogTarget:
    """What CORTEX_LOG asks: `level` None for no file; `path` None for one in the home."""

    level: int | None = logging.INFO
    path: Path | None = None


def log_target(text: str) -> LogTarget:
    """`LEVEL`, `LEVEL:PATH` or `off`; "" is `info`. Raises InvalidError for anything else."""
    name, _, path = text.strip().partition(":")
    level = name.strip().lower() or "info"
    if level == "off":
        return LogTarget(None)
    if level not in _LEVELS:
        raise InvalidError(
            f"CORTEX_LOG={text!r} has no level",
            f"Valid: {', '.join(_LEVELS)}, off, or LEVEL:PATH",
            "Correct or unset CORTEX_LOG",
        )
    named = path.strip()
    return LogTarget(_LEVELS[level], Path(named).expanduser().absolute() if named else None)


def set_up_logging(home: Path, env: Mapping[str, str] | None = None) -> Path | None:
    """Warnings to stderr, and our own lines from the asked level up to a file; the file's path.

    A file that cannot be made is said on stderr and does without: memory matters more than
    its log. Raises InvalidError for a CORTEX_LOG that cannot be meant.
    """
    target = log_target((os.environ if env is None else env).get("CORTEX_LOG", ""))
    quiet = logging.StreamHandler(sys.stderr)
    quiet.setLevel(logging.WARNING)
    quiet.setFormatter(logging.Formatter("%(levelname)s %(name)s: %(message)s"))
    # The root stays at WARNING: what libraries say below that may quote what passes through.
    logging.basicConfig(level=logging.WARNING, handlers=[quiet], force=True)
    ours = logging.getLogger("cortex")
    ours.setLevel(logging.WARNING)
    if target.level is None:
        return None
    try:
        handler = _handler(home / "logs", target.path)
    except OSError as error:
        ours.warning("no log file: %s", error)
        return None
    handler.setLevel(target.level)
    logging.getLogger().addHandler(handler)
    ours.setLevel(min(target.level, logging.WARNING))
    return Path(handler.baseFilename)


def _handler(folder: Path, named: Path | None) -> _OwnFile:
    if named is not None:
        # A file that its owner named may be shared, and is his to rotate: appended to, a line
        # at a time.
        return _OwnFile(named, 0)
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    _remove_oldest(folder)
    stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
    return _OwnFile(folder / f"cortex-{stamp}-{os.getpid()}.log", SIZE)


class _OwnFile(RotatingFileHandler):
    """A file that only its owner reads; when it can no longer be written, it is let go."""

    def __init__(self, path: Path, size: int) -> None:
        super().__init__(path, maxBytes=size, backupCount=ROTATED, encoding="utf-8")
        formatter = logging.Formatter(
            "%(asctime)s.%(msecs)03dZ %(levelname)s %(name)s: %(message)s", "%Y-%m-%dT%H:%M:%S"
        )
        formatter.converter = time.gmtime
        self.setFormatter(formatter)

    def _open(self) -> TextIOWrapper:
        # Always "a", which is the mode of the base class here: the type follows from the letter.
        return open(
            self.baseFilename,
            "a",
            encoding="utf-8",
            errors="backslashreplace",
            opener=lambda path, flags: os.open(path, flags, 0o600),
        )

    def handleError(self, record: logging.LogRecord) -> None:
        error = sys.exc_info()[1]
        if not isinstance(error, OSError):  # a slip in a call of ours: show where
            super().handleError(record)
            return
        logging.getLogger().removeHandler(self)
        logging.getLogger(__name__).warning("the log file is given up: %s", error)


def _remove_oldest(folder: Path) -> None:
    """Leave room for one more among KEPT files; those of running processes stay."""
    files = sorted(folder.glob("cortex-*.log*"), key=lambda file: file.name, reverse=True)
    if len(files) < KEPT:
        return
    import psutil  # 20 ms that most starts can do without

    for file in files[KEPT - 1 :]:
        process = file.name.split(".")[0].rpartition("-")[2]
        if process.isdigit() and psutil.pid_exists(int(process)):
            continue
        try:
            file.unlink(missing_ok=True)
        except OSError as error:  # on Windows, somebody reads it
            logging.getLogger(__name__).debug("%s stays: %s", file, error)
