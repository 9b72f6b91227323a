"""What embedding endpoints are asked, and what they must answer: two protocols.

OpenAI's: `POST …/v1/embeddings {model, input, encoding_format}` gives `data[i].embedding`
with its `index`. Ollama's own: `POST …/api/embed {model, input}` gives `embeddings` in order,
and `GET …/api/tags` the digest of each model. Nothing here opens a connection.
Sources: OpenAI API reference, Embeddings; Ollama docs/api.md, Generate Embeddings.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal
from urllib.parse import urlsplit

import numpy as np
from numpy.typing import NDArray

Dialect = Literal["openai", "ollama"]

_OLLAMA_PORT: Final = 11434
_OPENAI_END: Final = re.compile(r"/v\d+$")


class MalformedReply(ValueError):
    """An answer that is none; says what is wrong with it."""


@dataclass(frozen=True, slots=True)
class Route:
    """A way to ask: the protocol, where to post, and where its other paths begin."""

    dialect: Dialect
    url: str
    root: str

    @property
    def tags(self) -> str:
        """Where Ollama lists its models."""
        return f"{self.root}/api/tags"


def routes_of(url: str, dialect: Dialect | None = None) -> tuple[Route, ...]:
    """The ways to try, in order: one where the URL says which, else both protocols.

    A path that ends in a version (`/v1`) or in `/embeddings` is OpenAI's; `/api/embed` and
    the bare port 11434 are Ollama's. A given `dialect` overrules what the URL says.
    """
    path = urlsplit(url).path
    if path.endswith("/api/embed"):
        root, own = url.removesuffix("/api/embed"), Route("ollama", url, "")
    elif path.endswith("/embeddings"):
        root, own = _OPENAI_END.sub("", url.removesuffix("/embeddings")), Route("openai", url, "")
    elif _OPENAI_END.search(path):
        root, own = _OPENAI_END.sub("", url), Route("openai", f"{url}/embeddings", "")
    else:
        root, own = url, None
    ollama = Route("ollama", f"{root}/api/embed", root)
    openai = Route("openai", f"{root}/v1/embeddings", root)
    if own is not None and dialect in (None, own.dialect):
        return (Route(own.dialect, own.url, root),)
    if dialect == "ollama":
        return (ollama,)
    beside = (Route("openai", f"{root}/embeddings", root),) if urlsplit(root).path else ()
    if dialect == "openai":
        return (openai, *beside)
    if not path and urlsplit(url).port == _OLLAMA_PORT:
        return (ollama,)
    return (openai, ollama, *beside)


def body_of(route: Route, model: str, texts: Sequence[str]) -> dict[str, Any]:
    """What is posted."""
    body: dict[str, Any] = {"model": model, "input": list(texts)}
    if route.dialect == "openai":
        body["encoding_format"] = "float"
    return body


def vectors_of(route: Route, reply: object, count: int) -> NDArray[np.float32]:
    """The vectors of an answer, shape (count, dimension), in the order of the texts.

    Raises MalformedReply for another count, for rows of unequal lengths or of length 0, and
    for NaN or infinity.
    """
    rows = _rows(route, reply)
    if len(rows) != count:
        raise MalformedReply(f"it gave {len(rows)} vectors for {count} texts")
    try:
        found = np.asarray(rows, np.float32)
    except (ValueError, TypeError, OverflowError) as error:
        raise MalformedReply("it gave vectors that are not rows of equally many numbers") from error
    if found.ndim != 2 or not found.shape[1]:
        raise MalformedReply("it gave vectors that are not rows of numbers")
    lengths = np.linalg.norm(found.astype(np.float64), axis=1, keepdims=True)
    if not np.isfinite(lengths).all() or not lengths.all():
        raise MalformedReply("it gave a vector with NaN, infinity or length 0")
    unit: NDArray[np.float32] = (found / lengths).astype(np.float32)
    return unit


def _rows(route: Route, reply: object) -> list[Any]:
    if not isinstance(reply, dict):
        raise MalformedReply("it gave no JSON object")
    rows = reply.get("embeddings" if route.dialect == "ollama" else "data")
    if not isinstance(rows, list):
        raise MalformedReply("it gave no vectors")
    if route.dialect == "ollama":
        return rows
    if not all(isinstance(row, dict) for row in rows):
        raise MalformedReply("it gave no vectors")
    places = [row.get("index", nth) for nth, row in enumerate(rows)]
    if sorted(map(str, places)) != sorted(map(str, range(len(rows)))):
        raise MalformedReply("it gave vectors whose indexes are not those of the texts")
    by_place = {int(place): row.get("embedding") for place, row in zip(places, rows, strict=True)}
    return [by_place[nth] for nth in range(len(rows))]


def digest_of(reply: object, model: str) -> str:
    """12 characters of the digest that Ollama's list gives for a model; "" when it is not there.

    A name without a tag means `latest`, as it does to Ollama.
    """
    listed = reply.get("models") if isinstance(reply, dict) else None
    wanted = model if ":" in model.rpartition("/")[2] else f"{model}:latest"
    for entry in listed if isinstance(listed, list) else ():
        if isinstance(entry, dict) and entry.get("name") == wanted:
            return str(entry.get("digest", "")).removeprefix("sha256:")[:12]
    return ""


def error_of(reply: object) -> str:
    """What an endpoint says is wrong, in its own words; "" when it says nothing."""
    said = reply.get("error", reply.get("message")) if isinstance(reply, dict) else None
    if isinstance(said, dict):
        said = said.get("message")
    return " ".join(said.split())[:200] if isinstance(said, str) else ""
