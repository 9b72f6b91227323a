"""Talking to an embedding endpoint: one request, its limits, and what went wrong.

Whatever happens on the way leaves as UnavailableError with what to do; a way that is not
there at all as `NoSuchRoute`. No message holds the key, and none repeats what an endpoint
says to a refused one. Redirects are not followed: the key and the texts are for this
endpoint. A loopback endpoint is reached without a proxy.

Patience: 2 s to connect, then `seconds` for the whole answer, however slowly it drips. Busy
answers (429, 503) are asked again once where `Retry-After` is at most 2 s; anything beyond
is for the outbox, which tries again by itself.
"""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any, Final

from cortex.domain.endpoints import Endpoint, EndpointSettings
from cortex.domain.errors import UnavailableError
from cortex.vectors.protocols import error_of

if TYPE_CHECKING:
    import httpx2

_CONNECT: Final = 2.0
_SOON: Final = 2.0
_BUSY: Final = (429, 503)
_REFUSED: Final = (401, 403)
_ABSENT: Final = (404, 405, 501)


class NoSuchRoute(Exception):
    """The endpoint lives, and knows nothing of this path."""


class SlowEndpointError(UnavailableError):
    """It is there and does not answer in time."""


class EndpointClient:
    """Requests to one endpoint; safe to use from threads."""

    def __init__(self, endpoint: Endpoint, settings: EndpointSettings) -> None:
        import httpx2

        self._endpoint = endpoint
        self._key = settings.key_for(endpoint)
        self._withheld = settings.withheld(endpoint)
        self._http = httpx2.Client(
            headers={"Accept": "application/json", "Accept-Encoding": "identity"},
            trust_env=not endpoint.loopback,
        )

    def post(self, url: str, body: dict[str, Any], seconds: float, limit: int) -> object:
        """The JSON of the answer, of at most `limit` bytes."""
        return self._ask("POST", url, json.dumps(body).encode(), seconds, limit)

    def get(self, url: str, seconds: float, limit: int) -> object:
        return self._ask("GET", url, None, seconds, limit)

    def close(self) -> None:
        self._http.close()

    def unavailable(self, what: str, then: str = "") -> UnavailableError:
        """An error of this endpoint; `what` may quote it, without the key."""
        return UnavailableError(*self._parts(what, then))

    def _parts(self, what: str, then: str) -> tuple[str, str, str]:
        shown = f"the embedding endpoint {self._endpoint.url} {what}"
        if self._key:
            shown = shown.replace(self._key, "…")
        repair = (
            f"Check that it runs and serves {self._endpoint.model}; it is tried again by itself"
        )
        return shown, "", then or repair

    def _ask(
        self, method: str, url: str, content: bytes | None, seconds: float, limit: int
    ) -> object:
        deadline = time.monotonic() + seconds
        status, headers, raw = self._exchange(method, url, content, deadline, limit)
        pause = _retry_after(headers) if status in _BUSY else None
        if pause is not None and pause <= _SOON and time.monotonic() + pause < deadline:
            time.sleep(pause)
            status, headers, raw = self._exchange(method, url, content, deadline, limit)
        return self._judged(status, headers, raw)

    def _exchange(
        self, method: str, url: str, content: bytes | None, deadline: float, limit: int
    ) -> tuple[int, httpx2.Headers, bytes]:
        import httpx2

        headers = {"Content-Type": "application/json"} if content else {}
        if self._key:
            headers["Authorization"] = f"Bearer {self._key}"
        left = max(deadline - time.monotonic(), 0.1)
        timeout = httpx2.Timeout(left, connect=min(_CONNECT, left))
        try:
            with self._http.stream(
                method, url, content=content, headers=headers, timeout=timeout
            ) as answer:
                raw = bytearray()
                for piece in answer.iter_bytes():
                    raw += piece
                    if len(raw) > limit:
                        raise self.unavailable(f"answered with more than {limit:,} bytes")
                    if time.monotonic() > deadline:
                        raise SlowEndpointError(
                            *self._parts("did not finish its answer in time", "")
                        )
                return answer.status_code, answer.headers, bytes(raw)
        except httpx2.TimeoutException as error:
            what = f"did not answer in time ({type(error).__name__})"
            raise SlowEndpointError(*self._parts(what, "")) from error
        except (httpx2.HTTPError, httpx2.InvalidURL, httpx2.StreamError, RuntimeError) as error:
            # RuntimeError: the client was closed meanwhile, as the process ends.
            cause = f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"
            raise self.unavailable(f"cannot be reached ({cause})") from error

    def _judged(self, status: int, headers: httpx2.Headers, raw: bytes) -> object:
        """The answer's JSON, if it is one that went well."""
        if status in _REFUSED:
            raise self._refused(status)
        if 300 <= status < 400:
            raise self.unavailable(
                f"answered {status}, a redirect, which is not followed",
                "Set CORTEX_EMBED_URL to where it leads",
            )
        try:
            reply = json.loads(raw)
        except (ValueError, RecursionError) as error:
            if status in _ABSENT:
                raise NoSuchRoute from error
            kind = headers.get("content-type", "no type").partition(";")[0][:50]
            raise self.unavailable(f"answered {status} with {kind} that is no JSON") from error
        said = error_of(reply)
        if status in _ABSENT:
            if "model" not in said.lower():
                raise NoSuchRoute
            raise self.unavailable(
                f"has no model {self._endpoint.model} ({status}: {said})",
                f"Fetch it there (for Ollama: `ollama pull {self._endpoint.model}`), or correct "
                "CORTEX_EMBED_MODEL",
            )
        if status != 200:
            raise self.unavailable(f"answered {status}{f': {said}' if said else ''}")
        return reply

    def _refused(self, status: int) -> UnavailableError:
        if self._withheld:
            return self.unavailable(
                f"answered {status}; the key was kept back, as plain http shows it to others",
                "Use https, or set CORTEX_EMBED_INSECURE=1 where the network is trusted",
            )
        state = "does not accept the key" if self._key else "wants a key, and there is none for it"
        return self.unavailable(
            f"{state} ({status})",
            "Set CORTEX_EMBED_URL and CORTEX_EMBED_KEY as they belong together",
        )


def _retry_after(headers: httpx2.Headers) -> float | None:
    """Seconds to wait, where the answer says so in seconds."""
    said = headers.get("retry-after", "").strip()
    return float(said) if said.isdigit() and len(said) < 6 else None
