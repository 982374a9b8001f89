"""An issuer of tokens on this machine, for clients: discovery and client credentials, with what it was asked."""

from __future__ import annotations

import json
import ssl
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs


class TokenEndpoint:
    """What the issuer says, which a test may change while it runs, and what it was asked."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.asked: list[dict[str, str]] = []
        """The forms that came to the token endpoint."""
        self.discoveries = 0
        self.metadata: dict[str, Any] = {"issuer": url, "token_endpoint": f"{url}/token"}
        self.documents: dict[str, Any] = {}
        """What other paths than that of the metadata hold."""
        self.requested: list[str] = []
        """The paths that were read."""
        self.discovery_status = 200
        self.status = 200
        self.answer: Any = {"access_token": "first", "token_type": "Bearer", "expires_in": 600}
        self.headers: dict[str, str] = {}
        self.open = threading.Event()
        """Forms are answered when this is set."""
        self.open.set()
        self.drops: tuple[int, float] | None = None
        """Answers come byte by byte, from that byte on, with so many seconds in between."""


@contextmanager
def token_endpoint(context: ssl.SSLContext | None = None) -> Iterator[TokenEndpoint]:
    """Served by a thread until the end; with a context over https."""
    endpoint: TokenEndpoint

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            endpoint.requested.append(self.path)
            if self.path in endpoint.documents:
                self._say(200, endpoint.documents[self.path])
                return
            endpoint.discoveries += 1
            self._say(endpoint.discovery_status, endpoint.metadata)

        def do_POST(self) -> None:
            form = self.rfile.read(int(self.headers["content-length"])).decode()
            endpoint.asked.append({name: values[0] for name, values in parse_qs(form).items()})
            endpoint.open.wait(10)
            self._say(endpoint.status, endpoint.answer)

        def _say(self, status: int, content: Any) -> None:
            data = content if isinstance(content, bytes) else json.dumps(content).encode()
            named = {**endpoint.headers, "content-length": str(len(data))}
            head = "".join(f"{name}: {value}\r\n" for name, value in named.items())
            said = f"HTTP/1.1 {status} OK\r\n{head}\r\n".encode() + data
            if endpoint.drops is None:
                self.wfile.write(said)
                return
            start, seconds = endpoint.drops
            self.wfile.write(said[:start])
            for at in range(start, len(said)):
                time.sleep(seconds)
                self.wfile.write(said[at : at + 1])

        def log_message(self, *_: Any) -> None:
            """Nothing on standard error."""

    class Server(ThreadingHTTPServer):
        def handle_error(self, *_: Any) -> None:
            """A client that does not like our certificate is no error of ours."""

    server = Server(("127.0.0.1", 0), Handler)
    if context is not None:
        server.socket = context.wrap_socket(server.socket, server_side=True)
    scheme = "http" if context is None else "https"
    endpoint = TokenEndpoint(f"{scheme}://localhost:{server.server_address[1]}")
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    try:
        yield endpoint
    finally:
        server.shutdown()
        thread.join(10)
        server.server_close()
