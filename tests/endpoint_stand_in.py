"""A stand-in for Ollama and for an OpenAI-compatible server, on a port of its own.

No such server can be had in a test run. This one speaks both protocols with real vectors,
those of the offline model, and can be told to misbehave. It knows two models: `all-minilm`,
the offline model as it is, and `half-minilm`, the first 192 of its 384 numbers.
"""

from __future__ import annotations

import json
import socket
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from cortex.vectors.embedder import Embedder
from cortex.vectors.models import resolve_model

DIGEST = "0a109f422b47e3a30ba2b10eca18548e944e8a23073ee3f3e947efcf3c45e59f"
WIDTH = {"all-minilm": 384, "half-minilm": 192}

_FOLDER = tempfile.TemporaryDirectory()


@cache
def _model() -> Embedder:
    return Embedder(resolve_model("offline"), cache_dir=Path(_FOLDER.name), idle_seconds=1e9)


@dataclass
class Endpoint:
    """What it serves and how it fails; `seen` is what was asked of it, oldest first.

    Where it hangs it answers after `release` is set, and then sets `answered`.
    """

    protocols: tuple[str, ...] = ("openai", "ollama")
    key: str | None = None
    fault: str | None = None
    faults_left: int = 1 << 30
    poison: str | None = None
    digest: str = DIGEST
    seen: list[tuple[str, dict[str, str], dict[str, Any]]] = field(default_factory=list)
    release: threading.Event = field(default_factory=threading.Event)
    answered: threading.Event = field(default_factory=threading.Event)
    url: str = ""
    port: int = 0

    def paths(self) -> list[str]:
        return [path for path, _, _ in self.seen]

    def texts(self) -> list[list[str]]:
        """What was to be embedded, request by request."""
        return [body["input"] for _, _, body in self.seen if "input" in body]


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    endpoint: Endpoint

    def log_message(self, *_: object) -> None:
        """stderr belongs to the test run."""

    def do_GET(self) -> None:
        self.endpoint.seen.append((self.path, dict(self.headers), {}))
        if self.path == "/api/tags" and "ollama" in self.endpoint.protocols:
            models = [{"name": f"{name}:latest", "digest": self.endpoint.digest} for name in WIDTH]
            self.reply(200, {"models": models})
        else:
            self.say(404, b"404 page not found", "text/plain")

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.endpoint.seen.append((self.path, dict(self.headers), body))
        dialect = {"/v1/embeddings": "openai", "/api/embed": "ollama"}.get(self.path)
        if self.endpoint.fault and self.endpoint.faults_left > 0:
            self.endpoint.faults_left -= 1
            self.misbehave(self.endpoint.fault, len(body["input"]))
        elif dialect not in self.endpoint.protocols:
            self.say(404, b"404 page not found", "text/plain")
        elif self.endpoint.key and self.headers["Authorization"] != f"Bearer {self.endpoint.key}":
            said = f"Incorrect API key provided: {self.headers['Authorization']}"
            self.reply(401, {"error": {"message": said}})
        elif body["model"] not in WIDTH:
            self.reply(404, {"error": f'model "{body["model"]}" not found, try pulling it first'})
        elif self.endpoint.poison and any(self.endpoint.poison in text for text in body["input"]):
            self.reply(400, {"error": {"message": "the input is longer than the context"}})
        else:
            rows = _model().embed_passages(body["input"])[:, : WIDTH[body["model"]]].tolist()
            self.reply(200, answer(dialect, rows))

    def misbehave(self, fault: str, count: int) -> None:
        rows = [[1.0, 0.5]] * count
        match fault:
            case "html":
                self.say(502, b"<html>Bad Gateway</html>", "text/html")
            case "html 200":
                self.say(200, b"<html>Welcome</html>", "text/html")
            case "redirect":
                self.say(307, b"", "text/plain", Location="http://127.0.0.1:1/v1/embeddings")
            case "busy":
                self.say(503, b'{"error":"loading"}', "application/json", **{"Retry-After": "0"})
            case "busy long":
                self.say(429, b'{"error":"slow down"}', "application/json", **{"Retry-After": "60"})
            case "slow":
                time.sleep(1.5)
                self.reply(200, answer("openai", rows))
            case "hang":
                self.endpoint.release.wait(20)
                self.endpoint.answered.set()
                self.reply(503, {"error": "late"})
            case "drip":
                self.drip()
            case "huge":
                self.say(200, b" " * (2 << 20), "application/json")
            case "two numbers":
                self.reply(200, answer("openai", rows))
            case "few":
                self.reply(200, answer("openai", rows[1:]))
            case "nan":
                self.reply(200, answer("openai", [[float("nan"), 1.0]] * count))
            case "zero":
                self.reply(200, answer("openai", [[0.0, 0.0]] * count))
            case "ragged":
                self.reply(200, answer("openai", [[1.0], [1.0, 2.0]][:count]))
            case "text":
                self.reply(200, {"data": [{"index": 0, "embedding": "AAAA"}] * count})
            case "deep":
                self.say(200, b"[" * 100_000, "application/json")
            case "cut":
                self.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{")
                self.close_connection = True
            case "twice":
                rows = [{"index": 0, "embedding": row} for row in rows]
                self.reply(200, {"data": rows})

    def drip(self) -> None:
        self.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n")
        for _ in range(1000):
            try:
                self.wfile.write(b" ")
            except OSError:  # nobody listens any more
                break
            time.sleep(0.05)
        self.close_connection = True

    def reply(self, status: int, value: object) -> None:
        self.say(status, json.dumps(value).encode(), "application/json")

    def say(self, status: int, body: bytes, kind: str, **headers: str) -> None:
        self.send_response(status)
        for name, value in {
            "Content-Type": kind,
            "Content-Length": str(len(body)),
            **headers,
        }.items():
            self.send_header(name, value)
        with suppress(OSError):  # nobody listens any more
            self.end_headers()
            self.wfile.write(body)


def answer(dialect: str | None, rows: list[list[float]]) -> dict[str, Any]:
    """The vectors in the form of a protocol; OpenAI's backwards, as its `index` permits."""
    if dialect == "ollama":
        return {"model": "all-minilm", "embeddings": rows}
    data = [{"index": nth, "embedding": row} for nth, row in enumerate(rows)]
    return {"object": "list", "data": data[::-1], "usage": {"prompt_tokens": 1}}


class _Server(ThreadingHTTPServer):
    """One whose end also ends the connections that clients keep open."""

    def __init__(self, *given: Any) -> None:
        self.connections: list[socket.socket] = []
        super().__init__(*given)

    def get_request(self) -> tuple[socket.socket, Any]:
        connection, address = super().get_request()
        self.connections.append(connection)
        return connection, address

    def handle_error(self, *_: Any) -> None:
        if not isinstance(sys.exception(), OSError):  # a client that hung up
            super().handle_error(*_)

    def end(self) -> None:
        self.shutdown()
        self.server_close()
        for connection in self.connections:
            with suppress(OSError):  # closed already
                connection.shutdown(socket.SHUT_RDWR)


@contextmanager
def serving(endpoint: Endpoint | None = None) -> Iterator[Endpoint]:
    """The endpoint on a free port, or on its own where it had one before."""
    endpoint = endpoint or Endpoint()
    handler = type("Handler", (_Handler,), {"endpoint": endpoint})
    server = _Server(("127.0.0.1", endpoint.port), handler)
    endpoint.port = int(server.server_address[1])
    endpoint.url = f"http://127.0.0.1:{endpoint.port}"
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield endpoint
    finally:
        server.end()
        thread.join()


def free_endpoint(**given: Any) -> Endpoint:
    """One that is down, with a port that nothing listens on."""
    with serving(Endpoint(**given)) as endpoint:
        return endpoint
