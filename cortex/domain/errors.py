"""Errors, named by what the caller can do next.

    CortexError              code         the caller should …
    ├── NotFoundError        not_found    name another node, or search for it
    ├── AmbiguousError       ambiguous    give more of the id
    ├── InvalidError         invalid      correct the argument that is named
    ├── ConflictError        conflict     read the present state, then decide
    ├── StaleTargetError     stale_target use the active head that is named
    ├── TooLargeError        too_large    split or shorten
    ├── BusyError            busy         call again; nothing was changed
    └── UnavailableError     unavailable  repair what is named; nothing was changed

Every message has one line of three parts: what was wrong, what is valid, and what to do
next.
"""

from __future__ import annotations

from typing import ClassVar


class CortexError(Exception):
    """The root of all errors that cortex raises on purpose."""

    code: ClassVar[str] = "invalid"

    def __init__(self, wrong: str, valid: str = "", then: str = "") -> None:
        parts = (part.strip().rstrip(".") for part in (wrong, valid, then))
        self.message = " ".join(f"{part}." for part in parts if part).replace("\n", " ")
        super().__init__(self.message)

    def __str__(self) -> str:
        return f"{self.code}: {self.message}"


class NotFoundError(CortexError):
    code = "not_found"


class AmbiguousError(CortexError):
    code = "ambiguous"


class InvalidError(CortexError):
    code = "invalid"


class ConflictError(CortexError):
    code = "conflict"


class StaleTargetError(CortexError):
    code = "stale_target"


class TooLargeError(CortexError):
    code = "too_large"


class BusyError(CortexError):
    code = "busy"


class UnavailableError(CortexError):
    code = "unavailable"
