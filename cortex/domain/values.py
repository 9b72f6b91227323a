"""The values that the floors pass to each other: ids, nodes, relations, generations."""

from __future__ import annotations

import hashlib
import json
import re
import uuid
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple, NewType

from cortex.domain.errors import InvalidError, TooLargeError
from cortex.domain.instants import Instant
from cortex.domain.taxonomy import NodeType, RelationType, Status

NodeId = NewType("NodeId", str)
RelationId = NewType("RelationId", str)
WorkspaceId = NewType("WorkspaceId", str)

MAX_TEXT: Final = 1 << 20
MAX_DATA: Final = 1 << 20
MAX_TITLE: Final = 500
MAX_PATH: Final = 4096
MAX_RELATION_DATA: Final = 1 << 16
MAX_TAGS: Final = 64
PREFIX: Final = 8

_UUID: Final = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_BROKEN: Final = re.compile("[\x00\ud800-\udfff]")
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f\ud800-\udfff]")


class Node(NamedTuple):
    """One memory. A tuple, since answers make thousands: a frozen dataclass takes twice as long.

    `key` is the integer by which derived stores know it: it rises with insertion and is
    never used again. `data` is the JSON object with title, text, tags, path, pinned and
    whatever else was given; it is the one mapping that travels inside.
    """

    key: int
    id: NodeId
    type: NodeType
    workspace_id: WorkspaceId
    parent_id: NodeId | None
    data: Mapping[str, Any]
    status: Status
    created_at: Instant
    updated_at: Instant

    @property
    def title(self) -> str:
        """Its title; without one, the start of its text, else its path."""
        title = self.data.get("title")
        if isinstance(title, str) and title:
            return title
        return shorten(self.text, 80) or str(self.data.get("path") or "")

    @property
    def text(self) -> str:
        text = self.data.get("text")
        return text if isinstance(text, str) else ""

    @property
    def tags(self) -> tuple[str, ...]:
        tags = self.data.get("tags")
        return tuple(str(tag) for tag in tags) if isinstance(tags, list) else ()

    @property
    def pinned(self) -> bool:
        return self.data.get("pinned") is True


class Relation(NamedTuple):
    """One typed, directed link; `contradicts` and `related_to` are stored smaller id first."""

    key: int
    id: RelationId
    workspace_id: WorkspaceId
    from_id: NodeId
    to_id: NodeId
    type: RelationType
    weight: float
    data: Mapping[str, Any]
    created_at: Instant
    updated_at: Instant

    @property
    def derived(self) -> bool:
        return self.data.get("derived") is True


class Generation(NamedTuple):
    """What a derived store reflects (invariant 3).

    `epoch` changes when the whole file was replaced; `floor` is the last seq that was
    folded away; `seq` is the newest change; `embeddings` the newest vector written.
    """

    epoch: str
    floor: int
    seq: int
    embeddings: int


def new_id() -> str:
    """A UUID version 4."""
    return str(uuid.uuid4())


def id_from(*parts: str) -> NodeId:
    """An id that follows from the parts: 122 bits of their hash in the form of version 4."""
    digest = hashlib.sha256("\x00".join(parts).encode("utf-8", "surrogatepass")).digest()
    return NodeId(str(uuid.UUID(bytes=digest[:16], version=4)))


def is_id(text: str) -> bool:
    """Whether the text is a whole id in canonical form."""
    return _UUID.fullmatch(text) is not None


def clean(text: str) -> str:
    """The text with each lone surrogate and NUL replaced by U+FFFD; else unchanged."""
    if text.isascii() and "\x00" not in text:  # known at once, where the pattern visits each one
        return text
    return _BROKEN.sub("\ufffd", text)


def clean_json(value: Any) -> Any:
    """`clean` for every string inside a JSON value, keys included."""
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, list):
        return [clean_json(item) for item in value]
    if isinstance(value, dict):
        return {clean(str(key)): clean_json(item) for key, item in value.items()}
    return value


def shorten(text: str, limit: int) -> str:
    """The text on one line, at most `limit` characters, with … where it was cut."""
    head = text[: limit + 1]
    # Printable is no line break, tab or wide space: a fifth of the time of splitting.
    plain = head.isprintable() and "  " not in head and head[:1] != " " != head[-1:]
    line = head if plain else " ".join(text[: limit * 4].split())
    return line if len(line) <= limit else line[: max(limit - 1, 0)].rstrip() + "…"


def text_hash(title: str, text: str) -> str:
    """32 hexadecimal digits that change when what is embedded changes."""
    return hashlib.sha256(f"{title}\x00{text}".encode()).hexdigest()[:32]


def workspace_name(text: str) -> WorkspaceId:
    """A workspace's name, trimmed: 1 to 200 characters, none of them a control character."""
    name = text.strip()
    if not name or len(name) > 200 or _CONTROL.search(name):
        raise InvalidError(
            f"workspace_id {shorten(ascii(text), 60)} is not a name",
            "Valid: 1 to 200 characters without control characters",
            "Leave it out to use this project's workspace",
        )
    return WorkspaceId(name)


# The C scanner behind json.loads; its type stubs do not name it.
_scan: Final[Callable[[str, int], tuple[Any, int]]] = vars(json.JSONDecoder())["scan_once"]


def unpack(text: str) -> dict[str, Any]:
    """The object of a stored JSON text, without what no text may hold (see `clean`).

    Ours begin with the brace, so the scanner is called directly: a third of the time of
    `json.loads`. What a foreign shell padded is read the long way; only it escapes characters.
    """
    if text == "{}":
        return {}
    try:
        value, end = _scan(text, 0)
    except StopIteration:
        end = -1
    if end != len(text):
        value = json.loads(text)
    found: dict[str, Any] = clean_json(value) if "\\u" in text else value
    return found


def burden(text: str) -> int:
    """About how many bytes the values of a stored JSON text take in memory."""
    return 4 * len(text) + 64 * (text.count(",") + text.count("{") + text.count("["))


def pack(data: Mapping[str, Any]) -> str:
    """The stored JSON text of a node's or relation's data.

    Raises InvalidError for NaN and infinities, TooLargeError above MAX_DATA characters
    beside the text.
    """
    try:
        packed = json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    except (ValueError, TypeError) as error:
        raise InvalidError(
            f"data cannot be kept as JSON ({error})", "Valid: JSON values", "Correct data"
        ) from None
    if len(packed) > MAX_DATA + 2 * MAX_TEXT:
        raise TooLargeError(
            f"data has {len(packed):,} characters",
            f"Valid: up to {MAX_DATA:,}",
            "Keep a fileref to the file instead",
        )
    return packed
