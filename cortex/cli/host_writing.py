"""A file of somebody else's, replaced in one step, with a copy of what it was beside it."""

from __future__ import annotations

import os
import secrets
import shutil
import time
from dataclasses import dataclass
from pathlib import Path

from cortex.domain.errors import ConflictError, InvalidError, UnavailableError


@dataclass(frozen=True, slots=True)
class Written:
    """What became of a file: `changed` is false when it said so already."""

    path: Path
    changed: bool
    backup: Path | None = None


def read_text(path: Path) -> str:
    """The file's text, its line ends as they are; "" when there is none.

    Raises InvalidError for a text that is not UTF-8, UnavailableError when it cannot be read.
    """
    try:
        return path.read_bytes().decode("utf-8")
    except FileNotFoundError:
        return ""
    except UnicodeDecodeError as error:
        raise InvalidError(
            f"{path} is not UTF-8 (byte {error.start})", "Valid: UTF-8", "Save it as UTF-8 first"
        ) from error
    except OSError as error:
        raise _unavailable(path, "read", error) from error


def write_text(path: Path, old: str, new: str) -> Written:
    """Replace the text `old` by `new`; nothing is done where they are the same.

    What stood there is kept beside it as `NAME.bak-YYYYMMDDHHMMSS`. The new text is written to
    a temporary file, which then takes the name, with the old mode. A link is followed, so that
    a file kept elsewhere stays there. Raises ConflictError when the file has changed since it
    was read.
    """
    if old == new:
        return Written(path, changed=False)
    target = path.resolve()
    draft = target.with_name(f".{target.name}.{secrets.token_hex(4)}.tmp")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with draft.open("xb") as file:
            file.write(new.encode("utf-8"))
            file.flush()
            os.fsync(file.fileno())
        if read_text(target) != old:  # its host may be running, and write it too
            raise ConflictError(
                f"{path} changed while it was edited", "", "Close its host, then repeat"
            )
        backup = None
        if target.exists():
            shutil.copymode(target, draft)
            backup = _kept(target)
        draft.replace(target)
    except OSError as error:
        raise _unavailable(path, "written", error) from error
    finally:
        draft.unlink(missing_ok=True)
    return Written(path, changed=True, backup=backup)


def _kept(path: Path) -> Path:
    """A copy beside the file, under a name that was free."""
    stamp = time.strftime("%Y%m%d%H%M%S")
    backup = path.with_name(f"{path.name}.bak-{stamp}")
    number = 1
    while backup.exists():
        number += 1
        backup = path.with_name(f"{path.name}.bak-{stamp}-{number}")
    shutil.copy2(path, backup)
    return backup


def _unavailable(path: Path, done: str, error: OSError) -> UnavailableError:
    return UnavailableError(
        f"{path} cannot be {done}: {error.strerror or error}",
        "",
        "Repair its permissions or name another folder; nothing was changed",
    )
