"""What a damaged file gives that SQLite itself does not notice: rows that say what cannot be."""

from __future__ import annotations

from cortex.domain.errors import UnavailableError


def damaged_row(what: str, name: object) -> UnavailableError:
    """The error for a row whose values no cortex writes, such as an unknown type."""
    return UnavailableError(
        f"the file is damaged: {what} {ascii(name)[:60]} cannot be read",
        "",
        "Restore a backup; the file was not changed",
    )
