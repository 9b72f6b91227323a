"""A stand-in for a Qdrant server, for lack of one where the tests run.

It answers the REST calls that qdrant-client makes by handing them to qdrant-client's own
local mode, in memory, and can be made to fail as a server does: refuse a key, answer 5xx,
answer late, break off in the middle of a body, not be there at all. What it does not have
is a server's graph index, its write-ahead log and its optimiser: answers are exact, and a
write is seen at once.
"""

from __future__ import annotations

import json
import re
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final

from pydantic import BaseModel, TypeAdapter
from qdrant_client import QdrantClient
from qdrant_client.http import models

_PATH: Final = re.compile(r"/collections/(?P<name>[^/?]+)(?P<what>[^?]*)")


class StandIn:
    """One server; the faults are attributes that a test sets and takes back."""

    def __init__(self) -> None:
        self.local = QdrantClient(":memory:")
        self.lock = threading.Lock()
        self.api_key: str | None = None
        self.failing = 0
        """The status that every call is answered with; 0 for none."""
        self.failures_left = -1
        """After how many failing calls it recovers; -1 for never."""
        self.delay = 0.0
        self.cut = False
        self.calls: list[str] = []
        self._server: ThreadingHTTPServer | None = None
        self._port = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._port}"

    def start(self) -> None:
        """Listen; after `stop`, again on the same port, with all that was stored."""
        stand_in = self

        class Handler(_Handler):
            owner = stand_in

        self._server = _Quiet(("127.0.0.1", self._port), Handler)
        self._server.daemon_threads = True
        self._port = self._server.server_port
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()

    def stop(self) -> None:
        """Refuse connections."""
        assert self._server is not None
        self._server.shutdown()
        self._server.server_close()

    def well(self) -> None:
        """Take back every fault."""
        self.failing, self.failures_left, self.delay, self.cut = 0, -1, 0.0, False


class _Quiet(ThreadingHTTPServer):
    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that gave up waiting is no error here; others would be."""
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(request, client_address)


class _Handler(BaseHTTPRequestHandler):
    owner: StandIn
    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""

    def handle_one_request(self) -> None:
        try:
            super().handle_one_request()
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True  # the client gave up waiting

    def do_GET(self) -> None:
        self._serve("GET")

    def do_PUT(self) -> None:
        self._serve("PUT")

    def do_POST(self) -> None:
        self._serve("POST")

    def _serve(self, method: str) -> None:
        owner = self.owner
        size = int(self.headers.get("Content-Length") or 0)
        body = json.loads(self.rfile.read(size) or b"null")
        found = _PATH.match(self.path)
        what = f"{method} {found['what'] if found else self.path}"
        owner.calls.append(what)
        if owner.delay:
            time.sleep(owner.delay)
        if owner.api_key and self.headers.get("api-key") != owner.api_key:
            self._answer(401, {"status": {"error": "Must provide an API key"}})
        elif owner.failing:
            status = owner.failing
            if owner.failures_left > 0:
                owner.failures_left -= 1
                owner.failing = owner.failing if owner.failures_left else 0
            self._answer(status, {"status": {"error": "stand-in fault"}})
        elif found is None or what not in CALLS:
            self._answer(404, {"status": {"error": f"the stand-in does not know {what}"}})
        else:
            self._call(found["name"], what, body)

    def _call(self, name: str, what: str, body: Any) -> None:
        try:
            with self.owner.lock, warnings.catch_warnings():
                warnings.simplefilter("ignore")  # local mode warns that indexes do nothing
                result = CALLS[what](self.owner.local, name, body)
        except ValueError as error:
            status = 404 if "not found" in str(error) else 400
            self._answer(status, {"status": {"error": str(error)}})
        else:
            self._answer(200, {"result": _plain(result), "status": "ok", "time": 0.0})

    def _answer(self, status: int, value: object) -> None:
        content = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if self.owner.cut:
            self.wfile.write(content[: len(content) // 2])
            self.close_connection = True
        else:
            self.wfile.write(content)


def _plain(value: Any) -> Any:
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json", exclude_none=True)
    return [_plain(item) for item in value] if isinstance(value, list) else value


def _create(local: QdrantClient, name: str, body: Any) -> bool:
    asked = models.CreateCollection.model_validate(body)
    return local.create_collection(
        name,
        vectors_config=asked.vectors,
        sparse_vectors_config=asked.sparse_vectors,
    )


def _index(local: QdrantClient, name: str, body: Any) -> models.UpdateResult:
    asked = models.CreateFieldIndex.model_validate(body)
    return local.create_payload_index(name, asked.field_name, asked.field_schema)


def _upsert(local: QdrantClient, name: str, body: Any) -> models.UpdateResult:
    asked = models.PointsList.model_validate(body)
    return local.upsert(name, asked.points, update_filter=asked.update_filter)


def _delete(local: QdrantClient, name: str, body: Any) -> models.UpdateResult:
    chosen: Any = TypeAdapter(models.PointsSelector).validate_python(body)
    return local.delete(name, chosen)


def _retrieve(local: QdrantClient, name: str, body: Any) -> list[models.Record]:
    asked = models.PointRequest.model_validate(body)
    return local.retrieve(
        name, asked.ids, with_payload=asked.with_payload or True, with_vectors=False
    )


def _query(local: QdrantClient, name: str, body: Any) -> models.QueryResponse:
    asked = models.QueryRequest.model_validate(body)
    return local.query_points(
        name,
        query=asked.query,
        using=asked.using,
        prefetch=asked.prefetch,
        query_filter=asked.filter,
        limit=asked.limit or 10,
        with_payload=asked.with_payload or False,
    )


def _scroll(local: QdrantClient, name: str, body: Any) -> dict[str, Any]:
    asked = models.ScrollRequest.model_validate(body)
    records, offset = local.scroll(
        name,
        scroll_filter=asked.filter,
        limit=asked.limit or 10,
        offset=asked.offset,
        with_payload=asked.with_payload or False,
    )
    return {"points": _plain(records), "next_page_offset": offset}


def _count(local: QdrantClient, name: str, body: Any) -> models.CountResult:
    asked = models.CountRequest.model_validate(body)
    return local.count(name, count_filter=asked.filter)


def _describe(local: QdrantClient, name: str, _: Any) -> models.CollectionInfo:
    return local.get_collection(name)


def _exists(local: QdrantClient, name: str, _: Any) -> dict[str, bool]:
    return {"exists": local.collection_exists(name)}


CALLS: Final[dict[str, Callable[[QdrantClient, str, Any], Any]]] = {
    "GET /exists": _exists,
    "GET ": _describe,
    "PUT ": _create,
    "PUT /index": _index,
    "PUT /points": _upsert,
    "POST /points": _retrieve,
    "POST /points/delete": _delete,
    "POST /points/query": _query,
    "POST /points/scroll": _scroll,
    "POST /points/count": _count,
}


@contextmanager
def standing_in() -> Iterator[StandIn]:
    """A stand-in that listens until the block ends."""
    made = StandIn()
    made.start()
    try:
        yield made
    finally:
        made.well()
        made.stop()
        made.local.close()
