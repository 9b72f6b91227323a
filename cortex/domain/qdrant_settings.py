"""Where a Qdrant server is, as the environment says."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import urlsplit

from cortex.domain.errors import InvalidError

COLLECTION: Final = "cortex_memory"
TIMEOUT: Final = 3.0
_NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,200}")


@dataclass(frozen=True, slots=True)
class QdrantSettings:
    """`timeout` is seconds a search waits for one answer; whole ones, the client's unit.

    `api_key` is no part of any representation.
    """

    url: str
    api_key: str | None = field(default=None, repr=False)
    timeout: float = TIMEOUT
    collection: str = COLLECTION

    @classmethod
    def read(cls, env: Mapping[str, str]) -> QdrantSettings | None:
        """None where CORTEX_QDRANT_URL is not set.

        Raises InvalidError for what cannot be meant, without repeating a secret.
        """
        url = env.get("CORTEX_QDRANT_URL", "").strip()
        if not url:
            return None
        collection = env.get("CORTEX_QDRANT_COLLECTION", "").strip() or COLLECTION
        if not _NAME.fullmatch(collection):
            raise InvalidError(
                f"CORTEX_QDRANT_COLLECTION={collection!r} is not a name",
                "Valid: letters, digits, _ and -",
                "Correct it",
            )
        return cls(
            _checked(url),
            env.get("CORTEX_QDRANT_API_KEY", "").strip() or None,
            _seconds(env.get("CORTEX_QDRANT_TIMEOUT", "").strip()),
            collection,
        )


def _checked(url: str) -> str:
    valid = "Valid: http://localhost:6333, https://host:6333/prefix"
    try:
        parts = urlsplit(url)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname)
        _ = parts.port
    except ValueError:
        raise InvalidError("CORTEX_QDRANT_URL is not a URL", valid, "Correct it") from None
    if parts.username or parts.password or parts.query or parts.fragment:
        raise InvalidError(
            "CORTEX_QDRANT_URL carries more than an address",
            valid,
            "Put the key into CORTEX_QDRANT_API_KEY",
        )
    if not usable:
        raise InvalidError("CORTEX_QDRANT_URL is not an http address", valid, "Correct it")
    return url.rstrip("/")


def _seconds(text: str) -> float:
    try:
        value = float(text or TIMEOUT)
    except ValueError:
        value = -1.0
    if not 0 < value <= 600:
        raise InvalidError(
            f"CORTEX_QDRANT_TIMEOUT={text!r} is not a number of seconds",
            "Valid: above 0, up to 600",
            "Correct it or unset it",
        )
    return value
