"""An embedding endpoint: where it is and which of its models is meant.

It is written as `URL#MODEL`, in settings and in the file alike. Keys and passwords have no
place in it: what is stored or shown never holds one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from ipaddress import ip_address
from typing import Final, Literal
from urllib.parse import SplitResult, urlsplit

from cortex.domain.errors import InvalidError

_VALID: Final = "Valid: http://localhost:11434, https://host/v1, and the like"
_YES: Final = ("1", "true", "yes", "on")
_OPENAI: Final = ("https", "api.openai.com", 443)


@dataclass(frozen=True, slots=True)
class Endpoint:
    """`url` has a lower-case scheme and host, no credentials, query, fragment or last slash."""

    url: str
    model: str

    @property
    def source(self) -> str:
        """The form that is stored, and that `parse_source` reads back."""
        return f"{self.url}#{self.model}"

    @property
    def origin(self) -> tuple[str, str, int]:
        """Scheme, host and port: who answers."""
        return origin_of(self.url)

    @property
    def secure(self) -> bool:
        """Whether nobody on the way reads along: https, or this very machine."""
        return self.url.startswith("https:") or self.loopback

    @property
    def loopback(self) -> bool:
        host = urlsplit(self.url).hostname or ""
        if host == "localhost":
            return True
        try:
            return ip_address(host).is_loopback
        except ValueError:  # a name
            return False


def is_source(text: str) -> bool:
    """Whether a model's name is that of an endpoint."""
    return text.strip().lower().startswith(("http://", "https://"))


def parse_source(text: str) -> Endpoint:
    """Read `URL#MODEL`. Raises InvalidError, as the two parsers below do."""
    url, _, model = text.strip().partition("#")
    return Endpoint(parse_url(url), parse_model_name(model))


def parse_model_name(text: str) -> str:
    """The name of an endpoint's model; raises InvalidError when it is none."""
    name = text.strip()
    if not name or not name.isprintable() or len(name) > 200:
        raise InvalidError(
            f"the endpoint's model {name[:50]!r} is no name",
            "Valid: URL#MODEL, or CORTEX_EMBED_URL with CORTEX_EMBED_MODEL",
            "Name the model as the endpoint does, e.g. nomic-embed-text",
        )
    return name


def parse_url(text: str) -> str:
    """The URL in its one form. Raises InvalidError; what it holds is not repeated there."""
    text = text.strip()
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError as error:
        raise InvalidError("the endpoint's URL cannot be read", _VALID, "Correct it") from error
    _refuse_secrets(parts)
    host = parts.hostname
    odd = not text.isascii() or not text.isprintable() or " " in text
    if parts.scheme not in ("http", "https") or not host or odd:
        raise InvalidError(
            "the endpoint's URL is not one of http or https", _VALID, "Correct CORTEX_EMBED_URL"
        )
    name = f"[{host}]" if ":" in host else host
    place = name if port is None else f"{name}:{port}"
    return f"{parts.scheme}://{place}{parts.path.rstrip('/')}"


def _refuse_secrets(parts: SplitResult) -> None:
    if parts.username is not None or parts.password is not None:
        raise InvalidError(
            "the endpoint's URL holds a user name or password, which would be stored and shown",
            "Valid: a URL without them, and the key in CORTEX_EMBED_KEY",
            "Take them out of the URL",
        )
    if parts.query or parts.fragment:
        raise InvalidError(
            "the endpoint's URL holds a query or fragment, which may hold a key",
            "Valid: a URL that ends with its path, and the key in CORTEX_EMBED_KEY",
            "Take it out of the URL",
        )


def origin_of(url: str) -> tuple[str, str, int]:
    """Scheme, host and port of a URL that `parse_url` gave."""
    parts = urlsplit(url)
    return (
        parts.scheme,
        parts.hostname or "",
        parts.port or (443 if parts.scheme == "https" else 80),
    )


@dataclass(frozen=True, slots=True)
class EndpointSettings:
    """How endpoints are asked, and which one is chosen by `url` and `model`.

    A prefix is None where the model's name decides. The keys are in no representation of
    this, so that no log or error shows one. `insecure` lets the key go over plain http to
    another machine.
    """

    url: str | None = None
    model: str | None = None
    dialect: Literal["openai", "ollama"] | None = None
    query_prefix: str | None = None
    passage_prefix: str | None = None
    insecure: bool = False
    key: str = field(default="", repr=False)
    openai_key: str = field(default="", repr=False)

    @classmethod
    def read(cls, env: Mapping[str, str]) -> EndpointSettings:
        """What CORTEX_EMBED_… and OPENAI_API_KEY say. Raises InvalidError."""
        url, model, dialect = (
            env.get(f"CORTEX_EMBED_{name}", "").strip() for name in ("URL", "MODEL", "PROTOCOL")
        )
        if dialect.lower() not in ("", "openai", "ollama"):
            raise InvalidError(
                f"CORTEX_EMBED_PROTOCOL={dialect!r} is unknown",
                "Valid: openai, ollama",
                "Choose one of these, or unset it to have it found out",
            )
        return cls(
            url=parse_url(url) if url else None,
            model=parse_model_name(model) if model else None,
            dialect=None if not dialect else "ollama" if dialect.lower() == "ollama" else "openai",
            query_prefix=env.get("CORTEX_EMBED_QUERY_PREFIX"),
            passage_prefix=env.get("CORTEX_EMBED_PASSAGE_PREFIX"),
            insecure=env.get("CORTEX_EMBED_INSECURE", "").strip().lower() in _YES,
            key=env.get("CORTEX_EMBED_KEY", "").strip(),
            openai_key=env.get("OPENAI_API_KEY", "").strip(),
        )

    @property
    def chosen(self) -> str | None:
        """`source`, where both its parts are set, else None."""
        return self.source if self.url and self.model else None

    @property
    def source(self) -> str | None:
        """`URL#MODEL` where both are set, None where neither is. Raises InvalidError for one."""
        if self.url is None and self.model is None:
            return None
        if self.url is None or self.model is None:
            there, lacking = ("URL", "MODEL") if self.url else ("MODEL", "URL")
            raise InvalidError(
                f"CORTEX_EMBED_{there} is set without CORTEX_EMBED_{lacking}",
                "Valid: both, or neither",
                f"Set CORTEX_EMBED_{lacking}, or unset CORTEX_EMBED_{there}",
            )
        return Endpoint(self.url, self.model).source

    def key_for(self, endpoint: Endpoint) -> str:
        """The key that this endpoint may see, else "".

        `key` belongs to the origin of `url`; without a url, to whatever endpoint is named.
        `openai_key`, which other programs share, goes to api.openai.com alone. Neither goes
        where the way is open to others, unless `insecure`.
        """
        if not (endpoint.secure or self.insecure):
            return ""
        if self.key:
            ours = self.url is None or origin_of(self.url) == endpoint.origin
            return self.key if ours else ""
        return self.openai_key if endpoint.origin == _OPENAI else ""

    def withheld(self, endpoint: Endpoint) -> bool:
        """Whether a key is kept back only because the way is not secure."""
        return not self.key_for(endpoint) and bool(replace(self, insecure=True).key_for(endpoint))
