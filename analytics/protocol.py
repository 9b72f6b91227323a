"""The lines between a process and its worker: one JSON object each, a number to pair them."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any, Final, Generic

from analytics.queries import QUERIES, Mirrored, Query
from cortex.domain.activity import Row
from cortex.domain.errors import (
    BusyError,
    CortexError,
    InvalidError,
    NotFoundError,
    TooLargeError,
    UnavailableError,
)

_ERRORS: Final[dict[str, type[CortexError]]] = {
    kind.code: kind
    for kind in (NotFoundError, InvalidError, TooLargeError, BusyError, UnavailableError)
}


@dataclass(frozen=True, slots=True)
class Answer(Generic[Row]):
    """Rows, the generation that they reflect, and what could not be read.

    `unread` names each bad cell of the file: its row is in no answer.
    """

    rows: tuple[Row, ...]
    generation: Mirrored
    unread: tuple[str, ...] = ()


def encode_query(number: int, query: Query[Any]) -> bytes:
    """The line of a question."""
    arguments = asdict(query)  # type: ignore[call-overload]  # every query is a dataclass
    return _line({"number": number, "query": type(query).__name__, "arguments": arguments})


def decode_query(line: bytes) -> tuple[int, Query[Any]]:
    """Number and query of a line."""
    said = json.loads(line)
    arguments = {
        name: tuple(value) if isinstance(value, list) else value
        for name, value in said["arguments"].items()
    }
    return said["number"], QUERIES[said["query"]](**arguments)


def encode_rows(rows: Iterable[Row]) -> bytes:
    """JSON of the rows; they are let go one by one, since an answer may hold 100,000."""
    return b"[" + b",".join(_json(row) for row in rows) + b"]"


def encode_answer(number: int, rows: bytes, generation: Mirrored, unread: tuple[str, ...]) -> bytes:
    """The line of an answer."""
    beside = _json({"number": number, "generation": generation, "unread": unread})
    return b'{"rows":' + rows + b"," + beside[1:] + b"\n"


def encode_error(number: int, error: CortexError) -> bytes:
    """The line of a refusal."""
    return _line({"number": number, "error": [error.code, error.message]})


def decode_answer(line: bytes, query: Query[Row]) -> tuple[int, Answer[Row] | CortexError]:
    """Number of a line, and its answer or refusal."""
    said = json.loads(line)
    if "error" in said:
        code, message = said["error"]
        return said["number"], _ERRORS[code](message)
    rows: Any = tuple(query.row(*row) for row in said["rows"])
    return said["number"], Answer(rows, Mirrored(*said["generation"]), tuple(said["unread"]))


def _json(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()


def _line(value: Any) -> bytes:
    return _json(value) + b"\n"
