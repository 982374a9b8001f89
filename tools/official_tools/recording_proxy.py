"""Stands between a tool and a broker's REST interface, and notes every request with its answer."""

from __future__ import annotations

import http.client
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any

from tools.official_tools.exchange import Exchange
from tools.servers.process import HOST

_SECONDS_MAX = 40.0
_KEPT_HEADERS = ("content-type", "accept", "authorization")


class RecordingProxy:
    """An HTTP server on loopback in front of ``port``; use it as a context manager."""

    def __init__(self, port: int) -> None:
        self._noted: list[Exchange] = []
        self._lock = threading.Lock()
        proxy = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def handle_one_request(self) -> None:
                try:
                    super().handle_one_request()
                except ConnectionError:
                    self.close_connection = True

            def log_message(self, format: str, *args: Any) -> None:
                pass

            def answer(self) -> None:
                proxy._forward(self, port)

            do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = answer

        self._server = ThreadingHTTPServer((HOST, 0), Handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)

    @property
    def url(self) -> str:
        return f"http://{HOST}:{self._server.server_address[1]}"

    def __enter__(self) -> RecordingProxy:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def taken(self) -> list[Exchange]:
        """What was noted since the last call."""
        with self._lock:
            found, self._noted = self._noted, []
        return found

    def _forward(self, handler: BaseHTTPRequestHandler, port: int) -> None:
        body = handler.rfile.read(int(handler.headers.get("Content-Length", 0)))
        headers = {name: handler.headers[name] for name in _KEPT_HEADERS if handler.headers[name]}
        broker = http.client.HTTPConnection(HOST, port, timeout=_SECONDS_MAX)
        try:
            broker.request(handler.command, handler.path, body or None, headers)
            answer = broker.getresponse()
            content = answer.read()
        finally:
            broker.close()
        kind = answer.getheader("Content-Type", "")
        shown = {name: value for name, value in answer.getheaders() if name.lower().startswith("x-pulsar")}
        with self._lock:
            self._noted.append(
                Exchange(
                    handler.command, handler.path, headers.get("content-type", ""), body.decode(), answer.status,
                    kind, shown, content.decode("latin-1"),
                )
            )  # fmt: skip
        handler.send_response(answer.status)
        for name, value in answer.getheaders():
            if name.lower() not in ("transfer-encoding", "connection", "content-length", "date", "server"):
                handler.send_header(name, value)
        handler.send_header("Content-Length", str(len(content)))
        handler.end_headers()
        handler.wfile.write(content)
