"""A hub on this machine: the parts of huggingface.co's interface that a download asks for."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import unquote, urlsplit

COMMIT = "0123456789abcdef0123456789abcdef01234567"


@dataclass
class Hub:
    """One repository. `broken` names a file whose bytes stop half-way; `asked` what was got."""

    repo: str
    files: dict[str, bytes]
    broken: str | None = None
    status: int = 200
    asked: list[tuple[str, str | None]] = field(default_factory=list)
    url: str = ""


def _handler(hub: Hub) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def log_message(self, format: str, *args: Any) -> None:
            pass

        def do_HEAD(self) -> None:
            self.do_GET()

        def do_GET(self) -> None:
            path = unquote(urlsplit(self.path).path)
            if hub.status != 200:
                self.send_error(hub.status)
            elif path.startswith(f"/api/models/{hub.repo}/tree/"):
                self._json(
                    [
                        {"type": "file", "path": name, "size": len(body), "oid": _oid(body)}
                        for name, body in hub.files.items()
                    ]
                )
            elif path.startswith(f"/api/models/{hub.repo}"):
                names = [{"rfilename": name} for name in hub.files]
                self._json({"id": hub.repo, "sha": COMMIT, "siblings": names})
            elif path.startswith(f"/{hub.repo}/resolve/{COMMIT}/"):
                self._file(path.partition(f"/resolve/{COMMIT}/")[2])
            else:
                self.send_error(404)

        def _json(self, value: Any) -> None:
            body = json.dumps(value).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            if self.command == "GET":
                self.wfile.write(body)

        def _file(self, name: str) -> None:
            body = hub.files.get(name)
            if body is None:
                self.send_error(404)
                return
            wanted = self.headers.get("Range")
            start = int(wanted.removeprefix("bytes=").split("-")[0]) if wanted else 0
            part = body[start:]
            self.send_response(206 if wanted else 200)
            self.send_header("X-Repo-Commit", COMMIT)
            self.send_header("ETag", f'"{_oid(body)}"')
            self.send_header("Content-Length", str(len(part)))
            if wanted:
                self.send_header("Content-Range", f"bytes {start}-{len(body) - 1}/{len(body)}")
            self.end_headers()
            if self.command == "GET":
                hub.asked.append((name, wanted))
                self.wfile.write(part[: len(part) // 2] if name == hub.broken else part)
                if name == hub.broken:
                    self.close_connection = True

    return Handler


def _oid(body: bytes) -> str:
    return hashlib.sha1(body).hexdigest()


@contextmanager
def serving(hub: Hub) -> Iterator[Hub]:
    """The hub on a port of its own; its address in `url`."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(hub))
    server.daemon_threads = True
    hub.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield hub
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
