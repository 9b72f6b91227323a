"""What an answer of Qdrant, or none, means: the error to raise, and what the circuit hears."""

from __future__ import annotations

from typing import NamedTuple

from cortex.domain.errors import UnavailableError


class MissingError(UnavailableError):
    """The collection is not there."""


class ConflictedError(UnavailableError):
    """The collection is there and holds something else."""


class Fault(NamedTuple):
    """`error` to raise; `out` when the server is to blame, and `at_once` when the next call
    would only fail as slowly, or as surely."""

    error: UnavailableError
    out: bool
    at_once: bool = False


def unanswered(source: object, place: str) -> Fault:
    """No answer came, or none that could be read."""
    import httpx

    then = "Check CORTEX_QDRANT_URL and that server"
    slow = isinstance(source, httpx.TimeoutException)
    if slow:
        problem = f"Qdrant at {place} did not answer in time"
    elif isinstance(source, httpx.ConnectError):
        problem = f"Qdrant at {place} cannot be reached"
    elif isinstance(source, httpx.HTTPError):
        problem = f"Qdrant at {place} broke off its answer ({type(source).__name__})"
    else:
        problem = f"what answers at {place} does not speak Qdrant's protocol"
    return Fault(UnavailableError(problem, "", then), True, slow)


def busy(place: str) -> Fault:
    """Too many requests; the circuit paces the next ones."""
    return Fault(UnavailableError(f"Qdrant at {place} is busy (429)"), True)


def refused(code: int, content: bytes, place: str) -> Fault:
    """An answer other than 2xx."""
    if code in (401, 403):
        problem = f"Qdrant at {place} refuses the API key ({code})"
        then = "Set CORTEX_QDRANT_API_KEY and start again"
        return Fault(UnavailableError(problem, "", then), True, True)
    if code >= 500 or code in (408, 429) or code < 400:
        problem = f"Qdrant at {place} answered {code}"
        return Fault(UnavailableError(problem, "", "Look at that server's log"), True)
    if code == 404:
        return Fault(MissingError(f"Qdrant at {place} has no such collection"), False)
    said = content[:200].decode("utf-8", "replace")
    problem = f"Qdrant at {place} refused the request ({code}): {said}"
    return Fault(UnavailableError(problem, "", "`cortex status` shows what is pushed"), False)
